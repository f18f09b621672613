"""Kafka: sources that read topics, and sinks that write them."""
