"""Translates PostgreSQL's regular expressions to the syntax of RE2, which evaluates them.

This module refuses syntax that RE2 lacks or reads differently: lookaround, back references, word boundaries. If a
match's extent matters (`regexp_replace`, `regexp_match`), PostgreSQL takes the longest match, and RE2 the first
alternative that leads to a match; those functions accept only expressions for which both agree (`regex_extent`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.functions import regex_extent
from halfjoin.sql.functions.regex_chars import SHORT, cases, exactly, named, quoted
from halfjoin.sql.functions.regex_nodes import (
    ALL,
    Alternatives,
    Anchor,
    Chars,
    Group,
    Node,
    Repeat,
    Sequence,
    complement,
    folded,
)  # fmt: skip

_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "e": "\x1b"}
_LONGEST_REPEAT = 255


@dataclass(frozen=True, slots=True)
class Regex:
    """A translated expression: `text` for RE2, the number of groups, whether it can match the empty text."""

    text: str
    groups: int
    nullable: bool
    everywhere: bool  # flag g
    optional: bool  # a match may leave a group out


@lru_cache(maxsize=1024)
def to_re2(pattern: str, flags: str = "", *, spans: bool = False) -> Regex:
    """Translate an expression for RE2, or raise UnsupportedSQL; `spans`: the extent of a match matters."""
    unknown = set(flags) - set("gic")
    if unknown:
        raise UnsupportedSQL(f"regular expression flag {''.join(sorted(unknown))!r}", remedy="use i or g")
    fold = "i" in flags
    if pattern.startswith("(?i)"):
        pattern, fold = pattern[4:], True
    parser = _Parser(pattern, fold)
    tree = parser.whole()
    if spans:
        reason = regex_extent.ambiguity(tree)
        if reason:
            raise UnsupportedSQL(
                f"regular expression '{pattern}': {reason}, so that its longest match is not its first",
                remedy="write it so that each part can begin in one way only")
    return Regex(f"(?s){tree.text()}", parser.groups, tree.width()[0] == 0, "g" in flags,
                 regex_extent.has_optional_group(tree))


def separator(pattern: str) -> str:
    """A pattern to split at, for RE2; the empty pattern splits between all characters.

    Raises:
        UnsupportedSQL: RE2 cannot run the pattern as PostgreSQL does, or it is not empty but matches the empty text.
    """
    if pattern == "":
        return ""
    regex = to_re2(pattern, spans=True)
    if regex.nullable:
        raise UnsupportedSQL(f"regular expression '{pattern}' as a separator: it can match the empty text",
                             remedy="write one that matches at least a character, with + for *")
    return regex.text


def replacement(text: str, groups: int) -> str:
    """Translate a replacement to RE2's syntax. PostgreSQL's: `\\1` to `\\9` a group, `\\&` the match, `\\\\` a `\\`."""
    out, rest = "", iter(text)
    for char in rest:
        if char != "\\":
            out += char
            continue
        following = next(rest, "\\")
        if following == "&":
            out += "\\0"
        elif following in "123456789":
            if int(following) > groups:
                raise UnsupportedSQL(f"replacement '{text}' names group {following} of {groups}")
            out += "\\" + following
        else:
            out += "\\\\" + (following if following != "\\" else "")
    return out


class _Parser:
    """A recursive descent parser of alternatives, sequences, repeats and atoms."""

    def __init__(self, pattern: str, fold: bool) -> None:
        self.pattern, self.fold, self.position, self.groups = pattern, fold, 0, 0

    def whole(self) -> Node:
        if self.pattern.startswith("***"):
            raise self._refuse("a *** prefix")
        tree = self._alternatives()
        if self.position < len(self.pattern):
            raise self._refuse("an unmatched )")
        return tree

    def _refuse(self, what: str, instead: str | None = None) -> UnsupportedSQL:
        return UnsupportedSQL(f"regular expression '{self.pattern}': {what}", remedy=instead)

    def _peek(self) -> str:
        return self.pattern[self.position : self.position + 1]

    def _next(self) -> str:
        char = self._peek()
        self.position += 1
        return char

    def _accept(self, text: str) -> bool:
        found = self.pattern.startswith(text, self.position)
        self.position += len(text) if found else 0
        return found

    def _alternatives(self) -> Node:
        branches = [self._sequence()]
        while self._accept("|"):
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else Alternatives(tuple(branches))

    def _sequence(self) -> Node:
        items: list[Node] = []
        while self._peek() not in ("", "|", ")"):
            items.append(self._repeat(self._atom()))
        return Sequence(tuple(items))

    def _repeat(self, item: Node) -> Node:
        bounds = self._bounds()
        if bounds is None:
            return item
        if isinstance(item, Anchor):
            raise self._refuse("a repeated ^ or $")
        lazy = self._accept("?")
        if self._bounds() is not None:
            raise self._refuse("a repeat of a repeat")
        return Repeat(item, bounds[0], bounds[1], lazy)

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._accept(sign):
                return bounds
        following = self.pattern[self.position + 1 : self.position + 2]
        if self._peek() != "{" or not ("0" <= following <= "9"):
            return None
        end = self.pattern.find("}", self.position)
        parts = self.pattern[self.position + 1 : end].split(",") if end > 0 else [""]
        if len(parts) > 2 or not parts[0].isdigit() or not (parts[-1].isdigit() or (len(parts) == 2 and not parts[1])):
            raise self._refuse("an invalid repetition count")
        low = int(parts[0])
        high = low if len(parts) == 1 else int(parts[1]) if parts[1] else None
        if max(low, high or 0) > _LONGEST_REPEAT or (high is not None and high < low):
            raise self._refuse("an invalid repetition count")
        self.position = end + 1
        return low, high

    def _atom(self) -> Node:
        char = self._next()
        match char:
            case "(":
                return self._group()
            case "[":
                return self._bracket()
            case "\\":
                return self._escape()
            case ".":
                return Chars(".", ALL)
            case "^":
                return Anchor("^")
            case "$":
                return Anchor("$")
            case "*" | "+" | "?":
                raise self._refuse(f"{char} has nothing to repeat")
            case _:
                return self._char(char)

    def _char(self, char: str) -> Chars:
        others = cases(char, char) if self.fold else ""
        text = exactly(f"[{''.join(map(quoted, char + others))}]") if others else quoted(char)
        return Chars(text, folded(((ord(char), ord(char)),), self.fold))

    def _group(self) -> Node:
        number = None
        if not self._accept("?:"):
            if self._peek() == "?":
                raise self._refuse("lookaround and embedded options", "test the parts with several conditions")
            self.groups += 1
            number = self.groups
        inner = self._alternatives()
        if not self._accept(")"):
            raise self._refuse("a ( without )")
        return Group(inner, number)

    def _escape(self) -> Node:
        char = self._next()
        found = named(SHORT.get(char.lower(), ""), self.fold)
        if found is not None:
            text, ranges = found
            negated = char.isupper()
            return Chars(f"[{'^' if negated else ''}{text}]", complement(ranges) if negated else ranges)
        if char == "A":
            return Anchor(r"\A")
        if char == "Z":
            return Anchor(r"\z")
        return self._char(self._escaped(char))

    def _escaped(self, char: str) -> str:
        """The character that an escape means."""
        if char in _CONTROL:
            return _CONTROL[char]
        if char.isdigit():
            raise self._refuse("a back reference")
        if char == "b":
            raise self._refuse("\\b is a backspace in PostgreSQL", "test for [^[:alnum:]_] around the word")
        if char in ("m", "M", "y", "Y"):
            raise self._refuse("word boundaries", "test for [^[:alnum:]_] around the word")
        if not char or char.isalpha():
            raise self._refuse(f"the escape \\{char}")
        return char

    def _bracket(self) -> Chars:
        negated = self._accept("^")
        texts: list[str] = []
        ranges: tuple[tuple[int, int], ...] = ()
        first = True
        while first or self._peek() != "]":
            first = False
            if self._accept("[:"):
                name, _, _ = self.pattern[self.position :].partition(":]")
                found = named(name, self.fold)
                if found is None:
                    raise self._refuse(f"the class [:{name}:]")
                self.position += len(name) + 2
            else:
                escaped = self._accept("\\")
                found = named(SHORT.get(self._peek(), ""), self.fold) if escaped else None
                if found is not None:
                    self.position += 1
                else:
                    found = self._range(escaped)
            texts.append(found[0])
            ranges += found[1]
        self.position += 1
        ranges = folded(ranges, self.fold)
        text = f"[{'^' if negated else ''}{''.join(texts)}]"
        return Chars(exactly(text) if self.fold else text, complement(ranges) if negated else ranges)

    def _range(self, escaped: bool) -> tuple[str, tuple[tuple[int, int], ...]]:
        """A character, or a range between two characters, inside brackets."""
        low = self._member(escaped)
        if self._peek() == "-" and self.pattern[self.position + 1 : self.position + 2] not in ("]", ""):
            self.position += 1
            high = self._member(self._accept("\\"))
            if high < low:
                raise self._refuse("a range that ends before it begins")
            others = cases(low, high) if self.fold else ""
            return f"{quoted(low)}-{quoted(high)}" + "".join(map(quoted, others)), ((ord(low), ord(high)),)
        return "".join(map(quoted, low + (cases(low, low) if self.fold else ""))), ((ord(low), ord(low)),)

    def _member(self, escaped: bool) -> str:
        char = self._next()
        if not char:
            raise self._refuse("a [ without ]")
        if char == "[" and not escaped and self._peek() in (".", "="):
            raise self._refuse("collating elements")
        return self._escaped(char) if escaped else char
