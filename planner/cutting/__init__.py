"""Cuts a relation into nodes: regions and their sides, groups, loops."""
