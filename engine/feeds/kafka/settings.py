"""The settings of a Kafka client: brokers, what the user passes on to librdkafka, and what nobody may pass on."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from pydantic import SecretStr, model_validator

from halfjoin.engine.feeds.source import Options, revealed
from halfjoin.errors import HalfjoinError

PREFIX = "kafka."
WAIT = 10.0  # seconds for an answer of a broker
# The engine gives these, and its promises depend on them.
_OURS = ("auto.offset.reset", "bootstrap.servers", "enable.auto.commit", "enable.auto.offset.store",
         "enable.idempotence", "enable.partition.eof", "isolation.level", "metadata.broker.list",
         "transactional.id")  # fmt: skip
# These load a library or run a command of the machine, which a statement must not be able to do.
_UNSAFE = ("plugin.library.paths", "ssl.engine.id", "ssl.engine.location", "ssl.providers")
_UNSAFE_STARTS = ("sasl.kerberos.", "test.")
_log = logging.getLogger("halfjoin.kafka")


class ClientOptions(Options):
    """The brokers, and settings of librdkafka by their names. An option `kafka.security.protocol` is one of these."""

    brokers: str
    kafka: Mapping[str, SecretStr] = {}  # nobody can tell which values are secrets, so none is shown

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, given: Any) -> Any:
        """Put the options that begin with `kafka.` together, and refuse those that are not the user's to give."""
        if not isinstance(given, Mapping):
            return given
        passed = {str(name)[len(PREFIX) :]: value for name, value in given.items() if str(name).startswith(PREFIX)}
        for name in passed:
            if name in _OURS:
                raise ValueError(f"{PREFIX}{name} is the engine's to set")
            if name in _UNSAFE or name.startswith(_UNSAFE_STARTS):
                raise ValueError(f"{PREFIX}{name} is not allowed: it could load a library or run a command")
        if not passed:
            return given
        rest = {name: value for name, value in given.items() if not str(name).startswith(PREFIX)}
        texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in passed.items()}
        return {**rest, "kafka": {**rest.get("kafka", {}), **texts}}

    def client(self, **ours: Any) -> dict[str, Any]:
        """The configuration of a client. `ours` are the engine's settings, with `_` for a point in a name.

        Raises:
            HalfjoinError: a setting names an environment variable that is not set.
        """
        given = {name: revealed(value) for name, value in self.kafka.items()}
        made = {name.replace("_", "."): value for name, value in ours.items()}
        return {"client.id": "halfjoin", **given, "bootstrap.servers": self.brokers, **made}


def made(client: Any, configuration: Mapping[str, Any]) -> Any:
    """A consumer or producer with a configuration.

    Raises:
        HalfjoinError: librdkafka refuses a setting.
    """
    from confluent_kafka import KafkaException

    try:
        return client({**configuration, "logger": _log})
    except KafkaException as problem:
        raise HalfjoinError(f"Kafka refuses the settings: {problem.args[0].str()}") from None
