"""Calls of aggregates: PostgreSQL's types, answers and refusals."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql.expr import Call, Column, Expr, Literal
from halfjoin.sql.functions import fallible, resolve
from halfjoin.sql.functions.aggregates import (
    AGGREGATE_TABLE,
    AGGREGATES,
    ORDERED_SETS,
    SUMS,
    decompose,
    resolve_aggregate,
)
from halfjoin.sql.functions.jsonb_aggregates import finished
from halfjoin.sql.functions.sum_results import SUM_RESULTS
from halfjoin.sql.relation import SortKey
from halfjoin.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSONB,
    REAL,
    SMALLINT,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    Kind,
    SqlType,
    array,
    numeric,
)  # fmt: skip
from tests.support.aggregates import aggregate
from tests.support.front import bound

pytest_plugins = ("tests.support.postgres",)

VARCHAR = SqlType(Kind.VARCHAR, 5)
TYPES = (SMALLINT, INTEGER, BIGINT, numeric(10, 2), REAL, DOUBLE, BOOLEAN, TEXT, VARCHAR, DATE, TIMESTAMP, TIMESTAMPTZ,
         INTERVAL, JSONB, array(INTEGER))  # fmt: skip
REFUSED = {("array_agg", Kind.ARRAY), ("percentile_cont", Kind.INTERVAL), ("mode", Kind.JSONB),
           ("percentile_disc", Kind.JSONB), ("jsonb_object_agg", Kind.JSONB),
           ("json_object_agg", Kind.JSONB)}
PAIRS = frozenset(name for name in AGGREGATES if name.startswith(("corr", "covar", "regr")))
EXAMPLES = [(entry.name, example.sql, example.answer) for entry in AGGREGATE_TABLE for example in entry.examples]


def call_of(name: str, type: SqlType) -> tuple[str, Any]:
    """The SQL text and the resolved call of an aggregate over a column of a type."""
    x = Column("x", type)
    if name in ORDERED_SETS:
        direct = () if name == "mode" else (Literal(0.5, DOUBLE),)
        text = f"{name}({'0.5' if direct else ''}) WITHIN GROUP (ORDER BY x)"
        return text, resolve_aggregate(name, direct, order=[SortKey(x)])
    if name in PAIRS:
        return f"{name}(x, x)", resolve_aggregate(name, (x, x))
    if name == "string_agg":
        return "string_agg(x, ',')", resolve_aggregate(name, (x, Literal(",", UNKNOWN)))
    return f"{name}(x)", resolve_aggregate(name, (x,))


def type_in_postgres(postgres: Any, text: str, type: SqlType) -> str | None:
    """PostgreSQL's name of the type of a call; None if it refuses the call."""
    import psycopg

    try:
        row = postgres.execute(f"SELECT pg_typeof({text}) FROM (SELECT NULL::{type} AS x WHERE false) AS t").fetchone()
    except psycopg.errors.UndefinedFunction:
        return None
    return str(row[0])


@pytest.mark.parametrize("name", sorted(AGGREGATES - {"any_value"}))  # any_value came with PostgreSQL 16
def test_types_are_postgresqls(name: str, postgres: Any) -> None:
    for type in TYPES:
        try:
            text, call = call_of(name, type)
        except UnsupportedSQL:
            text = call_of_text(name)
            wanted = type_in_postgres(postgres, text, type)
            assert wanted is None or (name, type.kind) in REFUSED, (type, wanted)
            continue
        made = finished(name, Column("made", call.type), call.args).type
        assert shown(made) == type_in_postgres(postgres, text, type), type


def call_of_text(name: str) -> str:
    if name == "string_agg":
        return "string_agg(x, ',')"
    if name in ORDERED_SETS:
        return f"{name}({'' if name == 'mode' else '0.5'}) WITHIN GROUP (ORDER BY x)"
    return f"{name}(x, x)" if name in PAIRS else f"{name}(x)"


