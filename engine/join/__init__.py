"""Joins: the delta law, with half-joins of plain, present, absent and padded inputs."""
