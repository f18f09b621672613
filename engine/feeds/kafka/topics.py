"""Topics beside their messages' flow: make one, tell one from another of its name, read all that one has now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from halfjoin.engine.feeds.kafka.settings import WAIT, ClientOptions, made
from halfjoin.errors import StorageError

_UNTOLD = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.UNSUPPORTED_VERSION, KafkaError._UNSUPPORTED_FEATURE)
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"  # the id that means none
_UNKNOWN = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)


class Topics:
    """The topics of some brokers.

    Raises:
        StorageError: from every method, if the brokers do not answer.
    """

    def __init__(self, options: ClientOptions) -> None:
        self._options = options

    def make(self, topic: str, partitions: int | None, replication: int | None, settings: Mapping[str, str]) -> None:
        """Make a topic unless it exists. None: as the brokers do by themselves."""
        consumer = self._consumer()
        try:
            problem = consumer.list_topics(topic, timeout=WAIT).topics[topic].error
            if problem is None:
                return
            if problem.code() not in _UNKNOWN:
                raise KafkaException(problem)
            admin = made(AdminClient, self._options.client())
            wanted = NewTopic(topic, partitions or -1, replication or -1, config=dict(settings))
            admin.create_topics([wanted])[topic].result(WAIT)
        except KafkaException as problem:
            if problem.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise StorageError(f"the topic {topic} cannot be made: {problem.args[0].str()}") from None
        except TimeoutError:
            raise StorageError(f"the topic {topic} cannot be made: the brokers have not answered for {WAIT:g} seconds",
                               remedy="make it with Kafka's tools, if they let nobody else make topics") from None
        finally:
            consumer.close()

    def identity(self, topic: str) -> str | None:
        """The topic's id, which another topic of its name does not have. Old brokers have none, and some users may not
        ask for it."""
        admin = made(AdminClient, self._options.client())
        try:
            answers = admin.describe_topics(TopicCollection([topic]), request_timeout=WAIT)
            found = str(answers[topic].result().topic_id)
        except KafkaException as problem:
            if problem.args[0].code() in _UNTOLD:
                return None
            raise StorageError(f"the topic {topic} cannot be described: {problem.args[0].str()}") from None
        return None if found == _NO_ID else found

    def blank(self, topic: str) -> bool:
        """Whether there are no committed messages."""
        return next(self.messages(topic), None) is None

    def messages(self, topic: str, partitions: Sequence[int] | None = None) -> Iterator[Any]:
        """All committed messages that a topic has now, or some partitions of it, those of a partition in order."""
        consumer = self._consumer()
        try:
            left = set(self._partitions(consumer, topic) if partitions is None else partitions)
            consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in sorted(left)])
            while left:
                event = consumer.poll(WAIT)
                if event is None:
                    raise StorageError(f"the topic {topic} gives nothing, and not its end, for {WAIT:g} seconds")
                if event.error() is None:
                    if event.partition() in left:
                        yield event
                elif event.error().code() == KafkaError._PARTITION_EOF:
                    left.discard(event.partition())
                else:
                    raise StorageError(f"the topic {topic} cannot be read: {event.error().str()}")
        except KafkaException as problem:
            raise StorageError(f"the topic {topic} cannot be read: {problem.args[0].str()}") from None
        finally:
            consumer.close()

    def _partitions(self, consumer: Any, topic: str) -> list[int]:
        found = consumer.list_topics(topic, timeout=WAIT).topics[topic]
        if found.error is not None:
            raise KafkaException(found.error)
        return sorted(found.partitions)

    def _consumer(self) -> Any:
        configuration = self._options.client(
            enable_auto_commit=False, auto_offset_reset="error", isolation_level="read_committed",
            enable_partition_eof=True,
        )  # fmt: skip
        return made(Consumer, {"group.id": "halfjoin", "fetch.wait.max.ms": 50, **configuration})
