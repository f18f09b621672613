"""From SQL text to statements. This module checks syntax and clauses; the binder looks names up."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, TypeAlias

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from halfjoin.errors import UnsupportedSQL
from halfjoin.nesting import bounded
from halfjoin.sql.definitions import CreateIndex, Drop
from halfjoin.sql.parse import change, keywords, syntax
from halfjoin.sql.parse.alter import alter
from halfjoin.sql.parse.copying import copy
from halfjoin.sql.parse.create import CREATABLE, create, create_sink, table_name
from halfjoin.sql.parse.dialect import Halfjoin, HalfjoinParser
from halfjoin.sql.parse.expanded import expanded
from halfjoin.sql.parse.json_paths import CALLED, positional
from halfjoin.sql.parse.junk import refuse_junk
from halfjoin.sql.parse.literal_rows import literal_rows, marked
from halfjoin.sql.parse.locate import as_query, line_and_column, name_of, only, refuse, schema_of, written
from halfjoin.sql.parse.naming import alter_domain, alter_enum, alter_sequence, comment, schema_named
from halfjoin.sql.parse.parameters import Params, check_nul, check_unicode, with_arguments, with_values
from halfjoin.sql.parse.sourced import alter_source, create_source
from halfjoin.sql.parse.temporary import in_its_schema
from halfjoin.sql.parse.times import constant_time
from halfjoin.sql.parse.transactions import modes
from halfjoin.sql.parse.unqualified import unqualified
from halfjoin.sql.parse.unterminated import unterminated
from halfjoin.sql.parse.with_changes import split
from halfjoin.sql.prepared import Deallocate, Execute, Prepare
from halfjoin.sql.statements import (
    Delete,
    Explain,
    Insert,
    Maintain,
    Merge,
    Refresh,
    RefreshPlan,
    Select,
    SetSetting,
    SetTime,
    Show,
    Statement,
    Subscribe,
    Update,
    WithChanges,
)
from halfjoin.sql.system import DATABASE, INFORMATION, PG_CATALOG, SCHEMAS
from halfjoin.sql.transactions import Commit, Rollback, Savepoint, SetConstraints

Tree: TypeAlias = exp.Expr  # a parsed statement; only the package `sql` looks inside


def parse(text: str, params: Params = None) -> list[Statement]:
    """The statements of a text, in order; UnsupportedSQL (line, column, remedy) for an unsupported one.

    `params`: the values of `$1`, `$2`, ... or of `:name` in queries and changes; see `parameters`.
    """
    return [statement_of(node, text) for node in trees_of(text, params)]


def trees_of(text: str, params: Params = None, database: str = DATABASE) -> list[exp.Expr]:
    """The statements of a text as syntax trees, with the values of parameters. `database`: its other name in them."""
    check_nul(text, "the SQL text")
    trees = _trees(text, (DATABASE, database), filled=params is not None)
    return list(trees if params is None else with_values(trees, params, text))


def executed(statement: Prepare, values: tuple[exp.Expr, ...]) -> Statement:
    """A prepared statement with these values for its parameters."""
    return statement_of(with_arguments(statement, values), statement.text)


def parse_query(text: str) -> exp.Query:
    """The single query of a text. The catalog keeps a view's query as text, and this function reads it back."""
    trees = _trees(text)
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise UnsupportedSQL("expected one query", remedy="write SELECT ...")
    return trees[0]


def parse_index(text: str) -> CreateIndex:
    """The index of a text that the catalog keeps."""
    (node,) = _trees(text)
    statement = statement_of(node, text)
    assert isinstance(statement, CreateIndex)
    return statement


def _trees(text: str, databases: tuple[str, ...] = (), *, filled: bool = False) -> list[exp.Expr]:
    """`databases`: the names of the database; none of a text in the catalog, which may have the name of its client.
    `filled`: its parameters get values at once, so it needs all of them."""
    strict = bool(databases)
    if not isinstance(text, str):
        raise UnsupportedSQL(f"SQL is text, not {type(text).__name__}", remedy="write it as a str")
    check_unicode(text, "the SQL text")
    if strict and (rows := literal_rows(text)) is not None and not (filled and rows.numbers):
        with suppress(UnsupportedSQL):  # told of the whole text
            trees = _trees(rows.shortened, databases)
            if trees and marked(trees[0], rows):
                return trees
    try:
        with bounded():
            dialect = Halfjoin()
            parser = HalfjoinParser(dialect=dialect)
            parser.strict = strict
            tokens = dialect.tokenize(text)
            if strict:
                refuse_junk(tokens, text)
            nodes = parser.parse(tokens, text)
    except ParseError as error:
        raise _syntax_error(error, text) from None
    except SqlglotError as error:
        raise (unterminated(text) or
               UnsupportedSQL(f"syntax error: {str(error).partition(chr(10))[0]}", code="42601")) from None
    trees = [as_query(node) for node in nodes if node is not None and not isinstance(node, exp.Semicolon)]
    if PG_CATALOG in text or INFORMATION in text:
        trees = [expanded(unqualified(tree)) for tree in trees]
    for tree in trees:
        _check_depth(tree)
        if strict:  # earlier versions took more in the texts of views
            keywords.check(tree, text)
        if not strict or any(name in text for name in databases):
            _leave_out_database(tree, databases)
    if CALLED in text.lower():
        trees = [positional(tree) for tree in trees]
    return [in_its_schema(tree) for tree in trees]


