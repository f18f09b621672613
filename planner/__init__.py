"""A bound view to a dataflow: normal form, rules, join orders, arrangements, explain."""
