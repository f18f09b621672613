"""Random calls over windows. Equal rows may be told apart by one call of a query only."""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracle.calls import Calls
from tests.oracle.values import WHOLE


class Windows(Calls):
    """Makes calls over windows, and their frames."""

    def over(self, items: Sequence[tuple[str, str]], *, peers: bool) -> tuple[str, str]:
        """A call over a window. `peers`: equal rows have equal results; with two calls that tell them apart, any pairs
        are right."""
        whole = tuple(self.of_kinds(tuple(items), WHOLE))
        by = f"ROW({items[0][0]}, {items[-1][0]})" if self.rare and self.chance(10) else self.rng.choice(items)[0]
        parted = f"PARTITION BY {by} " if self.chance(70) else ""
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
        days = self.of_kinds(tuple(items), ("date",)) if self.rare else []
        if days and self.chance(40):
            unit = "RANGE"
        if unit == "RANGE" and (whole or days):
            (column, its) = self.rng.choice(days or whole)
            order, step = f"ORDER BY {column} {self.direction()}", "interval '{} days'" if its == "date" else "{}"
        else:
            order, step = by_all if unit == "ROWS" else by_one, "{}"
        frame = self.frame(unit, step) if unit in ("ROWS", "GROUPS") or (unit and (whole or days)) else ""
        after = f"{filtered} OVER ({parted}{order} {frame})"
        return (self.registered(number, after), "big") if users else (call + after, made)

    def frame(self, unit: str, step: str = "{}") -> str:
        """A frame. `step`: how its offsets are written."""
        bounds = ("UNBOUNDED PRECEDING", f"{step.format(2)} PRECEDING", f"{step.format(1)} PRECEDING", "CURRENT ROW",
                  f"{step.format(1)} FOLLOWING", "UNBOUNDED FOLLOWING")  # fmt: skip
        start = self.rng.randrange(4)
        end = self.rng.randrange(max(start, 2), 6)
        some = ("GROUP", "TIES", "CURRENT ROW", "NO OTHERS") if unit == "ROWS" or self.rare else ("GROUP", "TIES")
        exclude = f" EXCLUDE {self.rng.choice(some)}" if self.chance(20) else ""
        return f"{unit} BETWEEN {bounds[start]} AND {bounds[end]}{exclude}"
