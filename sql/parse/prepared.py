"""One statement of a client, parsed once: with marks for its parameters to learn their types, or with their values.

A value is text, as PostgreSQL's input functions read it, with its type: `$1` becomes `CAST('5' AS integer)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from sqlglot import exp

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.functions.parameters import mark
from halfjoin.sql.parse.literal_rows import LiteralRows, rows_of
from halfjoin.sql.parse.locate import PUBLIC, name_of
from halfjoin.sql.parse.parameters import Hidden, constant, exchanged, name_of_parameter, placed_as, takes_parameters
from halfjoin.sql.parse.parse import statement_of, trees_of
from halfjoin.sql.parse.syntax import AsOf, Deallocate, Execute, Explain, Prepare, Savepoint, ShowObjects
from halfjoin.sql.parse.with_changes import changes_in_with
from halfjoin.sql.statements import Statement
from halfjoin.sql.system import DATABASE
from halfjoin.sql.types import Kind, SqlType

MOST_PARAMETERS = 65535  # what the protocol can count
SHORT = 4_000  # characters of a text that is kept with its tree


@dataclass(frozen=True)
class Prepared:
    """A statement. `known`: it is a query that is remembered; its text is not parsed until somebody asks. `database`:
    what it may call the database."""

    text: str
    known: bool = False
    database: str = DATABASE

    @cached_property
    def tree(self) -> exp.Expr | None:
        """The syntax tree; None if the text has no statement.

        Raises:
            UnsupportedSQL: it has several, or a syntax error.
        """
        trees = trees_of(self.text, database=self.database)
        if len(trees) > 1:
            raise UnsupportedSQL("cannot insert multiple commands into a prepared statement", code="42601")
        return trees[0] if trees else None

    @cached_property
    def parameters(self) -> frozenset[int]:
        """The numbers of `$1`, `$2`, ...

        Raises:
            UnsupportedSQL: the statement takes none, or not so many.
        """
        numbers = self._written | (frozenset() if self.rows is None else self.rows.first.keys())
        if numbers and (self.tree is None or not takes_parameters(self.tree)):
            raise UnsupportedSQL("this statement takes no parameters", remedy="write the values into it", code="42P02")
        if any(not 1 <= number <= MOST_PARAMETERS for number in numbers):
            raise UnsupportedSQL(f"there is no parameter ${max(numbers)}", code="42P02")
        return numbers

    @cached_property
    def rows(self) -> LiteralRows | None:
        """The rows of an INSERT with many, of which the tree has one."""
        return rows_of(self.tree.expression) if not self.known and isinstance(self.tree, exp.Insert) else None

    @cached_property
    def _written(self) -> frozenset[int]:
        """The numbers of the parameters in the tree."""
        if self.known or self.tree is None or isinstance(self.tree, Prepare):  # its parameters are those of EXECUTE
            return frozenset()
        return frozenset(int(name) for node in self.tree.walk() if (name := name_of_parameter(node)) is not None)

    def marked(self, given: Mapping[int, SqlType]) -> exp.Expr:
        """The tree to describe: a mark for each parameter, or NULL of its type if that is given."""
        return self._with({n: exp.Literal.string(mark(n)) if n not in given
                           else exp.Cast(this=exp.Null(), to=_node(given[n])) for n in self._written})  # fmt: skip

    def with_values(self, values: Sequence[str | Hidden | None], types: Sequence[SqlType | None]) -> exp.Expr:
        """The tree to run. A value is None for NULL; a type is None for a literal whose place gives it a type.

        Raises:
            UnsupportedSQL: there are too few or too many values.
        """
        wanted = max(self.parameters, default=0)
        if len(values) < wanted:
            raise UnsupportedSQL(f"there is no parameter ${wanted}", code="42P02")
        made = self._with({n: typed_constant(values[n - 1], types[n - 1]) for n in self._written})
        if self.rows is not None and self.rows.numbers:
            given = [None if value is None else str(value) for value in values]
            made.expression.meta["rows"] = replace(self.rows, values=given, types=types)
        return made

    def statement(self) -> Statement | None:
        """What kind of statement it is. Its parameters have no values."""
        return None if self.tree is None else statement_of(self.marked({}), self.text)

    @property
    def reads(self) -> bool:
        """Whether it is a query that changes nothing."""
        return self.known or (self.tree is not None and change_in(self.tree) is None)

    @property
    def executes(self) -> str | None:
        """The name in EXECUTE; None if it is another statement."""
        return name_of(self.tree.this) if not self.known and isinstance(self.tree, Execute) else None

    @property
    def keeps(self) -> bool:
        """Whether it reads and changes no rows: PREPARE, DEALLOCATE, savepoints, SET, SHOW, EXPLAIN."""
        return not self.known and isinstance(
            self.tree, Prepare | Deallocate | Savepoint | exp.Rollback | exp.Set | ShowObjects | Explain)

    def _with(self, values: Mapping[int, exp.Expr]) -> exp.Expr:
        assert self.tree is not None

        def changed(node: exp.Expr) -> exp.Expr | None:
            name = name_of_parameter(node)
            return None if name is None else placed_as(values[int(name)].copy(), node)

        return exchanged(self.tree.copy(), changed) if values else self.tree.copy()


def typed_constant(value: str | Hidden | None, type: SqlType | None) -> exp.Expr:
    """The value of a parameter; None for NULL. `type`: None for a literal whose place gives it a type."""
    made = exp.Literal.string(value) if isinstance(value, str) else constant(value)
    return made if type is None else exp.Cast(this=made, to=_node(type))


def change_in(tree: exp.Expr) -> str | None:
    """The first word of a change, such as INSERT, or WITH that has one; None for a query that changes nothing."""
    if isinstance(tree, AsOf):
        return change_in(tree.this)
    if isinstance(tree, exp.Query | exp.Values):
        return "WITH" if changes_in_with(tree) else None
    return tree.key.upper()


def prepared(text: str, database: str = DATABASE) -> Prepared:
    """The one statement of a text; none is a statement that does nothing.

    Raises:
        UnsupportedSQL: there are several, or a syntax error.
    """
    return _prepared(text, database) if len(text) <= SHORT else _checked(text, database)


@lru_cache(maxsize=256)
def _prepared(text: str, database: str) -> Prepared:
    return _checked(text, database)


def _checked(text: str, database: str) -> Prepared:
    made = Prepared(text, database=database)
    _ = made.parameters
    return made


@lru_cache(maxsize=1024)
def _made(type: SqlType) -> exp.Expr:
    (tree,) = trees_of(f"SELECT CAST(NULL AS {type_text(type)})")
    found = tree.find(exp.Cast)
    assert found is not None
    return found.to


def type_text(type: SqlType) -> str:
    """A type as SQL text, which is found whatever its name and the search_path are."""
    if type.kind is Kind.ARRAY and type.element is not None:
        return f"{type_text(type.element)}[]"
    if type.named and type.kind in (Kind.ENUM, Kind.RECORD):  # with its schema, whatever the search_path is
        parts = type.named.split(".") if "." in type.named else (PUBLIC, type.named)
        return ".".join(f'"{part}"' for part in parts)
    return "bpchar" if type.kind is Kind.CHAR and type.precision is None else str(type)


def _node(type: SqlType) -> exp.Expr:
    return _made(type).copy()
