"""INSERT, DELETE, UPDATE, MERGE and TRUNCATE: from syntax trees to statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from halfjoin.sql.parse.create import table_name
from halfjoin.sql.parse.locate import bare_values, name_of, only, refuse
from halfjoin.sql.parse.syntax import FieldChange
from halfjoin.sql.statements import Assignment, Delete, Insert, Merge, OnConflict, Truncate, Update, When


def insert(node: exp.Insert, text: str) -> Insert:
    """An INSERT statement."""
    only(node, text, "INSERT", ("this", "expression", "with_", "default", "conflict", "returning"))
    target, query = node.this, node.expression
    if query is None and not node.args.get("default"):
        raise refuse(target, text, "expected VALUES or a query after the table's name")
    columns = tuple(name_of(column) for column in target.expressions) if isinstance(target, exp.Schema) else ()
    clause = node.args.get("with_")
    own = None if query is None else query.args.get("with_")
    if query is not None and clause is not None and (own or not (isinstance(query, exp.Values) or bare_values(query))):
        if own:
            clause.set("expressions", [*clause.expressions, *own.expressions])
            clause.set("recursive", clause.args.get("recursive") or own.args.get("recursive"))
        query.set("with_", clause)
    table, alias = _target(target.this if isinstance(target, exp.Schema) else target, text)
    overriding = "" if query is None else query.meta.get("overriding", "")
    return Insert(table, columns, query, alias, overriding, _conflict(node.args.get("conflict"), text),
                  returning(node, text), clause and clause.copy(), target)


def delete(node: exp.Delete, text: str) -> Delete:
    """A DELETE statement."""
    if node.args.get("tables"):
        raise refuse(node.args["tables"][0], text, "DELETE needs FROM", "write DELETE FROM t").with_(code="42601")
    only(node, text, "DELETE", ("this", "where", "using", "returning", "with_"))
    table, alias = _target(node.this, text)
    items, joins = _items(node.args.get("using") or ())
    return Delete(table, alias, _where(node), items, joins, returning(node, text), node.args.get("with_"),
                  node.this)


def update(node: exp.Update, text: str) -> Update:
    """An UPDATE statement."""
    only(node, text, "UPDATE", ("this", "expressions", "where", "from_", "returning", "with_"))
    table, alias = _target(node.this, text)
    clause = node.args.get("from_")
    items, joins = _items(() if clause is None else (clause.this,))
    return Update(table, alias, _assignments(node, text), _where(node), items, joins,
                  returning(node, text), node.args.get("with_"), node.this)


def merge(node: exp.Merge, text: str) -> Merge:
    """A MERGE statement."""
    only(node, text, "MERGE", ("this", "using", "on", "whens", "with_", "returning"))
    if not node.args.get("on"):
        raise refuse(node, text, "MERGE needs ON and a condition", "write MERGE INTO t USING u ON t.k = u.k WHEN ...")
    table, alias = _target(node.this, text)
    whens = tuple(_when(when, text) for when in node.args["whens"].expressions)
    if not whens:
        raise refuse(node, text, "MERGE needs a WHEN", "write WHEN MATCHED THEN ... or WHEN NOT MATCHED THEN ...")
    for number, when in enumerate(whens):
        if any((before.matched, before.by_source) == (when.matched, when.by_source) and before.condition is None
               for before in whens[:number]):  # fmt: skip
            error = refuse(node, text, "unreachable WHEN clause specified after unconditional WHEN clause")
            raise error.with_(wrong=True)
    return Merge(table, alias, node.args["using"], node.args["on"], whens, node.args.get("with_"),
                 returning(node, text), node.this)


def truncate(node: exp.TruncateTable, text: str) -> Truncate:
    """A TRUNCATE statement."""
    only(node, text, "TRUNCATE", ("expressions", "identity", "option"))
    for table in node.expressions:
        table.set("only", None)  # no table inherits from it
    return Truncate(tuple(dict.fromkeys(table_name(table, text) for table in node.expressions)),
                    node.args.get("identity") == "RESTART", str(node.args.get("option")).upper() == "CASCADE")


def returning(node: exp.Expr, text: str) -> tuple[exp.Expr, ...]:
    """The expressions of RETURNING."""
    clause = node.args.get("returning")
    if clause is None:
        return ()
    only(clause, text, "RETURNING", ("expressions",))
    return tuple(clause.expressions)


def is_default(node: exp.Expr) -> bool:
    """Whether a value is the word DEFAULT."""
    if isinstance(node, exp.Var):
        return node.name.upper() == "DEFAULT"
    named = isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier) and not node.args.get("table")
    return named and node.name.upper() == "DEFAULT" and not node.this.args.get("quoted")


def _conflict(node: exp.OnConflict | None, text: str) -> OnConflict | None:
    if node is None:
        return None
    only(node, text, "ON CONFLICT",
         ("expressions", "action", "conflict_keys", "constraint", "where", "index_predicate"))
    action = str(node.args["action"].name).upper() if node.args.get("action") else ""
    where, predicate = node.args.get("where"), node.args.get("index_predicate")
    if action not in ("DO NOTHING", "DO UPDATE"):
        raise refuse(node, text, "ON CONFLICT needs DO NOTHING or DO UPDATE SET ...")
    columns = None
    if node.args.get("conflict_keys"):
        keys = [key.this if isinstance(key, exp.Ordered) else key for key in node.args["conflict_keys"]]
        for key in keys:
            if not isinstance(key, exp.Column | exp.Identifier):
                raise refuse(key, text, "ON CONFLICT takes names of columns", "write ON CONFLICT (a, b)")
        columns = tuple(name_of(key) for key in keys)
    constraint = node.args.get("constraint")
    if action == "DO UPDATE" and columns is None and constraint is None:
        raise refuse(node, text, "ON CONFLICT DO UPDATE needs the columns of a key",
                     "write ON CONFLICT (a) DO UPDATE").with_(code="42601")
    assignments = _assignments(node, text) if action == "DO UPDATE" else None
    return OnConflict(columns, constraint and name_of(constraint), assignments, where and where.this,
                      predicate and predicate.this)


def _assignments(change: exp.Expr, text: str) -> tuple[Assignment, ...]:
    """The columns of SET with their values; `(a, b) = ...` is taken apart."""
    found: list[Assignment] = []
    if not change.expressions:
        raise refuse(change, text, "SET needs an assignment", "write SET a = 1").with_(code="42601")
    for node in change.expressions:
        target = node.this if isinstance(node, exp.EQ) else None
        if target is not None and _is_place(target):
            _assign(found, target, node.expression, text)
            continue
        columns = target.expressions if isinstance(target, exp.Tuple) else (
            [target.this] if isinstance(target, exp.Paren) else [])  # fmt: skip
        if not columns or not all(map(_is_place, columns)):
            raise refuse(node, text, "SET takes columns of the table",
                         "write SET a = 1, (b, c) = (2, 3)").with_(code="42601")
        values = _values(node.expression, len(columns))
        if len(values) != len(columns):
            raise refuse(node, text, f"number of columns ({len(columns)}) does not match number of values "
                         f"({len(values)})").with_(code="42601")
        for column, value in zip(columns, values, strict=True):
            _assign(found, column, value, text)
    return tuple(found)


def _is_place(node: exp.Expr | None) -> bool:
    """Whether a value can go there: a column, or a field or an element of what is one."""
    while isinstance(node, exp.Bracket) or (isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier)):
        node = node.this
    return isinstance(node, exp.Column)


def _path(node: exp.Expr) -> list[exp.Expr]:
    """The names of a column and its fields, and a tuple for each subscript."""
    if isinstance(node, exp.Column):
        return list(node.parts)
    step = exp.Tuple(expressions=node.expressions) if isinstance(node, exp.Bracket) else node.expression
    return [*_path(node.this), step]


def _assign(found: list[Assignment], place: exp.Expr, value: exp.Expr, text: str) -> None:
    """Add the assignment of a column. Those of fields and elements of one column are one."""
    name, *path = _path(place)
    if not path:
        found.append((name_of(name), value))
        return
    if is_default(value):
        what = "an array element" if isinstance(path[0], exp.Tuple) else "a subfield"
        raise refuse(value, text, f"cannot set {what} to DEFAULT", "write the value itself").with_(code="0A000")
    change = exp.PropertyEQ(this=exp.Tuple(expressions=path), expression=value)
    for other, node in found:
        if other == name_of(name) and isinstance(node, FieldChange):
            node.append("expressions", change)
            return
    found.append((name_of(name), FieldChange(this=exp.column(name.copy()), expressions=[change])))


def _values(node: exp.Expr, count: int) -> list[exp.Expr]:
    """The values of `(a, b) = (x, y)` and of `(a, b) = (SELECT ...)`. A subquery becomes one for each column."""
    inner = node.unnest()
    if isinstance(inner, exp.Query):
        width = len(inner.selects)
        if not any(one.is_star for one in inner.selects) and width != count:
            return [*inner.selects]
        names = [exp.to_identifier(f"column{number + 1}", quoted=True) for number in range(count)]
        return [_one_of(inner, names, number) for number in range(count)]
    if isinstance(inner, exp.Tuple):
        return list(inner.expressions)
    if isinstance(inner, exp.Anonymous) and inner.name.lower() == "row":
        return list(inner.expressions)
    return [inner]


def _one_of(query: exp.Query, names: list[exp.Identifier], number: int) -> exp.Expr:
    """One column of a subquery, as a subquery."""
    alias = exp.TableAlias(this=exp.to_identifier("row", quoted=True), columns=[name.copy() for name in names])
    source = exp.Subquery(this=query.copy(), alias=alias)
    return exp.Subquery(this=exp.Select(expressions=[exp.Column(this=names[number].copy())],
                                        from_=exp.From(this=source)))  # fmt: skip


def _when(node: exp.When, text: str) -> When:
    then, matched, condition = node.args.get("then"), bool(node.args["matched"]), node.args.get("condition")
    by_source = bool(node.args.get("source"))
    word = str(then.name).upper() if isinstance(then, exp.Var) else ""
    if word in ("DO NOTHING", "DELETE"):
        if word == "DELETE" and not matched and not by_source:
            raise refuse(node, text, "WHEN NOT MATCHED takes INSERT or DO NOTHING")
        return When(matched, condition, "delete" if word == "DELETE" else "nothing", by_source=by_source)
    if isinstance(then, exp.Update) and (matched or by_source):
        only(then, text, "MERGE", ("expressions",))
        return When(matched, condition, "update", _assignments(then, text), by_source=by_source)
    if isinstance(then, exp.Insert) and not matched and not by_source:
        only(then, text, "MERGE", ("this", "expression"))
        named, values = then.this, then.expression
        if not values:
            if named is not None and named.meta.get("default"):
                return When(False, condition, "insert")
            raise refuse(node, text, "INSERT needs VALUES", "write VALUES (...) or DEFAULT VALUES").with_(code="42601")
        columns = tuple(name_of(column) for column in named.expressions) if isinstance(named, exp.Tuple) else (
            (name_of(named.this),) if isinstance(named, exp.Paren) else ())  # fmt: skip
        overriding = "" if named is None else named.meta.get("overriding", "")
        return When(False, condition, "insert", (), columns, tuple(_row(values)), overriding=overriding)
    raise refuse(node, text, "WHEN MATCHED and NOT MATCHED BY SOURCE take UPDATE, DELETE or DO NOTHING, WHEN NOT "
                 "MATCHED takes INSERT or DO NOTHING")


def _row(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node.unnest()]


def _items(tables: Sequence[exp.Expr]) -> tuple[exp.From | None, tuple[exp.Join, ...]]:
    """The items of FROM or USING as a FROM clause and its joins."""
    joins: list[exp.Join] = []
    first: exp.From | None = None
    for table in tables:
        own = table.args.pop("joins", None) or []
        if first is None:
            first = exp.From(this=table)
        else:
            joins.append(comma(table))
        joins += own
    return first, tuple(joins)


def comma(table: exp.Expr) -> exp.Join:
    """An item after a comma in FROM."""
    made = exp.Join(this=table)
    made.meta["comma"] = True
    return made


def _where(node: exp.Expr) -> Any:
    return node.args["where"].this if node.args.get("where") else None


def _target(node: exp.Expr, text: str) -> tuple[str, str]:
    """The table to change, and the alias that qualifies its columns."""
    if isinstance(node, exp.Table):
        node.args.pop("only", None)  # tables have no children here
    table = table_name(node, text, alias=True)
    return table, name_of(node.args["alias"].this) if node.args.get("alias") else name_of(node)
