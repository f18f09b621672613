"""The statements that open, change and end a transaction, as data."""

from __future__ import annotations

from dataclasses import dataclass

LEVELS = ("read uncommitted", "read committed", "repeatable read", "serializable")  # of isolation


@dataclass(frozen=True)
class Begin:
    """BEGIN: the statements up to COMMIT are one batch. `level`: of isolation, one of `LEVELS`; None: the default.
    `read_only`: READ ONLY; None: not said."""

    level: str | None = None
    read_only: bool | None = None


@dataclass(frozen=True)
class SetTransaction:
    """SET TRANSACTION: as BEGIN's modes, for the open transaction."""

    level: str | None = None
    read_only: bool | None = None


@dataclass(frozen=True)
class SetConstraints:
    """SET CONSTRAINTS ALL | name, ... IMMEDIATE | DEFERRED. `immediate`: what is deferred is checked now, all of it."""

    immediate: bool


@dataclass(frozen=True)
class Commit:
    """COMMIT: apply the batch. `chain`: AND CHAIN, which begins another transaction with the same modes."""

    chain: bool = False


@dataclass(frozen=True)
class Rollback:
    """ROLLBACK: discard the changes of the statements since BEGIN. `chain`: as of `Commit`."""

    chain: bool = False


@dataclass(frozen=True)
class Savepoint:
    """SAVEPOINT name, ROLLBACK TO name, RELEASE name. `word`: `savepoint`, `rollback` or `release`."""

    word: str
    name: str

    @property
    def words(self) -> str:
        """The words that it begins with."""
        return {"rollback": "ROLLBACK TO SAVEPOINT", "release": "RELEASE SAVEPOINT"}.get(self.word, "SAVEPOINT")
