"""Gives columns and the table new names in the text of an expression or of an index. The rest of the text stays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from halfjoin.sql.parse.dialect import Halfjoin
from halfjoin.sql.parse.locate import name_of
from halfjoin.sql.parse.parse import parse_query

_BEFORE = "SELECT "


def renamed(text: str, names: Mapping[str, str], tables: Mapping[str, str]) -> str:
    """The expression over other names, which are given as SQL text.

    >>> renamed("t.k > 0 AND b <> 'k'", {"k": "j"}, {"t": "u"})
    "u.j > 0 AND b <> 'k'"
    """
    whole = _BEFORE + text
    return renamed_in(whole, [parse_query(whole)], names, tables)[len(_BEFORE) :]


def renamed_in(text: str, nodes: Iterable[exp.Expr], names: Mapping[str, str], tables: Mapping[str, str]) -> str:
    """The text with new names in these nodes of it."""
    found = [column for node in nodes for column in node.find_all(exp.Column)]
    places = [(column.this, names.get(name_of(column))) for column in found]
    places += [(column.args["table"], tables.get(name_of(column.args["table"])))
               for column in found if column.args.get("table")]  # fmt: skip
    at = {node.meta["start"]: (node.meta["end"] + 1, name) for node, name in places if name and "start" in node.meta}
    for start, (end, name) in sorted(at.items(), reverse=True):
        text = text[:start] + name + text[end:]
    return text


def without_names(text: str) -> tuple[str, str]:
    """What follows ON in the text of an index, and what follows the table's name and a method: the keys, and the rest.

    >>> without_names('CREATE INDEX "i on (" ON t USING btree (k)')
    ('t USING btree (k)', '(k)')
    """
    tokens = Halfjoin().tokenize(text)
    on, keys = (next(one for one in tokens if one.token_type is kind) for kind in (TokenType.ON, TokenType.L_PAREN))
    return text[on.end + 1 :].lstrip(), text[keys.start :]


def names_in(nodes: Iterable[exp.Expr]) -> set[str]:
    """The columns that expressions name."""
    return {name_of(column) for node in nodes for column in node.find_all(exp.Column)}
