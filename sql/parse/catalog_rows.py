"""Functions of PostgreSQL's catalog whose rows are those of a table: in FROM they are that table."""

from __future__ import annotations

from sqlglot import exp

from halfjoin.sql.system import PG_CATALOG

TABLES = {
    "pg_show_all_settings": "pg_settings", "pg_timezone_names": "pg_timezone_names",
    "pg_timezone_abbrevs": "pg_timezone_abbrevs", "pg_available_extensions": "pg_available_extensions",
    "pg_cursor": "pg_cursors", "pg_prepared_statement": "pg_prepared_statements",
    "pg_prepared_xact": "pg_prepared_xacts",
    "pg_lock_status": "pg_locks", "pg_stat_get_activity": "pg_stat_activity",
}  # fmt: skip


def of_catalog(item: exp.Expr | None) -> exp.Expr | None:
    """An item of FROM: the table, if it is a call of such a function."""
    if not isinstance(item, exp.Table) or not isinstance(item.this, exp.Anonymous):
        return item
    name = item.this.name.lower()
    if name not in TABLES or any(not isinstance(arg, exp.Null) for arg in item.this.expressions):
        return item
    if not item.args.get("alias"):
        item.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
    item.set("this", exp.to_identifier(TABLES[name]))
    item.set("db", exp.to_identifier(PG_CATALOG))
    return item
