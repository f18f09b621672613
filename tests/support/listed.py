"""A kind of source for tests: a list of records in this process, which is read some at a time."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pydantic import SecretStr

from halfjoin.engine.feeds.kinds import KINDS
from halfjoin.engine.feeds.source import BadRecord, Definition, Kind, Lag, Mode, Opening, Options, Polled
from halfjoin.errors import StorageError


@dataclass
class Log:
    """What the sources read: records (dicts, or texts that cannot be read), and what their readers were asked.

    `trouble`: raised by the next polls. `before`: called in each poll, before it answers. `whole`: the records
    before this number are one transaction.
    """

    records: list[Any] = field(default_factory=list)
    mode: Mode = "rows"
    most: int = 3
    places: bool = True
    whole: int = 0
    asked: deque[Any] = field(default_factory=lambda: deque(maxlen=50))
    acknowledged: list[str] = field(default_factory=list)
    opened: int = 0
    closed: int = 0
    dropped: list[str] = field(default_factory=list)
    trouble: list[Exception] = field(default_factory=list)
    before: Callable[[], None] = lambda: None


LOGS: dict[str, Log] = {}


class ListOptions(Options):
    """`log`: the name of the list in `LOGS`."""

    log: str
    most: int = 3
    password: SecretStr | None = None


@dataclass
class _Reader:
    log: Log
    opening: Opening

    def poll(self, position: str | None, seconds: float) -> Polled | None:
        self.log.asked.append(position)
        self.log.before()
        if self.log.trouble:
            raise self.log.trouble.pop(0)
        start = 0 if position is None else json.loads(position)
        part = self.log.records[start : start + self.log.most]
        if not part:
            time.sleep(min(seconds, 0.01))
            return None
        places = [start + i for i, one in enumerate(part) if not isinstance(one, str)]
        bad = [BadRecord(f"list:{start + i}", one, "is a text") for i, one in enumerate(part) if isinstance(one, str)]
        rows: dict[str, list[Any]] = {}
        numbers: dict[str, list[int]] = {}
        for place in places:
            record = dict(self.log.records[place])
            table = record.pop("table", self.opening.tables[0].name)
            rows.setdefault(table, []).append(record)
            numbers.setdefault(table, []).append(place)

        def origin(table: str, row: int) -> tuple[str, str]:
            place = numbers[table][row]
            return f"list:{place}", json.dumps(self.log.records[place])

        return Polled({name: _table(found) for name, found in rows.items()}, self.log.mode,
                      json.dumps(start + len(part)), bad, origin=origin if self.log.places else None,
                      last=start + len(part) >= self.log.whole)  # fmt: skip

    def acknowledge(self, position: str) -> None:
        self.log.acknowledged.append(position)

    def lag(self) -> Lag:
        done = json.loads(self.log.acknowledged[-1]) if self.log.acknowledged else 0
        return Lag(len(self.log.records) - done, "records")

    def close(self) -> None:
        self.log.closed += 1


def _table(rows: list[Any]) -> pa.Table:
    names = dict.fromkeys(key for row in rows for key in row)
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def _open(opening: Opening) -> _Reader:
    log = LOGS.get(opening.options.log)
    if log is None:
        raise StorageError(f"there is no list {opening.options.log}")
    log.opened += 1
    log.most = opening.options.most
    return _Reader(log, opening)


def _dropped(opening: Opening) -> None:
    LOGS[opening.options.log].dropped.append(opening.name)


def _tables(options: Any, into: Sequence[str]) -> tuple[list[Definition], list[str], dict[str, Any]]:
    made = [Definition("mood", "CREATE TYPE mood AS ENUM ('a', 'b')"),
            Definition("made", "CREATE TABLE made (k bigint PRIMARY KEY, x bigint, m mood)")]  # fmt: skip
    return (made, ["made"], {}) if not into else ([], list(into), {})


KINDS["LIST"] = Kind("LIST", ListOptions, _open, tables=_tables, dropped=_dropped)