def shown(type: SqlType) -> str:
    names = {Kind.TIMESTAMP: "timestamp without time zone", Kind.TIMESTAMPTZ: "timestamp with time zone",
             Kind.VARCHAR: "character varying", Kind.NUMERIC: "numeric"}  # fmt: skip
    if type.element is not None:  # in PostgreSQL the number of dimensions is no part of the type
        return f"{shown(type.element).removesuffix('[]')}[]"
    return names.get(type.kind, type.kind.value)


def evaluated(sql: str) -> str | None:
    """The answer of an example whose aggregate adds up, from the kept sums."""
    found = re.fullmatch(r"(\w+)\((.*?)\) (FROM .* AS t \((.*)\))", sql)
    assert found is not None
    name, written, source, columns = found.groups()
    values: Any = bound(f"SELECT * {source}")
    while hasattr(values, "input"):
        values = values.input
    picked = [] if written == "*" else [columns.split(", ").index(arg) for arg in written.split(", ")]
    rows = [tuple(row[i].value for i in picked) for row in values.rows]
    answer = aggregate(name, rows, *(values.columns[i].type for i in picked))
    return None if answer is None else str(answer).lower() if isinstance(answer, bool) else str(answer)


def alike(got: str | None, wanted: str | None) -> bool:
    """Whether both are the same text, or numbers that differ in the last digits that the shorter one has."""
    if got is None or wanted is None or not re.fullmatch(r"-?[\d.]+", got):
        return got == wanted
    digits = min(len(text.partition(".")[2]) for text in (got, wanted))
    return abs(Decimal(got) - Decimal(wanted)) <= Decimal(1).scaleb(-min(digits, 14))


@pytest.mark.parametrize(("name", "sql", "answer"), EXAMPLES)
def test_examples_are_postgresqls(name: str, sql: str, answer: str | None, postgres: Any) -> None:
    import psycopg

    if name == "any_value":
        pytest.skip("PostgreSQL 16 has it")
    try:
        row = postgres.execute(f"SELECT ({sql.replace(' FROM ', ')::text FROM ', 1)}").fetchone()[0]
    except psycopg.errors.NumericValueOutOfRange as error:
        row = f"ERROR: {error.diag.message_primary}"
    assert alike(answer, row), row


@pytest.mark.parametrize(("sql", "answer"), [(sql, answer) for name, sql, answer in EXAMPLES if "BY x" not in sql
                                             and name not in ("min", "max", "any_value")])  # fmt: skip
def test_sums_answer_the_examples(sql: str, answer: str | None) -> None:
    assert alike(evaluated(sql), answer), evaluated(sql)


def test_every_aggregate_has_an_example_and_a_type() -> None:
    assert {name for name, _, _ in EXAMPLES} == AGGREGATES


X, D = Column("x", INTEGER), Column("d", DOUBLE)
UPWARDS = (SortKey(X),)


@pytest.mark.parametrize(("refused", "reason"), [
    (lambda: resolve_aggregate("sum", [Column("s", TEXT)]), r"no function sum\(text\)"),
    (lambda: resolve_aggregate("sum", [Literal("1", UNKNOWN)]), "not unique"),
    (lambda: resolve_aggregate("avg", [X, X]), "no function avg"),
    (lambda: resolve_aggregate("max", [Column("b", BOOLEAN)]), "use bool_or"),
    (lambda: resolve_aggregate("min", [Column("u", UUID)]), r"min\(x::text\)"),
    (lambda: resolve_aggregate("bool_and", [X]), r"no function bool_and\(integer\)"),
    (lambda: resolve_aggregate("bit_or", [D]), "no function bit_or"),
    (lambda: resolve_aggregate("count", [], distinct=True), "DISTINCT needs an argument"),
    (lambda: resolve_aggregate("count", [X], condition=X), "must be boolean, not integer"),
    (lambda: resolve_aggregate("array_agg", [X], distinct=True, order=[SortKey(D)]), "must appear in argument list"),
    (lambda: resolve_aggregate("mode", []), "WITHIN GROUP is required"),
    (lambda: resolve_aggregate("mode", [X], order=UPWARDS), "mode takes 0 arguments"),
    (lambda: resolve_aggregate("percentile_cont", [Column("f", array(DOUBLE))], order=UPWARDS), "a column of arrays"),
    (lambda: resolve_aggregate("percentile_disc", [Literal(1.5, DOUBLE)], order=UPWARDS), "1.5 is not between 0 and 1"),
    (lambda: resolve_aggregate("percentile_disc", [Literal(0.5, DOUBLE)], order=UPWARDS, distinct=True), "DISTINCT"),
])  # fmt: skip
def test_wrong_calls_are_refused(refused: Any, reason: str) -> None:
    with pytest.raises(UnsupportedSQL, match=reason):
        refused()