def _leave_out_database(tree: exp.Expr, names: tuple[str, ...]) -> None:
    """Take the name of the one database off names of tables: `halfjoin.public.t` is `public.t`."""
    for table in tree.find_all(exp.Table):
        database = table.args.get("catalog")
        if database is not None and (not names or name_of(database) in names):
            table.set("catalog", None)
            table.args["db"].meta["start"] = database.meta["start"]  # where the whole name begins


def _too_deep() -> UnsupportedSQL:
    return UnsupportedSQL("the statement is nested too deep", remedy="make a part of it a view of its own")


def _check_depth(tree: exp.Expr) -> None:
    """Refuse a tree that would exhaust Python's stack; a chain of AND, OR or UNION, walked in a loop, counts once."""
    waiting = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise _too_deep()
        for child in node.iter_expressions():
            chained = isinstance(node, (exp.And, exp.Or, exp.Union)) and type(child) is type(node)
            waiting.append((child, depth if chained else depth + 1))


def _syntax_error(error: ParseError, text: str) -> UnsupportedSQL:
    if (unknown := _unknown_statement(error, text)) is not None:
        return unknown
    first: dict[str, Any] = error.errors[0] if error.errors else {}
    written, line, end = str(first.get("highlight") or ""), first.get("line"), first.get("col")
    if not written or line is None or end is None:
        return UnsupportedSQL("syntax error", code="42601")
    if first.get("ends"):
        return UnsupportedSQL(f"syntax error at the end, after {written!r}", sql=text, line=line, column=end + 1,
                              code="42601")
    return UnsupportedSQL(f"syntax error at {written!r}", sql=text, line=line, column=max(1, end - len(written) + 1),
                          code="42601")


def _unknown_statement(error: ParseError, text: str) -> UnsupportedSQL | None:
    """The error for a statement that begins with an unknown word, or creates an unsupported kind of thing."""
    first: dict[str, Any] = error.errors[0] if error.errors else {}
    tokens: list[Token] = []
    for token in Halfjoin().tokenize(text):
        if token.token_type is TokenType.SEMICOLON:
            if (token.line, token.col) > (first.get("line") or 0, first.get("col") or 0):
                break
            tokens = []
        else:
            tokens.append(token)
    if not tokens or tokens[0].token_type is TokenType.L_PAREN:
        return None
    word = tokens[0].text.upper()
    line, column = line_and_column(tokens[0].start, text)
    if word not in FIRST_WORDS:
        near = [] if word in ELSEWHERE else get_close_matches(word, FIRST_WORDS, n=1)
        instead = f"did you mean {near[0]}?" if near else f"statements: {KNOWN}"
        return UnsupportedSQL(f"not a supported statement: {word}", remedy=instead, sql=text, line=line, column=column,
                              code=None if word in ELSEWHERE else "42601")  # fmt: skip
    kind = tokens[1].text.upper() if len(tokens) > 1 else ""
    if word == "CREATE" and kind and kind not in CREATED:
        return UnsupportedSQL(f"CREATE {kind} is not supported", remedy=CREATABLE, sql=text, line=line, column=column)
    return None


def statement_of(node: exp.Expr, text: str) -> Statement:
    """The statement of a syntax tree."""
    if (found := split(node, text)) is not None:
        made = [(name, statement_of(part, text)) for name, part in found[0]]
        main = statement_of(found[1], text)
        parts = tuple((name, part) for name, part in made if isinstance(part, Insert | Delete | Update | Merge))
        if not isinstance(main, Select | Insert | Delete | Update | Merge):
            raise refuse(node, text, "WITH that changes rows takes a query or a change after it")
        return WithChanges(parts, main)
    for kind, make in STATEMENTS.items():
        if isinstance(node, kind):
            return make(node, text)
    begins = not isinstance(node, exp.Condition | exp.Alias) or written(node).partition(" ")[0].upper() in ELSEWHERE
    code = None if begins else "42601"  # a word that begins no statement of PostgreSQL's either
    raise refuse(node, text, "not a supported statement", f"statements: {KNOWN}").with_(code=code)


