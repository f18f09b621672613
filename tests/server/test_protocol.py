"""The messages of the protocol: their order, errors, transactions, portals."""

from __future__ import annotations

import socket
import struct
import threading

import pytest

from halfjoin.server.limits import Limits
from tests.support.serving import Raw, Served, fields, served, serving

__all__ = ["served"]


@pytest.fixture
def raw(served: Served) -> Raw:
    made = Raw(served.port)
    made.query("CREATE TABLE t (a integer PRIMARY KEY, b text)")
    return made


def _letters(found: list[tuple[str, bytes]]) -> str:
    return "".join(letter for letter, _ in found)


def _parse(sql: str, name: str = "", oids: tuple[int, ...] = ()) -> tuple[str, bytes]:
    body = name.encode() + b"\0" + sql.encode() + b"\0"
    return "P", body + struct.pack(f">h{len(oids)}I", len(oids), *oids)


def _bind(*values: str | None, portal: str = "", name: str = "") -> tuple[str, bytes]:
    made = [struct.pack(">i", -1) if v is None else struct.pack(">i", len(v.encode())) + v.encode() for v in values]
    head = portal.encode() + b"\0" + name.encode() + b"\0\0\0" + struct.pack(">h", len(values))
    return "B", head + b"".join(made) + b"\0\0"


def _execute(most: int = 0, portal: str = "") -> tuple[str, bytes]:
    return "E", portal.encode() + b"\0" + struct.pack(">i", most)


# Many short steps, as cancelling waits for the end of one.
# Seconds: an interrupt that falls into a finalizer is lost, and comes again after half a second.
SLOW = ("WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + 1 FROM r, generate_series(1, 3000) WHERE n < 900000) "
        "SELECT count(*) FROM r")  # fmt: skip
SYNC, FLUSH, DESCRIBE = ("S", b""), ("H", b""), ("D", b"P\0")


def _status(found: list[tuple[str, bytes]]) -> bytes:
    return found[-1][1]


def _tags(found: list[tuple[str, bytes]]) -> list[str]:
    return [body[:-1].decode() for letter, body in found if letter == "C"]


def test_a_query_answers_in_order(raw: Raw) -> None:
    assert _letters(raw.query("SELECT 1; SELECT 2 WHERE false; INSERT INTO t VALUES (1, 'x')")) == "TDCTCCZ"
    assert _letters(raw.query("")) == "IZ"
    assert _letters(raw.query(" ; ; ")) == "IZ"


def test_statements_of_one_query_are_one_batch(raw: Raw, served: Served) -> None:
    found = raw.query("INSERT INTO t VALUES (1, 'x'); INSERT INTO t VALUES (2, 'y'); SELECT 1/0")
    assert _letters(found) == "CCEZ"
    assert _status(found) == b"I"
    assert served.engine.query("SELECT * FROM t").num_rows == 0
    before = served.engine.stats().upper
    raw.query("INSERT INTO t VALUES (1, 'x'); INSERT INTO t VALUES (2, 'y')")
    assert served.engine.query("SELECT * FROM t").num_rows == 2
    changed = served.engine.execute("SELECT count(*) FROM t AS OF " + str(served.engine.stats().upper - 1))
    assert changed is not None
    assert before != served.engine.stats().upper


def test_after_an_error_messages_are_left_out_until_sync(raw: Raw) -> None:
    raw.send(_parse("SELECT nope"), _bind(), DESCRIBE, _execute(), _parse("SELECT 1"), SYNC,
             _parse("SELECT 2"), _bind(), _execute(), SYNC)  # fmt: skip
    assert _letters(raw.until("Z")) == "EZ"
    assert _letters(raw.until("Z")) == "12DCZ"


def test_an_error_is_sent_without_sync(raw: Raw) -> None:
    raw.send(_parse("SELEC"), FLUSH)
    assert raw.receive()[0] == "E"
    raw.send(SYNC)
    assert raw.until("Z") == [("Z", b"I")]


