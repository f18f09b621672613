"""Parses what keys and indexes say of NULLs."""

from __future__ import annotations

from sqlglot import exp

from halfjoin.sql.parse.schemas import SchemaParser


class KeyParser(SchemaParser):
    """The part of the parser for UNIQUE and for indexes."""

    def _parse_nulls_distinct(self) -> None:
        """NULLS DISTINCT, which is what a key does by itself."""
        if self._match_text_seq("NULLS", "NOT", "DISTINCT"):
            raise self._refused("UNIQUE NULLS NOT DISTINCT is not supported: a key here may have NULL any number of "
                                "times", "make it UNIQUE over GENERATED ALWAYS AS (coalesce(a, '')) STORED")
        self._match_text_seq("NULLS", "DISTINCT")

    def _parse_index_params(self) -> exp.IndexParameters:
        """The columns and options of an index. WHERE may come after NULLS DISTINCT."""
        made: exp.IndexParameters = super()._parse_index_params()
        self._parse_nulls_distinct()
        if made.args.get("where") is None and (where := self._parse_where()) is not None:
            made.set("where", where)
        return made
