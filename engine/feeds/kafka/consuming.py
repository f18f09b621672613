"""A consumer of one topic that reads from offsets of ours, in batches of bounded size, and never skips a message.

The group's committed offsets are for display only. A consumer that is at another offset than the asked one is sent
there. An offset that the brokers no longer have is an error.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from halfjoin.engine.feeds.kafka.options import KafkaOptions
from halfjoin.engine.feeds.kafka.records import Position
from halfjoin.engine.feeds.kafka.settings import WAIT, made
from halfjoin.engine.feeds.kafka.topics import Topics
from halfjoin.errors import HalfjoinError, StorageError

_AT_ONCE = 500  # messages that are asked for at once, so that the bound of bytes is checked often enough
_LINGER = 0.02  # seconds to wait for more messages behind those that are there
_QUEUED_KBYTES = 16 << 10  # of messages that librdkafka fetches ahead
_UNUSABLE = (KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE)
_RESTART = "DROP SOURCE, and create it again to read the topic as it is now"


class TopicConsumer:
    """Reads all partitions of a topic."""

    def __init__(self, options: KafkaOptions, group: str) -> None:
        self._options, self._topic = options, options.topic
        self._problem: KafkaError | None = None
        self._next: dict[int, int] = {}  # where the consumer is; a new partition is at OFFSET_BEGINNING
        self._id: str | None = None
        self._unheard: set[int] = set()  # partitions of which neither a message nor the end has come yet
        configuration = {
            "group.id": group, "queued.max.messages.kbytes": _QUEUED_KBYTES,
            **options.client(enable_auto_commit=False, auto_offset_reset="error", isolation_level="read_committed",
                             enable_partition_eof=True),
            "error_cb": self._noted,
        }  # fmt: skip
        self._consumer = made(Consumer, configuration)

    @property
    def offsets(self) -> dict[int, int]:
        """The next offset of each partition of which something was read."""
        return {partition: offset for partition, offset in self._next.items() if offset >= 0}

    @property
    def topic_id(self) -> str | None:
        """The id of the topic, which another topic of its name does not have. None: the brokers do not tell it."""
        return self._id

    def go(self, position: Position | None) -> None:
        """Go to a position; None: to where a new source begins.

        Raises:
            StorageError: the brokers cannot be reached, or have no such topic.
            HalfjoinError: the topic is not the one that the position is in.
        """
        partitions = self._partitions(identify=True)
        known = {} if position is None else position.offsets
        other = position is not None and None not in (self._id, position.topic) and self._id != position.topic
        if other or not known.keys() <= set(partitions):
            raise HalfjoinError(f"the topic {self._topic} was deleted and made again since it was read last, so there "
                                "may be messages that nobody has read", remedy=_RESTART)  # fmt: skip
        if position is not None and self._id is None:
            self._id = position.topic
        if position is None and self._options.start == "latest":
            known = {partition: self._watermarks(partition)[1] for partition in partitions}
        self._next = {partition: known.get(partition, OFFSET_BEGINNING) for partition in partitions}
        self._assign()

    def grown(self) -> bool:
        """Read partitions that were added since, from their beginning. Returns whether there are any."""
        new = [partition for partition in self._partitions() if partition not in self._next]
        self._next |= dict.fromkeys(new, OFFSET_BEGINNING)
        if new:
            self._assign()
        return bool(new)

    def take(self, seconds: float) -> list[Any]:
        """The next messages, up to the bounds of a batch. It waits up to `seconds` for the first, and longer in the
        beginning, so that no messages means that there are none.

        Raises:
            StorageError: the brokers cannot be reached, or do not answer. HalfjoinError: they no longer have the
                messages.
        """
        start = time.monotonic()
        found = self._some(1, seconds)
        while not found and self._problem is None:  # only ends of partitions came
            wait = max(seconds, WAIT) if self._unheard else seconds
            if (left := start + wait - time.monotonic()) <= 0:
                self._check_heard()
                break
            found = self._some(1, left)
        size, full = _size(found), bool(found)
        while full and len(found) < self._options.rows and size < self._options.bytes:
            asked = min(_AT_ONCE, self._options.rows - len(found))
            more = self._some(asked, _LINGER)
            found, size, full = found + more, size + _size(more), len(more) == asked
        if not found and self._problem is not None:
            problem, self._problem = self._problem, None
            raise StorageError(f"Kafka cannot be reached: {problem.str()}")
        return found

    def _check_heard(self) -> None:
        """Refuse to take partitions of which nothing came for partitions without messages."""
        if self._unheard:
            numbers = ", ".join(map(str, sorted(self._unheard)))
            raise StorageError(f"Kafka cannot be reached: no answer for partition {numbers} of the topic {self._topic}")

    def _some(self, most: int, seconds: float) -> list[Any]:
        """Messages that come next. What comes beside them is noted, or raised."""
        found = []
        for event in self._consumer.consume(most, seconds):
            if event.error() is None:
                self._next[event.partition()] = event.offset() + 1
                self._unheard.discard(event.partition())
                found.append(event)
            else:
                self._event(event)
        return found

    def lag(self) -> int | None:
        """How many offsets are left, as far as the brokers have said; None if they have not said it of a partition."""
        if not self._next:
            return None
        total = 0
        for partition, offset in self._next.items():
            low, high = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), cached=True)
            if high < 0:
                return None
            total += max(0, high - max(offset, low, 0))
        return total

    def show(self, position: Position) -> None:
        """Commit the group's offsets, for tools that show lags. Nobody reads them here, so failures do not matter."""
        offsets = [TopicPartition(self._topic, partition, offset) for partition, offset in position.offsets.items()]
        with suppress(KafkaException):
            if offsets:
                self._consumer.commit(offsets=offsets, asynchronous=True)

    def close(self) -> None:
        """Leave the brokers."""
        self._consumer.close()

    def _assign(self) -> None:
        self._unheard = set(self._next)
        self._consumer.assign([TopicPartition(self._topic, *each) for each in self._next.items()])

    def _partitions(self, *, identify: bool = False) -> Sequence[int]:
        try:
            found = self._consumer.list_topics(self._topic, timeout=WAIT)
        except KafkaException as problem:
            raise StorageError(f"Kafka cannot be reached: {problem.args[0].str()}") from None
        topic = found.topics[self._topic]
        if topic.error is not None:
            raise StorageError(f"the topic {self._topic} cannot be read: {topic.error.str()}")
        if identify:
            self._id = Topics(self._options).identity(self._topic)
        return sorted(topic.partitions)

    def _watermarks(self, partition: int) -> tuple[int, int]:
        try:
            found: tuple[int, int] = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), WAIT)
            return found
        except KafkaException as problem:
            raise StorageError(f"Kafka cannot be reached: {problem.args[0].str()}") from None

    def _event(self, event: Any) -> None:
        """What came instead of a message: the end of a partition, or an error."""
        problem: KafkaError = event.error()
        if problem.code() == KafkaError._PARTITION_EOF:  # behind the marks of transactions, which are no messages
            self._next[event.partition()] = max(self._next[event.partition()], event.offset())
            self._unheard.discard(event.partition())
        elif problem.code() == KafkaError._AUTO_OFFSET_RESET:
            offset = self._next.get(event.partition())
            raise HalfjoinError(
                f"the topic {self._topic} no longer has the messages of partition {event.partition()} from offset "
                f"{offset} on: it was made again, or they were removed before they were read ({problem.str()})",
                remedy=_RESTART,
            )
        else:
            raise StorageError(f"the topic {self._topic} cannot be read: {problem.str()}")

    def _noted(self, problem: KafkaError) -> None:
        if problem.fatal() or problem.code() in _UNUSABLE:
            self._problem = problem


def _size(messages: Sequence[Any]) -> int:
    return sum(len(one.key() or b"") + len(one.value() or b"") for one in messages)
