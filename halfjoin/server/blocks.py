"""DO: the forms of PL/pgSQL with which tools define what is not there yet.

A block has statements, IF, NULL, PERFORM, EXECUTE of a text, RAISE of what is no error, and handlers of EXCEPTION.
Variables, loops and queries that keep their rows are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from halfjoin.errors import HalfjoinError, UnsupportedSQL
from halfjoin.server.splitting import Piece, split
from halfjoin.sql.parse.constants import STRING_TOKENS
from halfjoin.sql.parse.dialect import Halfjoin

_CONDITIONS = {  # PostgreSQL's names of the SQLSTATEs that definitions and changes raise
    "duplicate_object": "42710", "duplicate_table": "42P07", "duplicate_column": "42701", "duplicate_schema": "42P06",
    "duplicate_function": "42723", "undefined_object": "42704", "undefined_table": "42P01",
    "undefined_column": "42703", "undefined_function": "42883", "invalid_schema_name": "3F000",
    "invalid_table_definition": "42P16", "unique_violation": "23505", "foreign_key_violation": "23503",
    "check_violation": "23514", "not_null_violation": "23502", "dependent_objects_still_exist": "2BP01",
    "feature_not_supported": "0A000", "insufficient_privilege": "42501", "syntax_error": "42601",
    "division_by_zero": "22012", "serialization_failure": "40001",
}  # fmt: skip
_REFUSED = ("DECLARE", "FOR", "WHILE", "LOOP", "FOREACH", "RETURN", "GET", "OPEN", "CASE", "<<")
_LEVELS = ("DEBUG", "LOG", "INFO", "NOTICE", "WARNING")


@dataclass(frozen=True)
class Run:
    """A statement."""

    text: str


@dataclass(frozen=True)
class Choose:
    """IF: the steps of the first condition that holds; those of None if none does."""

    cases: tuple[tuple[str | None, tuple[Step, ...]], ...]


@dataclass(frozen=True)
class Block:
    """BEGIN ... EXCEPTION ... END. A handler has the SQLSTATEs that it catches; none are all."""

    steps: tuple[Step, ...]
    handlers: tuple[tuple[frozenset[str], tuple[Step, ...]], ...]

    def handler(self, problem: HalfjoinError) -> tuple[Step, ...] | None:
        """The steps for an error; None if it is not caught."""
        return next((steps for states, steps in self.handlers if not states or problem.sqlstate in states), None)


Step = Run | Choose | Block


def block_of(piece: Piece) -> Block:
    """The block of a DO statement.

    Raises:
        UnsupportedSQL: it is none, or has more than this knows.
    """
    texts = [token.text for token in piece.tokens if token.token_type in STRING_TOKENS]
    words = [token.text.lower() for token in piece.tokens[1:] if token.token_type not in STRING_TOKENS]
    if len(texts) != 1 or words not in ([], ["language", "plpgsql"]):
        raise UnsupportedSQL("syntax error in DO", code="42601", remedy="write DO $$ BEGIN ...; END $$")
    body = texts[0]
    split(body)  # refuses a quote that does not end
    reader = _Reader(body, Halfjoin().tokenize(body))
    made = reader.block()
    reader.skip(";")
    if reader.word:
        raise reader.wrong()
    return made


class _Reader:
    """Reads a block, word by word."""

    def __init__(self, body: str, tokens: Sequence[object]) -> None:
        self._piece = Piece(body, 0, tuple(tokens))  # type: ignore[arg-type]
        self._words, self._at = self._piece.words, 0

    @property
    def word(self) -> str:
        """The next word; empty at the end."""
        return self._words[self._at] if self._at < len(self._words) else ""

    def skip(self, word: str) -> bool:
        """Go over a word, if it is next."""
        found = self.word == word
        self._at += found
        return found

    def need(self, word: str) -> None:
        """Go over a word, which has to be next."""
        if not self.skip(word):
            raise self.wrong()

    def wrong(self) -> HalfjoinError:
        """The error for the next word."""
        return (
            UnsupportedSQL(f"DO: syntax error at or near {self.word!r}", code="42601") if self.word else _unfinished()
        )

    def refuse(self) -> None:
        """Refuse what a block cannot have here."""
        if self.word in _REFUSED:
            raise UnsupportedSQL(f"DO: {self.word} is not supported", remedy="a block has statements, IF and EXCEPTION")

    def block(self) -> Block:
        self.refuse()
        self.need("BEGIN")
        steps, handlers = self.steps("EXCEPTION", "END"), list[tuple[frozenset[str], tuple[Step, ...]]]()
        if self.skip("EXCEPTION"):
            while self.skip("WHEN"):
                states = self.states()
                handlers.append((states, self.steps("WHEN", "END")))
        self.need("END")
        return Block(steps, tuple(handlers))

    def states(self) -> frozenset[str]:
        """The conditions of a handler."""
        found = set[str]()
        every = False
        while not self.skip("THEN"):
            if not self.word:
                raise _unfinished()
            name = self.word.lower()
            self._at += 1
            if name == "sqlstate":
                found.add(self.word)
                self._at += 1
            elif name == "others":
                every = True
            elif name in _CONDITIONS:
                found.add(_CONDITIONS[name])
            else:
                raise UnsupportedSQL(f'DO: unrecognized exception condition "{name}"', code="42704",
                                     remedy=f"conditions: others, {', '.join(_CONDITIONS)}")  # fmt: skip
            self.skip("OR")
        return frozenset() if every else frozenset(found)

    def steps(self, *ends: str) -> tuple[Step, ...]:
        """Steps up to one of some words."""
        found = list[Step]()
        while self.word not in ends:
            if not self.word:
                raise _unfinished()
            if (step := self.step()) is not None:
                found.append(step)
        return tuple(found)

    def step(self) -> Step | None:
        self.refuse()
        if self.skip(";"):
            return None
        if self.word == "BEGIN":
            return self.block()
        if self.skip("IF"):
            return self.choice()
        text = self.until(";")
        self.skip(";")
        words = Piece(text, 0, tuple(Halfjoin().tokenize(text))).words
        if words[0] == "NULL" or (words[0] == "RAISE" and words[1:2] and words[1] in _LEVELS):
            return None
        if words[0] == "RAISE" or words[1:2] == (":=",):
            raise UnsupportedSQL(f"DO: {' '.join(words[:2])} is not supported", remedy="send the statements themselves")
        if words[0] == "PERFORM":
            return Run("SELECT" + text[len("PERFORM") :])
        if words[0] == "EXECUTE" and len(words) == 2:
            return Run(words[1])
        return Run(text)

    def choice(self) -> Choose:
        cases = list[tuple[str | None, tuple[Step, ...]]]()
        while True:
            condition = self.until("THEN")
            self.need("THEN")
            cases.append((condition, self.steps("ELSIF", "ELSEIF", "ELSE", "END")))
            if not self.skip("ELSIF") and not self.skip("ELSEIF"):
                break
        if self.skip("ELSE"):
            cases.append((None, self.steps("END")))
        self.need("END")
        self.need("IF")
        return Choose(tuple(cases))

    def until(self, end: str) -> str:
        """The text up to a word that is not inside of CASE."""
        first, depth = self._at, 0
        while self.word and (self.word != end or depth):
            depth += (self.word == "CASE") - (self.word == "END" and depth > 0)
            self._at += 1
        if self._at == first:
            raise self.wrong()
        return self._piece.between(first, self._at).rstrip()


def _unfinished() -> HalfjoinError:
    return UnsupportedSQL("DO: syntax error at end of input", code="42601", remedy="write DO $$ BEGIN ...; END $$")
