"""Joins: the delta law, by half-joins of plain, present, absent and padded inputs."""
