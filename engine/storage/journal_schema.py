"""The tables of a journal: those of the newest format, and how those of older formats become them.

In formats up to 3 a batch wrote pages in four places: `run` and an index on it, `closing`, and two rows of `meta`.
Format 4 has `line` instead (`journal_lines`).
"""

from __future__ import annotations

from collections.abc import Iterator

from halfjoin.engine.storage.journal_lines import LINES, NOBODY

FORMAT = 4  # the newest

_LINE = """CREATE TABLE line (
    id INTEGER PRIMARY KEY, collection INTEGER NOT NULL, rows INTEGER, latest INTEGER, bytes INTEGER, data BLOB,
    file TEXT, low INTEGER, upper INTEGER, submitted INTEGER, batch TEXT
)"""
_ARRANGEMENT = """CREATE TABLE IF NOT EXISTS arrangement (
    collection INTEGER NOT NULL, name TEXT NOT NULL, flushed INTEGER NOT NULL, version INTEGER NOT NULL,
    PRIMARY KEY (collection, name)
) WITHOUT ROWID"""
_UNCLAIMED = "CREATE TABLE IF NOT EXISTS unclaimed (folder TEXT PRIMARY KEY) WITHOUT ROWID"

TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID",
    """CREATE TABLE collection (
    id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, name TEXT NOT NULL, since INTEGER NOT NULL,
    created INTEGER NOT NULL, flushed INTEGER NOT NULL, version INTEGER, rows INTEGER NOT NULL, latest INTEGER NOT NULL,
    layout BLOB
)""",
    _LINE,
    _ARRANGEMENT,
    _UNCLAIMED,
    """CREATE TABLE batch (
    id TEXT PRIMARY KEY, mark BLOB NOT NULL, entry INTEGER NOT NULL, time INTEGER NOT NULL, low INTEGER NOT NULL,
    upper INTEGER NOT NULL, runner TEXT NOT NULL, reason TEXT NOT NULL, seconds REAL NOT NULL
) WITHOUT ROWID""",
)

# In format 1 all updates were in the journal itself: there were no files.
_FILES = ("ALTER TABLE run ADD COLUMN file TEXT", "INSERT OR REPLACE INTO meta VALUES ('flushes', 0)")

# Some journals do not have these tables yet.
_CLOSING = """CREATE TABLE IF NOT EXISTS closing (
    entry INTEGER PRIMARY KEY, low INTEGER NOT NULL, upper INTEGER NOT NULL, submitted INTEGER NOT NULL, batch TEXT
)"""

# Entries that closed nothing get no last line, except the last entry: the lines must tell its number and `upper`.
_LINES = (
    f"""INSERT INTO line (id, collection, rows, latest, bytes, data, file)
    SELECT entry * {LINES} + row_number() OVER (PARTITION BY entry ORDER BY id) - 1, collection, rows, latest, bytes,
        data, file
    FROM run ORDER BY entry, id""",
    f"""INSERT INTO line (id, collection, low, upper, submitted, batch)
    SELECT (entry + 1) * {LINES} - 1, {NOBODY}, low, upper, submitted, batch FROM closing""",
    f"""INSERT OR IGNORE INTO line (id, collection, low, upper)
    SELECT (last.value + 1) * {LINES} - 1, {NOBODY}, reached.value, reached.value
    FROM meta AS last, meta AS reached WHERE last.key = 'entry' AND reached.key = 'upper'""",
    "ALTER TABLE collection ADD COLUMN layout BLOB",
    "DROP TABLE run",
    "DROP TABLE closing",
    "DELETE FROM meta WHERE key IN ('entry', 'upper')",
)


def newer(found: int) -> Iterator[str]:
    """The statements that turn a journal of an older format into one of the newest."""
    yield from _FILES if found == 1 else ()
    yield from (_ARRANGEMENT, _UNCLAIMED, _CLOSING, _LINE, *_LINES)
