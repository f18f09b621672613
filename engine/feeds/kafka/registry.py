"""A schema registry: the options that say where it is, and the client that asks it."""

from __future__ import annotations

from typing import Any

from pydantic import SecretStr

from halfjoin.engine.feeds.kafka.settings import ClientOptions
from halfjoin.engine.feeds.source import needed, revealed

HEADER = 5  # bytes at the start of a message: 0, and the schema's number with the most significant byte first


class RegistryOptions(ClientOptions):
    """Brokers, and a schema registry. `registry` is its URL."""

    registry: str | None = None
    registry_user: str | None = None
    registry_password: SecretStr | None = None

    def registry_client(self) -> Any:
        """The client of the registry."""
        module = needed("confluent_kafka.schema_registry", "KAFKA", "kafka")
        configuration = {"url": self.registry}
        if self.registry_user is not None:
            configuration["basic.auth.user.info"] = f"{self.registry_user}:{revealed(self.registry_password) or ''}"
        return module.SchemaRegistryClient.new_client(configuration)
