"""How much is worked on at a time, and where too much begins: what several rooms agree on, and why it is so much.

Read them as `limits.NAME`, never `from limits import NAME`: then a test that makes one small makes it small everywhere.
A size that one file alone knows stays there.
"""

from __future__ import annotations

# A change goes through a path, or a batch through a check, in morsels: enough rows to spread the cost of calls, few
# enough for the memory, since each column of them is made anew by each step.
MORSEL_ROWS = 1 << 18

# A morsel in a task of Spark: several tasks share a machine, each in a process of its own.
TASK_ROWS = 1 << 16

# What is made from a morsel goes on in pieces of about so many rows: the pairs of a lookup, the output of a first fill,
# what a sink writes. A path holds one piece for each of its stages, so a few million rows at most, and a piece takes a
# fraction of a second, after which an interrupt is seen.
PIECE_ROWS = 1 << 20

# The bytes of a morsel or a piece, where long values make few rows large: eight pieces fit into 2 GB, which is also the
# most that one Arrow array of texts holds.
PIECE_BYTES = 1 << 28

# Rows of a file that are in memory at a time: all columns of so many are read, and mostly few of them kept.
READ_ROWS = 1 << 17

# More rows than this of one batch, at one place, are a mistake in the data or the SQL (a series from 1 to 10**15, a
# join without its condition), and the batch or the view is refused before they fill the memory.
MOST_ROWS = 200_000_000
