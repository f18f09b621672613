"""Syntax nodes that sqlglot does not have."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from sqlglot import exp

from halfjoin.sql.unseen import Looked, Unseen


class Given(exp.Literal):
    """A literal whose value cannot be looked at. Equal ones are the same value."""

    @classmethod
    def of(cls, unseen: Unseen, *, is_string: bool) -> Given:
        """The literal of a value."""
        made = cls(this=repr(unseen), is_string=is_string)
        made.meta["unseen"] = unseen
        return made

    @property
    def unseen(self) -> Unseen:
        """The value."""
        found: Unseen = self.meta["unseen"]
        return found

    def _looked(self) -> NoReturn:
        raise Looked(self.unseen.parameter)

    this = name = output_name = property(_looked)

    def text(self, key: str) -> NoReturn:
        """Its text cannot be looked at either."""
        self._looked()

    def to_py(self) -> Any:
        """Nor can its value."""
        self._looked()


class AsOf(exp.Expression):
    """A query and the time it reads at: `SELECT ... AS OF 5`."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class Subscribe(exp.Expression):
    """SUBSCRIBE [TO] collection [AS OF time] [UP TO time]."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "as_of": False, "up_to": False}


class Explain(exp.Expression):
    """EXPLAIN of a view by name (`kind` is `view` or `materialized view`) or of a query; `format`: text or json."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": False, "format": False}


class Maintain(exp.Expression):
    """VACUUM or ANALYZE (`kind`) of all, or of tables: each is a tuple of its name and those of columns."""

    arg_types: ClassVar[dict[str, bool]] = {"kind": True, "expressions": False}


class RefreshPlan(exp.Expression):
    """REFRESH PLAN view."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class Refresh(exp.Expression):
    """REFRESH MATERIALIZED VIEW view."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class ShowObjects(exp.Expression):
    """SHOW TABLES | VIEWS | MATERIALIZED VIEWS | INDEXES | SINKS | SOURCES | COLUMNS FROM name. `this`: `tables`..."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "source": False}


class CreateSink(exp.Expression):
    """CREATE SINK name FROM source INTO DELTA target | KAFKA options; `exists`: with IF NOT EXISTS, `replace`: with OR
    REPLACE. Options are pairs of a name and a value."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True, "source": True, "target": False, "options": False, "exists": False, "replace": False,
    }  # fmt: skip


class CreateSource(exp.Expression):
    """CREATE SOURCE name FROM kind (options) INTO tables WITH (settings); `exists`: with IF NOT EXISTS. Options are
    pairs of a name and a value. No `into`: INTO TABLES."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True, "kind": True, "options": False, "into": False, "settings": False, "exists": False,
    }  # fmt: skip


class AlterSource(exp.Expression):
    """ALTER SOURCE name PAUSE | RESUME; `action`: in lower case, `exists`: with IF EXISTS."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "action": True, "exists": False}


class AlterEnum(exp.Expression):
    """ALTER TYPE name ADD VALUE label [BEFORE | AFTER label], or with `old`: RENAME VALUE old TO label, or with `to`:
    RENAME TO to."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True, "add": False, "old": False, "beside": False, "before": False, "exists": False, "to": False,
    }  # fmt: skip


class Comment(exp.Expression):
    """COMMENT ON kind name IS text; no text: it is dropped. The name of a column has that of its table before it.
    `constraint`: its name; then the name is that of its table."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True, "text": False, "constraint": False}


class Reset(exp.Expression):
    """RESET name: set a setting back to its default."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class Prepare(exp.Expression):
    """PREPARE name [(type, ...)] AS statement."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "types": False, "expression": True}


class Execute(exp.Expression):
    """EXECUTE name [(value, ...)]."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": False}


class Deallocate(exp.Expression):
    """DEALLOCATE name, or ALL (without `this`)."""

    arg_types: ClassVar[dict[str, bool]] = {"this": False}


class Savepoint(exp.Expression):
    """SAVEPOINT name, ROLLBACK TO name or RELEASE name; `kind`: its first word in lower case."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True}


class TransactionModes(exp.Expression):
    """BEGIN or SET TRANSACTION (`this`: `begin` or `set`). `level`: of isolation; `access`: `only` or `write`."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "level": False, "access": False}


class ConstraintModes(exp.Expression):
    """SET CONSTRAINTS; `this`: `immediate` or `deferred`."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class MutualWith(exp.With):
    """WITH MUTUALLY RECURSIVE: queries that read each other. `limit`: of rounds; `error`: more are an error."""

    arg_types: ClassVar[dict[str, bool]] = {**exp.With.arg_types, "limit": False, "error": False}


