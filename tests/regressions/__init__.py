"""Defects that were found once, and the law that each of them broke."""
