"""Explanations of plans: text, Mermaid, JSON, and a page of HTML."""

from halfjoin.planner.explain.names import arrangement_name

__all__ = ["arrangement_name"]
