"""Random calls of aggregates and window functions. Equal rows may be told apart by one call of a query only."""

from __future__ import annotations

from collections.abc import Sequence
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
        found, made = self.rng.choice(calls)
        filtered = f" FILTER (WHERE {self.predicate(scope)})" if self.chance(15) else ""
        if kind != "num" and self.chance(8):
            return self.registered(text, filtered), "big"
        if not filtered and not plain and self.chance(6):
            fraction = self.rng.choice(("0.5", "0.25", "1"))
            return f"percentile_disc({fraction}) WITHIN GROUP (ORDER BY {text})", kind
        if not filtered and not plain and self.chance(6):
            return f"percentile_cont(0.5) WITHIN GROUP (ORDER BY {text})", "real"
        return found + filtered, made

    def over(self, items: Sequence[tuple[str, str]], *, peers: bool) -> tuple[str, str]:
        """A call over a window. `peers`: equal rows have equal results; with two calls that tell them apart, any pairs
        are right."""
        whole = tuple(self.of_kinds(tuple(items), WHOLE))
        parted = f"PARTITION BY {self.rng.choice(items)[0]} " if self.chance(70) else ""
        by_all = f"ORDER BY {self.order(items)}"
        by_one = f"ORDER BY {self.rng.choice(items)[0]} {self.direction()}"
        value, kind = self.rng.choice(items)
        if self.chance(45):
            ranks = [("rank()", "big", by_one), ("dense_rank()", "big", by_one), ("percent_rank()", "real", by_one),
                     ("cume_dist()", "real", by_one)]  # fmt: skip
            skip = " IGNORE NULLS" if self.oracle == "duckdb" and self.chance(30) else ""  # PostgreSQL has none
            places = [("row_number()", "big", by_all), ("ntile(2)", "int", by_all),
                      (f"lag({value}{skip})", kind, by_all), (f"lead({value}, 2{skip})", kind, by_all)]  # fmt: skip
            call, made, order = self.rng.choice(ranks if peers else ranks + places)
            return f"{call} OVER ({parted}{order})", made
        if self.chance(30) and not peers:
            skip = " IGNORE NULLS" if self.oracle == "duckdb" and self.chance(30) else ""
            call = self.rng.choice([f"{name}({value}{skip})" for name in ("first_value", "last_value")]
                                   + [f"nth_value({value}, 2{skip})"])  # fmt: skip
            return f"{call} OVER ({parted}{by_all} {self.frame('ROWS')})", kind
        number, own = self.rng.choice(whole) if whole else ("1", "int")
        filtered = f" FILTER (WHERE {self.predicate(tuple(items))})" if self.chance(15) else ""
        calls = [(f"sum({number})", {"int": "big"}.get(own, "num")), ("count(*)", "big"), (f"count({value})", "big"),
                 (f"avg({number})", "real"), (f"max({number})", own), (f"min({number})", own)]  # fmt: skip
        call, made = self.rng.choice(calls)
        users = own != "num" and self.chance(8)
        unit = self.rng.choice(("", "GROUPS", "RANGE") if peers else ("", "ROWS", "ROWS", "GROUPS", "RANGE"))
        if unit == "RANGE" and whole:
            order = f"ORDER BY {self.rng.choice(whole)[0]} {self.direction()}"
        else:
            order = by_all if unit == "ROWS" else by_one
        frame = self.frame(unit) if unit in ("ROWS", "GROUPS") or (unit and whole) else ""
        after = f"{filtered} OVER ({parted}{order} {frame})"
        return (self.registered(number, after), "big") if users else (call + after, made)

    def frame(self, unit: str) -> str:
        bounds = ("UNBOUNDED PRECEDING", "2 PRECEDING", "1 PRECEDING", "CURRENT ROW", "1 FOLLOWING",
                  "UNBOUNDED FOLLOWING")  # fmt: skip
        start = self.rng.randrange(4)
        end = self.rng.randrange(max(start, 2), 6)
        some = ("GROUP", "TIES", "CURRENT ROW", "NO OTHERS") if unit == "ROWS" else ("GROUP", "TIES")
        exclude = f" EXCLUDE {self.rng.choice(some)}" if self.chance(20) else ""
        return f"{unit} BETWEEN {bounds[start]} AND {bounds[end]}{exclude}"
