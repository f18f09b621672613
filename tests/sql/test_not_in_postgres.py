"""NOT IN of several columns, whose values may be NULL or fail, has PostgreSQL's rows."""

from __future__ import annotations

from typing import Any

from tests.support.compared import compare

pytest_plugins = ("tests.support.postgres",)

_SETUP = """
    CREATE TABLE v (a int);
    CREATE TABLE w (i int, k int);
    INSERT INTO v VALUES (1), (0), (NULL);
    INSERT INTO w VALUES (1, 2), (1, NULL), (NULL, 2), (2, -4), (NULL, NULL), (0, 0);
"""
_CHANGES = (
    "INSERT INTO w VALUES (2, 2), (-2, 4), (1, 2)",
    "DELETE FROM w WHERE i IS NULL",
    "UPDATE w SET k = NULL WHERE i = 2",
    "INSERT INTO v VALUES (2), (1)",
    "DELETE FROM w WHERE k IS NULL",
)
_PAIR = "(CASE WHEN v.a > 0 THEN w.k ELSE w.i END, w.i * -1)"
_QUERIES = (
    f"SELECT v.a, w.i, w.k FROM v LEFT JOIN w ON {_PAIR} NOT IN (SELECT u.k, u.i * 2 FROM w AS u WHERE u.i = w.i)",
    f"SELECT v.a, w.i, w.k FROM v LEFT JOIN w ON {_PAIR} NOT IN (SELECT u.k, u.i * 2 FROM w AS u)",
    f"SELECT v.a, w.i, w.k FROM v LEFT JOIN w ON {_PAIR} NOT IN (SELECT u.k, length(u.k::text) FROM w AS u, v)",
    "SELECT i, k FROM w WHERE (k * 2, i * 2) NOT IN (SELECT u.i * 2, u.k * 2 FROM w AS u WHERE u.k > 1)",
    "SELECT i, k FROM w WHERE (k * 2, i * 2) NOT IN (SELECT u.k * 2, u.i * 2 FROM w AS u WHERE u.k > w.i)",
)


def test_not_in_of_several_columns(postgres: Any) -> None:
    compare(_SETUP, _CHANGES, _QUERIES, postgres)
