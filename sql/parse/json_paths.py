"""Named arguments of the functions of SQL/JSON paths: `silent => true` is the fourth argument."""

from __future__ import annotations

from sqlglot import exp

from halfjoin.sql.parse.locate import name_of

CALLED = "jsonb_path_"  # begins the names of the functions
_NAMES = ("target", "path", "vars", "silent")


def positional(tree: exp.Expr) -> exp.Expr:
    """The statement with arguments by position in calls of `jsonb_path_...`. A call with other names stays as it is."""
    for call in tree.find_all(exp.Anonymous):
        given = call.expressions
        named = {name_of(one.this): one.expression for one in given if isinstance(one, exp.Kwarg)}
        plain = [one for one in given if not isinstance(one, exp.Kwarg)]
        fits = len(plain) + len(named) == len(given) and set(named) <= set(_NAMES[len(plain) :])
        if named and fits and call.name.lower().startswith(CALLED) and len(plain) >= 2:
            variables = named.get("vars", exp.Literal.string("{}"))
            more = [variables] if len(plain) < 3 else []
            call.set("expressions", [*plain, *more, *([named["silent"]] if "silent" in named else [])])
    return tree
