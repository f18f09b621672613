"""Stand-ins for the facts that the planner asks for, and plans of SQL text over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from halfjoin.planner.plan import ArrangementKey, Node, ViewPlan
from halfjoin.planner.plan_view import plan
from halfjoin.sql.bind.bind import bind
from halfjoin.sql.definitions import CreateTable
from halfjoin.sql.expr import Column
from halfjoin.sql.parse.parse import parse, parse_query
from halfjoin.sql.relation import Relation
from tests.support.front import FakeSchema


@dataclass
class World:
    """A schema with sizes and arrangements."""

    ddl: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    arranged: dict[ArrangementKey, dict[str, None]] = field(default_factory=dict)
    incarnations: dict[str, str] = field(default_factory=dict)
    counted: Mapping[str, int] = field(default_factory=dict)  # distinct keys, by the arrangement's text

    def __post_init__(self) -> None:
        self.schema = FakeSchema(self.ddl)
        self.keys: dict[str, tuple[str, ...]] = {}
        for statement in parse(self.ddl):
            if isinstance(statement, CreateTable) and statement.primary_key:
                self.keys[statement.name] = statement.primary_key
                columns = {column.name: column for column in self.schema.columns(statement.name) or ()}
                key = ArrangementKey(statement.name, tuple(columns[name] for name in sorted(statement.primary_key)))
                self.arranged[key] = {f"primary key of {statement.name}": None}

    def rows(self, collection: str) -> int:
        return self.sizes.get(collection, 0)

    def unique_keys(self, collection: str) -> tuple[tuple[str, ...], ...]:
        return (self.keys[collection],) if collection in self.keys else ()

    def users(self, key: ArrangementKey) -> tuple[str, ...] | None:
        found = self.arranged.get(key)
        return None if found is None else tuple(found)

    def distinct(self, key: ArrangementKey) -> int | None:
        unique = {expr.name for expr in key.keys if isinstance(expr, Column)}
        if unique == set(self.keys.get(key.collection, ("",))):
            return self.rows(key.collection)
        return self.counted.get(str(key))

    def values(self, collection: str, column: str) -> None:
        return None

    def incarnation(self, collection: str) -> str:
        return self.incarnations.get(collection, "")

    def node_name(self, fingerprint: str) -> str:
        return fingerprint

    def node(self, name: str) -> Node | None:
        return None

    def node_users(self, name: str) -> tuple[str, ...]:
        return ()

    def kept(self, name: str) -> None:
        return None

    def relation(self, sql: str) -> Relation:
        return bind(parse_query(sql), self.schema, sql)

    def plan(self, sql: str, name: str = "query") -> ViewPlan:
        return plan(self.relation(sql), self, name)

    def create(self, name: str, sql: str) -> ViewPlan:
        """Plan a view and share its arrangements, as the engine does."""
        planned = self.plan(sql, name)
        for key in [key for join in planned.joins for key in join.arrangements]:
            if key.constant is None:
                self.arranged.setdefault(key, {})[name] = None
        return planned
