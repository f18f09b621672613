"""How far a folder has been read: the names of the files that are done, and how far the present one is.

How far that is, is the number of a record, as another version of Arrow, or of this program, may cut a file into other
blocks.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from halfjoin.errors import HalfjoinError

_GROUP = 4  # bytes that are five letters in base 85
_HELD = 256  # names that the compression may keep back; more of them in a group take less space


@dataclass(frozen=True, slots=True)
class Position:
    """`done`: the mark of each file that is done, by its name. `file`: the present one, which is done up to `record`;
    the rows up to there have the checksum `sum`."""

    done: dict[str, int] = field(default_factory=dict)
    file: str | None = None
    mark: int = 0
    record: int = 0
    sum: int = 0

    def text(self, names: Names) -> str:
        """The position as JSON; the names are compressed. `names` has made the texts of earlier positions only."""
        found: dict[str, object] = {"files": len(self.done), "done": names.text(self.done)}
        now = {"file": self.file, "mark": self.mark, "record": self.record, "sum": self.sum}
        return json.dumps(found | (now if self.file else {}))

    @classmethod
    def read(cls, text: str | None) -> Position:
        """The position of a JSON text.

        Raises:
            HalfjoinError: it is not a position in a folder.
        """
        if text is None:
            return cls()
        try:
            found = json.loads(text)
            done = json.loads(zlib.decompress(base64.b85decode(found["done"])))
            return cls(done) if "file" not in found else cls(
                done, found["file"], found["mark"], found["record"], found["sum"]
            )
        except (ValueError, TypeError, KeyError, zlib.error):
            raise HalfjoinError(f"{text[:60]!r} is not a position in a folder of files") from None


class Names:
    """The names of files as JSON, compressed, in base 85. It is made for each file, so only what a name adds is made:
    the beginning of the text stays. Otherwise the names would soon take longer than the files."""

    def __init__(self) -> None:
        self._packer = zlib.compressobj(6)
        self._count = 0
        self._text, self._rest = "", b""  # what is packed: in whole groups, and after them

    def text(self, done: Mapping[str, int]) -> str:
        """The text of these files. They begin with those of the last call."""
        for name, mark in islice(done.items(), self._count, None):
            item = f"{', ' if self._count else '{'}{json.dumps(name)}: {mark}"
            self._rest += self._packer.compress(item.encode())
            self._count += 1
            if self._count % _HELD == 0:
                self._rest += self._packer.flush(zlib.Z_SYNC_FLUSH)
        whole = len(self._rest) // _GROUP * _GROUP
        self._text, self._rest = self._text + base64.b85encode(self._rest[:whole]).decode(), self._rest[whole:]
        end = self._packer.copy()
        last = self._rest + end.compress(b"}" if self._count else b"{}") + end.flush()
        return self._text + base64.b85encode(last).decode()
