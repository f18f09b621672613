"""The folders of a warehouse's collections: the journal names each before it is made, until a collection has it.

So what a process has left that ended, or a collection that was dropped, can be removed, and nothing that is not ours.
"""

from __future__ import annotations

import logging
from collections.abc import Container
from dataclasses import dataclass, field

from deltalake.exceptions import DeltaError

from halfjoin.engine.storage.journal import Journal
from halfjoin.engine.storage.names import folder_name
from halfjoin.engine.storage.place import Place
from halfjoin.engine.storage.site import Site, in_site
from halfjoin.errors import StorageError

_log = logging.getLogger("halfjoin")


@dataclass(slots=True)
class Folders:
    """`known`: those that collections have, and those that were made for collections to come."""

    site: Site
    journal: Journal
    known: set[str] = field(default_factory=set)

    def claimed(self, kind: str, name: str) -> Place:
        """The folder of a collection, which may be one that is still to come: then the journal names it first."""
        folder = f"{kind}/{folder_name(name)}"
        if folder not in self.known:
            self.check_free(folder)
            self.journal.unclaim(folder)
            self.known.add(folder)
        return in_site(self.site, folder)

    def check_free(self, folder: str) -> None:
        """Refuse a new collection whose folder holds something that this warehouse has not put there."""
        place = in_site(self.site, folder)
        try:
            free = folder in self.known or not any(place.names()) or folder in self.journal.unclaimed()
        except (DeltaError, OSError) as problem:
            raise StorageError(f"{place} cannot be looked at: {problem}", path=str(place)) from problem
        if not free:
            raise StorageError(f"{place} holds what is not of this warehouse",
                               remedy="move it away, or use another name", path=str(place))

    def remove_unclaimed(self) -> None:
        """Folders of collections that were dropped, or never came to be when a process ended: those that the journal
        names, and no others."""
        found = [folder for folder in self.journal.unclaimed() if folder not in self.known]
        gone = [folder for folder in found if self.clear(in_site(self.site, folder))]
        if gone:
            self.journal.removed(gone)

    @staticmethod
    def clear(place: Place, keep: Container[str] = ()) -> bool:
        """Remove what no collection has any more. Returns whether it is gone; if not, the next opening tries again."""
        try:
            place.clear(keep)
            return not any(place.names())
        except (DeltaError, OSError) as problem:
            _log.warning("%s is left behind for now: %s", place, problem)
            return False
