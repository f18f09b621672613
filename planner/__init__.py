"""Turns a bound view into a plan, a graph of nodes: normal form, rules, join orders, arrangements."""
