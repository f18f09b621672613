"""Carries out SQL statements: definitions, changes, reads, explanations."""
