"""Runs parts of a regular expression on a text, from many places at once.

A set of places of a text is a whole number with a bit for each place: bit 0 is before the first character, bit n after
the last of n characters. One character of a set moves all places with a shift and an AND. So the time depends on the
text and the expression, not on the ways in which one can match the other.

    image(node, places)   where a match of the node can end that begins at one of the places
    source(node, places)  where a match can begin that ends at one of the places
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.each import Bad
from halfjoin.sql.functions.regex_chars import SHORT, named
from halfjoin.sql.functions.regex_nodes import Alternatives, Anchor, Back, Chars, Group, Look, Node, Repeat, Sequence

_MOST_WORK = 4_000_000  # in steps over 512 characters


class Steps:
    """One text. `groups`: what the groups match, by number."""

    def __init__(self, text: str, groups: dict[int, Node]) -> None:
        self.text, self.groups = text, groups
        self.all = (1 << len(text) + 1) - 1
        self._cost = 1 + len(text) // 512
        self._work = 0
        self._masks: dict[str, int] = {}

    def spend(self) -> None:
        """Count a step; the number is bounded, and depends on the text and the expression alone."""
        self._work += self._cost
        if self._work > _MOST_WORK:
            raise Bad("the regular expression takes too many steps on this text")

    def image(self, node: Node, places: int) -> int:
        """Where a match can end that begins at one of the places."""
        if not places:
            return 0
        self.spend()
        match node:
            case Chars(spelled=spelled):
                return (places & self._mask(spelled)) << 1
            case Anchor() | Look():
                return places & self._where(node)
            case Sequence(items=items):
                for item in items:
                    places = self.image(item, places)
                return places
            case Alternatives(branches=branches):
                found = 0
                for branch in branches:
                    found |= self.image(branch, places)
                return found
            case Group(item=item):
                return self.image(item, places)
            case Back(number=number):
                return self.image(self.groups[number], places)
            case Repeat(item=item, low=low, high=high):
                for _ in range(low):
                    places = self.image(item, places)
                return self._closed(item, places, None if high is None else high - low, self.image)

    def source(self, node: Node, places: int) -> int:
        """Where a match can begin that ends at one of the places."""
        if not places:
            return 0
        self.spend()
        match node:
            case Chars(spelled=spelled):
                return (places >> 1) & self._mask(spelled)
            case Anchor() | Look():
                return places & self._where(node)
            case Sequence(items=items):
                for item in reversed(items):
                    places = self.source(item, places)
                return places
            case Alternatives(branches=branches):
                found = 0
                for branch in branches:
                    found |= self.source(branch, places)
                return found
            case Group(item=item):
                return self.source(item, places)
            case Back(number=number):
                return self.source(self.groups[number], places)
            case Repeat(item=item, low=low, high=high):
                for _ in range(low):
                    places = self.source(item, places)
                return self._closed(item, places, None if high is None else high - low, self.source)

    def _closed(self, item: Node, places: int, most: int | None, step: object) -> int:
        """The places after at most so many more steps."""
        found = new = places
        while new and most != 0:
            new = step(item, new) & ~found  # type: ignore[operator]
            found |= new
            most = None if most is None else most - 1
        return found

    def _where(self, node: Anchor | Look) -> int:
        """The places at which a condition holds."""
        if isinstance(node, Look):
            held = (self.source if node.ahead else self.image)(node.item, self.all)
            return self.all & ~held if node.negated else held
        end = 1 << len(self.text)
        if node.spelled in ("^", r"\A"):
            return 1
        if node.spelled in ("$", r"\z"):
            return end
        if node.spelled.startswith("(?m:"):
            lines = self._mask(r"\n")
            return 1 | lines << 1 if "^" in node.spelled else end | lines
        after = self._mask(_WORD)
        before = after << 1
        return self.all & {"m": after & ~before, "M": before & ~after, "y": before ^ after, "Y": ~(before ^ after)}[
            node.spelled[-1]]  # fmt: skip

    def _mask(self, spelled: str) -> int:
        """The places before the characters of a set."""
        if spelled not in self._masks:
            bits = self.text[::-1].translate(_members(spelled, "".join(sorted(set(self.text)))))
            self._masks[spelled] = int(bits, 2) if bits else 0
        return self._masks[spelled]


@lru_cache(maxsize=4096)
def _members(spelled: str, chars: str) -> dict[int, str]:
    """Which of the characters are in a set, as `1` or `0` by code: RE2 decides, as it does when it runs all of it."""
    found = pc.match_substring_regex(pa.array(list(chars), pa.string()), rf"(?s)\A(?:{spelled})\z").to_pylist()
    return {ord(char): "1" if inside else "0" for char, inside in zip(chars, found, strict=True)}


_class = named(SHORT["w"], False)
assert _class is not None
_WORD = f"[{_class[0]}]"
