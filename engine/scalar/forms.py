"""The forms that decide which arguments a row needs: AND, OR, CASE, COALESCE, subscripts.

A failure of an argument counts for a row only if the row needs the argument. `false AND 1/0 = 1` is false, whichever
side comes first. A branch of CASE that can fail is evaluated only for the rows that reach it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.failures import Failures, merge
from halfjoin.engine.scalar.kernels import kernel_of
from halfjoin.engine.scalar.literals import scalar_of
from halfjoin.engine.scalar.nodes import Batch, Node, apply, blank
from halfjoin.engine.scalar.values import Datum, broadcast, call, mask_of
from halfjoin.sql.expr import Call, Expr, Literal, columns_of
from halfjoin.sql.functions.drawn import drawn
from halfjoin.sql.functions.fallible import fallible

_MOST_TEXTS = 1 << 15  # their numbers are of 16 bits


def _connective(name: str, decisive: bool) -> Callable[[Call, Sequence[Node]], Node]:
    """AND (false decides) or OR (true decides). A decided row has no failure."""
    combine = call(name)

    def form(expr: Call, children: Sequence[Node]) -> Node:
        def run(batch: Batch) -> tuple[Datum, Failures | None]:
            result, failures = children[0](batch)
            for child in children[1:]:
                datum, failed = child(batch)
                result = combine(result, datum)
                failures = merge(failures, failed)
            if failures is not None:
                decided = broadcast(pc.equal(result, decisive), batch.n)
                failures = failures.only(~mask_of(decided))
            if failures is not None:
                result = blank(result, batch.n, failures)
            return result, failures

        return run

    return form


class _Pieces:
    """Collects the values of disjoint sets of rows and puts them in order."""

    def __init__(self, n: int, type: Any) -> None:
        self.n, self.type = n, type
        self.arrays: list[Any] = []
        self.rows: list[NDArray[np.int64]] = []
        self.failures: Failures | None = None

    def add(self, array: Any, rows: NDArray[np.int64]) -> None:
        self.arrays.append(array)
        self.rows.append(rows)

    def fail(self, failures: Failures | None, rows: NDArray[np.int64]) -> None:
        if failures is not None:
            self.failures = merge(self.failures, failures.at(rows))

    def result(self) -> tuple[Datum, Failures | None]:
        """One value per row. Rows without a value get NULL."""
        position = np.full(self.n, -1, np.int64)
        offset = 0
        for rows in self.rows:
            position[rows] = np.arange(offset, offset + len(rows))
            offset += len(rows)
        if not self.arrays:
            return pa.scalar(None, self.type), self.failures
        index = pa.array(position, mask=position < 0)
        return pa.concat_arrays(self.arrays).take(index), self.failures


def _case(expr: Call, children: Sequence[Node]) -> Node:
    """CASE: if a branch can fail, branch by branch over the rows that are left; else all branches at once."""
    conditions, values = children[:-1:2], [*children[1::2], children[-1]]
    if not any(fallible(arg) for arg in expr.args):
        texts = _constant_texts([*expr.args[1::2], expr.args[-1]])
        return _case_at_once(conditions, values) if texts is None else _case_of_texts(conditions, texts)
    needs = [columns_of(arg) for arg in (*expr.args[:-1:2], *expr.args[1::2], expr.args[-1])]
    type = arrow_type(expr.type)
    branches = len(conditions)

    def run(batch: Batch) -> tuple[Datum, Failures | None]:
        pieces = _Pieces(batch.n, type)
        left = np.arange(batch.n)
        for i, condition in enumerate(conditions):
            datum, failures = condition(_sub(batch, left, needs[i]))
            true = mask_of(broadcast(datum, len(left)))
            pieces.fail(failures, left)
            _value(pieces, values[i], batch, left[true], needs[branches + i])
            rest = ~true
            if failures is not None:
                rest[failures.rows] = False
            left = left[rest]
            if not len(left):
                break
        _value(pieces, values[-1], batch, left, needs[-1])
        return pieces.result()

    return run


def _case_at_once(conditions: Sequence[Node], values: Sequence[Node]) -> Node:
    def run(batch: Batch) -> tuple[Datum, Failures | None]:
        result, _ = values[-1](batch)
        for condition, value in zip(reversed(conditions), reversed(values[:-1]), strict=True):
            test, _ = condition(batch)
            chosen, _ = value(batch)
            result = _choose(test, chosen, result)
        return result, None

    return run


def _constant_texts(values: Sequence[Expr]) -> Any:
    """The texts among which a row chooses, if there are several and all of them are constants; else None."""
    if not 2 < len(values) < _MOST_TEXTS:
        return None
    constants = [scalar_of(value) for value in values if isinstance(value, Literal)]
    if len(constants) < len(values) or not all(isinstance(one, pa.StringScalar) for one in constants):
        return None
    return pa.array([one.as_py() for one in constants], pa.string())


def _case_of_texts(conditions: Sequence[Node], texts: Any) -> Node:
    """A row chooses the number of a text, since texts would be copied for each condition."""
    at_once = _case_at_once(conditions, [_constant(pa.scalar(number, pa.int16())) for number in range(len(texts))])

    def run(batch: Batch) -> tuple[Datum, Failures | None]:
        number, _ = at_once(batch)
        return (texts[number.as_py()] if isinstance(number, pa.Scalar) else texts.take(number)), None

    return run


def _constant(value: Datum) -> Node:
    return lambda _: (value, None)


def _choose(test: Datum, yes: Datum, no: Datum) -> Datum:
    if isinstance(test, pa.Scalar):
        return yes if test.as_py() is True else no
    if test.null_count:
        test = test.fill_null(False)
    return pc.if_else(test, yes, no)


def _value(pieces: _Pieces, node: Node, batch: Batch, rows: NDArray[np.int64], names: frozenset[str]) -> None:
    if not len(rows):
        return
    datum, failures = node(_sub(batch, rows, names))
    pieces.fail(failures, rows)
    pieces.add(broadcast(datum, len(rows)), rows)


def _sub(batch: Batch, rows: NDArray[np.int64], names: frozenset[str]) -> Batch:
    return batch if len(rows) == batch.n else batch.take(rows, names)


def _coalesce(expr: Call, children: Sequence[Node]) -> Node:
    """COALESCE: if an argument can fail, each argument over the rows that are still NULL; else all at once."""
    if not any(fallible(arg) for arg in expr.args):
        return _coalesce_at_once(children)
    needs: list[frozenset[str]] = [columns_of(arg) for arg in expr.args]
    type = arrow_type(expr.type)

    def run(batch: Batch) -> tuple[Datum, Failures | None]:
        pieces = _Pieces(batch.n, type)
        left = np.arange(batch.n)
        for child, names in zip(children, needs, strict=True):
            datum, failures = child(_sub(batch, left, names))
            pieces.fail(failures, left)
            array = broadcast(datum, len(left))
            null = mask_of(array.is_null())
            given = np.flatnonzero(~null)
            pieces.add(array.take(pa.array(given)), left[given])
            if failures is not None:
                null[failures.rows] = False
            left = left[null]
            if not len(left):
                break
        return pieces.result()

    return run


def _coalesce_at_once(children: Sequence[Node]) -> Node:
    function = call("coalesce")

    def run(batch: Batch) -> tuple[Datum, Failures | None]:
        return function(*(child(batch)[0] for child in children)), None

    return run


def _subscript(expr: Call, children: Sequence[Node]) -> Node:
    """An element of an array. If the array is NULL, so is the element, even if the index fails."""
    kernel, type = kernel_of(expr), arrow_type(expr.type)
    array, index = children

    def run(batch: Batch) -> tuple[Datum, Failures | None]:
        values, failures = array(batch)
        at, failed = index(batch)
        if failed is not None:
            failed = failed.only(mask_of(broadcast(values, batch.n).is_valid()))
        return apply(kernel, (values, at), batch.n, merge(failures, failed), type)

    return run


def _checked(expr: Call, children: Sequence[Node]) -> Node:
    """A value, which fails where a condition on it is false. A NULL may fail, too."""
    value, condition, message = *children[:2], expr.args[2]
    assert isinstance(message, Literal)

    def run(batch: Batch) -> tuple[Datum, Failures | None]:
        datum, failures = value(batch)
        held, failed = condition(batch)
        bad = np.flatnonzero(mask_of(broadcast(pc.fill_null(pc.invert(held), False), batch.n)))
        failures = merge(failures, failed)
        if len(bad):
            failures = merge(failures, Failures.of(bad, str(message.value)))
        return (datum if failures is None else blank(datum, batch.n, failures)), failures

    return run


def _by_chance(make: Callable[[int], Any]) -> Callable[[Call, Sequence[Node]], Node]:
    """A random value for each row. Only queries have such calls: a view's answer must not change by itself."""
    return lambda expr, children: lambda batch: (drawn(batch.n, lambda: make(batch.n)), None)


def _uuids(n: int) -> Any:
    return pa.array([str(uuid4()) for _ in range(n)], pa.string())


def _value_or_null(_: Call, children: Sequence[Node]) -> Node:
    """The value of a row for which the argument does not fail. One that failed has NULL already."""
    return lambda batch: (children[0](batch)[0], None)


def _value_fails(_: Call, children: Sequence[Node]) -> Node:
    """Whether the argument fails."""

    def run(batch: Batch) -> tuple[Datum, Failures | None]:
        failures = children[0](batch)[1]
        if failures is None:
            return pa.scalar(False), None
        found = np.zeros(batch.n, np.bool_)
        found[failures.rows] = True
        return pa.array(found), None

    return run


FORMS: dict[str, Callable[[Call, Sequence[Node]], Node]] = {
    "and": _connective("and_kleene", False),
    "or": _connective("or_kleene", True),
    "case": _case,
    "coalesce": _coalesce,
    "[]": _subscript,
    "checked": _checked,
    "value or null": _value_or_null,
    "value fails": _value_fails,
    "random": _by_chance(lambda n: pa.array(np.random.default_rng().random(n))),
    "gen_random_uuid": _by_chance(_uuids),
}
