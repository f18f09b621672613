"""The sizes that several rooms share: how much the engine works on at a time, and how much it refuses.

Write `limits.NAME`, never `from limits import NAME`: then a test that lowers a limit lowers it everywhere. A size that
only one file uses stays in that file.
"""

from __future__ import annotations

from halfjoin.engine.system.machine import machine_memory

# A change goes through a path in morsels, and so does a batch through a check. A morsel has enough rows to spread the
# cost of calls, and few enough for the memory, since each step makes each of its columns anew.
MORSEL_ROWS = 1 << 18

# The rows of a morsel in a Spark task. Several tasks share a machine, each in its own process.
TASK_ROWS = 1 << 16

# Results go on in pieces of about this many rows: the pairs of a lookup, the output of a first fill, the rows that a
# sink writes. A path holds one piece for each of its stages, so a few million rows at most. A piece takes a fraction of
# a second, and the engine sees an interrupt after each piece.
PIECE_ROWS = 1 << 20

# The bytes of a morsel or a piece. It matters where values are long. Eight pieces fit into 2 GB, which is also the most
# that one Arrow array of texts holds.
PIECE_BYTES = 1 << 28

# Rows of a file to read at a time. All columns of these rows are read; usually few of the rows are kept.
READ_ROWS = 1 << 17

# The most rows that one step makes from one batch. More are a mistake in the data or the SQL (a series from 1 to
# 10**15, a join without its condition). The engine refuses the batch or the view before the rows fill the memory.
MOST_ROWS = 200_000_000

# The bytes of the rows that one batch makes of a view, and a loop in all its rounds.
MOST_BYTES = machine_memory() // 4
