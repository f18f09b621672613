"""A plan as plain data, for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from halfjoin.planner.explain.model import explanation
from halfjoin.planner.facts import Facts
from halfjoin.planner.plan import ViewPlan


def as_json(plan: ViewPlan, facts: Facts, name: str) -> dict[str, Any]:
    """The explanation as dicts, tuples, strings, numbers and booleans; the keys are the fields of `explain.model`."""
    return asdict(explanation(plan, facts, name))
