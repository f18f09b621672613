"""Tests of the room `feeds`."""