def test_an_error_tells_code_place_and_hint(raw: Raw) -> None:
    found = dict(raw.query("SELECT 1;\n  SELECT é, a, nope FROM t"))
    error = fields(found["E"])
    assert error["C"] == "42703"
    raw.query("INSERT INTO t VALUES (1, 'é')")
    error = fields(dict(raw.query("SELECT 'é', bb FROM t"))["E"])
    assert (error["C"], error["P"], error["M"]) == ("42703", "13", 'column "bb" does not exist')
    assert "b" in error["H"]
    error = fields(dict(raw.query("SELECT 1; SELECT bb FROM t"))["E"])
    assert error["P"] == "18"
    assert fields(dict(raw.query("INSERT INTO t VALUES (1, 'x')"))["E"])["C"] == "23505"


def test_a_transaction_is_one_batch(raw: Raw, served: Served) -> None:
    assert _status(raw.query("BEGIN")) == b"T"
    raw.query("INSERT INTO t VALUES (1, 'x')")
    assert served.engine.query("SELECT * FROM t").num_rows == 0
    assert _tags(raw.query("SELECT * FROM t")) == ["SELECT 1"]
    raw.query("SAVEPOINT s")
    assert _status(raw.query("INSERT INTO t VALUES (1, 'x')")) == b"E"
    assert fields(dict(raw.query("SELECT 1"))["E"])["C"] == "25P02"
    assert _status(raw.query("ROLLBACK TO s")) == b"T"
    assert _status(raw.query("RELEASE s")) == b"T"
    assert _status(raw.query("COMMIT")) == b"I"
    assert served.engine.query("SELECT * FROM t").num_rows == 1


def test_commit_of_a_failed_transaction_says_rollback(raw: Raw, served: Served) -> None:
    raw.query("BEGIN; INSERT INTO t VALUES (1, 'x')")
    assert _status(raw.query("SELEC")) == b"E"
    assert _tags(raw.query("COMMIT")) == ["ROLLBACK"]
    assert served.engine.query("SELECT * FROM t").num_rows == 0


def test_what_postgresql_warns_of_is_a_notice(raw: Raw) -> None:
    assert _letters(raw.query("ROLLBACK")) == "NCZ"
    assert _letters(raw.query("COMMIT")) == "NCZ"
    assert _letters(raw.query("BEGIN; BEGIN")) == "CNCZ"
    assert fields(raw.query("BEGIN")[0][1])["C"] == "25001"


@pytest.mark.parametrize(("sql", "text"), [
    ("CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 2 AS x", "v exists with another definition"),
    ("CREATE INDEX ON t (a DESC)", "an order changes nothing"),
])
def test_what_the_engine_warns_of_is_a_notice(sql: str, text: str, raw: Raw, served: Served) -> None:
    served.engine.execute("CREATE MATERIALIZED VIEW v AS SELECT 1 AS x")
    found = raw.query(sql)
    assert _letters(found) == "NCZ" and text in fields(found[0][1])["M"] and fields(found[0][1])["S"] == "NOTICE"
    assert _letters(raw.query("CREATE TABLE other (a integer)")) == "CZ"
    raw.send(_parse(sql), _bind(), DESCRIBE, _execute(), SYNC)
    assert _letters(raw.until("Z")) == "12nNCZ"


@pytest.mark.parametrize(("sql", "gone"), [
    ("DROP VIEW v CASCADE", "view w"),
    ("ALTER TABLE t DROP CONSTRAINT t_pkey CASCADE", "constraint u_a_fkey on table u"),
])
def test_what_cascade_drops_is_a_notice(sql: str, gone: str, raw: Raw, served: Served) -> None:
    for made in ("VIEW v AS SELECT 1 AS x", "VIEW w AS SELECT x FROM v", "TABLE u (a integer REFERENCES t)"):
        served.engine.execute(f"CREATE {made}")
    found = raw.query(sql)
    assert _letters(found) == "NCZ" and fields(found[0][1])["M"] == f"drop cascades to {gone}"


