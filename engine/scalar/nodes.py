"""Compiled nodes: closures from a batch to a datum and failures. Makes nodes from strict kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from halfjoin.engine.scalar.failures import Failed, Failures, RowNumbers, merge
from halfjoin.engine.scalar.values import Datum, Kernel, broadcast, valid
from halfjoin.engine.system.value import value
from halfjoin.engine.updates.updates import TOO_LONG
from halfjoin.errors import DataError


@value
class Batch:
    """The `n` rows to evaluate, in the arrays of `columns`."""

    columns: Mapping[str, Any]
    n: int

    def take(self, rows: RowNumbers, names: Iterable[str]) -> Batch:
        """Some of the rows, with only the named columns."""
        index = pa.array(rows)
        return Batch({name: self.columns[name].take(index) for name in names}, len(rows))


Node: TypeAlias = Callable[[Batch], tuple[Datum, Failures | None]]


def strict(kernel: Kernel, children: Sequence[Node], type: Any) -> Node:
    """The node of a kernel that needs all its arguments for every row."""
    if len(children) == 2:  # the common case, without a loop
        left, right = children

        def pair(batch: Batch) -> tuple[Datum, Failures | None]:
            (a, f), (b, g) = left(batch), right(batch)
            return apply(kernel, (a, b), batch.n, f if g is None else merge(f, g), type)

        return pair

    def run(batch: Batch) -> tuple[Datum, Failures | None]:
        data: list[Datum] = []
        failures: Failures | None = None
        for child in children:
            datum, failed = child(batch)
            data.append(datum)
            if failed is not None:
                failures = merge(failures, failed)
        return apply(kernel, data, batch.n, failures, type)

    return run


def apply(
    kernel: Kernel, data: Sequence[Datum], n: int, failures: Failures | None, type: Any
) -> tuple[Datum, Failures | None]:
    """Run a kernel on whole arrays. If it fails, find the failing rows and put NULL there.

    Raises:
        DataError: the values together do not fit into one array.
    """
    try:
        result = kernel(*data)
    except (Failed, pa.ArrowInvalid) as error:
        result, found = _isolate(kernel, data, n, error, type)
        failures = merge(failures, found)
    except pa.ArrowCapacityError as error:
        raise DataError(TOO_LONG) from error
    if failures is not None:
        result = blank(result, n, failures)
    return result, failures


def blank(datum: Datum, n: int, failures: Failures) -> Datum:
    """The datum with NULL at the rows that failed."""
    if len(failures.rows) == n:
        return pa.scalar(None, datum.type)
    keep = np.ones(n, np.bool_)
    keep[failures.rows] = False
    return pc.if_else(pa.array(keep), broadcast(datum, n), pa.scalar(None, datum.type))


def _isolate(
    kernel: Kernel, data: Sequence[Datum], n: int, error: Exception | None, type: Any
) -> tuple[Datum, Failures | None]:
    """The results of the rows that do not fail, and the failures, after all rows together gave `error`.

    A kernel that can fail is strict, unless its error says otherwise: if an argument is NULL, the result is NULL,
    whatever the other arguments are.
    """
    is_strict = not isinstance(error, Failed) or error.strict
    if all(isinstance(datum, pa.Scalar) for datum in data):
        null = is_strict and not all(datum.is_valid for datum in data)
        return pa.scalar(None, type), None if null else Failures.of(np.arange(n), _message(error))
    arrays = [broadcast(datum, n) for datum in data]
    given = np.logical_and.reduce([valid(array) for array in arrays])
    if is_strict and not given.all():
        arrays = [_blanked(array, ~given) for array in arrays]
        error = None
    pieces: list[Any] = []
    failures: list[Failures | None] = []
    _halves(kernel, arrays, 0, n, error, type, pieces, failures)
    try:
        return pa.concat_arrays(pieces), reduce(merge, failures, None)
    except pa.ArrowInvalid as overflow:  # each piece fits into an array, but all together do not
        raise DataError(TOO_LONG) from overflow


def _halves(
    kernel: Kernel, arrays: list[Any], start: int, stop: int, error: Exception | None, type: Any,
    pieces: list[Any], failures: list[Failures | None],
) -> None:  # fmt: skip
    """Append the results of rows `start` to `stop` in order.

    If a Failed names rows, they become NULL, and the kernel runs again. Otherwise each half of the rows runs by itself.
    """
    part = [array.slice(start, stop - start) for array in arrays]
    done = np.zeros(stop - start, np.bool_)
    while True:
        if error is None:
            try:
                pieces.append(broadcast(kernel(*part), stop - start))
                return
            except (Failed, pa.ArrowInvalid) as raised:
                error = raised
        bad = error.mask if isinstance(error, Failed) else None
        if bad is not None and len(bad) == 1 != stop - start:
            bad = np.repeat(bad, stop - start)  # the mask is of a scalar
        if stop - start == 1:
            bad = np.ones(1, np.bool_)
        if bad is None or not (bad & ~done).any():
            break
        failures.append(_found(error, bad & ~done, np.arange(start, stop)))
        done |= bad
        if done.all():
            pieces.append(pa.nulls(stop - start, type))
            return
        part = [_blanked(array, done) for array in part]
        error = None
    middle = (start + stop) // 2
    _halves(kernel, arrays, start, middle, None, type, pieces, failures)
    _halves(kernel, arrays, middle, stop, None, type, pieces, failures)


def _found(error: Exception, bad: NDArray[np.bool_], rows: RowNumbers) -> Failures:
    """The failures of the rows that `bad` marks, each with its own reason if the error has one for each."""
    mask, messages = (error.mask, error.messages) if isinstance(error, Failed) else (None, None)
    if mask is not None and messages is not None and len(mask) == len(bad):
        reasons = np.empty(len(bad), object)
        reasons[mask] = messages
        return Failures(rows[bad], reasons[bad])
    return Failures.of(rows[bad], _message(error))


def _blanked(array: Any, done: NDArray[np.bool_]) -> Any:
    return pc.if_else(pa.array(~done), array, pa.scalar(None, array.type))


def _message(error: Exception | None) -> str:
    return error.message if isinstance(error, Failed) else str(error)