class Search(exp.Expression):
    """SEARCH DEPTH | BREADTH FIRST BY columns SET column, after a query of WITH RECURSIVE."""

    arg_types: ClassVar[dict[str, bool]] = {"kind": True, "expressions": True, "set": True}


class Cycle(exp.Expression):
    """CYCLE columns SET mark [TO value DEFAULT value] USING path, after a query of WITH RECURSIVE."""

    arg_types: ClassVar[dict[str, bool]] = {
        "expressions": True, "mark": True, "to": False, "default": False, "path": True,
    }  # fmt: skip


class OrderText(exp.Expression):
    """A value as a text that orders as it does. Only the binder makes it, for SEARCH."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class TableArgument(exp.Expression):
    """TABLE t [PARTITION BY columns] [ORDER BY ...], the argument of a reduce. `this`: a table or a subquery."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "partition_by": False, "order": False}


class FieldChange(exp.Expression):
    """`r.a = 1, r.b[2].c = 2` of SET. `this`: the column. `expressions`: for each, a tuple of the fields' names and of
    tuples of a subscript, and the value."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True}


class Variadic(exp.Expression):
    """VARIADIC array, the last argument of a call."""


class IterativeWith(exp.With):
    """WITH ITERATIVE: queries that are computed again from their own rows. `limit`: of rounds; `error`: more are an
    error; `rounds`: the name of a column with the round of each row's change."""

    arg_types: ClassVar[dict[str, bool]] = {**exp.With.arg_types, "limit": False, "error": False, "rounds": False}


class AlterSequence(exp.Expression):
    """ALTER SEQUENCE name RESTART [WITH n] | START WITH n | INCREMENT BY n ... `restart`: a number, or True. With `to`:
    RENAME TO to; with `schema`: SET SCHEMA schema."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, **dict.fromkeys(
        ("exists", "restart", "start", "increment", "minvalue", "maxvalue", "cycle", "cache", "type", "owned", "to",
         "schema"),
        False)}  # fmt: skip


class AlterDomain(exp.Expression):
    """ALTER DOMAIN name action. `action`: `set default`, `drop default`, `set not null`, `drop not null`, `add`,
    `drop`, `rename`, `rename constraint` or `validate`. `constraint`: of SET and ADD. `name`, `to`: of the others."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "action": True, "constraint": False, "name": False,
                                            "to": False, "exists": False}  # fmt: skip


class AlterIdentity(exp.Expression):
    """ALTER COLUMN name, with an `action`. `add`: ADD GENERATED ... AS IDENTITY (`constraint`). `drop`: DROP IDENTITY
    [IF EXISTS]. `change`: some of SET GENERATED ALWAYS | BY DEFAULT (`always`), RESTART [WITH n] (`restart`: a number,
    or True), SET with options of the sequence."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "action": True, "constraint": False,
                                            "always": False, "restart": False, "exists": False,
                                            **dict.fromkeys(("start", "increment", "minvalue", "maxvalue", "cycle",
                                                             "cache"), False)}  # fmt: skip


class AlterConstraint(exp.Expression):
    """RENAME CONSTRAINT name TO `to`, and VALIDATE CONSTRAINT name."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "to": False}


class AlterSchema(exp.Expression):
    """SET SCHEMA name of a table, view or sequence."""


class Iterate(exp.Expression):
    """start ITERATE step, in WITH ITERATIVE."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class Recursive(exp.Property):
    """RECURSIVE of CREATE RECURSIVE VIEW."""

    arg_types: ClassVar[dict[str, bool]] = {}


class OnCommitDrop(exp.Property):
    """ON COMMIT DROP of a temporary table."""

    arg_types: ClassVar[dict[str, bool]] = {}


class AlterRetention(exp.Expression):
    """SET (RETAIN HISTORY FOR duration) of a table or view; without `this`: RESET (RETAIN HISTORY)."""

    arg_types: ClassVar[dict[str, bool]] = {"this": False}


class RetainHistory(exp.Property):
    """RETAIN HISTORY [=] FOR duration, an option of a table or view."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}
