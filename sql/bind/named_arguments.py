"""Calls with arguments by name: `make_interval(days => 10)` becomes a call with arguments by position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from halfjoin.sql.bind.context import Context

_REQUIRED = ""
_PATH = {"target": _REQUIRED, "path": _REQUIRED, "vars": "'{}'", "silent": "false"}
_DAY = {"year": _REQUIRED, "month": _REQUIRED, "mday": _REQUIRED}
_CLOCK = {"hour": _REQUIRED, "min": _REQUIRED, "sec": _REQUIRED}
# The parameters that PostgreSQL names, with what one that is left out is.
_PARAMETERS: Mapping[str, Mapping[str, str]] = {
    "make_interval": dict.fromkeys(("years", "months", "weeks", "days", "hours", "mins", "secs"), "0"),
    "make_date": dict.fromkeys(("year", "month", "day"), _REQUIRED),
    "make_time": _CLOCK,
    "make_timestamp": {**_DAY, **_CLOCK},
    "make_timestamptz": {**_DAY, **_CLOCK, "timezone": _REQUIRED},
    "jsonb_set": {"jsonb_in": _REQUIRED, "path": _REQUIRED, "replacement": _REQUIRED, "create_if_missing": "true"},
    "jsonb_set_lax": {"jsonb_in": _REQUIRED, "path": _REQUIRED, "replacement": _REQUIRED, "create_if_missing": "true",
                      "null_value_treatment": "'use_json_null'"},
    "jsonb_insert": {"jsonb_in": _REQUIRED, "path": _REQUIRED, "replacement": _REQUIRED, "insert_after": "false"},
    **dict.fromkeys(("jsonb_path_query", "jsonb_path_exists", "jsonb_path_match", "jsonb_path_query_array",
                     "jsonb_path_query_first"), _PATH),
    "parse_ident": {"str": _REQUIRED, "strict": "true"},
}  # fmt: skip


def positional(name: str, call: exp.Anonymous, context: Context) -> Sequence[exp.Expr]:
    """The arguments of a call in the order of the function's parameters, up to the last one that the call gives; all
    of make_interval's, since its parameters all have defaults.

    Raises:
        UnsupportedSQL: a name is none of the function's, is given twice, or comes before an argument without a name.
    """
    nodes = list(call.expressions)
    named = [node for node in nodes if isinstance(node, exp.Kwarg)]
    if not named and name != "make_interval":
        return nodes
    parameters = _PARAMETERS.get(name)
    if parameters is None:
        raise context.wrong(call, f"{name} takes plain arguments only")
    plain = nodes[: len(nodes) - len(named)]
    if any(isinstance(node, exp.Kwarg) for node in plain):
        raise context.wrong(call, "positional argument cannot follow named argument")
    given = [*zip(parameters, plain, strict=False), *((node.this.name.lower(), node.expression) for node in named)]
    found = dict(given)
    if len(found) < len(nodes) or not found.keys() <= parameters.keys():
        raise context.wrong(call, f"{name} takes {', '.join(parameters)}")
    names = list(parameters)
    if name != "make_interval":
        names = names[: 1 + max(map(names.index, found))]
    missing = [one for one in names if one not in found and parameters[one] == _REQUIRED]
    if missing:
        raise context.wrong(call, f"{name} needs {', '.join(missing)}")
    return [found.get(one) or _constant(parameters[one], call) for one in names]


def _constant(text: str, call: exp.Anonymous) -> exp.Expr:
    made: exp.Expr
    if text in ("true", "false"):
        made = exp.Boolean(this=text == "true")
    else:
        made = exp.Literal(this=text.strip("'"), is_string=text.startswith("'"))
    made.parent = call  # for its place in the text
    return made
