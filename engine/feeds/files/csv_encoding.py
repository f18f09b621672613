"""How Arrow reads the bytes of a CSV file: as UTF-8, or each byte as a character where a record is not UTF-8."""

from __future__ import annotations

import pyarrow as pa


class Texts:
    """A file as UTF-8: what Arrow finds is what it has."""

    encoding = "utf8"

    def given(self, text: str) -> str:
        """A name or a value of the file, as Arrow finds it there."""
        return text

    def name(self, found: str) -> str:
        """The name of a column in the file, by what Arrow finds.

        Raises:
            UnicodeDecodeError: it is not UTF-8.
        """
        return found

    def shown(self, found: str) -> str:
        """A record as an error shows it, by what Arrow finds."""
        return found

    def values(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The values in the file, by what Arrow finds."""
        return batch


class Bytes(Texts):
    """A file of which each byte is a character to Arrow, so that it can read every record."""

    encoding = "latin-1"

    def given(self, text: str) -> str:
        """Its bytes in UTF-8, each as a character."""
        return text.encode().decode(self.encoding)

    def name(self, found: str) -> str:
        """The text whose bytes these characters are."""
        return found.encode(self.encoding).decode()

    def shown(self, found: str) -> str:
        """The same; what is not UTF-8 is escaped."""
        return found.encode(self.encoding).decode(errors="backslashreplace")

    def values(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The bytes that these characters stand for. Columns that the table does not have are left: they are refused.
        """
        columns = [pa.array([None if value is None else value.decode().encode(self.encoding)
                             for value in column.to_pylist()], pa.binary())
                   if pa.types.is_binary(column.type) else column for column in batch.columns]  # fmt: skip
        return pa.record_batch(columns, [*map(self.name, batch.schema.names)])
