"""Text to a typed, bound view: the dialect's additions, names, types and the function table."""
