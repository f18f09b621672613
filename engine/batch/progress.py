"""How far a source has been read. A batch's entry holds it beside the batch's rows, so they cannot disagree."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace


@dataclass(frozen=True, slots=True)
class Progress:
    """What a source has given so far.

    `position`: where it goes on, as its reader wrote it; None: at the beginning. `rows`, `bad`, `batches`: how many
    rows, bad records and batches have come. `at`: when the last batch came, in ms since 1970; None: there was none.
    `open`: the time of the last batch, if it is to stay open for more pieces of one transaction.
    """

    position: str | None = None
    rows: int = 0
    bad: int = 0
    batches: int = 0
    at: int | None = None
    open: int | None = None

    def text(self) -> str:
        """The progress as JSON text."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class Feed:
    """A batch of a source: the source's id and name, and its progress after the batch. `more`: the batch is a piece of
    a transaction, and its time stays open for the others."""

    id: str
    name: str
    after: Progress
    more: bool = False

    def at(self, time: int) -> Feed:
        """The feed of a batch at a time."""
        return replace(self, after=replace(self.after, open=time)) if self.more else self


def progress_of(text: str) -> Progress:
    """The progress that `Progress.text` wrote; of a source that was not read yet, if the text is empty."""
    return Progress(**json.loads(text)) if text else Progress()


def fact_of(source: str) -> str:
    """The key under which a store keeps the progress of the source with that id."""
    return f"source/{source}"
