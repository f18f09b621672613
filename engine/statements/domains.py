"""ALTER DOMAIN: the columns of the domain follow, and rows that break a new condition refuse it.

A view that casts to the domain would show other rows or errors with other conditions. So while there is one, only
DEFAULT and the names of conditions change.
"""

from __future__ import annotations

from dataclasses import replace

from halfjoin.catalog.catalog import Catalog
from halfjoin.catalog.models import ColumnModel, Table
from halfjoin.engine.batch.state import State
from halfjoin.engine.statements.dropping import users_of_type
from halfjoin.engine.statements.reshaping import check_rows, put
from halfjoin.engine.statements.tables import check_schema
from halfjoin.errors import Conflict, UnknownName, UnsupportedSQL
from halfjoin.sql.bind.constraints import bind_default
from halfjoin.sql.bind.named_types import condition
from halfjoin.sql.bind.tables import types_of
from halfjoin.sql.named import AlterDomain, Domain
from halfjoin.sql.parse.parse import parse_query


def alter_domain(state: State, statement: AlterDomain) -> None:
    """Carry out ALTER DOMAIN.

    Raises:
        UnknownName: there is no such domain, or it has no such condition.
        Conflict: a view casts to the domain, or a name is taken.
        InvalidRow: a row breaks a new condition.
    """
    catalog, name = state.catalog, statement.name
    if name not in catalog.domains:
        raise UnknownName("domain", name, catalog.domains)
    if statement.action == "rename":
        _rename(state, statement)
        return
    domain = catalog.domains[name]
    _put(state, domain, _altered(state, domain, statement), statement)
    if statement.action in ("add", "drop", "set not null", "rename constraint"):
        for other in [one for one in catalog.domains.values() if one.base == name]:  # it has these conditions, too
            alter_domain(state, replace(statement, name=other.name, constraint=_own_name(catalog.domains[name], domain),
                                        if_exists=True) if statement.action == "add"
                         else replace(statement, name=other.name, if_exists=True))  # fmt: skip


def _own_name(now: Domain, before: Domain) -> str:
    """The name of the condition that a domain has got."""
    return next((check for check, _ in now.checks if check not in dict(before.checks)), "")


def _altered(state: State, domain: Domain, statement: AlterDomain) -> Domain:
    checks, name = dict(domain.checks), statement.constraint
    match statement.action:
        case "set default":
            bind_default(statement.text, domain.type, state.catalog, state.catalog.system())
            return replace(domain, default=statement.text)
        case "drop default":
            return replace(domain, default=None)
        case "set not null":
            return replace(domain, not_null=True)
        case "drop not null":
            used, _, others = users_of_type(state.catalog, domain.name)
            columns = [column for table, name in used for column in table.columns if column.name == name]
            if domain.not_null and (others or any(column.own_not_null is None for column in columns)):
                what = f"domains over {domain.name}" if others else f"columns of the domain {domain.name}"
                raise UnsupportedSQL(f"{what} may be NOT NULL by themselves", code="0A000",
                                     remedy="DROP them first, or make another domain")  # fmt: skip
            return replace(domain, not_null=False)
        case "add":
            condition(statement.text, domain.type, state.catalog)
            own = domain.name.rpartition(".")[2]
            free = next(one for n in range(len(checks) + 1) if (one := f"{own}_check{n or ''}") not in checks)
            if name in checks:
                raise Conflict(f'constraint "{name}" for domain {domain.name} already exists', name=name, code="42710")
            return replace(domain, checks=(*domain.checks, (name or free, statement.text)))
    if name not in checks:
        if statement.if_exists:
            return domain
        raise UnknownName(f"constraint of {domain.name}", name, checks, code="42704")
    if statement.action == "drop":
        return replace(domain, checks=tuple(one for one in domain.checks if one[0] != name))
    if statement.action == "rename constraint":
        if statement.to in checks:
            raise Conflict(f'constraint "{statement.to}" for domain {domain.name} already exists', name=name,
                           code="42710")  # fmt: skip
        called = ((statement.to if one == name else one, text) for one, text in domain.checks)
        return replace(domain, checks=tuple(called))
    return domain  # it is valid


