"""COPY reads and writes the text that PostgreSQL reads and writes."""

from __future__ import annotations

from io import BytesIO
from random import Random
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.statements.copied_lines import _before_end
from tests.engine.test_dml_postgres import _all, _rows

pytest_plugins = ("tests.support.postgres",)

DDL = "CREATE TABLE t (k integer, b text, d date, f double precision, x boolean, n numeric(6,2), v varchar(3))"
OPTIONS = ("", "WITH (FORMAT csv)", "(FORMAT csv, HEADER)", "WITH (FORMAT csv, DELIMITER '|', NULL 'nil', QUOTE '~')",
           "(DELIMITER ',', NULL '')", "(FORMAT csv, HEADER true, NULL 'a')", "(FORMAT text, DELIMITER '|')",
           "CSV DELIMITER ';' QUOTE '~'", "DELIMITER AS '|' NULL AS 'nil' CSV HEADER")
TEXTS = ("", "a", "nil", "\\N", "q\"q", "~", "a,b", "a|b", "t\tb", "two\nlines", "\r", "\\", "\\.", "x\\ty", " s ")
LINES = (
    (b"8\tx\n", ""), (b"x,b,,,,,\n", "CSV"), (b"9,b,,,,,toolong\n", "CSV"), (b"9,b,,,,,,\n", "CSV"), (b"", "CSV"),
    (b"9,\xff\xfe,,,,,\n", "CSV"), (b'10,"open,,,,,\n', "CSV"), (b"11,a,,,,,\r\n12,,,,t,,\r\n", "CSV"),
    (b'13,"",,,,99999,\n', "CSV"), (b"14,a,,,,,\n\n", "CSV"), (b'15,"a\n\nb",,,,,\n', "CSV"),
    (b"16,a,,,,,\n\n17,b,,,,,\n", "CSV"),
    (b"\n", ""), (b'18,"a,,,,,\n19,b"",,,,,\n', "CSV"), (b"k,b,d,f,x,n,v\n20,a,,,,,\n", "CSV HEADER"),
    (b"k,b,d,f,x,n,v\n21,a,,,,,\n", "(FORMAT csv, HEADER match)"),
    (b"k,B,d,f,x,n,v\n22,a,,,,,\n", "(FORMAT csv, HEADER match)"),
    (b"k,b,d,f,x,n,v\n24,,,,,,\n25,\"\",,,,,\n", "CSV HEADER FORCE NOT NULL b, v FORCE NULL b"),
    (b"26,\"\",,,,,\"\"\n", "(FORMAT csv, FORCE_NULL (b, v), FORCE_NOT_NULL (v))"),
    (b"27;nil;;;;;\n28;\"nil\";;;;;\n", "CSV DELIMITER ';' NULL 'nil' FORCE NULL b FORCE NOT NULL d, f, x, n"),
    (b"29,a,,,,,\n", "(FORMAT csv, FORCE_NULL (z))"), (b"30,a,,,,,\n", "(FORMAT csv, FORCE_QUOTE (b))"),
    (b"31,a,,,,,\n", "(FORMAT csv, FORCE_NULL *)"), (b"32\ta\t\t\t\t\t\n", "(FORCE_NULL (b))"),
    (b"33,a,,,,,\n", "(FORMAT csv, FORCE_NULL)"),
    (b"23,a,,,,,\n", "(FORMAT csv, ENCODING 'UTF8', ESCAPE '\"')"),
    (b"6\ta\\tb\\\\n\t\\N\t-Infinity\tf\t2\t\\N\n\\.\n", ""),
    (b"34\ta\t\t\\N\tf\t\\N\t\n\\.\n35\tb\n", ""), (b"36,a,,,,,\n\\.\n37,b\n", "CSV"),
    (b'38,"a\n\\.\nb",,,,,\n', "CSV"), (b"39,a,,,,,\n\\.x,,,,,,\n", "CSV"), (b"7\t\t\t\t\t\t\n", ""),
)


def _in_postgres(postgres: Any, sql: str, data: bytes) -> str:
    import psycopg

    try:
        with postgres.cursor().copy(sql) as stream:
            stream.write(data)
    except psycopg.Error as error:
        return str(error.sqlstate)[:2]
    return "works"


def _out_of_postgres(postgres: Any, sql: str) -> bytes:
    with postgres.cursor().copy(sql) as stream:
        return b"".join(bytes(part) for part in stream)


def _here(engine: hj.Engine, sql: str, data: bytes) -> str:
    try:
        engine.copy_from(sql, BytesIO(data))
    except hj.HalfjoinError as error:
        return error.sqlstate[:2]
    return "works"


