"""Random queries with GROUP BY, over groups of one or several sets of keys."""

from __future__ import annotations

from tests.oracle.conditions import Query, Source
from tests.oracle.sources import Sources
from tests.oracle.values import WHOLE, Columns


class Grouped(Sources):
    """Makes such queries."""

    def aggregate(self, source: Source, depth: int) -> Query:
        """A query with aggregates, of all rows or of each group."""
        scope = source.columns
        keys = [self.value(scope) for _ in range(self.rng.choice((0, 1, 1, 1, 2)))]
        keys = [key for key in keys if key[0] in dict(scope) or not self.chance(50)]
        keys = [key for number, key in enumerate(keys) if key[0] != "1" and key not in keys[:number]]
        made = [self.call(scope) for _ in range(self.rng.choice((1, 1, 2, 3)))]
        rest = f" FROM {source.text}{self.where(scope, depth)}"
        columns = tuple(key for key in keys if key[0] in dict(scope))
        if self.rare and self.chance(20):
            call, kind = self.within(scope, tuple(keys))
            made.append((call + (f" FILTER (WHERE {self.predicate(scope)})" if self.chance(20) else ""), kind))
        if keys:
            call, grouped = self._grouped(keys, scope)
            rest += f" GROUP BY {grouped}"
            made += [(call, "int")] if self.chance(25) else []
            if self.rare and depth and columns and self.chance(15):
                value, kind = self.scalar(columns, depth)
                made.append((f"{value} + {call}", kind) if kind in WHOLE and self.chance(40) else (value, kind))
        else:
            call = ""
        if self.chance(30):
            rest += f" HAVING {self._having(scope)}"
        elif self.rare and keys and self.chance(10):
            asked = f"{call} < 2" if self.chance(40) or not columns else self.subquery(columns, max(depth, 1))
            rest += f" HAVING {asked}"
        if keys and self.chance(15):
            counted = self.rng.choice(("count(*)", self.call(scope, plain=True)[0]))
            made.append((f"rank() OVER (ORDER BY {counted} {self.direction()})", "big"))
        if keys and self.rare and self.chance(10):
            made.append((f"sum(count(*)) OVER (PARTITION BY {keys[0][0]} ORDER BY {keys[-1][0]})", "num"))
        items = [*keys, *made]
        self.rng.shuffle(items)
        return self.selected(items, rest)

    def _grouped(self, keys: list[tuple[str, str]], scope: Columns) -> tuple[str, str]:
        """grouping() of some keys, and the keys or sets of them."""
        listed, first, last = ", ".join(text for text, _ in keys), keys[0][0], keys[-1][0]
        forms = ["ROLLUP ({0})", "CUBE ({0})", "GROUPING SETS (({0}), ())",
                 "GROUPING SETS (({0}), ({1}), ({2}), ())", "{2}, ROLLUP ({0})"]  # fmt: skip
        if self.rare:
            forms += ["GROUPING SETS (ROLLUP ({0}), CUBE ({2}), ({1}))", "DISTINCT ROLLUP ({0}), CUBE ({1})",
                      f"{{0}}, {self.whole(scope)}"]  # fmt: skip
        form = self.rng.choice(["{0}"] * 6 + forms)
        return f"grouping({self.rng.choice((listed, first))})", form.format(listed, first, last)

    def _having(self, scope: Columns) -> str:
        text, _ = self.number(scope)
        table = self.table()
        own, _ = self.number(table.columns)
        return self.rng.choice(("count(*) > 1", "count(*) <> 2", f"sum({text}) > 1", f"coalesce(max({text}), 1) > 0",
                                f"min({text}) IS NOT NULL", f"max({text}) > 1 OR count(*) > 2",
                                f"count(*) >= (SELECT min({own}) FROM {table.text})",
                                f"max({text}) IN (SELECT {own} FROM {table.text})"))  # fmt: skip
