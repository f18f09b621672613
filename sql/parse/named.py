"""Parses the statements about types, domains, schemas, sequences and comments, which sqlglot does not know."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from halfjoin.sql.parse.sourced import SourceParser
from halfjoin.sql.parse.syntax import AlterDomain, AlterEnum, AlterIdentity, AlterSequence, Comment

DROPPED = ("TYPE", "DOMAIN", "SCHEMA", "SEQUENCE", "INDEX", "SOURCE")  # what DROP takes several of
COMMENTED = ("TABLE", "MATERIALIZED VIEW", "VIEW", "COLUMN", "INDEX", "TYPE", "DOMAIN", "SCHEMA", "SEQUENCE", "SINK",
             "SOURCE", "CONSTRAINT")
UNALTERED = {"SCHEMA": ("a schema keeps its name", "CREATE SCHEMA, and RENAME its tables into it")}


class NamedParser(SourceParser):
    """The part of the parser that reads the statements about named things other than tables and views."""

    def _parse_named(self) -> exp.Expr | None:
        """ALTER TYPE, COMMENT ON and SET search_path; None for another statement."""
        if self._match_text_seq("ALTER", "TYPE"):
            return self._parse_alter_enum()
        if self._match_text_seq("ALTER", "SEQUENCE"):
            return self._parse_alter_sequence()
        if self._match_text_seq("ALTER", "DOMAIN"):
            return self._parse_alter_domain()
        if self._match_text_seq("ALTER", "SOURCE"):
            return self._parse_alter_source()
        for word, (reason, instead) in UNALTERED.items():
            if self._match_text_seq("ALTER", word):
                raise self._refused(f"ALTER {word} is not supported: {reason}", instead)
        if self._match_text_seq("COMMENT", "ON"):
            return self._parse_comment_on()
        index = self._index
        if self._match_text_seq("SET"):
            self._match_texts(("SESSION", "LOCAL"))
            if self._match_text_seq("SEARCH_PATH") and (self._match(TokenType.EQ) or self._match_text_seq("TO")):
                return self._parse_search_path()
            self._retreat(index)
        return None

    def _parse_search_path(self) -> exp.Expr:
        parts = self._parse_csv(lambda: self._parse_string() or self._parse_id_var(any_token=True))
        names = [part.name if part.args.get("quoted") or part.is_string else part.name.lower() for part in parts]
        value: exp.Expr = exp.Literal.string(", ".join(names))
        if names == ["default"]:
            value = exp.var("DEFAULT")
        item = exp.SetItem(this=exp.EQ(this=exp.column("search_path"), expression=value))
        return self.expression(exp.Set(expressions=[item]))

    def _parse_alter_enum(self) -> exp.Expr:
        name = self._parse_table_parts()
        if self._match_text_seq("ADD", "VALUE"):
            lenient = bool(self._parse_exists(not_=True))
            made, beside, before = self._parse_string(), None, False
            if self._match_texts(("BEFORE", "AFTER")):
                before = self._prev.text.upper() == "BEFORE"
                beside = self._parse_string()
            if made is not None:
                return self.expression(AlterEnum(this=name, add=made, beside=beside, before=before, exists=lenient))
        elif self._match_text_seq("RENAME", "VALUE"):
            old = self._parse_string()
            if old is not None and self._match_text_seq("TO") and (new := self._parse_string()) is not None:
                return self.expression(AlterEnum(this=name, old=old, add=new))
        elif self._match_text_seq("RENAME", "TO") and (to := self._parse_id_var()) is not None:
            return self.expression(AlterEnum(this=name, to=to))
        raise self._refused("this ALTER TYPE is not supported", "ADD VALUE 'label' [BEFORE | AFTER 'label'], RENAME "
                            "VALUE 'label' TO 'label', or RENAME TO name")  # fmt: skip

    def _parse_alter_sequence(self) -> exp.Expr:
        exists = bool(self._parse_exists())
        name = self._parse_table_parts()
        to = self._parse_id_var() if self._match_text_seq("RENAME", "TO") else None
        schema = self._parse_id_var() if self._match_text_seq("SET", "SCHEMA") else None
        given = {"to": to} if to is not None else {"schema": schema} if schema is not None else (
            self._sequence_options(typed=True))  # fmt: skip
        if not given or (self._curr and self._curr.token_type is not TokenType.SEMICOLON):
            raise self._refused("this ALTER SEQUENCE is not supported",
                                "RESTART [WITH n], START WITH n, INCREMENT BY n, MINVALUE n, MAXVALUE n, CYCLE, "
                                "OWNED BY t.c, RENAME TO name, SET SCHEMA name")  # fmt: skip
        return self.expression(AlterSequence(this=name, exists=exists, **given))

    def _parse_property_before(self) -> exp.Expr | None:
        """Of other dialects, between a name and its columns; it would take the NO of NO MINVALUE."""
        return None

    def _parse_sequence_properties(self) -> exp.SequenceProperties | None:
        given = self._sequence_options()
        return exp.SequenceProperties(**given) if given else None

    def _sequence_options(self, *, typed: bool = False) -> dict[str, Any]:
        """The options of a sequence, each under its word; True for NO MINVALUE, NO MAXVALUE and a bare RESTART.
        `typed`: AS is one of them."""
        given: dict[str, Any] = {}
        while True:
            no = self._match_text_seq("NO")
            if self._match_texts(("MINVALUE", "MAXVALUE")):
                word = self._prev.text.lower()
                value: Any = True if no else self._parse_unary()
            elif self._match_text_seq("CYCLE"):
                word, value = "cycle", not no
            elif no:
                raise self._refused("NO stands before MINVALUE, MAXVALUE or CYCLE")
            elif self._match_texts(("RESTART", "START", "INCREMENT", "CACHE")):
                word = self._prev.text.lower()
                self._match_texts(("WITH", "BY"))
                value = self._parse_unary() or (True if word == "restart" else None)
            elif typed and self._match_text_seq("AS"):
                word, value = "type", self._parse_types()
            elif self._match_text_seq("OWNED", "BY"):
                word, value = "owned", exp.var("NONE") if self._match_text_seq("NONE") else self._parse_column()
            else:
                return given
            if value is None:
                raise self._refused(f"{word.upper()} needs a value")
            if word in given:
                raise self._refused("conflicting or redundant options").with_(code="42601")
            given[word] = value

    def _parse_generated_as_identity(self) -> Any:
        """GENERATED ... AS IDENTITY with the options of a sequence; other generated columns as sqlglot reads them."""
        index = self._index
        default = bool(self._match_text_seq("BY", "DEFAULT"))
        if (default or self._match_text_seq("ALWAYS")) and self._match_text_seq("AS", "IDENTITY"):
            made = self.expression(exp.GeneratedAsIdentityColumnConstraint(this=not default))
            if self._match(TokenType.L_PAREN):
                if self._match_text_seq("SEQUENCE", "NAME"):
                    made.meta["sequence"] = self._parse_table_parts()
                for word, value in self._sequence_options(typed=True).items():
                    made.set(word, value)
                self._match_r_paren()
            return made
        self._retreat(index)
        return super()._parse_generated_as_identity()

    def _parse_alter_domain(self) -> exp.Expr:
        name = self._parse_table_parts()

        def made(action: str, **more: Any) -> exp.Expr:
            return self.expression(AlterDomain(this=name, action=action, **more))

        if self._match_text_seq("SET", "NOT", "NULL"):
            return made("set not null")
        if self._match_text_seq("DROP", "NOT", "NULL"):
            return made("drop not null")
        if self._match_text_seq("DROP", "DEFAULT"):
            return made("drop default")
        if self._match_text_seq("SET") and (constraint := self._parse_column_constraint()) is not None:
            return made("set default", constraint=constraint)
        if self._match_text_seq("ADD") and (constraint := self._parse_column_constraint()) is not None:
            if self._match_text_seq("NOT", "VALID"):
                raise self._refused("NOT VALID is not supported", "leave it out: the rows are checked")
            return made("add", constraint=constraint)
        if self._match_text_seq("DROP", "CONSTRAINT"):
            exists, found = bool(self._parse_exists()), self._parse_id_var()
            self._match_texts(("CASCADE", "RESTRICT"))
            return made("drop", name=found, exists=exists)
        if self._match_text_seq("VALIDATE", "CONSTRAINT"):
            return made("validate", name=self._parse_id_var())
        if self._match_text_seq("RENAME"):
            old = self._parse_id_var() if self._match_text_seq("CONSTRAINT") else None
            if self._match_text_seq("TO"):
                return made("rename constraint" if old else "rename", name=old, to=self._parse_id_var())
        raise self._refused("this ALTER DOMAIN is not supported", "SET or DROP DEFAULT or NOT NULL, ADD, DROP or "
                            "RENAME a CONSTRAINT, or RENAME TO")  # fmt: skip

    def _parse_alter_identity(self) -> exp.Expr | None:
        """ALTER COLUMN of an identity; None for another one."""
        index = self._index
        self._match(TokenType.COLUMN)
        column = self._parse_field(any_token=True)
        if self._match_text_seq("ADD", "GENERATED"):
            self._retreat(self._index - 1)
            return self.expression(AlterIdentity(this=column, action="add", constraint=self._parse_column_constraint()))
        if self._match_text_seq("DROP", "IDENTITY"):
            return self.expression(AlterIdentity(this=column, action="drop", exists=bool(self._parse_exists())))
        if given := self._identity_changes():
            return self.expression(AlterIdentity(this=column, action="change", **given))
        self._retreat(index)
        return None

    def _identity_changes(self) -> dict[str, Any]:
        """SET GENERATED ALWAYS | BY DEFAULT, SET with an option of the sequence, RESTART: one or more of them."""
        given: dict[str, Any] = {}
        while True:
            index = self._index
            if self._match_text_seq("SET", "GENERATED"):
                always = bool(self._match_text_seq("ALWAYS"))
                made = {"always": always} if always or self._match_text_seq("BY", "DEFAULT") else {}
            elif self._match_text_seq("SET"):
                made = self._sequence_options() if self._at_sequence_option() else {}
            else:
                made = self._sequence_options() if self._curr and self._curr.text.upper() == "RESTART" else {}
            if not made:
                self._retreat(index)
                return given
            if not given.keys().isdisjoint(made):
                raise self._refused("conflicting or redundant options").with_(code="42601")
            given |= made

    def _at_sequence_option(self) -> bool:
        words = [one.text.upper() if one else "" for one in (self._curr, self._next)]
        return words[0] in ("MINVALUE", "MAXVALUE", "CYCLE", "RESTART", "START", "INCREMENT", "CACHE") or (
            words[0] == "NO" and words[1] in ("MINVALUE", "MAXVALUE", "CYCLE"))  # fmt: skip

    def _parse_comment_on(self) -> exp.Expr:
        kind = next((words for words in COMMENTED if self._match_text_seq(*words.split())), None)
        if kind is None:
            raise self._refused(f"COMMENT ON {self._curr.text if self._curr else ''} is not supported",
                                f"comment on a {', '.join(COMMENTED)}")  # fmt: skip
        constraint = self._parse_id_var() if kind == "CONSTRAINT" else None
        if constraint is not None and not self._match(TokenType.ON):
            raise self._refused("COMMENT ON CONSTRAINT needs a table", "write COMMENT ON CONSTRAINT c ON t IS 'text'")
        name = self._parse_table_parts(is_db_reference=kind == "SCHEMA")
        if not self._match(TokenType.IS):
            raise self._refused("COMMENT ON needs IS and a text", "write COMMENT ON TABLE t IS 'text'")
        text = None if self._match(TokenType.NULL) else self._parse_string()
        return self.expression(Comment(this=name, kind=kind.lower(), text=text, constraint=constraint))

    def _parse_overriding(self) -> exp.Expr | None:
        """The rows of INSERT after OVERRIDING SYSTEM | USER VALUE."""
        word = self._match_overridden()
        if word is None:
            raise self._refused("OVERRIDING needs SYSTEM VALUE or USER VALUE")
        query = self._parse_derived_table_values() or self._parse_ddl_select()
        if query is not None:
            query.meta["overriding"] = word
        return query

    def _match_overridden(self, *before: str) -> str | None:
        """Match SYSTEM | USER VALUE after the words `before`: `system` or `user`; None if that is not there."""
        return next((word for word in ("system", "user") if self._match_text_seq(*before, word.upper(), "VALUE")), None)

    def _parse_value(self, values: bool = True) -> exp.Tuple | None:
        """A row of VALUES. If not `values`: the columns of an INSERT of MERGE, if it names any, with its OVERRIDING; or
        its DEFAULT VALUES."""
        if values:
            return super()._parse_value()
        if self._match_text_seq("DEFAULT", "VALUES"):
            default = exp.Tuple()
            default.meta["default"] = True
            return default
        word = self._match_overridden("OVERRIDING")
        made: exp.Tuple | None = super()._parse_value(values=False) if word is None else exp.Tuple()
        word = word or self._match_overridden("OVERRIDING")
        if made is not None and word is not None:
            made.meta["overriding"] = word
        return made

    def _parse_create_domain(self) -> exp.Expr:
        name = self._parse_table_parts()
        self._match(TokenType.ALIAS)
        column = self._parse_column_def(exp.to_identifier("value"))
        return self.expression(exp.Create(this=name, kind="DOMAIN", expression=column))

    def _parse_drop_named(self) -> exp.Expr | None:
        """DROP of several types, domains, schemas, sequences or indexes; None for another DROP."""
        kind = next((word for word in DROPPED if self._match_text_seq(word)), None)
        if kind is None:
            return None
        if kind == "INDEX":
            self._match_text_seq("CONCURRENTLY")
        exists = self._parse_exists()
        names = self._parse_csv(lambda: self._parse_table_parts(is_db_reference=kind == "SCHEMA"))
        cascade = self._match_text_seq("CASCADE")
        made = exp.Drop(kind=kind, exists=exists, tables=names, cascade=cascade)
        if not cascade:
            self._match_text_seq("RESTRICT")
        return self.expression(made)

    def _parse_user_defined_type(self, identifier: exp.Identifier) -> Any:
        """The name of a type, with its schema."""
        parts: list[exp.Expr] = [identifier]
        while self._match(TokenType.DOT):
            part = self._parse_id_var(any_token=True)
            if part is not None:
                parts.append(part)
        return exp.DataType(this=exp.DType.USERDEFINED, kind=exp.Dot.build(parts) if len(parts) > 1 else identifier)