def test_setval_of_a_client_stays(raw: Raw, served: Served) -> None:
    raw.query("CREATE SEQUENCE q")
    for last in (5, 5, 50):
        assert raw.rows(f"SELECT setval('q', {last})", 0)[1].endswith(str(last).encode())
        assert raw.rows("SELECT nextval('q')", 0)[1].endswith(str(last + 1).encode())
    raw.query("PREPARE s AS SELECT setval('q', $1)")
    assert raw.rows("EXECUTE s(60)", 0)[1].endswith(b"60") and raw.rows("SELECT nextval('q')", 0)[1].endswith(b"61")
    raw.query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT setval('q', 70); COMMIT")
    found = served.engine.execute("SELECT nextval('q') AS n")
    assert found is not None and found.to_pylist() == [{"n": 71}]


def test_what_has_nothing_to_do_is_a_notice(raw: Raw) -> None:
    for sql, tag in (("VACUUM", "VACUUM"), ("VACUUM (ANALYZE) t", "VACUUM"), ("ANALYSE t (a)", "ANALYZE")):
        found = raw.query(sql)
        assert _letters(found) == "NCZ" and _tags(found) == [tag]
        assert fields(found[0][1])["M"].startswith(f"{tag} has nothing to do")
    raw.send(_parse("VACUUM t"), _bind(), DESCRIBE, _execute(), SYNC)
    assert _letters(raw.until("Z")) == "12nNCZ"
    for sql, code in (("VACUUM none", "42P01"), ("ANALYZE t (none)", "42703")):
        (letter, body), _ = raw.query(sql)
        assert letter == "E" and fields(body)["C"] == code


def test_a_plan_is_explained_with_the_options_of_clients(raw: Raw) -> None:
    plain = raw.query("EXPLAIN SELECT a FROM t")
    assert raw.query("EXPLAIN (VERBOSE, COSTS OFF) SELECT a FROM t") == plain
    assert _letters(raw.query("EXPLAIN (FORMAT JSON) SELECT a FROM t")) == "TDCZ"
    assert "engine.activity()" in fields(raw.query("EXPLAIN (ANALYZE) SELECT 1")[0][1])["H"]
    raw.send(_parse("EXPLAIN SELECT a FROM t WHERE a = $1"), ("D", b"S\0"), _bind("5"), _execute(), SYNC)
    found = raw.until("Z")
    assert _letters(found).replace("D", "") == "1tT2CZ"
    assert found[1][1] == struct.pack(">hI", 1, 23)


def test_a_portal_gives_rows_up_to_its_limit(raw: Raw) -> None:
    raw.query("INSERT INTO t SELECT x, 'r' FROM generate_series(1, 5) AS g(x)")
    raw.send(_parse("SELECT a FROM t ORDER BY a"), _bind(portal="p"), _execute(2, "p"), _execute(2, "p"),
             _execute(2, "p"), SYNC)  # fmt: skip
    found = raw.until("Z")
    assert _letters(found) == "12DDsDDsDCZ"
    assert _tags(found) == ["SELECT 1"]
    raw.send(_execute(1, "p"), SYNC)
    assert fields(raw.until("Z")[0][1])["C"] == "34000"  # it has ended with its transaction


def test_parameters_have_the_types_of_their_places(raw: Raw) -> None:
    cases = {
        "SELECT a FROM t WHERE a = $1 AND b = $2": (23, 25), "SELECT $1": (25,), "SELECT $2::date, $1 + 1": (23, 1082),
        "INSERT INTO t VALUES ($1, $2)": (23, 25), "SELECT a FROM t LIMIT $1 OFFSET $2": (20, 20),
        "SELECT nextval($1)": (25,), "SELECT setval($1::regclass, $2, $3)": (25, 20, 16),
        "SELECT a FROM t WHERE a = ANY($1)": (1007,), "UPDATE t SET b = $2 WHERE a < $1": (23, 25),
        "SELECT $1 || b FROM t": (25,), "SELECT date_trunc($1, now())": (25,),
        "SELECT a FROM t WHERE a IN ($1, $2)": (23, 23), "SELECT regexp_replace(b, $1, $2, $3) FROM t": (25, 25, 25),
        "SELECT b LIKE $1 ESCAPE $2 FROM t": (25, 25), "SELECT substring(b, $1, 2) FROM t": (23,),
    }  # fmt: skip
    for sql, oids in cases.items():
        raw.send(_parse(sql), ("D", b"S\0"), SYNC)
        told = dict(raw.until("Z"))
        assert struct.unpack(f">h{len(oids)}I", told["t"]) == (len(oids), *oids), sql