def _as_of(node: syntax.AsOf, text: str) -> Statement:
    return Select(as_query(node.this), constant_time(node.expression, text))


def _select(node: exp.Query, text: str) -> Statement:
    return Select(node)


def _subscribe(node: syntax.Subscribe, text: str) -> Statement:
    as_of, up_to = node.args.get("as_of"), node.args.get("up_to")
    return Subscribe(table_name(node.this, text), as_of and constant_time(as_of, text),
                     up_to and constant_time(up_to, text))


def _explain(node: syntax.Explain, text: str) -> Statement:
    format = node.args["format"]
    if node.args.get("kind"):
        return Explain(view=table_name(node.this, text), format=format)
    if not isinstance(node.this, (exp.Query, exp.Insert, exp.Update, exp.Delete, exp.Merge, syntax.AsOf)):
        raise refuse(node, text, "EXPLAIN takes a query, a view, or a change of rows", EXPLAINED)
    inner = statement_of(node.this, text)
    if isinstance(inner, Insert | Update | Delete | Merge):
        return Explain(change=inner, format=format)
    if not isinstance(inner, Select) or inner.as_of is not None:
        raise refuse(node, text, "EXPLAIN takes a query without AS OF and without changes in WITH", EXPLAINED)
    return Explain(query=inner.query, format=format)


def _maintain(node: syntax.Maintain, text: str) -> Statement:
    parts = (part.expressions for part in node.expressions)  # vacuumdb names the tables of the catalog, too
    own = ((table, columns) for table, *columns in parts if schema_of(table, text) not in SCHEMAS)
    return Maintain(node.args["kind"], tuple((table_name(one, text), tuple(map(name_of, columns)))
                                             for one, columns in own))  # fmt: skip


def _refreshed(node: syntax.Refresh, text: str) -> Statement:
    return Refresh(table_name(node.this, text))


def _refresh(node: syntax.RefreshPlan, text: str) -> Statement:
    return RefreshPlan(table_name(node.this, text))


def _show(node: syntax.ShowObjects, text: str) -> Statement:
    what, source = node.this, node.args.get("source")
    if (what in ("columns", "create", "setting")) != (source is not None) and what != "indexes":
        wrong = "needs FROM and a name" if source is None else "takes no name"
        raise refuse(source, text, f"SHOW {what.upper()} {wrong}")
    return Show(what, source and table_name(source, text))


def _set(node: exp.Set, text: str) -> Statement:
    """SET TIME = time, SET TIME TO DEFAULT, or SET of another setting."""
    item = node.expressions[0] if len(node.expressions) == 1 else None
    given = item.this if isinstance(item, exp.SetItem) and not item.args.get("kind") else None
    if not isinstance(given, exp.EQ):
        raise refuse(node, text, "this form of SET is not supported", "write SET name = value")
    name, value = given.this.sql().lower().strip('"'), given.expression
    default = isinstance(value, exp.Var) and value.name.upper() == "DEFAULT"
    if name != "time":
        return SetSetting(name, None if default else value.name)
    return SetTime() if default else SetTime(constant_time(value, text))


def _reset(node: syntax.Reset, text: str) -> Statement:
    name = "" if node.this is None else node.this.sql().lower()
    return SetTime() if name == "time" else SetSetting(name)


def _ended(node: exp.Commit | exp.Rollback, text: str) -> Statement:
    """COMMIT or ROLLBACK."""
    if isinstance(node, exp.Rollback) and node.args.get("savepoint"):
        return Savepoint("rollback", name_of(node.args["savepoint"]))
    chain = bool(node.meta.get("chain"))
    return Commit(chain) if isinstance(node, exp.Commit) else Rollback(chain)


def _drop(node: exp.Drop, text: str) -> Statement:
    kind = node.args["kind"].lower()
    if kind not in DROPPED:
        raise refuse(node, text, f"DROP {kind.upper()} is not supported",
                     "drop a TABLE, VIEW, MATERIALIZED VIEW, INDEX, SINK, SOURCE, TYPE, DOMAIN, SCHEMA or SEQUENCE")
    only(node, text, "DROP", ("exists", "tables", "kind", "materialized", "restrict", "cascade"))
    if node.args.get("materialized"):
        kind = f"materialized {kind}"
    named = schema_named if kind == "schema" else table_name
    return Drop(kind, tuple(named(table, text) for table in node.args["tables"]), bool(node.args.get("exists")),
                bool(node.args.get("cascade")))


