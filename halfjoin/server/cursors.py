"""DECLARE, FETCH, MOVE and CLOSE. A cursor of a query holds its answer and goes both ways; one of SUBSCRIBE waits for
changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from halfjoin.errors import UnsupportedSQL
from halfjoin.server.splitting import Piece
from halfjoin.server.variables import seconds

_OPTIONS = ("BINARY", "ASENSITIVE", "INSENSITIVE", "NO", "SCROLL")
_MOST = (1 << 31) - 1


@dataclass(frozen=True)
class Declared:
    """What DECLARE says. `hold`: the cursor stays after its transaction. `scroll`: None where it does not say."""

    name: str
    binary: bool
    hold: bool
    scroll: bool | None
    query: str


@dataclass(frozen=True)
class Fetched:
    """What FETCH or MOVE says. `count`: None for ALL; below 0 it goes the other way. `wait`: seconds to wait for the
    first change."""

    name: str
    way: str  # FORWARD, BACKWARD, ABSOLUTE or RELATIVE
    count: int | None
    wait: float | None


@dataclass
class Place:
    """Where a cursor stands: before its first row (0), on a row, or after its last one.

    As PostgreSQL has it: who gets all the rows that he asked for stands on the last of them, who gets fewer has come
    past the end.
    """

    rows: int  # of the cursor
    at: int = 0

    def move(self, fetched: Fetched) -> tuple[int, int, bool]:
        """Move; the rows on the way: of which the first one is, how many, and whether they come backward."""
        way, count = fetched.way, fetched.count
        if way == "ABSOLUTE":
            assert count is not None
            self.at = max(count - 1, 0) if count >= 0 else self.rows + 1 + max(count + 1, -self.rows - 1)
            self.at = min(self.at, self.rows + 1)
            return self._along(count and (1 if count > 0 else -1), self.at)
        if way == "RELATIVE" and count:
            step = 1 if count > 0 else -1
            self.at = min(max(self.at + count - step, 0), self.rows + 1)
            return self._along(step, self.at)
        if count is None:
            count = self.rows + 1
        return self._along(-count if way == "BACKWARD" else count, self.at)

    def forward(self, fetched: Fetched) -> bool:
        """Whether it would go forward, so to no row that is here or behind."""
        count = 1 if fetched.count is None else fetched.count
        if fetched.way == "ABSOLUTE":
            return count > self.at
        return (-count if fetched.way == "BACKWARD" else count) >= (1 if 1 <= self.at <= self.rows else 0)

    def _along(self, count: int, at: int) -> tuple[int, int, bool]:
        """Move so many rows forward, or backward below 0; 0 is the row on which it stands, if it does."""
        if count == 0:
            return at - 1, int(1 <= at <= self.rows), False
        if count > 0:
            self.at = min(at + count, self.rows + 1)
            return at, max(min(at + count, self.rows) - at, 0), False
        self.at = max(at + count, 0)
        first = max(self.at, 1)
        return first - 1, max(at - first, 0), True


def declared(piece: Piece) -> Declared:
    """What DECLARE says.

    Raises:
        UnsupportedSQL: it is not `DECLARE name [BINARY] [[NO] SCROLL] CURSOR [WITH | WITHOUT HOLD] FOR query`.
    """
    words = piece.words
    at = 2
    while at < len(words) and words[at] in _OPTIONS:
        at += 1
    options, rest = words[2:at], words[at:]
    hold = tuple(rest[1:3]) == ("WITH", "HOLD")
    if rest[:1] != ("CURSOR",) or (rest[1:2] != ("FOR",) and (rest[1:2] not in (("WITH",), ("WITHOUT",)) or
                                                               rest[2:4] != ("HOLD", "FOR"))):  # fmt: skip
        raise _syntax("write DECLARE name [SCROLL] CURSOR [WITH HOLD] FOR SELECT ..., or FOR SUBSCRIBE ...")
    begin = at + (2 if rest[1] == "FOR" else 4)
    if begin >= len(words):
        raise _syntax("write a query after FOR")
    scroll = "NO" not in options if "SCROLL" in options else None
    return Declared(name_at(piece, 1), "BINARY" in options, hold, scroll, piece.between(begin, len(words)))


def fetched(piece: Piece) -> Fetched:
    """What FETCH or MOVE says.

    Raises:
        UnsupportedSQL: a syntax error.
    """
    words = list(piece.words[1:])
    wait = None
    if "WITH" in words[1:]:
        at = len(words) - 1 - words[::-1].index("WITH")
        wait = _wait(words[at:])
        words = words[:at]
    if not words:
        raise _syntax("name a cursor")
    place, words = len(words), words[:-1]
    if words and words[-1] in ("FROM", "IN"):
        words = words[:-1]
    way, count = _direction(words)
    return Fetched(name_at(piece, place), way, count, wait)


def _direction(words: Sequence[str]) -> tuple[str, int | None]:
    """The direction between FETCH and the cursor's name."""
    match list(words):
        case [] | ["NEXT" | "FORWARD"]:
            return "FORWARD", 1
        case ["PRIOR" | "BACKWARD"]:
            return "BACKWARD", 1
        case ["FIRST"]:
            return "ABSOLUTE", 1
        case ["LAST"]:
            return "ABSOLUTE", -1
        case ["FORWARD" | "BACKWARD" as way, "ALL"]:
            return way, None
        case ["ALL"]:
            return "FORWARD", None
        case ["FORWARD" | "BACKWARD" | "ABSOLUTE" | "RELATIVE" as way, *number]:
            return way, _number(number)
        case number:
            return "FORWARD", _number(number)


def _number(words: Sequence[str]) -> int:
    """A number of rows, maybe with a sign."""
    *sign, digits = words or ("",)
    if len(sign) > 1 or not {"-", "+"}.issuperset(sign) or not digits.isdecimal() or int(digits) > _MOST:
        raise _syntax("write FETCH [n | ALL | PRIOR | FIRST | LAST | ABSOLUTE n | RELATIVE n | FORWARD n | BACKWARD n]"
                      " FROM name")
    return -int(digits) if "-" in sign else int(digits)


def name_at(piece: Piece, place: int) -> str:
    """The name at a place among the words."""
    if place >= len(piece.tokens):
        raise _syntax("a name is missing")
    token = piece.tokens[place]
    return token.text if piece.text[token.start - piece.start] == '"' else token.text.lower()


def _wait(words: Sequence[str]) -> float:
    """Of `WITH (TIMEOUT = '1s')`: the seconds."""
    given = [word for word in words if word not in ("WITH", "(", ")", "TIMEOUT", "=")]
    if "TIMEOUT" not in words or len(given) != 1:
        raise _syntax("write FETCH ... WITH (TIMEOUT = '1s')")
    return seconds(given[0])


def _syntax(remedy: str) -> UnsupportedSQL:
    return UnsupportedSQL("syntax error", remedy=remedy, code="42601")
