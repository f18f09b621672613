"""Defects of the past, one test each, by topic."""
