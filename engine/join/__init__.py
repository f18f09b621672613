"""The delta law: half-joins, and the dataflow of a view made of them."""