def test_a_parameter_has_the_type_that_is_given(raw: Raw) -> None:
    raw.send(_parse("SELECT $1", oids=(20,)), ("D", b"S\0"), _bind("7"), DESCRIBE, _execute(), SYNC)
    found = raw.until("Z")
    assert struct.unpack(">hI", found[1][1]) == (1, 20)
    assert found[5][1].endswith(b"7")
    raw.send(_parse("SELECT $1", oids=(20,)), _bind("x"), _execute(), SYNC)
    assert fields(dict(raw.until("Z"))["E"])["C"][:2] == "22"


def test_bind_has_as_many_values_as_the_statement(raw: Raw) -> None:
    raw.send(_parse("SELECT $1, $2"), _bind("1"), SYNC)
    assert fields(dict(raw.until("Z"))["E"])["C"] == "08P01"


def test_changes_before_one_sync_are_one_batch(raw: Raw, served: Served) -> None:
    insert = "INSERT INTO t VALUES ($1, 'x')"
    raw.send(_parse(insert, "i"), *(one for n in range(5) for one in (_bind(str(n), name="i"), _execute())), SYNC)
    assert _status(raw.until("Z")) == b"I"
    assert served.engine.query("SELECT * FROM t").num_rows == 5
    raw.send(_bind("7", name="i"), _execute(), _bind("7", name="i"), _execute(), SYNC)
    assert _letters(raw.until("Z")) == "2C2EZ"
    assert served.engine.query("SELECT * FROM t").num_rows == 5


def test_cursors_and_prepared_statements_have_their_errors(raw: Raw) -> None:
    for sql, code in (
        ("FETCH 1 FROM c", "34000"), ("DECLARE c CURSOR FOR SELECT 1", "25P01"), ("DEALLOCATE p", "26000"),
        ("CLOSE c", "34000"), ("SET nope = 1", "42704"), ("SHOW nope", "42704"),
        ("SET server_version = '9'", "55P02"), ("COMMIT AND CHAIN", "25P01"),
    ):  # fmt: skip
        assert fields(dict(raw.query(sql))["E"])["C"] == code, sql
    raw.send(_parse("SELECT 1", "p"), _parse("SELECT 1", "p"), SYNC)
    assert fields(dict(raw.until("Z"))["E"])["C"] == "42P05"
    assert _tags(raw.query("DEALLOCATE p")) == ["DEALLOCATE"]


def test_settings_are_of_one_connection_and_are_reported(raw: Raw, served: Served) -> None:
    found = raw.query("SET application_name = 'me'")
    assert ("S", b"application_name\0me\0") in found
    other = Raw(served.port)
    assert b"me" not in other.query("SHOW application_name")[1][1]
    raw.query("CREATE SCHEMA s; CREATE TABLE s.u (x integer); SET search_path = s, public")
    assert _letters(raw.query("SELECT x FROM u")) == "TCZ"
    assert "E" in _letters(other.query("SELECT x FROM u"))
    raw.query("BEGIN; SET LOCAL application_name = 'you'; COMMIT")
    assert raw.query("SHOW application_name")[1][1].endswith(b"me")
    raw.query("BEGIN; SET application_name = 'you'; ROLLBACK")
    assert raw.query("SHOW application_name")[1][1].endswith(b"me")
    raw.query("DISCARD ALL")
    assert raw.query("SHOW application_name")[1][1].endswith(b"\0\0\0\0")


