"""A plan as text that notebooks show in lines, or as the page that it is."""

from __future__ import annotations

from html import escape

from halfjoin.engine.display.html import code


class Plan(str):
    """What `explain` returns: the plan as text, with a face for notebooks.

    >>> Plan("v (a integer)\\n└─ change of t")._repr_html_().count("<pre")
    1
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        """A page in a frame of its own, so that its style stays there; other formats as they are."""
        if not self.startswith("<!doctype html>"):
            return code(self)
        return f'<iframe srcdoc="{escape(self)}" sandbox style="width:100%;height:28em;border:0"></iframe>'
