"""Tests of the room `sinks`."""
