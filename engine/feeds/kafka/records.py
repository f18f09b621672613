"""Messages of a topic as they were consumed, and positions in the topic."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfjoin.engine.feeds.source import MOST_TEXT
from halfjoin.engine.updates.updates import Ints
from halfjoin.errors import HalfjoinError


@dataclass(frozen=True, slots=True)
class Records:
    """Messages, those of a partition in their order. `timestamp` is in milliseconds since 1970, -1 if there is none."""

    topic: str
    key: Sequence[bytes | None]
    value: Sequence[bytes | None]
    partition: Ints
    offset: Ints
    timestamp: Ints

    def __len__(self) -> int:
        return len(self.value)

    @classmethod
    def of(cls, topic: str, messages: Sequence[Any]) -> Records:
        """The messages that a consumer gave."""
        return cls(
            topic, [one.key() for one in messages], [one.value() for one in messages],
            np.array([one.partition() for one in messages], np.int64),
            np.array([one.offset() for one in messages], np.int64),
            np.array([one.timestamp()[1] for one in messages], np.int64),
        )  # fmt: skip

    def take(self, rows: Ints) -> Records:
        """The messages at some positions."""
        return Records(self.topic, [self.key[i] for i in rows], [self.value[i] for i in rows], self.partition[rows],
                       self.offset[rows], self.timestamp[rows])  # fmt: skip

    def place(self, row: int) -> str:
        """Where a message is."""
        return f"{self.topic}/{self.partition[row]}/{self.offset[row]}"

    def text(self, row: int) -> str:
        """A message as far as it can be shown: its value, or the key of one that has none."""
        value = self.value[row]
        shown = self.key[row] if value is None else value
        text = (shown or b"")[: 4 * MOST_TEXT].decode(errors="backslashreplace").replace("\0", "\\x00")
        return text[:MOST_TEXT]


@dataclass(frozen=True, slots=True)
class Position:
    """What comes next: the next offset of each partition that was read.

    `topic` is the topic's id, None if the brokers do not tell it: a topic that was deleted and made again has another.
    `time` is the greatest time of the rows so far, if rows have times.
    """

    topic: str | None
    offsets: Mapping[int, int]
    time: int | None = None

    def text(self) -> str:
        """The position as JSON."""
        found: dict[str, Any] = {"topic": self.topic, "offsets": {str(k): v for k, v in sorted(self.offsets.items())}}
        return json.dumps(found if self.time is None else {**found, "time": self.time})

    @classmethod
    def read(cls, text: str) -> Position:
        """The position of a JSON text.

        Raises:
            HalfjoinError: it is not a position in a topic.
        """
        try:
            found = json.loads(text)
            offsets = {int(partition): int(offset) for partition, offset in found["offsets"].items()}
            return cls(found["topic"], offsets, found.get("time"))
        except (ValueError, TypeError, KeyError, AttributeError):
            raise HalfjoinError(f"{text[:60]!r} is not a position in a Kafka topic") from None
