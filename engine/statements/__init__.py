"""Statements carried out: definitions, fills, reads, explanations."""
