"""The changes of a view as a page shows them: at most one push a second, of a sample of the rows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

import pyarrow as pa

from halfjoin.console.details import table
from halfjoin.engine.batch.subscription import Subscription
from halfjoin.engine.engine import Engine
from halfjoin.errors import HalfjoinError

_PERIOD = 1.0  # seconds
_SHOWN = 50  # rows of a push
_MOST = 16  # pages that follow changes at the same time


@dataclass(slots=True)
class _Gathered:
    """Changes since the last push: how many rows there were, and the last of them."""

    rows: int = 0
    last: pa.Table | None = None
    problem: str | None = None
    ended: bool = False


@dataclass(slots=True)
class Changes:
    """Follows views for pages. A thread for each page takes the changes, so that no page can keep up a batch."""

    engine: Engine
    _open: list[Subscription] = field(default_factory=list)

    async def each(self, view: str) -> AsyncIterator[dict[str, Any]]:
        """The changes of a view from now on: `changed`, how many there were, and a sample of them as `rows`."""
        if len(self._open) >= _MOST:
            yield {"error": f"{_MOST} pages follow changes already"}
            return
        try:
            changes = await asyncio.to_thread(self.engine.subscribe, view, snapshot=False)
        except HalfjoinError as error:
            yield {"error": str(error)}
            return
        self._open.append(changes)
        gathered = _Gathered()
        Thread(target=_gather, args=(changes, gathered), daemon=True).start()
        try:
            while not gathered.ended or gathered.rows:
                await asyncio.sleep(_PERIOD)
                rows, last = gathered.rows, gathered.last
                gathered.rows, gathered.last = gathered.rows - rows, None
                yield {"changed": rows, "error": gathered.problem, **({} if last is None else table(last))}
        finally:
            self._open.remove(changes)
            await asyncio.to_thread(changes.close)

    def close(self) -> None:
        """End what pages follow."""
        for changes in [*self._open]:
            changes.close()


def _gather(changes: Subscription, gathered: _Gathered) -> None:
    try:
        for rows in changes:
            gathered.last = rows.slice(max(0, rows.num_rows - _SHOWN)).combine_chunks()
            gathered.rows += rows.num_rows
    except HalfjoinError as error:
        gathered.problem = str(error)
    finally:
        gathered.ended = True
