"""REFRESH, SHOW and CREATE SINK: their syntax."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from halfjoin.sql.parse.explained import ExplainParser
from halfjoin.sql.parse.syntax import CreateSink, Refresh, RefreshPlan, ShowObjects

FORCED = ("FORCE_QUOTE", "FORCE_NULL", "FORCE_NOT_NULL")  # options of COPY with columns
SHOWN = ("tables", "views", "materialized views", "indexes", "sinks", "sources", "comments", "columns")
SINK_SYNTAX = "write CREATE SINK s FROM v INTO DELTA 'folder', or INTO KAFKA (brokers 'host:9092', topic 't', key 'k')"


class CommandParser(ExplainParser):
    """The part of the parser that reads these statements."""

    def _parse_refresh_plan(self) -> exp.Expr:
        if self._match_text_seq("MATERIALIZED", "VIEW"):
            self._match_text_seq("CONCURRENTLY")
            refreshed = self.expression(Refresh(this=self._parse_table_parts()))
            if self._match_text_seq("WITH", "NO", "DATA"):
                raise self._refused("REFRESH ... WITH NO DATA is not supported", "a view always has its rows")
            self._match_text_seq("WITH", "DATA")
            return refreshed
        if not self._match_text_seq("PLAN"):
            raise self._refused("REFRESH takes MATERIALIZED VIEW or PLAN, and a name",
                                "views are up to date without it; write REFRESH PLAN v to plan a view anew")
        return self.expression(RefreshPlan(this=self._parse_table_parts()))

    def _parse_show_objects(self) -> exp.Expr:
        if self._match_text_seq("CREATE"):
            self._match_text_seq("MATERIALIZED")
            self._match_texts(("TABLE", "VIEW"))
            return self.expression(ShowObjects(this="create", source=self._parse_table_parts()))
        for what in SHOWN:
            if self._match_text_seq(*what.upper().split()):
                source = self._parse_table_parts() if self._match_texts(("FROM", "ON", "IN")) else None
                return self.expression(ShowObjects(this=what, source=source))
        if self._match_texts(("SETTINGS", "ALL")):
            return self.expression(ShowObjects(this="settings"))
        if self._match_text_seq("TIME", "ZONE"):
            return self.expression(ShowObjects(this="setting", source=exp.to_table("timezone")))
        if self._curr and self._curr.token_type in (TokenType.VAR, TokenType.TIME):
            return self.expression(ShowObjects(this="setting", source=self._parse_table_parts()))
        raise self._refused("SHOW needs a kind of object", "write SHOW " + " | ".join(SHOWN).upper() + " FROM name")

    def _parse_copy_parameters(self) -> list[exp.CopyParameter]:
        """The options of COPY, in parentheses or as PostgreSQL had them before: CSV DELIMITER ';' FORCE QUOTE a, b."""
        options, old = [], self._prev is None or self._prev.token_type is not TokenType.L_PAREN
        while self._curr and not self._match(TokenType.R_PAREN, advance=False):
            name = self._curr.text.upper()
            option = self.expression(exp.CopyParameter(this=self._parse_var(any_token=True)))
            if old and name == "FORCE":
                words = next((words for words in (("NOT", "NULL"), ("NULL",), ("QUOTE",))
                              if self._match_text_seq(*words)), ())  # fmt: skip
                option.set("this", exp.var("_".join((name, *words))))
            if option.name.upper() in FORCED:
                listed = self._parse_id_vars() if old else self._parse_wrapped(self._parse_id_vars, optional=True)
                option.set("expressions", [exp.Star()] if self._match(TokenType.STAR) else listed)
            elif not (old and name in ("BINARY", "CSV", "HEADER")):
                self._match(TokenType.ALIAS)
                on = exp.Boolean(this=True) if self._match(TokenType.ON) else None  # a key word elsewhere
                option.set("expression", on or self._parse_unquoted_field() or self._parse_bracket())
            options.append(option)
            self._match(TokenType.COMMA)
        return options

    def _parse_id_vars(self) -> list[exp.Expr]:
        return [] if self._match(TokenType.STAR, advance=False) else self._parse_csv(self._parse_id_var)

    def _parse_create_sink(self, *, replace: bool) -> exp.Expr:
        exists = not replace and self._match_text_seq("IF", "NOT", "EXISTS")
        name = self._parse_table_parts()
        if not self._match_text_seq("FROM"):
            raise self._refused("a sink needs FROM and the name of a view or table", SINK_SYNTAX)
        source = self._parse_table_parts()
        if not self._match_text_seq("INTO"):
            raise self._refused("a sink needs INTO DELTA and a path or URL", SINK_SYNTAX)
        made = CreateSink(this=name, source=source, exists=exists, replace=replace)
        if self._match_text_seq("KAFKA"):
            made.set("options", self._parse_source_options())
            if not made.args["options"]:
                raise self._refused("a sink INTO KAFKA needs options", SINK_SYNTAX)
            return self.expression(made)
        if not self._match_text_seq("DELTA"):
            raise self._refused("a sink writes a Delta table or a topic of Kafka, nothing else", SINK_SYNTAX)
        target = self._parse_string()
        if target is None:
            raise self._refused("a sink needs a path or URL in quotes", SINK_SYNTAX)
        if self._curr and self._curr.token_type is not TokenType.SEMICOLON:
            raise self._refused("a sink has no options", SINK_SYNTAX)
        made.set("target", target)
        return self.expression(made)