@pytest.mark.parametrize("seed", range(4))
def test_rows_go_out_and_in_as_in_postgresql(seed: int, postgres: Any) -> None:
    random, engine = Random(seed), hj.Engine()
    engine.execute(DDL)
    postgres.execute(DDL)
    rows = [{"k": k, "b": random.choice([*TEXTS, None]), "f": random.choice([None, 0.1, -1e300, float("inf")]),
             "x": random.choice([True, False, None]), "v": random.choice(["", "abc", None, '","'])}
            for k in range(40)]  # fmt: skip
    engine.apply({"t": rows})
    for row in rows:
        postgres.execute("INSERT INTO t (k, b, f, x, v) VALUES (%(k)s, %(b)s, %(f)s, %(x)s, %(v)s)", row)
    for options in OPTIONS:
        for source in ("(TABLE t ORDER BY k DESC)", "(SELECT b FROM t ORDER BY k)", "(SELECT 1 WHERE 1 = 2)"):
            sql = f"COPY {source} TO STDOUT {options}"
            assert engine.copy_to(sql) == _out_of_postgres(postgres, sql), sql
        data = engine.copy_to(f"COPY t (v, k, b, f) TO STDOUT {options}")
        assert data is not None
        again = hj.Engine()
        again.execute(DDL)
        assert again.copy_from(f"COPY t (v, k, b, f) FROM STDIN {options}", data) == len(rows)
        shown = "SELECT k, b, f, v FROM t"
        if options.endswith("NULL '')"):  # the text format has no quotes to tell an empty text from NULL
            shown = "SELECT k, nullif(b, '') AS b, f, nullif(v, '') AS v FROM t"
        assert _rows(again.query("SELECT k, b, f, v FROM t")) == _rows(engine.query(shown)), options


@pytest.mark.parametrize(("data", "options"), LINES)
def test_lines_are_read_as_in_postgresql(data: bytes, options: str, postgres: Any) -> None:
    engine = hj.Engine()
    engine.execute(DDL)
    postgres.execute(DDL)
    sql = f"COPY t FROM STDIN {options}"
    assert _here(engine, sql, data) == _in_postgres(postgres, sql, data)
    assert _rows(engine.read("t")) == _all(postgres, "TABLE t")


@pytest.mark.parametrize("line", ['1,a"b"c', '1, "b"', '1,b"c'])
def test_a_quote_inside_a_value_is_refused(line: str) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k integer, b text)")
    with pytest.raises(hj.InvalidRow, match="quote"):
        engine.copy_from("COPY t FROM STDIN CSV", line + "\n")
    with pytest.raises(hj.UnsupportedSQL, match="k is named twice"):
        engine.copy_from("COPY t (k, k) FROM STDIN", "1\t2\n")


def test_copy_is_one_batch_and_a_part_of_a_transaction() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k integer PRIMARY KEY, a integer DEFAULT 7, "
                   "g integer GENERATED ALWAYS AS (k + 1) STORED)")  # fmt: skip
    engine.execute("BEGIN")
    assert engine.copy_from("COPY t (k) FROM STDIN", "1\n2\n") == 2
    engine.execute("ROLLBACK")
    assert engine.read("t").num_rows == 0
    with pytest.raises(hj.InvalidRow, match="second row"):
        engine.copy_from("COPY t (k) FROM STDIN", "1\n1\n")
    engine.copy_from("COPY t (k) FROM STDIN", "1\n")
    assert engine.read("t").to_pylist() == [{"k": 1, "a": 7, "g": 2}]
    target = BytesIO()
    engine.copy_to("COPY t TO STDOUT (FORMAT csv)", target)
    assert target.getvalue() == b"1,7,2\n"
    for sql in ("COPY t FROM '/etc/passwd'", "COPY t FROM STDIN", "COPY t FROM PROGRAM 'ls'"):
        with pytest.raises(hj.UnsupportedSQL):
            engine.execute(sql)


@pytest.mark.parametrize("options", [
    "(FORMAT csv, FORCE_QUOTE *)", "(FORMAT csv, FORCE_QUOTE (b, \"V\"), ESCAPE '\\', HEADER)", "CSV FORCE QUOTE k, b",
    "CSV HEADER ESCAPE '~' FORCE QUOTE *", "CSV QUOTE '~' ESCAPE 'q'", "CSV DELIMITER 't' NULL 'a' FORCE QUOTE b",
])  # fmt: skip
def test_quotes_that_are_forced(options: str, postgres: Any) -> None:
    engine, ddl = hj.Engine(), 'CREATE TABLE u (k integer, b text, "V" text)'
    engine.execute(ddl)
    postgres.execute(ddl)
    for k, text in enumerate([*TEXTS, None]):
        engine.execute("INSERT INTO u VALUES ($1, $2, $2)", [k, text])
        postgres.execute("INSERT INTO u VALUES (%s, %s, %s)", [k, text, text])
    sql = f"COPY (TABLE u ORDER BY k) TO STDOUT {options}"
    assert engine.copy_to(sql) == _out_of_postgres(postgres, sql)


def test_lines_like_the_end_in_a_value_are_counted_once() -> None:
    class Counted(bytes):
        looked_at = 0

        def count(self, sub: Any, start: Any = None, end: Any = None, /) -> int:
            Counted.looked_at += (len(self) if end is None else end) - (start or 0)
            return super().count(sub, start, end)

    lines = b'1,"' + b"\\.\n" * 1000 + b'"\n2,b\n'
    data = Counted(lines + b"\\.\n3,c\n")
    assert _before_end(data, b'"') == lines
    assert Counted.looked_at <= len(data)