def test_an_unknown_name_is_told() -> None:
    with pytest.raises(UnknownName, match="sum"):
        resolve_aggregate("summ", [X])


@pytest.mark.parametrize("entry", SUM_RESULTS, ids=lambda entry: entry.name)
def test_no_sql_calls_what_reads_sums(entry: Any) -> None:
    args = [Column("x", BIGINT), *[Column("k", BYTEA)] * 5]
    with pytest.raises(UnknownName):
        resolve(entry.name, args[: len(entry.overloads[0].params)])


@pytest.mark.parametrize(("type", "fails"), [
    (INTEGER, True), (BIGINT, False), (numeric(19, 4), False), (numeric(20, 4), True), (DOUBLE, True),
])  # fmt: skip
def test_a_sum_can_fail_unless_it_always_fits(type: SqlType, fails: bool) -> None:
    made = decompose(resolve_aggregate("sum", [Column("x", type)]))
    assert made is not None
    kept = [Column(f"k{i}", part.type) for i, part in enumerate(made.parts)]
    assert fallible(made.result(kept)) is fails


def test_parts_are_of_the_kinds_of_sums() -> None:
    kinds = set()
    for name in AGGREGATES:
        for type in TYPES:
            try:
                made = decompose(call_of(name, type)[1])
            except UnsupportedSQL:
                continue
            for part in made.parts if made else ():
                assert part.type == (BIGINT if part.kind == "count" else BYTEA)
                kinds.add(part.kind)
    assert kinds == SUMS


@pytest.mark.parametrize("name", ["min", "max", "array_agg", "string_agg", "mode", "percentile_cont", "any_value"])
def test_what_needs_the_rows_does_not_add_up(name: str) -> None:
    assert decompose(call_of(name, TEXT if name == "string_agg" else INTEGER)[1]) is None


def test_distinct_does_not_add_up_unless_it_means_nothing() -> None:
    assert decompose(resolve_aggregate("sum", [X], distinct=True)) is None
    assert decompose(resolve_aggregate("bit_xor", [X], distinct=True)) is None
    assert not resolve_aggregate("max", [X], distinct=True).distinct
    assert decompose(resolve_aggregate("bit_and", [X], distinct=True)) is not None


def test_an_order_is_kept_only_where_it_shows() -> None:
    assert decompose(resolve_aggregate("sum", [X], order=UPWARDS)) is not None
    assert resolve_aggregate("array_agg", [X], order=UPWARDS).order == UPWARDS


def test_a_filter_becomes_part_of_the_arguments() -> None:
    condition: Expr = Column("c", BOOLEAN)
    sums = decompose(resolve_aggregate("sum", [X], condition=condition))
    rows = decompose(resolve_aggregate("count", [], condition=condition))
    assert sums is not None and rows is not None
    only = Call("case", (condition, X, Literal(None, INTEGER)), INTEGER)
    assert [part.args for part in sums.parts] == [(only,), (only,)]
    assert isinstance(rows.parts[0].args[0], Call) and rows.parts[0].args[0].args[0] == condition
