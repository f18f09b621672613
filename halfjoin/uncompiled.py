"""Loads sqlglot's modules from their sources, also where `sqlglot[c]` has put compiled ones beside them.

The dialect here has its own parser, and a class of Python cannot inherit from a compiled one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    FileFinder,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
)
from types import ModuleType

_PACKAGE = "sqlglot"
_SAMPLE = "parser"  # a module that is compiled if any is


class Sources:
    """Finds the modules of sqlglot, and only sources."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The source of a module of sqlglot; None for other modules."""
        if not name.startswith(f"{_PACKAGE}."):
            return None
        finders = (FileFinder(one, (SourceFileLoader, SOURCE_SUFFIXES)) for one in path or ())
        return next((found for finder in finders if (found := finder.find_spec(name)) is not None), None)


def load_sources() -> None:
    """See that sqlglot is loaded from its sources, now and later.

    Raises:
        ImportError: its compiled modules are loaded already.
    """
    loaded = getattr(sys.modules.get(f"{_PACKAGE}.{_SAMPLE}"), "__file__", None)
    if loaded is not None and _is_compiled(loaded):
        raise ImportError("halfjoin needs sqlglot without its compiled modules, which are loaded already: import "
                          "halfjoin before sqlglot, or run `pip uninstall sqlglotc`")  # fmt: skip
    found = PathFinder.find_spec(_PACKAGE)
    places = [] if found is None else found.submodule_search_locations or []
    samples = [os.path.join(place, _SAMPLE + suffix) for place in places for suffix in EXTENSION_SUFFIXES]
    if loaded is None and any(map(os.path.exists, samples)):
        sys.meta_path.insert(0, Sources())


def _is_compiled(file: str) -> bool:
    return any(map(file.endswith, EXTENSION_SUFFIXES))
