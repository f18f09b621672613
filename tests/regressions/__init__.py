"""Defects that were found from outside, each with the law that it broke."""
