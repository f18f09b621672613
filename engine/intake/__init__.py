"""Turns the rows that users submit into checked updates."""
