"""Tests of the room `sql`."""
