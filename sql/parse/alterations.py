"""Parses what ALTER changes: names of views and constraints, columns and their defaults, constraints to come."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from halfjoin.sql.parse.commands import CommandParser
from halfjoin.sql.parse.syntax import AlterConstraint, AlterRetention, AlterSchema


class AlterParser(CommandParser):
    """Adds actions of ALTER that sqlglot's parser lacks, or of which it keeps too little."""

    def _parse_alter_view(self) -> exp.Expr:
        exists, name = self._parse_exists(), self._parse_table_parts()
        action: exp.Expr | None = None
        if self._match_text_seq("RENAME", "TO"):
            action = exp.AlterRename(this=self._parse_table_parts())
        elif self._match_text_seq("RENAME"):
            self._match_text_seq("COLUMN")
            old = self._parse_id_var()
            new = self._parse_id_var() if self._match_text_seq("TO") else None
            if old is None or new is None:
                raise self._refused("expected RENAME COLUMN a TO b").with_(code="42601")
            action = exp.RenameColumn(this=exp.column(old), to=exp.column(new))
        elif self._match_texts(("SET", "RESET")):
            sets = self._prev is not None and self._prev.text.upper() == "SET"
            action = (self._parse_alter_schema() if sets else None) or self._parse_retention()
        if action is None:
            raise self._refused("ALTER MATERIALIZED VIEW needs RENAME TO or SET SCHEMA and a name, or SET "
                                "(RETAIN HISTORY FOR ...)")
        made = exp.Alter(this=name, kind="MATERIALIZED VIEW", exists=exists, actions=[action])
        return self.expression(made)

    def _parse_alter_table_alter(self) -> exp.Expr | None:
        """Parse ALTER COLUMN; a DEFAULT and USING keep their texts."""
        start = self._index
        if (identity := self._parse_alter_identity()) is not None:
            return identity
        made = super()._parse_alter_table_alter()
        if made is not None and (made.args.get("default") or made.args.get("using")):
            word = "DEFAULT" if made.args.get("default") else "USING"
            words = [token.text.upper() if token.token_type is not TokenType.IDENTIFIER else ""
                     for token in self._tokens[start : self._index]]  # fmt: skip
            first = start + words.index(word) + 1
            made.meta["text"] = self._find_sql(self._tokens[first], self._prev)
        return made

    def _parse_retention(self) -> exp.Expr | None:
        """Parse what follows SET or RESET, if it is about the history to retain."""
        start, sets = self._index, self._prev is not None and self._prev.text.upper() == "SET"
        if not (self._match(TokenType.L_PAREN) and self._match_text_seq("RETAIN", "HISTORY")):
            self._retreat(start)
            return None
        if sets:
            self._match(TokenType.EQ)
            self._match_text_seq("FOR")
        length = self._parse_disjunction() if sets else None
        if (length is None) is sets or not self._match(TokenType.R_PAREN):
            expected = "SET (RETAIN HISTORY FOR '1 hour')" if sets else "RESET (RETAIN HISTORY)"
            raise self._refused(f"expected {expected}").with_(code="42601")
        return self.expression(AlterRetention(this=length))

    def _parse_alter_table_set(self) -> Any:
        return self._parse_alter_schema() or self._parse_retention() or super()._parse_alter_table_set()

    def _parse_alter_schema(self) -> exp.Expr | None:
        """Parse what follows SET, if it is about the schema."""
        if not self._match_text_seq("SCHEMA"):
            return None
        if (name := self._parse_id_var()) is None:
            raise self._refused("expected SET SCHEMA and a name").with_(code="42601")
        return self.expression(AlterSchema(this=name))

    def _parse_alter_table_rename(self) -> Any:
        return self._parse_alter_constraint() or super()._parse_alter_table_rename()

    def _parse_alter_constraint(self) -> exp.Expr | None:
        """Parse what follows RENAME or VALIDATE, if it is about a constraint."""
        renames = self._prev is not None and self._prev.text.upper() == "RENAME"
        if not self._match(TokenType.CONSTRAINT):
            return None
        name = self._parse_id_var()
        to = self._parse_id_var() if renames and self._match_text_seq("TO") else None
        if name is None or renames != (to is not None):
            expected = "RENAME CONSTRAINT a TO b" if renames else "VALIDATE CONSTRAINT a"
            raise self._refused(f"expected {expected}").with_(code="42601")
        return self.expression(AlterConstraint(this=name, to=to))

    def _parse_constraint(self) -> exp.Expr | None:
        """Parse a constraint of a table. NOT VALID: the rows that are there are not checked."""
        made = super()._parse_constraint()
        if made is not None and self._match_text_seq("NOT", "VALID"):
            made.meta["not_valid"] = True
        return made
