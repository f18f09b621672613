"""Sorts the rows inside each group. Rows that tie are ordered by all their columns, so there is one order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from halfjoin.engine.reduce.bisection import keys_of
from halfjoin.engine.reduce.groups import Groups, starts_of
from halfjoin.engine.reduce.words import differ, look, ordered_words
from halfjoin.engine.updates.codes import is_integral
from halfjoin.engine.updates.radix import Word, argsort, of_integers
from halfjoin.engine.updates.updates import Ints, Mask, constant, gather, indices_of, where_true
from halfjoin.sql.expr import Column
from halfjoin.sql.relation import SortKey

FEW = 64  # rows; so few are sorted faster one by one
_AT_ONCE = 1 << 12  # rows; so many are sorted faster by all words at once than word by word


@dataclass(frozen=True, slots=True)
class Sorted:
    """`positions`: the rows in order, group after group. `new`: whether the row at that place begins a group of peers,
    which are the rows of a group that tie in the sort keys."""

    positions: Ints
    new: Mask


def sort(groups: Groups, order: Sequence[SortKey]) -> Sorted:
    """The rows of each group by the sort keys, then by all columns in declared order (ascending, NULLs last)."""
    word = _only_word(groups.columns, order)
    if word is not None:
        return _by_word(groups.numbers, word)
    few = _few(groups, order) if len(groups.count) <= FEW else None
    if few is not None:
        return Sorted(few.positions, few.begins(few.peers))
    by_keys = _by_keys(groups, order)
    return Sorted(_by_rows(groups, by_keys, order).positions, by_keys.new)


@dataclass(frozen=True, slots=True)
class Ranks:
    """Numbers of each row, ascending from the first group to the last: of its peers, and of its equal rows."""

    peers: Ints
    row: Ints


def ranks_of(
    columns: Mapping[str, pa.Array], group: Ints, groups: int, order: Sequence[SortKey]
) -> Ranks:
    """The ranks of rows in any order, given the group of each."""
    word = _only_word(columns, order)
    if word is not None:
        state = _by_word(group, word)
        numbers = np.empty_like(state.positions)
        numbers[state.positions] = state.new.cumsum() - 1
        return Ranks(numbers, numbers)
    by_group = np.argsort(group, kind="stable")
    starts = starts_of(group, groups)
    indices = indices_of(by_group)
    sorted = {name: gather(column, indices) for name, column in columns.items()}
    found = ranked(Groups(sorted, constant(1, len(group)), starts), order)
    peers, row = np.empty_like(found.peers), np.empty_like(found.row)
    peers[by_group], row[by_group] = found.peers, found.row
    return Ranks(peers, row)


def ranked(groups: Groups, order: Sequence[SortKey]) -> Ranks:
    """The ranks of rows in the order of `sort`. Rows of different groups have different ranks."""
    few = _few(groups, order) if len(groups.count) <= FEW else None
    if few is not None:
        by_keys = Sorted(few.positions, few.begins(few.peers))
        by_rows = by_keys if few.rows is few.peers else Sorted(few.positions, few.begins(few.rows))
    else:
        by_keys = _by_keys(groups, order)
        by_rows = _by_rows(groups, by_keys, order)
    peers, row = np.empty_like(by_rows.positions), np.empty_like(by_rows.positions)
    peers[by_keys.positions] = np.cumsum(by_keys.new) - 1
    row[by_rows.positions] = np.cumsum(by_rows.new) - 1
    return Ranks(peers, row)


def _only_word(columns: Mapping[str, pa.Array], order: Sequence[SortKey]) -> Ints | None:
    """The words that decide on the order of a few rows of one column; None if other words do so, too."""
    if len(columns) != 1 or len(order) != 1:
        return None
    ((name, column),), (key,) = columns.items(), order
    if len(column) > _AT_ONCE or column.null_count or not isinstance(key.expr, Column) or key.expr.name != name:
        return None
    simple = is_integral(column.type) or pt.is_floating(column.type)
    return ordered_words(column, key.descending)[0] if simple else None


def _by_word(group: Ints, word: Ints) -> Sorted:
    """Rows by their groups and words."""
    positions = np.lexsort((word, group))
    return Sorted(positions, differ([group[positions], word[positions]], len(positions)))


class _Few(NamedTuple):
    """Few rows in order: their positions, and at each place the keys of the row's peers, and of its equal rows."""

    positions: Ints
    peers: list[Any]
    rows: list[Any]

    def begins(self, keys: list[Any]) -> Mask:
        """Whether the keys at a place differ from those before."""
        return np.array([place == 0 or keys[place - 1] != key for place, key in enumerate(keys)], np.bool_)


def _few(groups: Groups, order: Sequence[SortKey]) -> _Few | None:
    """The rows, compared one by one; None if they cannot be."""
    rows = keys_of([groups.columns], order, list(groups.columns))
    whole = groups.columns.keys() <= {key.expr.name for key in order if isinstance(key.expr, Column)}
    peers = rows if whole else keys_of([groups.columns], order, ())
    if peers is None or rows is None:
        return None
    numbers = groups.numbers.tolist()
    keys = [(number, rows[0](position)) for position, number in enumerate(numbers)]
    positions = sorted(range(len(keys)), key=keys.__getitem__)
    in_order = [keys[at] for at in positions]
    of_peers = in_order if whole else [(numbers[at], peers[0](at)) for at in positions]
    return _Few(np.array(positions, np.int64), of_peers, in_order)


