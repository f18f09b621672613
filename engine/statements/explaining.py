"""EXPLAIN: the plan of a view, the plan that a query would have as a view, or that of the rows of a change."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, TypeAlias

from halfjoin.catalog.models import Figures
from halfjoin.engine.batch.state import State
from halfjoin.engine.spark.runners import Runners
from halfjoin.engine.statements.changing import bound_change
from halfjoin.engine.statements.evaluating import planned_query
from halfjoin.engine.statements.reading import quoted
from halfjoin.engine.statements.statistics import Statistics
from halfjoin.errors import HalfjoinError, UnknownName, UnsupportedSQL
from halfjoin.nesting import bounded
from halfjoin.planner import explain as explanations
from halfjoin.planner.figures import Noted
from halfjoin.planner.plan import ViewPlan
from halfjoin.planner.plan_view import plan
from halfjoin.sql.bind.bind import bind
from halfjoin.sql.bind.query import bind_query
from halfjoin.sql.definitions import CreateView
from halfjoin.sql.parse.parse import parse, parse_query
from halfjoin.sql.statements import Change, Explain, Query, Select
from halfjoin.sql.system import SCHEMAS

Format: TypeAlias = Literal["text", "mermaid", "json", "html"]
PLAN = "plan"  # the column of its lines


@bounded()
def explain(state: State, runners: Runners, view_or_sql: str, format: Format) -> str:
    """The plan of a view by its name, or of a SQL text: a SELECT, a CREATE VIEW that is not carried out, an EXPLAIN."""
    if view_or_sql in state.catalog.names():
        return explain_view(state, runners, view_or_sql, format)
    if not any(character.isspace() for character in str(view_or_sql).strip()):
        raise UnknownName("view", view_or_sql, state.catalog.names())
    statements = parse(view_or_sql)
    match statements[-1] if statements else None:
        case Select(query):
            return explain_query(state, runners, query, view_or_sql, format)
        case CreateView(query=query, name=name):
            relation = bind(query, state.catalog, view_or_sql)
            return _show(state, runners, plan(relation, Noted(Statistics(state)), name), name, format)
        case Explain(view=str(view)):
            return explain_view(state, runners, view, format)
        case Explain(query=query) if query is not None:
            return explain_query(state, runners, query, view_or_sql, format)
        case Explain(change=change) if change is not None:
            return explain_change(state, runners, change, view_or_sql, format)
        case _:
            raise UnsupportedSQL("only a view or a query has a plan", remedy="give a view's name or a SELECT")


def explain_view(state: State, runners: Runners, name: str | None, format: Format) -> str:
    """The plan that maintains a materialized view; for a plain view, the plan it would have as one."""
    found = state.maintained.get(name or "")
    if found is not None and found.plan is not None:
        return _show(state, runners, found.plan, str(name), format, state.catalog.views[str(name)].planned)
    if name not in state.catalog.names():
        raise UnknownName("view", str(name), state.catalog.names())
    return explain_query(state, runners, parse_query(f"SELECT * FROM {quoted(name)}"), "", format)


def explain_query(state: State, runners: Runners, query: Query, sql: str, format: Format) -> str:
    """The plan that a query would have as a view, and how the query itself begins. One that asks what a view must not,
    such as the time, has the plan by which it is answered."""
    try:
        relation = bind(query.copy(), state.catalog, sql)
    except UnsupportedSQL:
        relation = bind_query(query.copy(), state.catalog.aside(), sql).relation
    planned = plan(relation, Noted(Statistics(state)), "query")
    begins = explanations.reads(planned_query(state, relation))
    return _show(state, runners, planned, "query", format, begins=begins)


def explain_change(state: State, runners: Runners, change: Change, sql: str, format: Format) -> str:
    """How INSERT, UPDATE, DELETE or MERGE finds its rows, as the plan of a query; and which views it changes."""
    relation = bound_change(state.catalog.aside(), change, sql).relation
    name = f"{type(change).__name__.lower()} {change.table}"
    begins = explanations.reads(planned_query(state, relation))
    planned = plan(relation, Noted(Statistics(state)), name)
    views = [one for one in state.above([change.table]) if one in state.catalog.views]
    return _show(state, runners, planned, name, format, begins=begins, maintains=views)


def _show(
    state: State, runners: Runners, planned: ViewPlan, name: str, format: Format, made: Figures | None = None,
    begins: Sequence[str] = (), maintains: Sequence[str] = (),
) -> str:
    """A plan in one of the formats. `made`: when a running plan was made, and with which figures. `begins`: how a query
    finds its first rows. `maintains`: the views that a change changes."""
    match format:
        case "text":
            lines = [explanations.text(planned, state, name), f"runner: {runners.describe()}"]
            lines += [f"as a query: {', '.join(begins)}"] if begins else []
            lines += [f"maintains: {', '.join(maintains)}"] if maintains else []
            lines += [] if made is None else _made(made)
            return "\n".join([*lines, *_on_disk(state, planned)])
        case "mermaid":
            return explanations.mermaid(planned, state, name)
        case "json":
            figures = None if made is None else made.model_dump()
            made_with = {"planned": figures, "query": list(begins), "maintains": list(maintains)}
            return json.dumps({**explanations.as_json(planned, state, name), **made_with}, indent=2)
        case "html":
            return explanations.html(planned, state, name)
        case _:
            raise HalfjoinError(f"unknown format {format!r}", remedy="formats: text, mermaid, json, html")


def _made(figures: Figures) -> list[str]:
    """When a plan was made, and the sizes of collections and arrangements then."""
    rows = [f"{name} {count:,} rows" for name, count in sorted(figures.rows.items())]
    keys = [f"{name} {count:,} keys" for name, count in sorted(figures.keys.items()) if count is not None]
    return [f"planned at upper {figures.upper}, on {', '.join(rows + keys)}" if rows
            else f"planned at upper {figures.upper}"]  # fmt: skip


def _on_disk(state: State, planned: ViewPlan) -> list[str]:
    """The collections in which lookups read files."""
    found = []
    for name in planned.collections:
        if name.partition(".")[0] in SCHEMAS:  # PostgreSQL's catalog, which is made when it is asked
            continue
        files, size = map(sum, zip((0, 0), *(run.stored for run in state.collection(name).held), strict=True))
        if files:
            found.append(f"{name} ({files} files, {size / 1e6:.1f} MB)")
    return [f"on disk: {', '.join(found)}"] if found else []
