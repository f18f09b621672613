"""What a topic shows now, read back from its messages, and what is left to say until it shows other contents.

This is needed when a sink takes over a topic, or when the view's history no longer reaches back to what the topic
shows. It reads the topic once and keeps a text for each row that it shows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from halfjoin.engine.sinks.kafka.messages import Change, Shape


class Shown:
    """The rows that a topic shows: with a key, the row of each key; otherwise how often each row is there."""

    def __init__(self, shape: Shape, messages: Iterable[Any]) -> None:
        self._shape = shape
        self._rows: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        for message in messages:
            key = (message.key() or b"").decode()
            value = None if message.value() is None else json.loads(message.value())
            if not shape.key:
                self._counts[key] += 0 if value is None else 1 if value["after"] is not None else -1
            elif (row := value["after"] if shape.debezium and value is not None else value) is None:
                self._rows.pop(key, None)
            else:
                self._rows[key] = _text(row)

    def until(self, contents: Iterable[Change]) -> Iterator[Change]:
        """The changes that make the topic show contents, whose rows only come."""
        for some in contents:
            keys, rows = some.key.to_pylist(), some.after.to_pylist()
            if self._shape.key:
                yield self._replaced(keys, rows)
            else:
                yield self._added(keys)
        if self._shape.key:
            gone = list(self._rows.items())
            yield _change([(key, row, None) for key, row in gone])
        else:
            yield _change([(row, row, None) for row, count in self._counts.items() for _ in range(count)])

    def _replaced(self, keys: list[str], rows: list[str]) -> Change:
        found = []
        for key, row in zip(keys, rows, strict=True):
            old = self._rows.pop(key, None)
            if old is None or old != _text(json.loads(row)):
                found.append((key, old, row))
        return _change(found)

    def _added(self, rows: list[str]) -> Change:
        found = []
        for row in rows:
            if self._counts[row] > 0:
                self._counts[row] -= 1
            else:
                found.append((row, None, row))
        return _change(found)


def _text(row: Any) -> str:
    return json.dumps(row, ensure_ascii=False)


def _change(rows: Sequence[tuple[str, str | None, str | None]]) -> Change:
    keys, before, after = zip(*rows, strict=True) if rows else ((), (), ())
    return Change(pa.array(keys, pa.string()), pa.array(before, pa.string()), pa.array(after, pa.string()))
