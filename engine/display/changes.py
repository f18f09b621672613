"""The changes that a batch closed as HTML: how many rows came and went in each view, and the first of them."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.arrange.changes import Changes, StoredChanges
from halfjoin.engine.display.html import folded, note, table, warning
from halfjoin.engine.display.rows import rows_html

VIEWS = 30  # the most that are listed
_OPEN = 3  # views whose changes can be unfolded


def changes_html(changes: Mapping[str, Changes], errors: Mapping[str, str]) -> str:
    """A line for each view that changed, with its first changes; views that cannot be read, with the reason."""
    changed = {view: found for view, found in changes.items()
               if isinstance(found, StoredChanges) or found.num_rows}  # fmt: skip
    lines = [(view, *counts(found)) for view, found in list(changed.items())[:VIEWS]]
    parts = [table(("view", "rows in", "rows out"), lines, (False, True, True))] if lines else []
    parts += [note(f"{len(changed) - VIEWS:,} more views")] if len(changed) > VIEWS else []
    parts += [note("no view changed")] if not changed else []
    in_memory = [(view, found) for view, found in changed.items() if isinstance(found, pa.Table)]
    parts += [folded(f"changes of {view}", rows_html(found)) for view, found in in_memory[:_OPEN]]
    parts += [warning(f"{view} cannot be read: {why}") for view, why in list(errors.items())[:VIEWS]]
    return "".join(parts)


def counts(changes: Changes) -> tuple[str, str]:
    """How many rows came, and how many went. Changes in files are not read."""
    if isinstance(changes, StoredChanges):
        return "in files", "in files"
    diff = changes["__diff"]
    came, went = (pc.sum(diff.filter(compare(diff, 0))).as_py() or 0 for compare in (pc.greater, pc.less))
    return f"{came:,}", f"{-went:,}"
