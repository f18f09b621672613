"""Explanations of plans: text, Mermaid, JSON, and a page of HTML."""

from halfjoin.planner.explain.as_json import as_json
from halfjoin.planner.explain.html import html, html_page, section
from halfjoin.planner.explain.mermaid import mermaid
from halfjoin.planner.explain.model import Explanation, explanation
from halfjoin.planner.explain.reads import reads
from halfjoin.planner.explain.text import text
from halfjoin.planner.explain.trace import trace_text
from halfjoin.planner.names import arrangement_name

__all__ = [
    "Explanation", "arrangement_name", "as_json", "explanation", "html", "html_page", "mermaid", "reads", "section",
    "text", "trace_text",
]  # fmt: skip
