"""What a topic shows now, read back from its messages, and what is left to say until it shows other contents.

This is needed when a sink takes over a topic, or when the view's history no longer reaches back to what the topic
shows. It reads the topic once and keeps each row that it shows, as it is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from halfjoin.engine.sinks.kafka.messages import Change, Format
from halfjoin.errors import Conflict

_Written = str | bytes


class Shown:
    """The rows that a topic shows: with a key, the row of each key; otherwise how often each row is there.

    Raises:
        Conflict: the messages are in another format.
    """

    def __init__(self, format: Format, messages: Iterable[Any]) -> None:
        self._keyed = bool(format.shape.key)
        self._rows: dict[_Written, _Written] = {}
        self._counts: Counter[_Written] = Counter()
        for message in messages:
            try:
                self._note(format, message.key() or b"", message.value())
            except ValueError as problem:
                raise Conflict(f"the topic {message.topic()} has messages in another format or envelope",
                               remedy="choose a topic that does not exist yet") from problem  # fmt: skip

    def _note(self, format: Format, key: bytes, value: bytes | None) -> None:
        if value is None:
            self._rows.pop(key, None)
            self._rows.pop(key.decode(errors="replace"), None)  # the key of a format of texts
            return
        name, before, after = format.read(key, value)
        if not self._keyed:
            self._counts[name] += 1 if after is not None else -1
        if after is not None:
            self._rows[name] = after
        elif self._keyed:
            self._rows.pop(name, None)
        elif before is not None:
            self._rows[name] = before

    def until(self, contents: Iterable[Change]) -> Iterator[Change]:
        """The changes that make the topic show contents, whose rows only come."""
        for some in contents:
            keys, rows = some.key.to_pylist(), some.after.to_pylist()
            yield self._replaced(keys, rows) if self._keyed else self._added(keys, rows)
        if self._keyed:
            yield _change([(key, row, None) for key, row in self._rows.items()])
        else:
            yield _change([
                (key, self._rows[key], None) for key, count in self._counts.items() for _ in range(count)
            ])  # fmt: skip

    def _replaced(self, keys: list[_Written], rows: list[_Written]) -> Change:
        found = []
        for key, row in zip(keys, rows, strict=True):
            old = self._rows.pop(key, None)
            if old != row:
                found.append((key, old, row))
        return _change(found)

    def _added(self, keys: list[_Written], rows: list[_Written]) -> Change:
        found = []
        for key, row in zip(keys, rows, strict=True):
            if self._counts[key] > 0:
                self._counts[key] -= 1
            else:
                found.append((key, None, row))
        return _change(found)


def _change(rows: Sequence[tuple[_Written, _Written | None, _Written | None]]) -> Change:
    keys, before, after = zip(*rows, strict=True) if rows else ((), (), ())
    kind = pa.binary() if keys and isinstance(keys[0], bytes) else pa.string()
    return Change(pa.array(keys, kind), pa.array(before, kind), pa.array(after, kind))
