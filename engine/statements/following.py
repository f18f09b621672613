"""Views follow ALTER TABLE: each means what it meant, over the table as it is now.

A view is bound and planned over the catalog before and after the change, from the same figures. If the two plans are
equal, the view reads nothing that changed. Its nodes keep their names and their state, although their fingerprints,
which cover all columns of a table, are others now: the catalog holds the names by the new fingerprints. If the plans
differ, the text gets a frame (`framing`). If they differ still, the names in the plan are others, or an outer join
became necessary. Then the view and its nodes are filled anew, with all history that can be read.

Wrong: to ask only whether the text still can be bound, and shows the same columns. A new column may be captured by a
subquery that meant a column around it, become one more column of NATURAL JOIN, or break a tie of LIMIT.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from halfjoin.catalog.catalog import Catalog
from halfjoin.catalog.models import View
from halfjoin.engine.batch.enter import share_all
from halfjoin.engine.batch.state import State
from halfjoin.engine.statements.framing import Change, framed
from halfjoin.engine.statements.refilling import refill
from halfjoin.errors import Conflict, UnknownName, UnsupportedSQL
from halfjoin.planner.figures import Replayed
from halfjoin.planner.fingerprint import written
from halfjoin.planner.narrow import narrowed
from halfjoin.planner.plan_view import plan
from halfjoin.sql.bind.bind import bind
from halfjoin.sql.bind.tables import names_of
from halfjoin.sql.expr import Column
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.relation import Loop, Relation, Scan, TopK, UserReduce, Window, parts_inside, with_inputs


def follow(state: State, before: Catalog, change: Change) -> None:
    """Let all views over a changed table or view follow. `before`: the catalog before the change.

    Raises:
        Conflict: a view reads what goes.
    """
    old = replace(state, catalog=before)
    for view in before.views.values():
        if change.name in view.reads and view.name in state.catalog.views:
            if view.materialized:
                _follow(state, old, view, change)
            else:
                state.catalog.views[view.name] = _plain(state, old, view, change)
    for name in state.above([change.now]):
        running = state.maintained[name].plan
        if running is not None:
            share_all(state, running, name)
    state.catalog.nodes = {key: name for key, name in state.catalog.nodes.items() if name in state.maintained}


def _follow(state: State, old: State, view: View, change: Change) -> None:
    """Let a materialized view follow."""
    listed = _Listed(old, view.planned)
    was = plan(bind(parse_query(view.text), old.catalog, view.text), listed, view.name)
    frame = framed(view, change)
    for made in (view, frame):
        if made is None:
            continue
        found = _Matched(state, view.planned, listed.names)
        try:
            now = plan(bind(parse_query(made.text), state.catalog, made.text), found, view.name)
        except (_Differs, UnsupportedSQL, UnknownName):
            continue
        if now.nodes == was.nodes:
            state.catalog.views[view.name] = _reading(state, made)
            state.catalog.nodes |= {key: name for key, name in found.found.items() if key != name}
            return
    if change.strict or frame is None:
        raise _cannot(view, change)
    refill(state, _reading(state, view if change.plain else frame))


def _plain(state: State, old: State, view: View, change: Change) -> View:
    """The plain view after the change."""
    was = bind(parse_query(view.text), old.catalog, view.text)
    frame = framed(view, change)
    for made in (view, frame):
        if made is not None:
            try:
                now = bind(parse_query(made.text), state.catalog, made.text)
            except (UnsupportedSQL, UnknownName):
                continue
            if _same(was, now) or (made is frame and not change.strict):
                return _reading(state, made)
    raise _cannot(view, change)


def _reading(state: State, view: View) -> View:
    return view.model_copy(update={"reads": tuple(sorted(names_of(parse_query(view.text), state.catalog)))})


def _cannot(view: View, change: Change) -> Conflict:
    gone = ", ".join(name for name, now in change.columns.items() if now is None)
    kind = "materialized view" if view.materialized else "view"
    if change.retypes:
        return Conflict(f"cannot alter the type of column {gone}, which the {kind} {view.name} reads", code="0A000",
                        name=change.name, holder=view.name, remedy="drop it first")  # fmt: skip
    return Conflict(f"the {kind} {view.name} reads {change.name}, and would change without the column {gone}",
                    name=change.name, holder=view.name, code="2BP01",
                    remedy="name the columns that it reads, or drop it first")  # fmt: skip


def _same(one: Relation, other: Relation) -> bool:
    """Whether two relations are the same but for columns of tables that neither reads."""
    if [(c.name, c.type) for c in one.columns] != [(c.name, c.type) for c in other.columns]:
        return False
    if _whole(one) != _whole(other):
        return False
    shown = [frozenset(column for part in parts_inside(each) if isinstance(part, Scan) for column in part.columns)
             for each in (one, other)]  # fmt: skip
    return written(_narrow(narrowed(one), shown[1])) == written(_narrow(narrowed(other), shown[0]))


def _whole(relation: Relation) -> list[list[str]]:
    """The columns below LIMIT, windows and the user's reduces. All of them count, since they break ties."""
    return [[column.name for column in part.input.columns] for part in parts_inside(relation)
            if isinstance(part, TopK | Window | UserReduce)]


def _narrow(relation: Relation, columns: frozenset[Column]) -> Relation:
    if isinstance(relation, Scan):
        return replace(relation, columns=tuple(column for column in relation.columns if column in columns))
    if isinstance(relation, Loop):
        inside = (replace(one, relation=_narrow(one.relation, columns)) for one in relation.bindings)
        return replace(relation, bindings=tuple(inside))
    return with_inputs(relation, lambda below: _narrow(below, columns))


class _Differs(Exception):
    """Two plans do not have the same nodes."""


@dataclass(slots=True)
class _Listed(Replayed):
    """Lists the names of the nodes of a plan, in the order in which the planner asks for them."""

    names: list[str] = field(default_factory=list)

    def node_name(self, fingerprint: str) -> str:
        name = self.facts.node_name(fingerprint)
        self.names.append(name)
        return name

    def node(self, name: str) -> None:
        """None: each node is planned, so that plans can be compared."""


@dataclass(slots=True)
class _Matched(Replayed):
    """Gives the nodes of a plan the names of the nodes of another one, in the order of both."""

    names: list[str]
    found: dict[str, str] = field(default_factory=dict)
    _asked: int = 0

    def node_name(self, fingerprint: str) -> str:
        self._asked += 1
        if self._asked > len(self.names):
            raise _Differs
        name = self.names[self._asked - 1]
        if self.found.setdefault(fingerprint, name) != name:
            raise _Differs
        if list(self.found.values()).count(name) > 1:
            raise _Differs
        return name

    def node(self, name: str) -> None:
        """As `_Listed.node`."""
