"""The numbers of types are PostgreSQL's."""

from __future__ import annotations

from typing import Any

from halfjoin.sql.oids import BUILT_IN, FIRST_OWN, modifier, own_oid, pg_type, type_of
from halfjoin.sql.types import BIGINT, INTEGER, TEXT, Kind, SqlType, array, numeric

pytest_plugins = ("tests.support.postgres",)


def test_built_in_types_are_those_of_postgresql(postgres: Any) -> None:
    known = {row[0]: row[1:] for row in postgres.execute(
        "SELECT oid::int, typarray::int, typname, typlen, typcategory::text, format_type(oid, NULL) FROM pg_type")}
    for one in BUILT_IN:
        assert known[one.oid] == (one.array, one.name, one.length, one.category, one.sql)


def test_a_type_is_found_by_its_number() -> None:
    mood = SqlType(Kind.ENUM, named="mood", labels=("sad", "ok"))
    for type in (BIGINT, TEXT, array(BIGINT), mood, array(mood)):
        assert type_of(pg_type(type).oid, [mood]) == type
    assert pg_type(mood).oid == own_oid("mood") >= FIRST_OWN
    assert type_of(3, [mood]) is None


def test_modifiers_are_those_of_postgresql(postgres: Any) -> None:
    postgres.execute("CREATE TABLE t (a numeric(10,2), b varchar(7), c char(3), d int, e numeric(5,0)[])")
    types = [numeric(10, 2), SqlType(Kind.VARCHAR, 7), SqlType(Kind.CHAR, 3), INTEGER, array(numeric(5, 0))]
    rows = postgres.execute("SELECT atttypmod FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 "
                            "ORDER BY attnum")
    assert [row[0] for row in rows] == [modifier(type) for type in types]