def _by_keys(groups: Groups, order: Sequence[SortKey]) -> Sorted:
    """The rows of each group by the sort keys alone."""
    state = Sorted(np.arange(len(groups.count)), _firsts(groups.starts, len(groups.count)))
    for key in order:
        state = refine(state, ordered_words(groups.values(key.expr), key.descending, key.nulls_first))
    return state


def _by_rows(groups: Groups, state: Sorted, order: Sequence[SortKey]) -> Sorted:
    """Rows that tie in the sort keys, ordered by all columns. Only their values are compared, as they are often few."""
    tied = where_true(~(state.new & np.append(state.new[1:], True)))
    if not len(tied):
        return state
    positions, new = state.positions.copy(), state.new.copy()
    indices = indices_of(positions[tied])
    equal = {key.expr.name for key in order if isinstance(key.expr, Column)}  # no word of their values tells more
    words = (word for name, column in groups.columns.items()
             for word in (look if name in equal else _by_column)(gather(column, indices)))  # fmt: skip
    found = refine(Sorted(np.arange(len(tied)), new[tied]), words)
    positions[tied], new[tied] = positions[tied][found.positions], found.new
    return Sorted(positions, new)


def precede(
    asked: Mapping[str, pa.Array], others: Mapping[str, pa.Array], order: Sequence[SortKey], ties: Mask | None = None
) -> Mask:
    """Whether rows come before a row: as many `others` for each row of `asked`, which a row of the result is about.

    `ties`: the rows of `asked` that equal rows come before, too.
    """
    rows, length = len(next(iter(asked.values()))), len(next(iter(others.values())))
    columns = {name: pa.concat_arrays([column, others[name]]) for name, column in asked.items()}
    groups = Groups(columns, constant(1, rows + length), np.array([0, rows + length]))
    less, equal = np.zeros((2, rows, length // rows), np.bool_)
    equal[:] = True
    for word in _all_words(groups, order):
        own, other = word[:rows, None], word[rows:].reshape(rows, -1)
        less |= equal & (other < own)
        equal &= other == own
        if not equal.any():  # computes no words in vain
            break
    return less if ties is None else less | (equal & ties[:, None])


def _all_words(groups: Groups, order: Sequence[SortKey]) -> Iterator[Ints]:
    for key in order:
        yield from ordered_words(groups.values(key.expr), key.descending, key.nulls_first)
    yield from by_columns(groups.columns.values())


def refine(state: Sorted, words: Iterable[Ints]) -> Sorted:
    """The rows that tie so far, ordered by words as well. Rows that do not tie stay where they are."""
    words = iter(words)
    while True:
        positions, new = state.positions, state.new
        alone = new & np.append(new[1:], True)
        word = None if alone.all() else next(words, None)  # computes no words in vain
        if word is None:
            return state
        tied = where_true(~alone)
        peers = np.cumsum(new, dtype=np.int64)[tied]
        values = word[positions[tied]]
        by_value = _order(peers, values)
        positions, new = positions.copy(), new.copy()
        positions[tied] = positions[tied[by_value]]
        new[tied] = differ([peers, values[by_value]], len(tied))
        state = Sorted(positions, new)


def _order(peers: Ints, values: Ints) -> Ints:
    """The order of peers, which are numbers that ascend, and among them of values."""
    if not len(peers):
        return np.arange(0)
    by_peers = Word((peers - peers[0]).view(np.uint64), int(peers[-1] - peers[0]).bit_length())
    return argsort([by_peers, of_integers(values)], len(values))


def first_rows(starts: Ints, words: Iterable[Ints]) -> Ints:
    """The position of the row of each group with the least words; of equal ones the first; -1 for an empty group.

    It looks at the first words of all rows, and at the following words only of the rows that tie.
    """
    numbers = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    rows = np.arange(len(numbers))
    for word in words:
        firsts = where_true(differ([numbers[rows]], len(rows)))
        if len(firsts) == len(rows):
            break
        values = word[rows]
        least = np.minimum.reduceat(values, firsts)
        rows = rows[values == np.repeat(least, np.diff(np.append(firsts, len(rows))))]
    found = np.full(len(starts) - 1, -1)
    found[numbers[rows][::-1]] = rows[::-1]  # of rows that are equal, the first one is written last
    return found


def by_columns(columns: Iterable[pa.Array]) -> Iterable[Ints]:
    """The words of all columns in declared order, ascending, NULLs last."""
    for column in columns:
        yield from _by_column(column)


def _by_column(column: pa.Array) -> Iterable[Ints]:
    yield from ordered_words(column)
    yield from look(column)


def _firsts(starts: Ints, length: int) -> Mask:
    """Whether a row is the first of its group."""
    first = np.zeros(length, np.bool_)
    first[starts[:-1][np.diff(starts) > 0]] = True
    return first
