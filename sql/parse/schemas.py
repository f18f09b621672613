"""Parses CREATE SCHEMA with AUTHORIZATION, as pgAdmin and pg_dump write it."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from halfjoin.sql.parse.alterations import AlterParser

_LONGEST = 6  # tokens from SCHEMA to AUTHORIZATION: SCHEMA IF NOT EXISTS name AUTHORIZATION
_WHO_ASKS = ("CURRENT_USER", "CURRENT_ROLE", "SESSION_USER")


class SchemaParser(AlterParser):
    """Parses CREATE SCHEMA, where sqlglot does not."""

    def _parse_create(self) -> Any:
        ahead = [token.text.upper() for token in self._tokens[self._index : self._index + _LONGEST]]
        if ahead[:1] == ["SCHEMA"] and "AUTHORIZATION" in ahead:
            return self._parse_schema_of_role()
        return super()._parse_create()

    def _parse_schema_of_role(self) -> exp.Create:
        """The role says nothing, as each user may do everything; but it gives its name to a schema without one."""
        self._match(TokenType.SCHEMA)
        exists = self._parse_exists(not_=True)
        alone = self._match_text_seq("AUTHORIZATION")
        named = self._parse_table_parts(is_db_reference=True)
        if alone and named is not None and named.text("db").upper() in _WHO_ASKS:
            raise self._refused("this schema has no name", "write CREATE SCHEMA name")
        if not alone and self._match_text_seq("AUTHORIZATION"):
            self._advance()
        return self.expression(exp.Create(this=named, kind="SCHEMA", exists=exists))
