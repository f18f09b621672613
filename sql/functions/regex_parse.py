"""Parses PostgreSQL's advanced regular expressions to trees (`regex_nodes`)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.functions import regex_extent
from halfjoin.sql.functions.regex_chars import SHORT, alike, cases, exactly, named, quoted
from halfjoin.sql.functions.regex_nodes import (
    ALL,
    Alternatives,
    Anchor,
    Back,
    Chars,
    Group,
    Look,
    Node,
    Repeat,
    Sequence,
    complement,
    folded,
)  # fmt: skip

_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "e": "\x1b", "B": "\\"}
_BOUNDARIES = {"A": r"\A", "Z": r"\z", "m": r"\m", "M": r"\M", "y": r"\y", "Y": r"\Y"}
_CODES = {"u": 4, "U": 8}  # escapes with so many hexadecimal digits
_LONGEST_REPEAT = 255
_LOOKS = (("?=", True, False), ("?!", True, True), ("?<=", False, False), ("?<!", False, True))
_COMMENT = re.compile(r"\(\?#[^)]*\)")
_OPTIONS = re.compile(r"\(\?([a-z]+)\)")


@dataclass(frozen=True, slots=True)
class Options:
    """What the flags say. `lines`: `^` and `$` also match beside a line end, and `dot`: `.` and `[^...]` none.

    `everywhere`: flag g; `literal`: the pattern is plain text; `expanded`: blanks and comments are skipped.
    """

    fold: bool = False
    lines: bool = False
    dot: bool = False
    everywhere: bool = False
    literal: bool = False
    expanded: bool = False


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed expression, and how many groups it has."""

    tree: Node
    groups: int
    options: Options


@lru_cache(maxsize=1024)
def parsed(pattern: str, flags: str = "") -> Parsed:
    """The tree of an expression, or UnsupportedSQL."""
    options = _with_flags(Options(), flags)
    if pattern.startswith("***"):
        if pattern[3:4] not in (":", "="):
            raise UnsupportedSQL(f"regular expression '{pattern}': an invalid *** prefix", wrong=True,
                                 code="2201B")
        options = replace(options, literal=pattern[3] == "=")
        pattern = pattern[4:]
    if not options.literal and (found := _OPTIONS.match(pattern)):
        options, pattern = _with_flags(options, found[1]), pattern[found.end() :]
    parser = _Parser(pattern, options)
    tree = parser.plain() if options.literal else parser.whole()
    if regex_extent.refers_to_repeated(tree):
        raise UnsupportedSQL(f"regular expression '{pattern}': a back reference to a group inside a repeat",
                             remedy="write the group without a repeat around it")
    return Parsed(tree, parser.groups, options)


def _with_flags(options: Options, flags: str) -> Options:
    """The options after flags, of which a later one wins."""
    for flag in flags:
        match flag:
            case "g":
                options = replace(options, everywhere=True)
            case "i" | "c":
                options = replace(options, fold=flag == "i")
            case "n" | "m" | "p" | "w" | "s":
                options = replace(options, lines=flag in "nmw", dot=flag in "nmp")
            case "x" | "t":
                options = replace(options, expanded=flag == "x")
            case "q":
                options = replace(options, literal=True)
            case _:
                raise UnsupportedSQL(f"regular expression flag {flag!r}", remedy="use i, g, n, p, w, q or x",
                                     wrong=flag not in "be",  # older kinds of expressions
                                     code="0A000" if flag in "be" else "22023")
    return options


