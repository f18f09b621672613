"""Write a sink's topic: each delivery is one transaction, which also holds how far the sink has come.

Sink law, for a topic: a consumer that reads committed messages only (`isolation.level=read_committed`) sees each
closed batch whole or not at all, once, in order, and none that is not acknowledged. The position is a message in a
compacted topic of its own, with the sink's id as its key. It is in the same transaction as the messages, so both are
there or neither. (The offsets of a consumer group would do as well, but brokers forget those of a group that was idle
for a week.) A sink that opens takes its transactional id over from any earlier writer, which ends that one's open
transaction, and then reads the position.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any

from halfjoin.engine.feeds.kafka.settings import WAIT, made
from halfjoin.engine.feeds.source import needed
from halfjoin.engine.sinks.kafka.avro_format import AvroFormat
from halfjoin.engine.sinks.kafka.json_format import JsonFormat
from halfjoin.engine.sinks.kafka.messages import Change, Format, Shape, changes, messages
from halfjoin.engine.sinks.kafka.options import TopicOptions
from halfjoin.engine.sinks.kafka.shown import Shown
from halfjoin.engine.updates.updates import Updates
from halfjoin.errors import Conflict, StorageError

_TRANSACTION = 300_000  # milliseconds that a transaction may take; brokers allow 15 minutes unless told otherwise
_COMMIT = 60.0  # seconds to wait for the end of a transaction


class KafkaTopic:
    """The topic of the sink with that id; an `Outlet`.

    It takes over a topic that one of the `former` sinks (their ids) has left.
    """

    def __init__(self, id: str, options: TopicOptions, shape: Shape, former: Collection[str] = ()) -> None:
        self._id, self._options, self._shape, self._former = id, options, shape, former
        self._format: Format = JsonFormat(shape)  # Avro's asks the registry, when the topic is opened
        self._producer: Any = None
        self._topic_id: str | None = None
        self._blank = True  # the topic has no messages yet
        self.is_open = False

    def open(self) -> int | None:
        """Take the topic over from any earlier writer. Returns the `upper` of what it shows.

        Raises:
            Conflict: the topic has messages of somebody else, or the registry schemas that these do not fit.
        """
        self._producer, self.is_open = None, False
        with self._reaching():
            from halfjoin.engine.feeds.kafka.topics import Topics

            if self._options.format == "avro":
                self._format = AvroFormat(self._options, self._options.topic, self._shape)
            topics = Topics(self._options)
            policy = {} if self._shape.debezium and not self._shape.key else {"cleanup.policy": "compact"}
            for name, partitions, wanted in ((self._options.topic, self._options.partitions, policy),
                                             (self._options.positions, 1, {"cleanup.policy": "compact"})):  # fmt: skip
                topics.make(name, partitions, self._options.replication, wanted)
            self._producer = self._started()
            self._topic_id = topics.identity(self._options.topic)
            upper = self._position(topics)
            self.is_open = True
            return upper

    def change(self, changed: Iterable[Updates], upper: int, note: str | None = None) -> bool:
        """Send what a delivery changes, in one transaction."""
        return self._sent(changes(self._format, changed), upper, snapshot=False)

    def rewrite(self, contents: Iterable[Updates], upper: int, note: str | None = None) -> bool:
        """Send what is left until the topic shows the contents, in one transaction. Its messages are read if it has
        any."""
        wanted = changes(self._format, contents)
        with self._reaching():
            if not self._blank:
                from halfjoin.engine.feeds.kafka.topics import Topics

                wanted = Shown(self._format, Topics(self._options).messages(self._options.topic)).until(wanted)
        return self._sent(wanted, upper, snapshot=True, always=True)

    def undo(self) -> None:
        """Nothing: a transaction that failed has left nothing that readers see."""

    def _started(self) -> Any:
        usual = {"transaction.timeout.ms": _TRANSACTION, "linger.ms": 5, "partitioner": "murmur2_random"}
        client = self._options.client(transactional_id=f"halfjoin-{self._id}")
        producer = made(needed("confluent_kafka", "KAFKA", "kafka").Producer, {**usual, **client})
        producer.init_transactions(_COMMIT)
        return producer

    def _position(self, topics: Any) -> int | None:
        """The upper that the newest position of this sink says."""
        found: dict[str, dict[str, Any]] = {}
        for message in topics.messages(self._options.positions, (0,)):
            sink = (message.key() or b"").decode(errors="replace")
            if sink == self._id or sink in self._former:
                found[sink] = json.loads(message.value())
        ours = found.get(self._id)
        if ours is not None and not self._is_here(ours):
            raise Conflict(f"the topic {self._options.topic} was deleted and made again",
                           remedy="CREATE OR REPLACE SINK, which starts with all rows")  # fmt: skip
        self._blank = topics.blank(self._options.topic)
        if not self._blank and not any(map(self._is_here, found.values())):
            raise Conflict(f"the topic {self._options.topic} has messages that no sink of this warehouse wrote",
                           remedy="choose a topic that does not exist yet")  # fmt: skip
        return None if ours is None else int(ours["upper"])

    def _is_here(self, position: Mapping[str, Any]) -> bool:
        """Whether a position is in this topic."""
        ids = {position["id"], self._topic_id} - {None}
        return bool(position["topic"] == self._options.topic and len(ids) < 2)

    def _sent(self, wanted: Iterable[Change], upper: int, *, snapshot: bool, always: bool = False) -> bool:
        """Send messages and the position; neither, if there are no messages."""
        found = (one for one in wanted if len(one.key))
        first = next(found, None)
        if first is None and not always:
            return False
        with self._transaction():
            for one in chain([] if first is None else [first], found):
                keys, values = messages(self._format, one, upper, snapshot=snapshot and self._blank)
                for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True):
                    self._send(self._options.topic, key, value)
            position = {"topic": self._options.topic, "id": self._topic_id, "upper": upper}
            self._send(self._options.positions, self._id, json.dumps(position), partition=0)
        self._blank = False
        return True

    def _send(self, topic: str, key: str | bytes, value: str | bytes | None, **where: int) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key, **where)
                return
            except BufferError:  # librdkafka's queue is full: let it send
                self._producer.poll(1.0)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """A transaction around the messages that are sent inside. What fails takes them back."""
        with self._reaching():
            self._producer.begin_transaction()
            try:
                yield
                self._producer.commit_transaction(_COMMIT)
            except BaseException:
                with suppress(Exception):  # whoever opens the topic next ends the transaction
                    self._producer.abort_transaction(WAIT)
                raise

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        kafka = needed("confluent_kafka", "KAFKA", "kafka")
        try:
            yield
        except kafka.KafkaException as problem:
            self.is_open = False
            why = problem.args[0].str()
            raise StorageError(f"the topic {self._options.topic} cannot be written: {why}") from problem
        except StorageError:
            self.is_open = False
            raise

