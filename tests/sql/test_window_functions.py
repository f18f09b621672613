"""Window functions and frames have PostgreSQL's types, and are refused as PostgreSQL refuses them."""

from __future__ import annotations

from typing import Any

import pytest

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql.expr import Column, Expr, Literal
from halfjoin.sql.functions.frames import resolve_frame
from halfjoin.sql.functions.window_functions import WINDOW_FUNCTIONS, resolve_window
from halfjoin.sql.relation import Bound, Frame, SortKey, WindowCall
from halfjoin.sql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    SqlType,
    array,
    numeric,
)

X, B, S, F, N = (Column(name, type) for name, type in
                 (("i", INTEGER), ("b", BIGINT), ("s", TEXT), ("f", DOUBLE), ("n", numeric(8, 2))))  # fmt: skip
TWO = Literal(2, INTEGER)
DAY = Literal((0, 1, 0), INTERVAL)


def _window(name: str, *args: Expr, **more: Any) -> WindowCall:
    return resolve_window(name, args, **{"frame": Frame(), "ordered": True, **more})


@pytest.mark.parametrize(("name", "args", "type"), [
    ("row_number", (), BIGINT), ("rank", (), BIGINT), ("dense_rank", (), BIGINT), ("percent_rank", (), DOUBLE),
    ("cume_dist", (), DOUBLE), ("ntile", (TWO,), INTEGER), ("lag", (S,), TEXT), ("LEAD", (N, TWO), N.type),
    ("lag", (X, TWO, B), BIGINT), ("lag", (X, TWO, Literal("7", UNKNOWN)), INTEGER), ("first_value", (F,), DOUBLE),
    ("last_value", (S,), TEXT), ("nth_value", (S, X), TEXT), ("sum", (X,), BIGINT), ("count", (), BIGINT),
    ("array_agg", (X,), array(INTEGER)),
])  # fmt: skip
def test_window_functions_have_types(name: str, args: tuple[Expr, ...], type: SqlType) -> None:
    found = _window(name, *args)
    assert (found.function, found.type) == (name.lower(), type)


def test_a_default_has_the_type_of_the_value() -> None:
    found = _window("lag", X, TWO, B)
    assert [arg.type for arg in found.args] == [BIGINT, INTEGER, BIGINT]
    assert _window("lag", X, TWO, Literal("7", UNKNOWN)).args[2] == Literal(7, INTEGER)


@pytest.mark.parametrize(("name", "args", "more", "text"), [
    ("row_number", (X,), {}, "no function row_number(integer)"),
    ("lag", (X, B), {}, "no function lag(integer, bigint)"),
    ("lag", (X, TWO, S), {}, "no function lag(integer, integer, text)"),
    ("ntile", (Literal(0, INTEGER),), {}, "argument of ntile must be greater than zero"),
    ("nth_value", (X, Literal(-1, INTEGER)), {}, "argument of nth_value must be greater than zero"),
    ("rank", (), {"condition": Column("c", BOOLEAN)}, "FILTER is not implemented for non-aggregate window functions"),
    ("sum", (X,), {"condition": X}, "must be boolean, not integer"),
    ("sum", (X,), {"ignore_nulls": True}, "function sum does not take IGNORE NULLS"),
    ("rank", (), {"ignore_nulls": True}, "function rank does not take IGNORE NULLS"),
    ("mode", (), {}, "OVER is not supported for ordered-set aggregate mode"),
    ("sum", (X,), {"frame": Frame("groups"), "ordered": False}, "GROUPS mode requires an ORDER BY clause"),
])  # fmt: skip
def test_wrong_calls_are_refused(name: str, args: tuple[Expr, ...], more: dict[str, Any], text: str) -> None:
    with pytest.raises(UnsupportedSQL) as error:
        _window(name, *args, **more)
    assert text in str(error.value)


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(UnknownName, match="did you mean row_number"):
        _window("row_nummer")
    assert "row_number" in WINDOW_FUNCTIONS


PRECEDING, FOLLOWING, CURRENT = Bound("preceding"), Bound("following"), Bound("current row")


def _key(type: SqlType) -> list[SortKey]:
    return [SortKey(Column("k", type))]


@pytest.mark.parametrize(("frame", "order", "text"), [
    (Frame("rows", FOLLOWING, FOLLOWING), [], "frame start cannot be UNBOUNDED FOLLOWING"),
    (Frame("rows", PRECEDING, PRECEDING), [], "frame end cannot be UNBOUNDED PRECEDING"),
    (Frame("rows", CURRENT, Bound("preceding", TWO)), [],
     "frame starting from current row cannot have preceding rows"),
    (Frame("rows", Bound("following", TWO), CURRENT), [],
     "frame starting from following row cannot have preceding rows"),
    (Frame("rows", Bound("preceding", X), CURRENT), [], "argument of ROWS must not contain variables"),
    (Frame("rows", Bound("preceding", Literal(-1, INTEGER)), CURRENT), [],
     "frame starting offset must not be negative"),
    (Frame("rows", CURRENT, Bound("following", Literal(None, INTEGER))), [], "frame ending offset must not be null"),
    (Frame("rows", Bound("preceding", Literal(1.5, DOUBLE)), CURRENT), [],
     "argument of ROWS must be type bigint, not type double precision"),
    (Frame("groups"), [], "GROUPS mode requires an ORDER BY clause"),
    (Frame("range", Bound("preceding", TWO)), [],
     "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column"),
    (Frame("range", Bound("preceding", TWO)), _key(INTEGER) * 2,
     "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column"),
    (Frame("range", Bound("preceding", TWO)), _key(TEXT),
     "RANGE with offset PRECEDING/FOLLOWING is not supported for column type text"),
    (Frame("range", Bound("preceding", TWO)), _key(DATE),
     "RANGE with offset PRECEDING/FOLLOWING is not supported for column type date and offset type integer"),
    (Frame("range", Bound("preceding", Literal(1.5, DOUBLE))), _key(numeric(5, 1)),
     "is not supported for column type numeric(5,1) and offset type double precision"),
    (Frame("range", Bound("preceding", Literal((0, -1, 0), INTERVAL))), _key(DATE),
     "invalid preceding or following size in window function"),
    (Frame("range", Bound("preceding", Literal((0, 1, -5), INTERVAL))), _key(TIME),
     "invalid preceding or following size in window function"),
])  # fmt: skip
def test_wrong_frames_are_refused(frame: Frame, order: list[SortKey], text: str) -> None:
    with pytest.raises(UnsupportedSQL) as error:
        resolve_frame(frame, order)
    assert text in str(error.value)


@pytest.mark.parametrize(("key", "offset", "type"), [
    (SMALLINT, TWO, BIGINT), (BIGINT, Literal("3", UNKNOWN), BIGINT), (REAL, TWO, DOUBLE), (DOUBLE, TWO, DOUBLE),
    (TIMESTAMP, Literal("1 day", UNKNOWN), INTERVAL), (TIMESTAMPTZ, DAY, INTERVAL), (TIME, DAY, INTERVAL),
    (INTERVAL, DAY, INTERVAL), (numeric(8, 2), Literal("0.5", UNKNOWN), numeric(1, 1)),
])  # fmt: skip
def test_offsets_of_ranges_are_cast(key: SqlType, offset: Expr, type: SqlType) -> None:
    found = resolve_frame(Frame("range", Bound("preceding", offset)), _key(key)).start.offset
    assert found is not None and found.type == type