class _Parser:
    """A recursive descent parser of alternatives, sequences, repeats and atoms."""

    def __init__(self, pattern: str, options: Options) -> None:
        self.pattern, self.options, self.position, self.groups = pattern, options, 0, 0
        self.fold = options.fold
        self.looking = 0  # the lookarounds around this position
        self.closed: set[int] = set()  # the groups that end before this position

    def plain(self) -> Node:
        return Sequence(tuple(map(self._char, self.pattern)))

    def whole(self) -> Node:
        tree = self._alternatives()
        if self.position < len(self.pattern):
            raise self._invalid("an unmatched )")
        return tree

    def _refuse(self, what: str, instead: str | None = None) -> UnsupportedSQL:
        return UnsupportedSQL(f"regular expression '{self.pattern}': {what}", remedy=instead)

    def _invalid(self, what: str, instead: str | None = None) -> UnsupportedSQL:
        """The error for what PostgreSQL refuses as well."""
        return UnsupportedSQL(f"regular expression '{self.pattern}': {what}", remedy=instead, wrong=True, code="2201B")

    def _skip(self) -> None:
        """Skip comments, and blanks in an expanded expression."""
        while True:
            start = self.position
            if found := _COMMENT.match(self.pattern, self.position):
                self.position = found.end()
            if self.options.expanded:
                while self._peek() and self._peek() in " \t\n\r\f\v":
                    self.position += 1
                if self._peek() == "#":
                    end = self.pattern.find("\n", self.position)
                    self.position = len(self.pattern) if end < 0 else end
            if self.position == start:
                return

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
        before = set(self.closed)
        branches, closed = [self._sequence()], set(self.closed)
        while self._accept("|"):
            self.closed = set(before)  # of the branches, one alone matches
            branches.append(self._sequence())
            closed |= self.closed
        self.closed = closed
        return branches[0] if len(branches) == 1 else Alternatives(tuple(branches))

    def _sequence(self) -> Node:
        items: list[Node] = []
        self._skip()
        while self._peek() not in ("", "|", ")"):
            items.append(self._repeat(self._atom()))
            self._skip()
        return Sequence(tuple(items))

    def _repeat(self, item: Node) -> Node:
        self._skip()
        bounds = self._bounds()
        if bounds is None:
            return item
        if isinstance(item, (Anchor, Look)):
            raise self._invalid("a repeated ^, $ or constraint")
        lazy = self._accept("?")
        if self._bounds() is not None:
            raise self._invalid("a repeat of a repeat")
        return Repeat(item, bounds[0], bounds[1], lazy, bounds[2])

    def _bounds(self) -> tuple[int, int | None, bool] | None:
        """The least and the greatest number of repeats, and whether it is written as one number."""
        for sign, bounds in (("*", (0, None, False)), ("+", (1, None, False)), ("?", (0, 1, False))):
            if self._accept(sign):
                return bounds
        following = self.pattern[self.position + 1 : self.position + 2]
        if self._peek() != "{" or not ("0" <= following <= "9"):
            return None
        end = self.pattern.find("}", self.position)
        parts = self.pattern[self.position + 1 : end].split(",") if end > 0 else [""]
        if len(parts) > 2 or not parts[0].isdigit() or not (parts[-1].isdigit() or (len(parts) == 2 and not parts[1])):
            raise self._invalid("an invalid repetition count")
        low = int(parts[0])
        high = low if len(parts) == 1 else int(parts[1]) if parts[1] else None
        if max(low, high or 0) > _LONGEST_REPEAT or (high is not None and high < low):
            raise self._invalid("an invalid repetition count")
        self.position = end + 1
        return low, high, len(parts) == 1

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
                return Chars(r"[^\n]" if self.options.dot else ".", ALL)
            case "^" | "$":
                return Anchor(f"(?m:{char})" if self.options.lines else char)
            case "*" | "+" | "?":
                raise self._invalid(f"{char} has nothing to repeat")
            case "{" if "0" <= self._peek() <= "9":
                raise self._invalid("{ has nothing to repeat")
            case _:
                return self._char(char)

    def _char(self, char: str) -> Chars:
        chars = alike(char) if self.fold else char
        text = exactly(f"[{''.join(map(quoted, chars))}]") if len(chars) > 1 else quoted(chars)
        return Chars(text, folded(((ord(char), ord(char)),), self.fold))

    def _group(self) -> Node:
        number = None
        for words, ahead, negated in _LOOKS:
            if self._accept(words):
                self.looking += 1
                look = Look(self._inner(), ahead, negated)
                self.looking -= 1
                return look
        captures = not self._accept("?:")
        if captures and self._peek() == "?":
            raise self._invalid("embedded options", "write them at the start of the expression")
        if captures and not self.looking:  # inside a lookaround, parentheses do not capture
            self.groups += 1
            number = self.groups
        group = Group(self._inner(), number)
        if number is not None:
            self.closed.add(number)
        return group

    def _inner(self) -> Node:
        inner = self._alternatives()
        if not self._accept(")"):
            raise self._invalid("a ( without )")
        return inner

    def _escape(self) -> Node:
        char = self._next()
        found = named(SHORT.get(char.lower(), ""), self.fold)
        if found is not None:
            text, ranges = found
            negated = char.isupper()
            if negated and self.options.dot and char in "DW":
                text += r"\n"
            return Chars(f"[{'^' if negated else ''}{text}]", complement(ranges) if negated else ranges)
        if char in _BOUNDARIES:
            return Anchor(_BOUNDARIES[char])
        if char in "123456789" and char:
            digits = re.match(r"[0-9]*", self.pattern[self.position :])
            more = char + (digits[0] if digits else "")
            if len(more) == 1 or int(more) <= self.groups:
                self.position += len(more) - 1
                if int(more) not in self.closed:
                    raise self._invalid("a back reference to no group")
                if self.looking:
                    raise self._invalid("a back reference in a lookaround")
                return Back(int(more), self.fold)
        return self._char(self._escaped(char))

    def _escaped(self, char: str) -> str:
        """The character that an escape means."""
        if char in _CONTROL:
            return _CONTROL[char]
        if char in _CODES:
            return self._code(_CODES[char], _CODES[char])
        if char == "x":
            return self._code(1, 255)
        if char == "c" and self._peek():
            return chr(ord(self._next()) & 31)
        if char in "01234567" and char:
            self.position -= 1
            found = re.match(r"[0-7]{1,3}", self.pattern[self.position :])
            assert found is not None
            self.position += found.end()
            return self._known(int(found[0], 8))
        if char == "b":
            raise self._refuse("\\b is a backspace in PostgreSQL", "write \\y for the boundary of a word")
        if not char or char.isalnum():
            raise self._invalid(f"the escape \\{char}")
        return char

    def _code(self, least: int, most: int) -> str:
        """The character of a code in hexadecimal digits."""
        found = re.match(rf"[0-9A-Fa-f]{{{least},{most}}}", self.pattern[self.position :])
        if found is None:
            raise self._invalid("an escape without its digits")
        self.position += found.end()
        return self._known(int(found[0], 16))

    def _known(self, code: int) -> str:
        if not 0 < code <= 0x10FFFF or 0xD800 <= code < 0xE000:
            raise self._refuse("an escape that is no character")
        return chr(code)

    def _bracket(self) -> Node:
        for words, boundary in (("[:<:]]", r"\m"), ("[:>:]]", r"\M")):
            if self._accept(words):
                return Anchor(boundary)
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
                    raise self._invalid(f"the class [:{name}:]")
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
        if negated and self.options.dot:
            texts.append(r"\n")
        text = f"[{'^' if negated else ''}{''.join(texts)}]"
        return Chars(exactly(text) if self.fold else text, complement(ranges) if negated else ranges)

    def _range(self, escaped: bool) -> tuple[str, tuple[tuple[int, int], ...]]:
        """A character, or a range between two characters, inside brackets."""
        low = self._member(escaped)
        if self._peek() == "-" and self.pattern[self.position + 1 : self.position + 2] not in ("]", ""):
            self.position += 1
            high = self._member(self._accept("\\"))
            if high < low:
                raise self._invalid("a range that ends before it begins")
            others = cases(low, high) if self.fold else ""
            return f"{quoted(low)}-{quoted(high)}" + "".join(map(quoted, others)), ((ord(low), ord(high)),)
        return "".join(map(quoted, alike(low) if self.fold else low)), ((ord(low), ord(low)),)

    def _member(self, escaped: bool) -> str:
        char = self._next()
        if not char:
            raise self._invalid("a [ without ]")
        if char == "[" and not escaped and self._peek() in (".", "="):
            raise self._refuse("collating elements")
        return self._escaped(char) if escaped else char
