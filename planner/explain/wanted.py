"""Says which rows of a collection a partial arrangement has."""

from __future__ import annotations

from halfjoin.planner.explain.steps import formula_expr
from halfjoin.planner.wants import ALL, Want, Wants
from halfjoin.sql.expr import conjunction
from halfjoin.sql.functions import render


def in_words(wants: Wants) -> str:
    """The condition that these rows meet; nothing if it is all rows."""
    if wants == ALL:
        return ""
    texts = sorted(map(_text, wants))
    return texts[0] if len(texts) == 1 else " OR ".join(f"({text})" for text in texts)


def _text(want: Want) -> str:
    parts = (*want.conditions, *map(formula_expr, want.until))
    return render(conjunction(tuple(sorted(parts, key=render))))
