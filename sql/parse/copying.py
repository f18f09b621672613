"""COPY: from a syntax tree to a statement. Rows come from a stream, or go to one; no file is named in SQL."""

from __future__ import annotations

from sqlglot import exp

from halfjoin.sql.parse.commands import FORCED
from halfjoin.sql.parse.create import table_name
from halfjoin.sql.parse.locate import as_query, name_of, refuse
from halfjoin.sql.statements import Copy

STREAM = "write COPY t FROM STDIN, and hand the rows over: engine.copy_from(sql, stream); or COPY t TO STDOUT"
OPTIONS = ("options: FORMAT csv | text | binary, HEADER [MATCH], DELIMITER, NULL, QUOTE, ESCAPE, "
           "FORCE_QUOTE, FORCE_NULL, FORCE_NOT_NULL, ENCODING 'UTF8'")


def copy(node: exp.Copy, text: str) -> Copy:
    """A COPY statement."""
    incoming, source = bool(node.args["kind"]), node.this
    (stream,) = node.args.get("files") or (None,)
    word = stream.name.upper() if isinstance(stream, exp.Identifier | exp.Column | exp.Table | exp.Var) else ""
    if word not in ("STDIN", "STDOUT"):  # PostgreSQL takes either in both directions; PHP writes COPY t TO STDIN
        raise refuse(node, text, "COPY from or to a file is not supported", STREAM)
    columns: tuple[str, ...] = ()
    table, query = "", None
    if isinstance(source, exp.Subquery):
        query = as_query(source.this)
        if incoming or not isinstance(query, exp.Query):
            raise refuse(source, text, "COPY FROM takes a table, COPY TO a table or a query")
    else:
        if isinstance(source, exp.Schema):
            source, columns = source.this, tuple(map(name_of, source.expressions))
        table = table_name(source, text)
    given = node.args.get("params") or ()
    if incoming:  # FREEZE is about PostgreSQL's storage: the rows are the same with it
        given = [one for one in given if one.name.upper() != "FREEZE"]
    forced = dict(_forced(one, text) for one in given if one.name.upper() in FORCED)
    options = dict(_option(one, text) for one in given if one.name.upper() not in FORCED)
    format = options.get("format", "text").lower()
    if format not in ("csv", "text", "binary"):
        raise refuse(node, text, f'COPY format "{format}" not recognized', "write FORMAT csv, text or binary")
    if format == "binary" and (unfit := [name for name in (*options, *forced) if name != "format"]):
        raise refuse(node, text, f"cannot specify {unfit[0].upper()} in BINARY mode").with_(code="42601")
    csv = format == "csv"
    if options.get("encoding", "utf8").lower().replace("-", "") != "utf8":
        raise refuse(node, text, "COPY reads and writes UTF-8", "write ENCODING 'UTF8', or nothing")
    for name in ("quote", "escape", *map(str.lower, FORCED)):
        if not csv and name in {*options, *forced}:
            raise refuse(node, text, f"COPY {name} available only in CSV mode", "write FORMAT csv")
    for name in forced:
        if incoming is (name == "force_quote"):
            raise refuse(node, text, f"COPY {name} only available using COPY {'TO' if incoming else 'FROM'}")
    delimiter, quote = options.get("delimiter", "," if csv else "\t"), options.get("quote", '"')
    null = options.get("null", "" if csv else "\\N")
    for name, char in (("delimiter", delimiter), ("quote", quote)):
        if len(char) != 1 or not char.isascii() or char in "\r\n" or (not csv and char.isalnum()) or char == "\\":
            raise refuse(node, text, f"COPY {name} must be a single one-byte character")
    if "\n" in null or "\r" in null or delimiter in null or delimiter == quote or (csv and quote in null):
        raise refuse(node, text, "COPY's NULL, DELIMITER and QUOTE cannot contain each other or a new line")
    escape = options.get("escape", quote)
    if incoming and escape != quote:
        raise refuse(node, text, "COPY FROM with another ESCAPE than QUOTE is not supported",
                     "double a quote inside quotes")  # fmt: skip
    if len(escape) != 1 or not escape.isascii():
        raise refuse(node, text, "COPY escape must be a single one-byte character")
    header = options.get("header", "false").lower()
    if header == "match" and not incoming:
        raise refuse(node, text, 'cannot use "match" with HEADER in COPY TO', "write HEADER")
    return Copy(incoming, table, columns, query, csv, header not in ("false", "off", "0"), delimiter, null, quote,
                binary=format == "binary", match=header == "match", escape=escape, **forced)


def _forced(node: exp.CopyParameter, text: str) -> tuple[str, tuple[str, ...]]:
    """The name and the columns of FORCE_QUOTE and its kin; no columns are all."""
    name, columns = node.name.lower(), node.expressions
    every = any(isinstance(one, exp.Star) for one in columns)
    if not columns or (every and name != "force_quote"):
        raise refuse(node, text, f"COPY option {name.upper()} needs columns",
                     f"write {name.upper()} (a, b)").with_(code="22023")  # fmt: skip
    return name, () if every else tuple(map(name_of, columns))


def _option(node: exp.CopyParameter, text: str) -> tuple[str, str]:
    """The name and the value of an option. CSV and BINARY alone are formats, as before PostgreSQL 9.0."""
    name = node.name.lower()
    if name in ("csv", "binary") and node.args.get("expression") is None:
        return "format", name
    if name not in ("format", "header", "delimiter", "null", "quote", "escape", "encoding"):
        raise refuse(node, text, f"COPY option {name.upper()} is not supported", OPTIONS)
    value = node.args.get("expression")
    if value is None and name != "header":
        raise refuse(node, text, f"COPY option {name.upper()} needs a value", OPTIONS)
    if isinstance(value, exp.Boolean):
        return name, "true" if value.this else "false"
    return name, "true" if value is None else value.name
