"""Random calls of aggregates."""

from __future__ import annotations

from typing import Any

import numpy as np

import halfjoin as hj
from tests.oracle.values import WHOLE, Columns, Values


def register(engine: hj.Engine) -> None:
    """Register the aggregates that queries call: one adds up, one is a function of its group."""

    def least(rows: Any, counts: Any) -> int:
        return min(rows.column(0).to_pylist()) * 10 + int(counts.sum())

    engine.register_aggregate(
        "twice", takes=["bigint"], returns="bigint",
        lift=lambda x: {"s": x, "n": np.ones(len(x), np.int64)}, result=lambda s, n: s * 2 + n)  # fmt: skip
    engine.register_aggregate("least_and_count", takes=["bigint"], returns="bigint", function=least)


# What the aggregates are in an oracle: of an argument, and what follows each call.
REGISTERED = {"twice": "(sum({0}){1} * 2 + count({0}){1})", "least_and_count": "(min({0}){1} * 10 + count({0}){1})"}


class Calls(Values):
    """Makes calls."""

    def registered(self, argument: str, after: str) -> str:
        """A call of an aggregate of the user's. `after`: FILTER or OVER."""
        name = self.rng.choice(tuple(REGISTERED))
        return f"{name}({argument}){after}" if self.ours else REGISTERED[name].format(argument, after)

    def call(self, scope: Columns, *, plain: bool = False) -> tuple[str, str]:
        """An aggregate. `plain`: its value is exact and compares."""
        text, kind = self.number(scope)
        value, own = self.value(scope)
        wider = {"int": "big"}.get(kind, "num")
        least, its = (text, kind) if own == "bool" else (value, own)
        calls = [("count(*)", "big"), (f"count({value})", "big"), (f"count(DISTINCT {value})", "big"),
                 (f"sum({text})", wider), (f"sum({text})", wider), (f"sum(DISTINCT {text})", wider),
                 (f"max({least})", its), (f"min({least})", its),
                 *((f"{name}({self.predicate(scope)})", "bool") for name in ("bool_and", "bool_or"))]  # fmt: skip
        if kind != "num":
            calls += [(f"bit_or({text})", kind), (f"bit_and({text})", kind), (f"bit_xor({text})", kind)]
        texts = [name for name, _ in self.of_kinds(scope, ("text",))]
        floats = [name for name, _ in self.of_kinds(scope, ("float",))]
        if not plain:
            other, _ = self.number(scope)
            calls += [(f"avg({text})", "real"), (f"stddev({text})", "real"), (f"var_pop({text})", "real"),
                      (f"covar_pop({text}, {other})", "real"), (f"regr_count({text}, {other})", "big"),
                      (f"array_agg({text} ORDER BY {text} {self.direction()})", "list")]  # fmt: skip
            calls += [(f"sum({name})", "real") for name in floats] + [(f"avg({name})", "real") for name in floats]
        if texts:
            name = self.rng.choice(texts)
            calls += [(f"string_agg({name}, ',' ORDER BY {name})", "text")] * 2
        if self.rare:
            whole = self.whole(scope)
            calls += [(f"count({whole})", "big"), (f"count(DISTINCT {whole})", "big")]
        found, made = self.rng.choice(calls)
        filtered = f" FILTER (WHERE {self.predicate(scope)})" if self.chance(15) else ""
        if kind != "num" and self.chance(8):
            return self.registered(text, filtered), "big"
        if self.rare and not plain and self.chance(8):
            call, made = self.within(scope)
            return call + filtered, made
        if not filtered and not plain and self.chance(6):
            fraction = self.rng.choice(("0.5", "0.25", "1"))
            return f"percentile_disc({fraction}) WITHIN GROUP (ORDER BY {text})", kind
        if not filtered and not plain and self.chance(6):
            return f"percentile_cont(0.5) WITHIN GROUP (ORDER BY {text})", "real"
        return found + filtered, made

    def within(self, scope: Columns, keys: Columns = ()) -> tuple[str, str]:
        """A call with WITHIN GROUP. `keys`: of the groups, on which fractions and hypothetical rows may depend."""
        (value, kind), (number, own) = self.value(scope), self.number(scope)
        wholes = [name for name, _ in self.of_kinds(keys, WHOLE)]
        key = self.rng.choice(wholes) if wholes and self.chance(70) else "1"
        order = f"WITHIN GROUP (ORDER BY {number} {self.rng.choice(('', 'DESC'))})"
        fraction = f"least(greatest({key}, 0), 1)" if wholes else "0.25"
        if kind == "span":
            value, kind = number, own  # equal ones may look different
        match self.rng.choice(("mode", "fraction", "fractions", "rank", "rank")):
            case "mode":
                return f"mode() WITHIN GROUP (ORDER BY {value} {self.rng.choice(('', 'DESC'))})", kind
            case "fraction":
                name = self.rng.choice(("percentile_cont", "percentile_disc"))
                fraction = self.rng.choice((fraction, f"1 - {fraction}", f"coalesce({fraction}, 0.3)"))
                return f"{name}({fraction}) {order}", "real" if name == "percentile_cont" else own
            case "fractions":
                return f"percentile_cont(ARRAY[{fraction}, 0.5, NULL]) {order}", "reals"
            case _:
                name = self.rng.choice(("rank", "dense_rank", "percent_rank", "cume_dist"))
                made = "big" if name in ("rank", "dense_rank") else "real"
                first = self.rng.choice((key, f"{key} + 0", "NULL", "2 - 1"))
                if self.chance(50):
                    return f"{name}({first}) WITHIN GROUP (ORDER BY {number} {self.direction()})", made
                second = self.of_kind((), kind) if kind not in WHOLE else "2"
                listed = f"{number} {self.direction()}, {value} {self.direction()}"
                return f"{name}({first}, {second}) WITHIN GROUP (ORDER BY {listed})", made
