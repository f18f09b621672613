"""How much is worked on at a time, and where too much begins: each size once, with why it is what it is.

Read them as `limits.NAME`, never `from limits import NAME`: then a test that makes one small makes it small everywhere.
"""

from __future__ import annotations

# A change goes through a path in morsels: enough rows to spread the cost of calls, few enough for the memory, however
# long their texts are.
MORSEL_ROWS = 1 << 18

# Rows made at one place (the pairs of a lookup, what is read of files for it) go on in pieces of about so many; a path
# holds one piece for each of its stages.
PIECE_ROWS = 1 << 20

# Bytes of a morsel or a piece, where long values make few rows large; also well below what an Arrow array holds.
PIECE_BYTES = 1 << 28

# More rows than this of one batch, at one place, are a mistake in the data or the SQL (a series from 1 to 10**15, a
# join without its condition), and the batch is refused before they fill the memory.
MOST_ROWS = 200_000_000
