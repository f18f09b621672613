"""Kafka for tests: librdkafka's mock brokers, and a real broker if HALFJOIN_KAFKA names its jars.

The mock brokers do not tell topics' ids, do not hide messages of transactions that were taken back, and let a producer
go on that another one has replaced. So what depends on these is tested with the real broker only. Its jars are those of
`mvn dependency:copy-dependencies` for org.apache.kafka:kafka_2.13.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from tests.support.ports import kept_port

JARS = os.environ.get("HALFJOIN_KAFKA")
QUIET = {"log_level": 0}


@dataclass(frozen=True)
class Brokers:
    """Where brokers are, and whether they are real."""

    address: str
    real: bool

    @cached_property
    def _producer(self) -> Any:
        from confluent_kafka import Producer

        return Producer({"bootstrap.servers": self.address, **QUIET})

    def topic(self, partitions: int = 2) -> str:
        """The name of a new topic."""
        name = f"t{uuid.uuid4().hex[:10]}"
        if self.real:
            from confluent_kafka.admin import NewTopic

            self.admin.create_topics([NewTopic(name, partitions, 1)])[name].result()
        else:
            self._producer.list_topics(name, timeout=60)
        return name

    @cached_property
    def admin(self) -> Any:
        """A client that makes and removes topics."""
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.address, **QUIET})

    def put(self, topic: str, *messages: Any, partition: int = 0) -> None:
        """Send messages: a value, or a pair of a key and a value. What is not bytes or None is sent as JSON."""
        for message in messages:
            key, value = message if isinstance(message, tuple) else (None, message)
            self._producer.produce(topic, _bytes(value), _bytes(key), partition=partition)
        self._producer.flush()

    def read(self, topic: str) -> list[tuple[Any, Any]]:
        """All messages of a topic that are committed, as pairs of key and value from JSON, in order of partitions."""
        return [(_json(key), _json(value)) for key, value in self.raw(topic)]

    def raw(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        """The same messages as they are sent."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.address, "group.id": "test", "enable.partition.eof": True,
                             "fetch.wait.max.ms": 20,
                             "isolation.level": "read_committed", "auto.offset.reset": "error", **QUIET})  # fmt: skip
        found: dict[int, list[tuple[bytes | None, bytes | None]]] = {
            partition: [] for partition in consumer.list_topics(topic, timeout=60).topics[topic].partitions
        }
        consumer.assign([TopicPartition(topic, partition, 0) for partition in found])
        ended: set[int] = set()
        while len(ended) < len(found):
            message = consumer.poll(60)
            assert message is not None
            if message.error() is not None:
                ended.add(message.partition())
            else:
                found[message.partition()].append((message.key(), message.value()))
        consumer.close()
        return [message for partition in sorted(found) for message in found[partition]]


def _bytes(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()


def _json(value: bytes | None) -> Any:
    return None if value is None else json.loads(value)


@contextmanager
def mock_brokers() -> Iterator[Brokers]:
    """Brokers in a process of their own, which is killed: librdkafka may abort the process that takes them down."""
    from halfjoin.engine.feeds.kafka.topics import Topics

    asked = Topics.identity
    command = [sys.executable, "-c", _MOCK]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as home:
        try:
            assert home.stdout is not None
            address = home.stdout.readline().strip()
            assert address, "the mock brokers did not start"

            def identity(topics: Topics, topic: str) -> str | None:
                """The mock brokers leave the question for a topic's id unanswered."""
                return None if topics._options.brokers == address else asked(topics, topic)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Topics, "identity", identity)
                yield Brokers(address, False)
        finally:
            home.kill()


@contextmanager
def real_brokers() -> Iterator[Brokers]:
    """A broker of Kafka's own, in a folder of its own, on this machine alone."""
    if JARS is None:
        pytest.skip("HALFJOIN_KAFKA does not name a folder with Kafka's jars")
    folder, ports = Path(mkdtemp(prefix="halfjoin-kafka-")), (kept_port(), kept_port())
    (folder / "properties").write_text(_PROPERTIES.format(folder=folder, port=ports[0], controller=ports[1]))
    java = ["java", "-Xmx512m", "-cp", f"{JARS}/*"]
    with (folder / "log").open("w") as log:
        subprocess.run([*java, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c",
                        str(folder / "properties")], check=True, stdout=log, stderr=log)  # fmt: skip
        broker = subprocess.Popen([*java, "kafka.Kafka", str(folder / "properties")], stdout=log, stderr=log)
    try:
        brokers = Brokers(f"127.0.0.1:{ports[0]}", True)
        brokers.admin.list_topics(timeout=60)
        yield brokers
    finally:
        broker.kill()
        broker.wait()
        shutil.rmtree(folder, ignore_errors=True)


_MOCK = """
import sys
from confluent_kafka import Producer
home = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0})
print(*(f"{one.host}:{one.port}" for one in home.list_topics(timeout=60).brokers.values()), sep=",", flush=True)
sys.stdin.read()  # until it is killed, or nobody is there
"""

_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
log.retention.check.interval.ms=500
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
"""
