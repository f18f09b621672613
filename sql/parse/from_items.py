"""Parses the items of FROM: tables in parentheses, VALUES, functions, and what joins them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from halfjoin.sql.parse.as_of import AsOfParser
from halfjoin.sql.parse.catalog_rows import of_catalog


class ItemParser(AsOfParser):
    """Adds forms of items that sqlglot's parser lacks, or reads in another way."""

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

    def _parse_table_parts(self, *given: Any, **more: Any) -> Any:
        """Parse a table's name, which may be in parentheses after ONLY."""
        if self._prev and self._prev.token_type is TokenType.ON:  # CREATE INDEX ON ONLY t
            self._match(TokenType.ONLY)
        if self._prev and self._prev.token_type is TokenType.ONLY and self._match(TokenType.L_PAREN):
            table = super()._parse_table_parts(*given, **more)
            self._match_r_paren()
            return table
        return super()._parse_table_parts(*given, **more)

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

    def _at(self, token: TokenType) -> bool:
        return self._curr is not None and self._curr.token_type is token

    def _matches_after(self, *words: str) -> bool:
        """Whether these words follow the next token."""
        after = self._tokens[self._index + 1 : self._index + 1 + len(words)]
        return tuple(token.text.upper() for token in after) == words
