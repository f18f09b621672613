"""Defects that were found once, each in the smallest program that shows it."""
