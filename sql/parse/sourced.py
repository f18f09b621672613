"""CREATE SOURCE and ALTER SOURCE: their syntax, and from syntax trees to statements."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from halfjoin.sql.definitions import AlterSource as Altered
from halfjoin.sql.definitions import CreateSource as Created
from halfjoin.sql.definitions import OptionValue
from halfjoin.sql.parse.locate import catalog_name, refuse
from halfjoin.sql.parse.syntax import AlterSource, CreateSource
from halfjoin.sql.parse.transactions import TransactionParser

SYNTAXES = {
    "FILES": "write CREATE SOURCE s FROM FILES (path 'folder', format 'csv') INTO t [WITH (errors = 'table')]",
    "KAFKA": "write CREATE SOURCE s FROM KAFKA (brokers 'host:9092', topic 't') INTO t [WITH (errors = 'table')]",
    "POSTGRES": "write CREATE SOURCE s FROM POSTGRES (dsn 'host=h dbname=d', tables 'public.t', publication 'p', "
                "slot 's') INTO TABLES, or INTO t",
}
SYNTAX = SYNTAXES["FILES"]
ERRORS = ("stop", "table")


class SourceParser(TransactionParser):
    """The part of the parser that reads statements about sources."""

    def _parse_alter_source(self) -> exp.Expr:
        exists, name = bool(self._parse_exists()), self._parse_table_parts()
        if not self._match_texts(("PAUSE", "RESUME")):
            raise self._refused("ALTER SOURCE needs PAUSE or RESUME", "write ALTER SOURCE s PAUSE")
        return self.expression(AlterSource(this=name, action=self._prev.text.lower(), exists=exists))

    def _parse_create_source(self) -> exp.Expr:
        exists = bool(self._match_text_seq("IF", "NOT", "EXISTS"))
        name = self._parse_table_parts()
        if not self._match_text_seq("FROM"):
            raise self._refused("a source needs FROM and a kind, such as FILES", SYNTAX)
        kind = self._parse_id_var(any_token=True)
        if kind is None:
            raise self._refused("a source needs a kind after FROM, such as FILES", SYNTAX)
        syntax = SYNTAXES.get(kind.name.upper(), SYNTAX)
        options = self._parse_source_options()
        if not self._match_text_seq("INTO"):
            raise self._refused("a source needs INTO and a table", syntax)
        into = [] if self._match_text_seq("TABLES") else self._parse_csv(self._parse_table_parts)
        made = CreateSource(this=name, kind=kind, options=options, into=into, exists=exists)
        if self._match_text_seq("WITH"):
            made.set("settings", self._parse_source_options())
            if not made.args["settings"]:
                raise self._refused("WITH needs settings in parentheses", syntax)
        if self._curr and self._curr.token_type is not TokenType.SEMICOLON:
            raise self._refused(f"a source does not take {self._curr.text!r}", syntax)
        return self.expression(made)

    def _parse_source_options(self) -> list[exp.Expr]:
        """`(name value, name = value, ...)`, as pairs."""
        if not self._match(TokenType.L_PAREN):
            return []
        found: list[exp.Expr] = []
        if not self._match(TokenType.R_PAREN):
            found = self._parse_csv(self._parse_source_option)
            if not self._match(TokenType.R_PAREN):
                raise self._refused("options are names and values in parentheses, with commas between", SYNTAX)
        return found

    def _parse_source_option(self) -> exp.Expr:
        parts = [self._parse_id_var(any_token=True)]
        while self._match(TokenType.DOT):
            parts.append(self._parse_id_var(any_token=True))
        names = [part.name if part.args.get("quoted") else part.name.lower() for part in parts if part is not None]
        self._match(TokenType.EQ)
        if self._match(TokenType.L_PAREN):
            values = self._parse_csv(self._parse_source_value)
            self._match_r_paren()
            value: exp.Expr = exp.Tuple(expressions=values)
        else:
            value = self._parse_source_value()
        return exp.Tuple(expressions=[exp.Literal.string(".".join(names)), value])

    def _parse_source_value(self) -> exp.Expr:
        """A text, a number, true or false, or a word."""
        value = self._parse_unary()
        if isinstance(value, exp.Column) and not value.table:
            value = exp.Literal.string(value.name)
        if not isinstance(value, exp.Literal | exp.Boolean | exp.Neg):
            raise self._refused("an option's value is a text, a number, true or false", SYNTAX)
        return value


def create_source(node: CreateSource, text: str) -> Created:
    """A CREATE SOURCE statement."""
    settings = options_of(node.args.get("settings") or (), node, text)
    errors = settings.pop("errors", "stop")
    if errors not in ERRORS:
        raise refuse(node, text, f"errors = {errors!r} is not supported", "errors = 'table' or errors = 'stop'")
    if settings:
        raise refuse(node, text, f"a source WITH {next(iter(settings))} is not supported",
                     "errors = 'table' or errors = 'stop'")  # fmt: skip
    return Created(
        catalog_name(node.this, text), node.args["kind"].name.upper(), options_of(node.args["options"], node, text),
        tuple(catalog_name(table, text) for table in node.args["into"]), str(errors), bool(node.args.get("exists")),
    )  # fmt: skip


def alter_source(node: AlterSource, text: str) -> Altered:
    """An ALTER SOURCE statement."""
    return Altered(catalog_name(node.this, text), node.args["action"] == "pause", bool(node.args.get("exists")))


def options_of(pairs: list[exp.Expr] | tuple[()], node: exp.Expr, text: str) -> dict[str, OptionValue]:
    """Options in parentheses, by their names."""
    found: dict[str, OptionValue] = {}
    for pair in pairs:
        name, value = pair.expressions
        if name.name in found:
            raise refuse(node, text, f"the option {name.name} is given twice")
        if isinstance(value, exp.Tuple):
            found[name.name] = tuple(str(_value(one)) for one in value.expressions)
        else:
            found[name.name] = _value(value)
    return found


def _value(node: exp.Expr) -> str | int | float | bool:
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Neg):
        inner = _value(node.this)
        return -inner if isinstance(inner, int | float) else inner
    if node.is_string:
        return str(node.name)
    return int(node.name) if node.name.isdigit() else float(node.name)
