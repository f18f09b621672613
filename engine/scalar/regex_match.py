"""Matches PostgreSQL's regular expressions as PostgreSQL does: which match, and what its groups have.

A match begins as early as possible. Whether it is then as long or as short as possible, its first repeat decides. A
group's share is decided from left to right: an earlier part takes as much (or as little) as the rest allows. A part
without groups is not divided further; an expression with alternatives takes the first that fits its share. This is the
meaning of Henry Spencer's library, on which PostgreSQL's is built.

`compiled` makes a tree of the parts whose shares matter; `regex_steps` tells where a part can end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Literal, TypeAlias

from halfjoin.engine.scalar.regex_steps import Steps
from halfjoin.sql.functions import regex_extent
from halfjoin.sql.functions.regex_nodes import Alternatives, Back, Group, Node, Repeat, Sequence
from halfjoin.sql.functions.regex_parse import parsed

Prefers: TypeAlias = Literal["longest", "shortest"] | None
Span: TypeAlias = tuple[int, int]
_EMPTY = Sequence(())


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a part has: a preference, groups, back references, and parts of both preferences."""

    prefers: Prefers = None
    captures: bool = False
    refers: bool = False
    mixed: bool = False

    def then(self, other: _Kind) -> _Kind:
        """Of both parts together: the first preference counts."""
        clash = None not in (self.prefers, other.prefers) and self.prefers != other.prefers
        return _Kind(self.prefers or other.prefers, self.captures or other.captures, self.refers or other.refers,
                     self.mixed or other.mixed or clash)  # fmt: skip

    @property
    def divided(self) -> bool:
        """Whether the shares of parts matter."""
        return self.captures or self.refers or self.mixed


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of an expression. `node`: what it matches. Which of the others is there says how it is divided."""

    node: Node
    kind: _Kind
    pair: tuple[_Part, _Part] | None = None
    branches: tuple[_Part, ...] = ()
    capture: tuple[int, _Part] | None = None
    back: tuple[Back, int, int | None] | None = None
    repeated: tuple[_Part, int, int | None] | None = None
    numbers: frozenset[int] = frozenset()


def _kind(node: Node) -> _Kind:
    match node:
        case Group(item=item, number=number):
            return _kind(item).then(_Kind(captures=number is not None))
        case Back():
            return _Kind(refers=True)
        case Repeat(item=item):
            return _Kind(_prefers(node)).then(_kind(item))
        case Sequence(items=items):
            kind = _Kind()
            for item in items:
                kind = kind.then(_kind(item))
            return kind
        case Alternatives(branches=branches):
            kinds = [_kind(branch) for branch in branches]
            return _Kind("longest", *(any(flags) for flags in zip(
                *((one.captures, one.refers, one.mixed) for one in kinds), strict=True)))  # fmt: skip
        case _:
            return _Kind()


def _prefers(repeat: Repeat) -> Prefers:
    return None if repeat.fixed else "shortest" if repeat.lazy else "longest"


def _part(node: Node) -> _Part:
    kind = _kind(node)
    match node:
        case Group(item=item, number=None):
            return _part(item)
        case Group(item=item, number=int() as number):
            inner = _part(item)
            return _Part(node, kind, capture=(number, inner), numbers=inner.numbers | {number})
        case Alternatives(branches=branches) if kind.divided:
            parts = tuple(map(_part, branches))
            return _Part(node, kind, branches=parts, numbers=frozenset().union(*(part.numbers for part in parts)))
        case Sequence(items=items):
            return _sequence(items)
        case Repeat() | Back():
            return _sequence((node,))
        case _:
            return _Part(node, kind)


def _sequence(items: tuple[Node, ...]) -> _Part:
    """The items as a part: as many as are not divided are one part; then comes one that is; then the rest."""
    kind = _Kind()
    for i, item in enumerate(items):
        atom = item.item if isinstance(item, Repeat) else item
        own = _kind(item)
        hard = isinstance(atom, Back) or (isinstance(atom, Group) and atom.number is not None) or kind.then(own).divided
        if not hard:
            kind = kind.then(own)
            continue
        made = _quantified(item)
        if i + 1 < len(items):
            made = _pair(made, _sequence(items[i + 1 :]))
        return _pair(_Part(Sequence(items[:i]), kind), made) if i else made
    return _Part(Sequence(items), kind)


def _pair(first: _Part, second: _Part) -> _Part:
    node = Sequence((first.node, second.node))
    return _Part(node, first.kind.then(second.kind), pair=(first, second), numbers=first.numbers | second.numbers)


def _quantified(item: Node) -> _Part:
    """A repeated item that is divided. Of several repeats only the last one's groups count, so those before are one."""
    repeat = item if isinstance(item, Repeat) else Repeat(item, 1, 1, False, True)
    atom, low, high, kind = repeat.item, repeat.low, repeat.high, _kind(repeat)
    if isinstance(atom, Back):
        return _Part(repeat, kind, back=(atom, low, high))
    if high == 0:
        return _Part(_EMPTY, _Kind())
    own, prefers = _kind(atom), _prefers(repeat)
    agrees = prefers is None or (own.prefers in (None, prefers) and not own.mixed)
    if low == high == 1 and agrees:
        return _part(atom)
    if not (own.captures or own.refers):
        return _Part(repeat, kind)
    inner = _part(atom)
    if low > 0 and not own.refers:
        before = Repeat(atom, low - 1, None if high is None else high - 1, False)
        made = _pair(_Part(before, _Kind(kind.prefers)), inner)
        return _Part(repeat, kind, pair=made.pair, numbers=inner.numbers)
    return _Part(repeat, kind, repeated=(inner, low, high), numbers=inner.numbers)


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression."""

    groups: int
    everywhere: bool
    _root: _Part
    _items: dict[int, Node] = field(repr=False)

    def matches(self, text: str) -> bool:
        """Whether it matches anywhere."""
        if self._root.kind.refers:
            return next(self.all(text), None) is not None
        steps = Steps(text, self._items)
        return steps.source(self._root.node, steps.all) != 0

    def all(self, text: str, start: int = 0) -> Iterator[list[Span | None]]:
        """All matches from a place on, as spans of the match and of its groups. After an empty match, the search goes
        on a character further."""
        steps = Steps(text, self._items)
        begins = steps.source(self._root.node, steps.all)
        while start <= len(text):
            found = self._next(steps, begins, start)
            if found is None:
                return
            yield found
            span = found[0]
            assert span is not None
            start = span[1] + (span[0] == span[1])

    def _next(self, steps: Steps, begins: int, start: int) -> list[Span | None] | None:
        left = begins >> start << start
        while left:
            begin = (left & -left).bit_length() - 1
            ends = steps.image(self._root.node, 1 << begin)
            for end in _places(ends, self._root.kind.prefers):
                groups: dict[int, Span] = {}
                if not self._root.kind.divided or _divide(steps, self._root, begin, end, groups):
                    return [(begin, end), *(groups.get(number) for number in range(1, self.groups + 1))]
            left &= left - 1
        return None


@lru_cache(maxsize=1024)
def compiled(pattern: str, flags: str = "") -> Expression:
    """The expression that a pattern and its flags mean, or UnsupportedSQL."""
    found = parsed(pattern, flags)
    items = {group.number: group.item for group in regex_extent.walk(found.tree)
             if isinstance(group, Group) and group.number is not None}
    return Expression(found.groups, found.options.everywhere, _part(found.tree), items)


def _places(places: int, prefers: Prefers) -> Iterator[int]:
    """The places, from the last to the first unless the shortest match is preferred."""
    while places:
        last = places.bit_length() - 1 if prefers != "shortest" else (places & -places).bit_length() - 1
        yield last
        places &= ~(1 << last)


def _divide(steps: Steps, part: _Part, begin: int, end: int, groups: dict[int, Span]) -> bool:
    """Whether a part that can match this span does, with what its back references refer to; sets the groups."""
    steps.spend()
    if part.pair is not None:
        first, second = part.pair
        middles = steps.image(first.node, 1 << begin) & steps.source(second.node, 1 << end)
        for middle in _places(middles, first.kind.prefers):
            if _divide(steps, first, begin, middle, groups) and _divide(steps, second, middle, end, groups):
                return True
            _forget(part, groups)
        return False
    if part.branches:
        fits = (one for one in part.branches if steps.image(one.node, 1 << begin) >> end & 1)
        return any(_divide(steps, one, begin, end, groups) for one in fits)
    if part.capture is not None:
        number, inner = part.capture
        if not _divide(steps, inner, begin, end, groups):
            return False
        groups[number] = (begin, end)
        return True
    if part.back is not None:
        return _refers(steps, *part.back, begin, end, groups)
    if part.repeated is not None:
        return _iterate(steps, part, begin, end, groups)
    return True


def _forget(part: _Part, groups: dict[int, Span]) -> None:
    for number in part.numbers:
        groups.pop(number, None)


def _refers(steps: Steps, back: Back, low: int, high: int | None, begin: int, end: int,
            groups: dict[int, Span]) -> bool:  # fmt: skip
    """Whether a span repeats what a group has."""
    if back.number not in groups:
        return False
    start, stop = groups[back.number]
    size = stop - start
    if size == 0:
        return begin == end and low <= (high if high is not None else low)
    count, rest = divmod(end - begin, size)
    if rest or count < low or (high is not None and count > high):
        return False
    text, wanted = steps.text[begin:end], steps.text[start:stop] * count
    return text == wanted or (back.fold and text.lower() == wanted.lower())


def _iterate(steps: Steps, part: _Part, begin: int, end: int, groups: dict[int, Span]) -> bool:
    """Divide a span among the repeats of an item: each takes as much as it can, or as little if the item prefers that.

    A repeat is not empty unless the least number of repeats needs it. For an empty span, an item that prefers the
    shortest match is not repeated at all if it need not be; another one is, if it can be empty.
    """
    assert part.repeated is not None
    inner, least, high = part.repeated
    low, longest = max(least, 1), inner.kind.prefers != "shortest"
    if not longest and least == 0 and begin == end:
        return True
    most = end - begin if high is None else min(high, end - begin)
    most = max(most, low)
    ends, choices = [begin], [_choices(steps, inner, begin, end, 1, low, most, longest)]
    while choices:
        place = next(choices[-1], None)
        if place is None:
            choices.pop()
            ends.pop()
            continue
        number = len(choices)
        if place == end and number >= low:
            if _all_divide(steps, inner, [*ends, place], groups):
                return True
            _forget(part, groups)
        elif place != end and number < most:
            ends.append(place)
            choices.append(_choices(steps, inner, place, end, number + 1, low, most, longest))
    return least == 0 and begin == end


def _choices(steps: Steps, inner: _Part, begin: int, end: int, number: int, low: int, most: int,
             longest: bool) -> Iterator[int]:  # fmt: skip
    """Where the repeat of this number may end."""
    ends = steps.image(inner.node, 1 << begin) & ((1 << end + 1) - 1)
    if begin != end and (number >= low or low - number < end - begin):
        ends &= ~(1 << begin)
    if number >= most:
        ends &= 1 << end
    return _places(ends, "longest" if longest else "shortest")


def _all_divide(steps: Steps, inner: _Part, ends: list[int], groups: dict[int, Span]) -> bool:
    for begin, end in pairwise(ends):
        _forget(inner, groups)
        if not _divide(steps, inner, begin, end, groups):
            return False
    return True


