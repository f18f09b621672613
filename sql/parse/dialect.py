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

from halfjoin.sql.parse.catalog_rows import of_catalog
from halfjoin.sql.parse.constants import ConstantParser
from halfjoin.sql.parse.keys import KeyParser
from halfjoin.sql.parse.locate import as_query
from halfjoin.sql.parse.operators import OperatorParser
from halfjoin.sql.parse.syntax import (
    AsOf,
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
    Subscribe,
    TableArgument,
    Variadic,
)
from halfjoin.sql.parse.tokens import HalfjoinTokenizer

TAKE_QUERIES = ("ARRAY", "EXISTS", "ANY", "SOME", "ALL")  # where `TABLE t` is a query
AFTER_AS_OF = (TokenType.NUMBER, TokenType.STRING, TokenType.L_PAREN, TokenType.DASH, TokenType.VAR,
               TokenType.TIMESTAMP, TokenType.TIMESTAMPTZ, TokenType.DATE, TokenType.INTERVAL)
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


class HalfjoinParser(OperatorParser, ConstantParser, KeyParser):
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

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        """The SELECT list. It may be empty, but not a comma alone."""
        made: tuple[list[exp.Expr], list[exp.Expr] | None] = super()._parse_projections()
        if not made[0] and self._prev is not None and self._prev.token_type is TokenType.COMMA:
            self.raise_error("an expression is missing", self._prev)
        return made

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

    def _with_as_of(self, statement: exp.Expr | None) -> exp.Expr | None:
        """The statement together with the AS OF that follows it."""
        if not self._after_with and isinstance(statement, (exp.Query, exp.Values)) and (time := self._parse_as_of()):
            return self.expression(AsOf(this=statement, expression=time))
        return statement

    def _parse_file_location(self) -> exp.Expr | None:
        """STDIN or STDOUT after COPY: a word, not the call of a function, whatever follows it."""
        return self._parse_string() or self._parse_var(any_token=True)

    def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
        """Parse an argument of a call."""
        if self._curr and self._curr.text.upper() == "VARIADIC" and not self._next_ends_argument():
            self._advance()
            return self.expression(Variadic(this=self._parse_assignment()))
        return self._parse_table_argument() or super()._parse_lambda(alias)

    def _next_ends_argument(self) -> bool:
        """Whether the word here is the whole argument: a column."""
        return self._next is None or self._next.token_type in (TokenType.COMMA, TokenType.R_PAREN)

    def _parse_table_argument(self) -> exp.Expr | None:
        called = self._tokens[self._index - 2].text.upper() if self._index > 1 else ""
        if called in TAKE_QUERIES or not self._match(TokenType.TABLE):
            return None
        table = self._parse_table()
        if table is None:
            raise self._refused("TABLE needs a table, a view or a subquery", "write f(TABLE t PARTITION BY k)")
        by = [part for one in self._parse_partition_by() for part in _columns(one)]
        return self.expression(TableArgument(this=table, partition_by=by, order=self._parse_order()))

    def _parse_as_of(self) -> exp.Expr | None:
        if not self._match_text_seq("AS", "OF"):
            return None
        time: exp.Expr | None = self._parse_disjunction()
        if time is None:
            raise self._refused("AS OF needs a time", "write AS OF 5, or AS OF '2024-01-31 10:00'")
        return time

    def _parse_subscribe(self) -> exp.Expr:
        self._match_text_seq("TO")
        if self._curr and self._curr.token_type is TokenType.L_PAREN:
            raise self._refused("SUBSCRIBE takes the name of a view", "create a materialized view of the query first")
        collection = self._parse_table_parts()
        as_of = self._parse_as_of()
        up_to = self._parse_disjunction() if self._match_text_seq("UP", "TO") else None
        return self.expression(Subscribe(this=collection, as_of=as_of, up_to=up_to))

    def _parse_retain_history(self) -> exp.Expr:
        if not self._match_text_seq("HISTORY"):
            raise self._refused("RETAIN needs HISTORY FOR and a duration", "write RETAIN HISTORY FOR '1 hour'")
        self._match(TokenType.EQ)
        self._match_text_seq("FOR")
        return self.expression(RetainHistory(this=self._parse_disjunction()))

    def _at_as_of(self) -> bool:
        """Whether AS OF and a time come next, not an alias named `of`."""
        if not (self._curr and self._curr.token_type is TokenType.ALIAS and self._next):
            return False
        after = self._tokens[self._index + 2] if self._index + 2 < len(self._tokens) else None
        named_of = self._next.token_type is TokenType.VAR and self._next.text.upper() == "OF"
        return named_of and after is not None and after.token_type in AFTER_AS_OF

    def _parse_csv(self, parse_method: Callable[[], Any], sep: TokenType = TokenType.COMMA) -> list[Any]:
        """Parse a list, which does not end in a comma. After a comma, ALTER TABLE may go on with another action."""
        items = super()._parse_csv(parse_method, sep)
        action = self._curr is not None and self._curr.text.upper() in ("ADD", "ALTER", "DROP", "RENAME")
        if items and self._prev is not None and self._prev.token_type is sep and not action:
            self.raise_error("Expecting another item")
        return items

    def _parse_table(self, schema: bool = False, joins: bool = False, *args: Any, **options: Any) -> exp.Expr | None:
        """Parse an item of FROM. With `joins`, as in UPDATE, what is joined to VALUES or to a function belongs to it.

        ROWS FROM may always read the items to its left, so LATERAL before it says nothing.
        """
        if self._at(TokenType.LATERAL) and self._matches_after("ROWS", "FROM"):
            self._match(TokenType.LATERAL)
        made = of_catalog(super()._parse_table(schema, joins, *args, **options))
        if joins and made is not None:
            for join in self._parse_joins():
                made.append("joins", join)
        return made

    def _parse_derived_table_values(self, allow_value_synonym: bool = False) -> exp.Values | None:
        """Parse VALUES, unless it is the first part of a query in parentheses."""
        if self._curr and self._curr.token_type is TokenType.L_PAREN and self._after_values() is not TokenType.R_PAREN:
            return None
        return super()._parse_derived_table_values(allow_value_synonym)

    def _after_values(self) -> TokenType | None:
        """What follows the rows of VALUES, which comes after the parenthesis that is next."""
        depth, tokens = 0, self._tokens[self._index + 2 :]
        for token in tokens:
            if not depth and token.token_type not in (TokenType.L_PAREN, TokenType.COMMA):
                return token.token_type
            depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        return None

    def _parse_ordered(self, parse_method: Callable[[], exp.Expr | None] | None = None) -> exp.Ordered | None:
        """Parse a key of ORDER BY. `USING <` is ASC, `USING >` is DESC."""
        using: list[bool] = []

        def key() -> exp.Expr | None:
            node = parse_method() if parse_method else self._parse_disjunction()
            if node is not None and self._match(TokenType.USING):
                if not self._match_set((TokenType.LT, TokenType.GT)):
                    raise self._refused("ORDER BY ... USING takes < or > only", "write ASC or DESC")
                using.append(self._prev.token_type is TokenType.GT)
            return node

        made = super()._parse_ordered(key)
        if made is not None and using and using[0]:
            made.set("desc", True)
            made.set("nulls_first", made.args.get("nulls_first") or self._prev.text.upper() != "LAST")
        return made

    def _parse_query_modifiers(self, this: Any) -> Any:
        """Parse the clauses after a query. Those after `(SELECT ...)` are the query's own, as without parentheses.

        LATERAL may be the first of joined items in parentheses.
        """
        made = super()._parse_query_modifiers(this)
        for join in self._parse_joins() if isinstance(made, exp.Lateral) else ():
            made.append("joins", join)
        if isinstance(made, exp.Subquery) and not made.args.get("alias"):
            inner = made.unnest()
            for key in ("order", "limit", "offset"):
                if (clause := made.args.get(key)) is not None:
                    if inner.args.get(key):
                        clauses = "ORDER BY" if key == "order" else key.upper()
                        raise self._refused(f"multiple {clauses} clauses not allowed").with_(code="42601")
                    inner.set(key, clause.pop())
        return made

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:
        """Parse CUBE or ROLLUP. Their keys may be conditions, as those of GROUP BY."""
        if with_prefix or not self._match_set((TokenType.CUBE, TokenType.ROLLUP)):
            return super()._parse_cube_or_rollup(with_prefix)
        kind = exp.Cube if self._prev.token_type is TokenType.CUBE else exp.Rollup
        return self.expression(kind(expressions=self._parse_wrapped_csv(self._parse_disjunction)))

    def _parse_grouping_set(self) -> exp.Expr | None:
        return self._parse_grouping_sets() or self._parse_cube_or_rollup() or self._parse_disjunction()

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

    def _parse_table_parts(self, *given: Any, **more: Any) -> Any:
        """Parse a table's name, which may be in parentheses after ONLY."""
        if self._prev and self._prev.token_type is TokenType.ON:  # CREATE INDEX ON ONLY t
            self._match(TokenType.ONLY)
        if self._prev and self._prev.token_type is TokenType.ONLY and self._match(TokenType.L_PAREN):
            table = super()._parse_table_parts(*given, **more)
            self._match_r_paren()
            return table
        return super()._parse_table_parts(*given, **more)

    def _at(self, token: TokenType) -> bool:
        return self._curr is not None and self._curr.token_type is token

    def _matches_after(self, *words: str) -> bool:
        """Whether these words follow the next token."""
        after = self._tokens[self._index + 1 : self._index + 1 + len(words)]
        return tuple(token.text.upper() for token in after) == words

    def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
        return this if self._at_as_of() or self._at_iterate() else super()._parse_alias(this, explicit)

    def _parse_table_alias(self, alias_tokens: Collection[TokenType] | None = None) -> exp.TableAlias | None:
        return None if self._at_as_of() or self._at_iterate() else super()._parse_table_alias(alias_tokens)

    def _parse_locks(self) -> list[exp.Lock]:
        """FOR UPDATE OF x: the name of an item of FROM, and of no table."""
        locks = super()._parse_locks()
        for lock in locks:
            names = [table.this for table in lock.expressions]
            lock.set("expressions", [name for name in names if isinstance(name, exp.Identifier)])
        return locks

    def _parse_where(self, skip_where_token: bool = False) -> exp.Where | None:
        words = [token.text.upper() for token in self._tokens[self._index : self._index + 3]]
        if words == ["WHERE", "CURRENT", "OF"]:
            raise self._refused("WHERE CURRENT OF is not supported: no cursor stays at a row",
                                "name the row by its key, as in WHERE id = 5")  # fmt: skip
        return super()._parse_where(skip_where_token)

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

    def _parse_unnest(self, with_alias: bool = True) -> exp.Unnest | None:
        return None  # parse UNNEST as an ordinary function, which keeps its alias and ordinality

    def _parse_join(self, skip_join_token: bool = False, parse_bracket: bool = False,
                    alias_tokens: Collection[TokenType] | None = None) -> exp.Join | None:
        comma = bool(self._curr and self._curr.token_type is TokenType.COMMA)
        join = super()._parse_join(skip_join_token, parse_bracket, alias_tokens)
        if comma and join is None:
            self.raise_error("an item is missing after the comma")
        if join is not None and comma:
            join.meta["comma"] = True  # a comma binds looser than JOIN, and needs no condition
        if join is not None and join.args.get("using") and not self._at_as_of() and self._match(TokenType.ALIAS):
            join.meta["alias"] = self._parse_id_var(any_token=False)  # JOIN ... USING (...) AS name
            if join.meta["alias"] is None:
                raise self._refused("USING (...) AS needs a name")
        return join

    def _parse_as_command(self, start: Token) -> exp.Command:
        word = (self._curr or self._prev).text.upper()
        if start.text.upper() == "ALTER" and word in _ALTERS:
            raise self._refused(f"this ALTER is not supported: {word}", "ADD, DROP or RENAME a column, ADD or DROP a "
                                "constraint, or ALTER a column's DEFAULT, NOT NULL, TYPE or IDENTITY")  # fmt: skip
        raise self._refused(f"syntax error at {(self._curr or self._prev).text!r}").with_(code="42601")


def _columns(node: exp.Expr) -> list[exp.Expr]:
    """The parts of `(a, b)` and `(a)`."""
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    return [node.unnest() if isinstance(node, exp.Paren) else node]


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
