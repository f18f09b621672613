"""Turn a warehouse's journal into one of an older format, as versions of halfjoin before format 4 wrote it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa

from halfjoin.engine.storage.encoding import _table

OLDER = """
CREATE TABLE run (
    id INTEGER PRIMARY KEY, collection INTEGER NOT NULL, entry INTEGER NOT NULL, rows INTEGER NOT NULL,
    latest INTEGER NOT NULL, bytes INTEGER NOT NULL, data BLOB NOT NULL, file TEXT
);
CREATE INDEX run_of ON run (collection, entry, rows, latest, bytes);
CREATE TABLE closing (
    entry INTEGER PRIMARY KEY, low INTEGER NOT NULL, upper INTEGER NOT NULL, submitted INTEGER NOT NULL, batch TEXT
);
INSERT INTO run (collection, entry, rows, latest, bytes, data, file)
    SELECT collection, id >> 20, rows, latest, bytes, data, file FROM line WHERE collection > 0 ORDER BY id;
INSERT INTO closing SELECT id >> 20, low, upper, submitted, batch FROM line WHERE collection = 0 AND low < upper;
INSERT INTO meta SELECT 'entry', max(id) >> 20 FROM line;
INSERT INTO meta SELECT 'upper', upper FROM line ORDER BY id DESC LIMIT 1;
DROP TABLE line;
ALTER TABLE collection DROP COLUMN layout;
"""


def age(folder: Path, format: int) -> None:
    """Turn the journal of a closed warehouse into one of format 1, 2 or 3. Deletes the lines that no collection needs,
    as a flush did then."""
    with closing(sqlite3.connect(folder / "journal.sqlite")) as journal, journal:
        journal.execute("DELETE FROM line WHERE collection > 0 AND "
                        "id >> 20 <= (SELECT flushed FROM collection AS c WHERE c.id = line.collection)")  # fmt: skip
        pieces = "SELECT line.id, data, layout FROM line JOIN collection AS c ON c.id = collection WHERE file IS NULL"
        for id, data, layout in journal.execute(pieces).fetchall():
            older = _stream(data, layout)
            journal.execute("UPDATE line SET data = ?, bytes = ? WHERE id = ?", (older, len(older), id))
        journal.executescript(OLDER)
        journal.execute("UPDATE meta SET value = ? WHERE key = 'format'", (format,))
        if format == 1:
            journal.execute("ALTER TABLE run DROP COLUMN file")
            journal.execute("DROP TABLE arrangement")
            journal.execute("DROP TABLE closing")
            journal.execute("DROP TABLE unclaimed")
            journal.execute("DELETE FROM meta WHERE key = 'flushes'")


def _stream(data: bytes, layout: bytes) -> bytes:
    """A piece as it was then: larger ones were compressed column by column."""
    table, sink = _table(data, pa.ipc.read_schema(pa.py_buffer(layout))), pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4" if table.nbytes >= 8192 else None)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()
