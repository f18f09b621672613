"""Parsed regular expressions: their text for RE2, the characters that a match may begin with, a match's length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]  # ranges of code points, both ends included
_LAST = 0x10FFFF
ALL: Ranges = ((0, _LAST),)
Width: TypeAlias = tuple[int, int | None]  # least and greatest number of characters; None: no limit


def ranges_of(ends: str) -> Ranges:
    """The ranges between each two characters of `ends`."""
    return tuple((ord(low), ord(high)) for low, high in zip(ends[::2], ends[1::2], strict=True))


def complement(ranges: Ranges) -> Ranges:
    """All other characters, and all beyond ASCII: the ranges of classes are only approximate there."""
    out, start = [], 0
    for low, high in sorted(ranges):
        if low > start:
            out.append((start, low - 1))
        start = max(start, high + 1)
    if start <= _LAST:
        out.append((start, _LAST))
    return (*out, (0x80, _LAST))


def folded(ranges: Ranges, fold: bool) -> Ranges:
    """The ranges plus the other case of ASCII letters; any character beyond ASCII may fold to any other there."""
    if not fold:
        return ranges
    more = []
    for low, high in ranges:
        for first, last, shift in ((65, 90, 32), (97, 122, -32)):
            if low <= last and high >= first:
                more.append((max(low, first) + shift, min(high, last) + shift))
        if high >= 0x80 or (low <= 115 and high >= 75):  # k and s have other cases beyond ASCII
            more.append((0x80, _LAST))
    return (*ranges, *more)


def overlap(a: Ranges, b: Ranges) -> bool:
    """Whether some character is in both."""
    return any(low <= high2 and low2 <= high for low, high in a for low2, high2 in b)


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    spelled: str
    ranges: Ranges

    def text(self) -> str:
        """The text for RE2."""
        return self.spelled

    def first(self) -> Ranges:
        """The characters that a match may begin with."""
        return self.ranges

    def width(self) -> Width:
        """The number of characters in a match."""
        return 1, 1


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place: `^`, `$`, `(?m:^)`, `(?m:$)`, or one of the escapes `A z m M y Y`."""

    spelled: str

    def text(self) -> str:
        """The text for RE2."""
        return self.spelled

    def first(self) -> Ranges:
        """No characters."""
        return ()

    def width(self) -> Width:
        """No characters."""
        return 0, 0


@dataclass(frozen=True, slots=True)
class Look:
    """Where an expression matches (or, `negated`, does not) what follows (`ahead`) or what is before."""

    item: Node
    ahead: bool
    negated: bool

    def text(self) -> str:
        """RE2 has none."""
        raise NotImplementedError

    def first(self) -> Ranges:
        """No characters."""
        return ()

    def width(self) -> Width:
        """No characters."""
        return 0, 0


@dataclass(frozen=True, slots=True)
class Back:
    """The text that a group has matched."""

    number: int
    fold: bool

    def text(self) -> str:
        """RE2 has none."""
        raise NotImplementedError

    def first(self) -> Ranges:
        """Any character."""
        return ALL

    def width(self) -> Width:
        """Any number of characters."""
        return 0, None


@dataclass(frozen=True, slots=True)
class Sequence:
    """Items, one after the other."""

    items: tuple[Node, ...]

    def text(self) -> str:
        """The text for RE2."""
        return "".join(item.text() for item in self.items)

    def first(self) -> Ranges:
        """The first characters of the items, up to the first item that cannot match the empty text."""
        out: Ranges = ()
        for item in self.items:
            out += item.first()
            if item.width()[0] > 0:
                break
        return out

    def width(self) -> Width:
        """The sum of the items' widths."""
        low, high = 0, 0
        limited = True
        for item in self.items:
            least, most = item.width()
            low += least
            limited = limited and most is not None
            high += most or 0
        return low, high if limited else None


@dataclass(frozen=True, slots=True)
class Alternatives:
    """One of several branches."""

    branches: tuple[Node, ...]

    def text(self) -> str:
        """The text for RE2."""
        return "(?:" + "|".join(branch.text() for branch in self.branches) + ")"

    def first(self) -> Ranges:
        """The first characters of all branches."""
        return tuple(pair for branch in self.branches for pair in branch.first())

    def width(self) -> Width:
        """The least and the greatest width of the branches."""
        widths = [branch.width() for branch in self.branches]
        highs = [high for _, high in widths]
        return min(low for low, _ in widths), None if None in highs else max(high or 0 for high in highs)


@dataclass(frozen=True, slots=True)
class Group:
    """Parentheses; a capturing group has a number, and the name g1, g2, ... in RE2's text."""

    item: Node
    number: int | None

    def text(self) -> str:
        """The text for RE2."""
        return f"({'?:' if self.number is None else f'?P<g{self.number}>'}{self.item.text()})"

    def first(self) -> Ranges:
        """The item's first characters."""
        return self.item.first()

    def width(self) -> Width:
        """The item's width."""
        return self.item.width()


@dataclass(frozen=True, slots=True)
class Repeat:
    """An item, repeated `low` to `high` times (None: no limit); `lazy` prefers fewer, `fixed` is written `{n}`."""

    item: Node
    low: int
    high: int | None
    lazy: bool
    fixed: bool = False

    def text(self) -> str:
        """The text for RE2."""
        bounds = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((self.low, self.high))
        if bounds is None:
            bounds = f"{{{self.low}}}" if self.low == self.high else f"{{{self.low},{self.high or ''}}}"
        return self.item.text() + bounds + ("?" if self.lazy else "")

    def first(self) -> Ranges:
        """The item's first characters."""
        return self.item.first()

    def width(self) -> Width:
        """The item's width times the number of repeats."""
        low, high = self.item.width()
        return low * self.low, None if high is None or self.high is None else high * self.high


Node: TypeAlias = Chars | Anchor | Look | Back | Sequence | Alternatives | Group | Repeat