def _prepare(node: syntax.Prepare, text: str) -> Statement:
    if not isinstance(node.expression, PREPARABLE):
        raise refuse(node, text, "PREPARE takes a query, INSERT, UPDATE, DELETE or MERGE")
    return Prepare(name_of(node.this), tuple(node.args.get("types") or ()), node.expression, text)


def _execute(node: syntax.Execute, text: str) -> Statement:
    return Execute(name_of(node.this), tuple(node.expressions))


def _deallocate(node: syntax.Deallocate, text: str) -> Statement:
    return Deallocate(node.this and name_of(node.this))


def _savepoint(node: syntax.Savepoint, text: str) -> Statement:
    return Savepoint(node.args["kind"], name_of(node.this))


STATEMENTS: dict[type[exp.Expr], Callable[[Any, str], Statement]] = {
    syntax.AsOf: _as_of,
    syntax.Subscribe: _subscribe,
    syntax.Explain: _explain,
    syntax.Maintain: _maintain,
    syntax.Refresh: _refreshed,
    syntax.RefreshPlan: _refresh,
    syntax.ShowObjects: _show,
    syntax.CreateSink: create_sink,
    syntax.CreateSource: create_source,
    syntax.AlterSource: alter_source,
    exp.Create: create,
    exp.Set: _set,
    syntax.Reset: _reset,
    syntax.TransactionModes: lambda node, _: modes(node),
    syntax.ConstraintModes: lambda node, _: SetConstraints(node.this == "immediate"),
    exp.Commit: _ended,
    exp.Rollback: _ended,
    exp.Drop: _drop,
    exp.Insert: change.insert,
    exp.Delete: change.delete,
    exp.Update: change.update,
    exp.Merge: change.merge,
    exp.Alter: alter,
    exp.Copy: copy,
    syntax.AlterEnum: alter_enum,
    syntax.AlterSequence: alter_sequence,
    syntax.AlterDomain: alter_domain,
    syntax.Comment: comment,
    exp.TruncateTable: change.truncate,
    syntax.Prepare: _prepare,
    syntax.Execute: _execute,
    syntax.Deallocate: _deallocate,
    syntax.Savepoint: _savepoint,
    exp.Query: _select,
}
FIRST_WORDS = ("ABORT", "ALTER", "ANALYSE", "ANALYZE", "BEGIN", "COMMENT", "COMMIT", "COPY", "CREATE", "DEALLOCATE",
               "DELETE", "DESC", "DESCRIBE", "DROP", "END", "EXECUTE", "EXPLAIN", "INSERT", "MERGE", "PREPARE",
               "REFRESH", "RELEASE", "RESET", "ROLLBACK", "SAVEPOINT", "SELECT", "SET", "SHOW", "START", "SUBSCRIBE",
               "TABLE", "TRUNCATE", "UPDATE", "VACUUM", "VALUES", "WITH")
# What PostgreSQL's other statements begin with.
ELSEWHERE = ("CALL", "CHECKPOINT", "CLOSE", "CLUSTER", "DECLARE", "DISCARD", "DO", "FETCH", "GRANT", "IMPORT", "LISTEN",
             "LOAD", "LOCK", "MOVE", "NOTIFY", "REASSIGN", "REINDEX", "REVOKE", "SECURITY", "UNLISTEN")
PREPARABLE = (exp.Query, exp.Values, exp.Insert, exp.Update, exp.Delete, exp.Merge)
CREATED = ("DOMAIN", "INDEX", "MATERIALIZED", "OR", "SCHEMA", "SEQUENCE", "SINK", "SOURCE", "TABLE", "TEMP",
           "TEMPORARY", "TYPE", "UNIQUE", "VIEW")
DROPPED = ("table", "view", "index", "sink", "source", "type", "domain", "schema", "sequence")
EXPLAINED = "write EXPLAIN SELECT ..., EXPLAIN UPDATE ..., EXPLAIN VIEW name or EXPLAIN MATERIALIZED VIEW name"
MAX_DEPTH = 500
KNOWN = ("CREATE TABLE, ALTER TABLE, CREATE [MATERIALIZED] VIEW, CREATE INDEX, CREATE SINK, CREATE SOURCE, INSERT, "
         "DELETE, UPDATE, MERGE, COPY, TRUNCATE, SELECT [AS OF], SUBSCRIBE, EXPLAIN, REFRESH PLAN, SHOW, SET TIME, "
         "RESET TIME, BEGIN, COMMIT, ROLLBACK, SAVEPOINT, PREPARE, EXECUTE, DEALLOCATE, DROP")
