"""The options of a source FROM FILES."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from pydantic import Field, field_validator

from halfjoin.catalog.models import Table
from halfjoin.engine.feeds.encodings import check_encodings, of_plain, pairs
from halfjoin.engine.feeds.source import Opening, Options
from halfjoin.errors import UnsupportedSQL

Format: TypeAlias = Literal["csv", "jsonl", "parquet"]
ENDINGS: dict[str, Format] = {
    ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet",
}  # fmt: skip
PACKED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}  # endings after these, with Arrow's names


class FilesOptions(Options):
    """What to read, and how.

    Attributes:
        path: a folder, or the URL of one that fsspec knows (`s3://bucket/folder`).
        format: of all files; None: each as the ending of its name says.
        recursive: whether the folders in it are read, too. A folder `column=value` names a column of its rows.
        pattern: the names to read, as a shell's pattern. Names that begin with a dot or an underscore are left out.
        order: `name`, or `time` of the last change, among the files that are there.
        mode: `rows`, or `upserts` by the PRIMARY KEY.
        settle: seconds for which a file must not change before it is read. None: 1 in a folder, 0 elsewhere, where
            files appear whole.
        header: whether the first record of a CSV file names the columns; else they are those of the table, in order.
        delimiter, quote: characters of CSV. null: the unquoted text that is NULL in CSV.
        encodings: how columns are written in JSON, such as `at MicroTimestamp`.
    """

    path: str = Field(min_length=1)
    format: Format | None = None
    recursive: bool = False
    pattern: str = "*"
    order: Literal["name", "time"] = "name"
    mode: Literal["rows", "upserts"] = "rows"
    settle: float | None = Field(default=None, ge=0)
    header: bool = True
    delimiter: str = ","
    quote: str = '"'
    null: str = ""
    encodings: str | tuple[str, ...] = ()

    @field_validator("delimiter", "quote")
    @classmethod
    def _one(cls, text: str) -> str:
        if len(text) != 1 or not text.isascii() or text in "\r\n\0":
            raise ValueError("must be one character of ASCII that does not end a line")
        return text

    def encoded(self, table: Table) -> Mapping[str, str]:
        """How columns are written in JSON, by the user, and by what a plain object is."""
        return {**of_plain(table), **dict(pairs("encodings", self.encodings))}

    def kept(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The options with an absolute path: who reads the source may work in another folder."""
        return dict(given) if "://" in self.path else {**given, "path": os.path.abspath(self.path)}


def check(opening: Opening) -> None:
    """Refuse what cannot work with the table.

    Raises:
        UnsupportedSQL: there are several tables, or upserts and no PRIMARY KEY.
        HalfjoinError, UnknownName: the encodings are not of its columns.
    """
    if len(opening.tables) != 1:
        raise UnsupportedSQL("a source FROM FILES feeds one table", remedy="make a source for each table")
    if opening.options.mode == "upserts" and not opening.tables[0].primary_key:
        raise UnsupportedSQL(f"{opening.tables[0].name} has no PRIMARY KEY, so upserts cannot find the rows to replace",
                             remedy="leave mode out, or give the table a PRIMARY KEY")  # fmt: skip
    check_encodings(opening.tables[0], opening.options.encoded(opening.tables[0]))