def _put(state: State, before: Domain, now: Domain, statement: AlterDomain) -> None:
    """Put a domain in the place of another; the columns of tables follow."""
    if now == before:
        return
    catalog = state.catalog
    _, views, _ = users_of_type(catalog, before.name)
    if views and (now.checks, now.not_null) != (before.checks, before.not_null):
        raise Conflict(f"the view {views[0].name} casts to the domain {before.name}", remedy="drop it first",
                       name=before.name, holder=views[0].name, code="2BP01")  # fmt: skip
    catalog.domains[before.name] = now
    for table in list(catalog.tables.values()):
        made = table.model_copy(update={"columns": tuple(_column(one, before, now) for one in table.columns)})
        if made != table:
            put(state, table, made, None)
            if statement.action in ("add", "set not null"):
                check_rows(state, made)


def _column(column: ColumnModel, before: Domain, now: Domain) -> ColumnModel:
    if column.domain is None or column.domain.name != before.name:
        return column
    update: dict[str, object] = {"domain": now}
    if now.not_null and not before.not_null:
        own = column.not_null if column.own_not_null is None else column.own_not_null
        update |= {"not_null": True, "own_not_null": own, "had_nulls": column.had_nulls or not column.not_null}
    if before.not_null and not now.not_null and not column.own_not_null:
        update |= {"not_null": False, "had_nulls": False}
    return column.model_copy(update=update)


def _rename(state: State, statement: AlterDomain) -> None:
    catalog, name = state.catalog, statement.name
    to = new_name(catalog, "domain", name, statement.to)
    domain = replace(catalog.domains[name], name=to)
    catalog.domains = {
        (to if one == name else one): domain if one == name else replace(other, base=to if other.base == name else
                                                                         other.base)
        for one, other in catalog.domains.items()}  # fmt: skip
    for kind in ("type", "domain"):
        if (text := catalog.comments.pop(f"{kind} {name}", "")):
            catalog.comments[f"{kind} {to}"] = text
    for table in list(catalog.tables.values()):
        catalog.tables[table.name] = _renamed(table, catalog.domains, name, domain)


def new_name(catalog: Catalog, kind: str, name: str, to: str) -> str:
    """The new name of a type, in the same schema.

    Raises:
        Conflict: it is taken, or the text of a view, a DEFAULT or a condition has the old one.
    """
    schema = name.rpartition(".")[0]
    to = f"{schema}.{to}" if schema else to
    check_schema(to, catalog)
    if to in catalog.enums or to in catalog.domains:
        raise Conflict(f"type {to} already exists", remedy="choose another name", name=to, code="42710")
    holders = [f"the view {view.name}" for view in users_of_type(catalog, name)[1]]
    for table in catalog.tables.values():
        texts = [text for column in table.columns for text in (column.default, column.generated) if text]
        texts += [check.text for check in table.checks]
        holders += [f"an expression of the table {table.name}" for text in texts if name in _types(text)]
    for domain in catalog.domains.values():
        texts = [text for _, text in domain.checks] + [domain.default or "NULL"]
        holders += [f"an expression of the domain {domain.name}" for text in texts if name in _types(text)]
    if holders:
        raise Conflict(f"{holders[0]} names the {kind} {name}", remedy="drop that first, and make it anew", name=name,
                       holder=holders[0], code="2BP01")  # fmt: skip
    return to


def _types(text: str) -> set[str]:
    """The types of the user's that an expression names."""
    return types_of(parse_query(f"SELECT {text}"))


def _renamed(table: Table, domains: dict[str, Domain], name: str, domain: Domain) -> Table:
    columns = []
    for column in table.columns:
        now = None if column.domain is None else domain if column.domain.name == name else domains[column.domain.name]
        columns.append(column.model_copy(update={"domain": now}))
    return table.model_copy(update={"columns": tuple(columns)})
