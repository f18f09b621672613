"""Lowers aggregates, windows and top-k to reduces."""
