"""Sinks into topics of Kafka: a view's changes as messages, each batch in one transaction."""
