"""The function table: every scalar function and operator, with its types and documentation."""
