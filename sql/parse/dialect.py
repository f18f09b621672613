"""The SQL dialect: sqlglot's `materialize`, plus the statements it lacks, with function calls parsed as written.

sqlglot's parsers translate while they parse (format strings, argument orders, array offsets), since they aim to write
another dialect. halfjoin needs what the text itself says, so a parsed call is a name and its arguments, nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.materialize import Materialize
from sqlglot.errors import ParseError
from sqlglot.generators.materialize import MaterializeGenerator
from sqlglot.parsers.materialize import MaterializeParser
from sqlglot.tokenizer_core import Token, TokenType

from halfjoin.sql.parse.arguments import ArgumentParser
from halfjoin.sql.parse.clauses import ClauseParser
from halfjoin.sql.parse.constants import ConstantParser
from halfjoin.sql.parse.keys import KeyParser
from halfjoin.sql.parse.locate import as_query
from halfjoin.sql.parse.operators import OperatorParser
from halfjoin.sql.parse.syntax import (
    Deallocate,
    Execute,
    Iterate,
    OnCommitDrop,
    Prepare,
    Recursive,
    Reset,
    RetainHistory,
    Savepoint,
    ShowObjects,
    TableArgument,
    Variadic,
)
from halfjoin.sql.parse.tokens import HalfjoinTokenizer

# What may begin an action of PostgreSQL's ALTER that is not one here.
_ALTERS = {"OWNER", "SET", "RESET", "DROP", "ENABLE", "DISABLE", "FORCE", "NO", "REPLICA", "CLUSTER",
           "INHERIT", "ATTACH", "DETACH", "SCHEMA", "OF", "NOT"}  # fmt: skip

_ALL_MAY = "each user may do everything; the server's --password-file says who may connect"
# What CREATE makes in PostgreSQL and there is none of here, and why that is no harm.
_NOT_MADE = {"ROLE": _ALL_MAY, "USER": _ALL_MAY, "GROUP": _ALL_MAY,
             "RULE": "a view has no rules: write to its tables", "POLICY": "each user may read every row",
             "PUBLICATION": "SUBSCRIBE and sinks tell the changes of a view",
             "SUBSCRIPTION": "CREATE SOURCE follows tables of PostgreSQL",
             "EXTENSION": "leave it out: gen_random_uuid() and other functions are there without one"}  # fmt: skip


class HalfjoinParser(OperatorParser, ConstantParser, ClauseParser, ArgumentParser, KeyParser):
    """Parses SQL text to sqlglot's syntax trees, and to those of `syntax`."""

    _fills = False  # within CREATE MATERIALIZED VIEW, whose query may end with WITH DATA

    FUNCTIONS: ClassVar = {}
    FUNCTION_PARSERS: ClassVar = {
        name: MaterializeParser.FUNCTION_PARSERS[name] for name in ("CAST", "EXTRACT", "OVERLAY", "POSITION", "TRIM")
    }
    FUNCTION_PARSERS["SUBSTRING"] = lambda self: self._parse_substring()
    FUNCTION_PARSERS["NORMALIZE"] = lambda self: self._parse_normalize()
    NO_PAREN_FUNCTION_PARSERS: ClassVar = {
        name: MaterializeParser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("ANY", "CASE")
    }
    PRIMARY_PARSERS: ClassVar = {
        **MaterializeParser.PRIMARY_PARSERS,
        TokenType.BYTE_STRING: lambda self, token: self._parse_escapes(token),
        TokenType.NULL: lambda self, token: self.expression(exp.Null(), token=token),
        TokenType.TRUE: lambda self, token: self.expression(exp.Boolean(this=True), token=token),
        TokenType.FALSE: lambda self, token: self.expression(exp.Boolean(this=False), token=token),
    }
    PROPERTY_PARSERS: ClassVar = {
        **{word: read for word, read in MaterializeParser.PROPERTY_PARSERS.items()
           if word not in ("NO", "EXECUTE")},  # NO MINVALUE; AS EXECUTE
        "RECURSIVE": lambda self: self.expression(Recursive()),
        "RETAIN": lambda self: self._parse_retain_history(),
    }

    RESERVED_TOKENS: ClassVar = MaterializeParser.RESERVED_TOKENS - {TokenType.SELECT}  # AS select names a column

    ADD_CONSTRAINT_KEYWORDS: ClassVar = {*MaterializeParser.ADD_CONSTRAINT_KEYWORDS, "CHECK"}
    CONSTRAINT_PARSERS: ClassVar = {
        **MaterializeParser.CONSTRAINT_PARSERS,
        "CHECK": lambda self: self._parse_with_text("CHECK"),
        "DEFAULT": lambda self: self._parse_with_text("DEFAULT"),
        "EXCLUDE": lambda self: self._parse_exclude(),
        "GENERATED": lambda self: self._parse_with_text("GENERATED"),
        "UNIQUE": lambda self: self._parse_nulls_distinct() or MaterializeParser.CONSTRAINT_PARSERS["UNIQUE"](self),
    }

    ALTER_PARSERS: ClassVar = {
        **MaterializeParser.ALTER_PARSERS, "VALIDATE": lambda self: self._parse_alter_constraint(),
        "RESET": lambda self: self._parse_retention(),
    }  # fmt: skip

    def _parse_with_text(self, word: str) -> Any:
        """A constraint that keeps its text after the first word."""
        first, made = self._curr, MaterializeParser.CONSTRAINT_PARSERS[word](self)
        if isinstance(made, exp.Expr) and first is not None and self._prev is not None:
            made.meta["text"] = self._find_sql(first, self._prev)
        return made

    def _parse_exclude(self) -> Any:
        """An EXCLUDE constraint, which USING or a parenthesis follows, or else a column of that name."""
        exclude = self._at(TokenType.USING) or self._at(TokenType.L_PAREN)
        return MaterializeParser.CONSTRAINT_PARSERS["EXCLUDE"](self) if exclude else None

    def raise_error(self, message: str, *tokens: Token, **token: Token) -> None:
        """Raise the error, which knows whether a token is wrong or the text ends too early."""
        try:
            super().raise_error(message, *tokens, **token)
        except ParseError as error:
            error.errors[0]["ends"] = not (tokens or token) and not self._curr
            raise

    def _parse_statement(self) -> exp.Expr | None:
        if (named := self._parse_named()) is not None:
            return named
        if self._match_text_seq("SUBSCRIBE"):
            return self._parse_subscribe()
        if self._match_text_seq("EXPLAIN"):
            return self._parse_explain()
        if self._match_texts(("VACUUM", "ANALYZE", "ANALYSE")):
            return self._parse_maintain("vacuum" if self._prev.text.upper() == "VACUUM" else "analyze")
        if self._match_text_seq("ALTER", "MATERIALIZED", "VIEW"):
            return self._parse_alter_view()
        if self._match_text_seq("REFRESH"):
            return self._parse_refresh_plan()
        if self._match_texts(("DESCRIBE", "DESC")):
            return self.expression(ShowObjects(this="columns", source=self._parse_table_parts()))
        if self._match_text_seq("SET", "TRANSACTION"):
            return self._parse_modes("set")
        if self._match_text_seq("SET", "CONSTRAINTS"):
            return self._parse_constraint_modes()
        if self._match_text_seq("SET", "TIME", "ZONE"):
            return self.expression(exp.Set(expressions=[exp.SetItem(this=exp.EQ(
                this=exp.column("timezone"), expression=self._parse_disjunction()))]))
        if self._match_text_seq("SHOW"):
            return self._parse_show_objects()
        if self._match_text_seq("RESET"):
            return self.expression(Reset(this=self._parse_column()))
        if (session := self._parse_session()) is not None:
            return session
        inside = bool(self._prev) and self._prev.token_type is TokenType.L_PAREN
        statement = self._with_as_of(super()._parse_statement())
        if inside and self._at_iterate():
            self._advance()
            made = Iterate(this=as_query(statement), expression=as_query(super()._parse_statement()))  # type: ignore[arg-type]
            return self.expression(made)
        return statement

    def _parse_session(self) -> exp.Expr | None:
        """Parse PREPARE, EXECUTE, DEALLOCATE, and the statements of transactions that sqlglot does not know."""
        if self._match_text_seq("PREPARE"):
            name, types = self._parse_id_var(), None
            if self._match(TokenType.L_PAREN):
                types = self._parse_csv(self._parse_types)
                self._match_r_paren()
            if name is None or not self._match(TokenType.ALIAS):
                raise self._refused("PREPARE needs a name, AS and a statement", "write PREPARE p AS SELECT $1")
            made = self._parse_statement()
            return self.expression(Prepare(this=name, types=types, expression=made and as_query(made)))
        if self._match_text_seq("EXECUTE"):
            name, values = self._parse_id_var(), None
            if self._match(TokenType.L_PAREN):
                values = self._parse_csv(self._parse_disjunction)
                self._match_r_paren()
            return self.expression(Execute(this=name, expressions=values))
        if self._match_text_seq("DEALLOCATE"):
            self._match_text_seq("PREPARE")
            return self.expression(Deallocate(this=None if self._match_text_seq("ALL") else self._parse_id_var()))
        for word in ("SAVEPOINT", "RELEASE"):
            if self._match_text_seq(word):
                self._match_text_seq("SAVEPOINT")
                return self.expression(Savepoint(this=self._parse_id_var(), kind=word.lower()))
        if self._match_text_seq("ABORT"):
            return self._parse_commit_or_rollback()
        if self._match_text_seq("START", "TRANSACTION"):
            return self._parse_transaction()
        return None

    def _parse_file_location(self) -> exp.Expr | None:
        """STDIN or STDOUT after COPY: a word, not the call of a function, whatever follows it."""
        return self._parse_string() or self._parse_var(any_token=True)

    def _parse_retain_history(self) -> exp.Expr:
        if not self._match_text_seq("HISTORY"):
            raise self._refused("RETAIN needs HISTORY FOR and a duration", "write RETAIN HISTORY FOR '1 hour'")
        self._match(TokenType.EQ)
        self._match_text_seq("FOR")
        return self.expression(RetainHistory(this=self._parse_disjunction()))

    def _parse_csv(self, parse_method: Callable[[], Any], sep: TokenType = TokenType.COMMA) -> list[Any]:
        """Parse a list, which does not end in a comma. After a comma, ALTER TABLE may go on with another action."""
        items = super()._parse_csv(parse_method, sep)
        action = self._curr is not None and self._curr.text.upper() in ("ADD", "ALTER", "DROP", "RENAME")
        if items and self._prev is not None and self._prev.token_type is sep and not action:
            self.raise_error("Expecting another item")
        return items

    def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
        """Parse what follows IS. Of a row, IS NOT NULL is not the same as NOT (... IS NULL)."""
        negated = bool(self._curr) and self._curr.token_type is TokenType.NOT
        made = super()._parse_is(this)
        if negated and isinstance(made, exp.Not):
            made.meta["is_not"] = True
        return made

    def _parse_range(self, this: exp.Expr | None = None, parse_is: bool = False) -> exp.Expr | None:
        """Parse a comparison with a range. NOTNULL is IS NOT NULL."""
        made = super()._parse_range(this, parse_is)
        if isinstance(made, exp.MatchAgainst) and None in made.expressions:  # as in @@version
            self.raise_error("@@ has no value before it", self._prev)
        if isinstance(made, exp.Not) and self._prev and self._prev.token_type is TokenType.NOTNULL:
            made.meta["is_not"] = True
        return made

    def _parse_bracket_key_value(self, is_map: bool = False) -> exp.Expr | None:
        """Parse a subscript. `[:n]` is a slice up to the column n, not a parameter."""
        return self._parse_slice(None if self._at(TokenType.COLON) else self._parse_disjunction())

    def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
        return this if self._at_as_of() or self._at_iterate() else super()._parse_alias(this, explicit)

    def _parse_table_alias(self, alias_tokens: Collection[TokenType] | None = None) -> exp.TableAlias | None:
        return None if self._at_as_of() or self._at_iterate() else super()._parse_table_alias(alias_tokens)

    def _parse_on_property(self) -> exp.Expr | None:
        if self._match_text_seq("COMMIT", "DROP"):
            return self.expression(OnCommitDrop())
        return super()._parse_on_property()

    def _parse_create(self) -> Any:
        words = [token.text.upper() for token in (self._curr, self._next) if token is not None]
        if words[:1] in (["LOCAL"], ["GLOBAL"]) and words[1:] in (["TEMP"], ["TEMPORARY"]):
            self._advance()  # PostgreSQL reads LOCAL and GLOBAL alike
        if self._match_text_seq("SINK"):
            return self._parse_create_sink(replace=False)
        if self._match_text_seq("OR", "REPLACE", "SINK"):
            return self._parse_create_sink(replace=True)
        if self._match_text_seq("SOURCE"):
            return self._parse_create_source()
        if self._match_text_seq("DOMAIN"):
            return self._parse_create_domain()
        if words[:1] and words[0] in _NOT_MADE:
            raise self._refused(f"CREATE {words[0]} is not supported", _NOT_MADE[words[0]])
        first = self._prev
        words = [token.text.upper() for token in self._tokens[self._index : self._index + 3]]
        self._fills = "MATERIALIZED" in (words[2:] if words[:1] == ["OR"] else words[:1])
        try:
            created = super()._parse_create()
        finally:
            self._fills = False
        if first is not None and self._prev is not None:
            created.meta["text"] = self._find_sql(first, self._prev)
        return created

    def _parse_drop(self, exists: bool = False, kind: str | None = None) -> exp.Drop | exp.Command:
        if kind is None and (named := self._parse_drop_named()) is not None:
            return named  # type: ignore[return-value]
        if kind is None and self._match_text_seq("SINK"):
            kind = "SINK"
        return super()._parse_drop(exists, kind)

    def _parse_ddl_select(self) -> exp.Expr | None:
        if self._match_text_seq("OVERRIDING"):
            return self._parse_overriding()
        if self._curr and self._curr.text.upper() == "EXECUTE":  # CREATE TABLE t AS EXECUTE p
            return self._parse_session()
        first = self._curr
        query = super()._parse_ddl_select()
        if query is not None and first is not None and self._prev is not None:
            query.meta["text"], query.meta["from"] = self._find_sql(first, self._prev), first.start
        if self._at_as_of():
            raise self._refused("a view has no AS OF", "write AS OF in the query that reads it")
        if self._fills:
            if query is not None and self._match_text_seq("WITH", "NO", "DATA"):
                query.meta["no_data"] = True
            self._match_text_seq("WITH", "DATA")
        return query

    def _parse_as_command(self, start: Token) -> exp.Command:
        word = (self._curr or self._prev).text.upper()
        if start.text.upper() == "ALTER" and word in _ALTERS:
            raise self._refused(f"this ALTER is not supported: {word}", "ADD, DROP or RENAME a column, ADD or DROP a "
                                "constraint, or ALTER a column's DEFAULT, NOT NULL, TYPE or IDENTITY")  # fmt: skip
        raise self._refused(f"syntax error at {(self._curr or self._prev).text!r}").with_(code="42601")


def _written(writer: MaterializeGenerator, node: TableArgument) -> str:
    by = writer.expressions(node, key="partition_by", flat=True)
    return f"TABLE {writer.sql(node, 'this')}{by and f' PARTITION BY {by}'}{writer.sql(node, 'order')}"


class Halfjoin(Materialize):
    """The dialect of halfjoin's SQL text."""

    INDEX_OFFSET = 0  # keep array subscripts as written

    Tokenizer, Parser = HalfjoinTokenizer, HalfjoinParser

    class Generator(MaterializeGenerator):
        """Writes syntax trees as text, for messages."""

        TRANSFORMS: ClassVar = {
            **MaterializeGenerator.TRANSFORMS,
            TableArgument: lambda self, node: _written(self, node),
            Variadic: lambda self, node: f"VARIADIC {self.sql(node, 'this')}",
        }