def test_a_read_only_transaction_changes_nothing(raw: Raw) -> None:
    raw.query("BEGIN READ ONLY")
    assert fields(dict(raw.query("INSERT INTO t VALUES (1, 'x')"))["E"])["C"] == "25006"
    raw.query("ROLLBACK")
    assert _letters(raw.query("INSERT INTO t VALUES (1, 'x')")) == "CZ"
    raw.query("BEGIN; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY")
    assert raw.query("SHOW transaction_read_only")[1][1].endswith(b"on")
    changed = "WITH gone AS (DELETE FROM t RETURNING a) SELECT * FROM gone"
    assert fields(dict(raw.query(changed))["E"])["C"] == "25006"
    raw.query("ROLLBACK; SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
    for changed in ("DELETE FROM t", "DELETE FROM t; DELETE FROM t"):
        assert fields(dict(raw.query(changed))["E"])["C"] == "25006"
    assert _letters(raw.query("BEGIN READ WRITE; DELETE FROM t; COMMIT")) == "CCCZ"
    assert raw.query("SHOW transaction_isolation")[1][1].endswith(b"read committed")


def test_changes_in_with_are_made(raw: Raw) -> None:
    raw.query("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    assert raw.query("WITH gone AS (DELETE FROM t WHERE a = 1 RETURNING b) SELECT * FROM gone")[1][1].endswith(b"x")
    assert raw.rows("WITH gone AS (DELETE FROM t RETURNING b) SELECT * FROM gone", 0)[1].endswith(b"y")
    assert raw.query("SELECT count(*) FROM t")[1][1].endswith(b"0")


def test_too_many_connections_are_refused() -> None:
    with serving(limits=Limits(connections=2)) as found:
        first, second = Raw(found.port), Raw(found.port)
        third = Raw(found.port, password=True)
        assert fields(third.until("E")[-1][1])["C"] == "53300"
        assert third.closed()
        first.send(("X", b""))
        assert first.closed()
        assert _letters(second.query("SELECT 1")) == "TDCZ"


def test_a_statement_ends_at_its_timeout(raw: Raw) -> None:
    raw.query("SET statement_timeout = '200ms'")
    error = fields(dict(raw.query(SLOW))["E"])
    assert error["C"] == "57014", error
    assert _letters(raw.query("RESET statement_timeout; SELECT 1")) == "CTDCZ"


def test_an_idle_connection_is_closed() -> None:
    with serving(limits=Limits(idle=0.2)) as found:
        raw = Raw(found.port)
        assert fields(raw.until("E")[-1][1])["C"] == "57P05"
        assert raw.closed()


def test_a_cancel_request_ends_the_statement_alone(raw: Raw, served: Served) -> None:
    victim = Raw(served.port, password=True)
    _, key = next(one for one in victim.until("Z") if one[0] == "K")
    done = threading.Event()

    def cancel() -> None:
        while not done.wait(0.05):
            with socket.create_connection(("127.0.0.1", served.port), timeout=60) as request:
                request.sendall(struct.pack(">ii", 16, 80877102) + key)
                request.recv(1)

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        error = fields(dict(victim.query(SLOW))["E"])
    finally:
        done.set()
        thread.join()
    assert error["C"] == "57014"
    assert _letters(raw.query("SELECT 1")) == "TDCZ"
    served.engine.execute("INSERT INTO t VALUES (99, 'z')")


def test_what_is_temporary_ends_with_its_connection(raw: Raw, served: Served) -> None:
    raw.query("CREATE TEMP TABLE mine (a integer); INSERT INTO mine VALUES (7)")
    other = Raw(served.port)
    assert "E" in _letters(other.query("SELECT a FROM mine"))
    assert _letters(raw.query("SELECT a FROM mine")) == "TDCZ"
    raw.query("DISCARD TEMP")
    assert "E" in _letters(raw.query("SELECT a FROM mine"))
