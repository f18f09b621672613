"""Make and remove the folders of collections. The journal names a folder before it is made, until a collection has it.

So halfjoin can remove the folders of dropped collections and of processes that ended early, and nothing of others.
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
from halfjoin.errors import HalfjoinError, StorageError

_log = logging.getLogger("halfjoin")


@dataclass(slots=True)
class Folders:
    """The folders of a warehouse. `known`: the folders of existing collections, and those made for future ones."""

    site: Site
    journal: Journal
    known: set[str] = field(default_factory=set)

    def claimed(self, kind: str, name: str) -> Place:
        """The folder of a collection. If the collection does not exist yet, the journal names the folder first."""
        folder = f"{kind}/{folder_name(name)}"
        if folder not in self.known:
            self.check_free(folder)
            self.journal.unclaim(folder)
            self.known.add(folder)
        return in_site(self.site, folder)

    def check_free(self, folder: str) -> None:
        """Refuse a new collection if its folder holds files that are not this warehouse's."""
        place = in_site(self.site, folder)
        try:
            free = folder in self.known or not any(place.names()) or folder in self.journal.unclaimed()
        except (DeltaError, OSError) as problem:
            raise StorageError(f"{place} cannot be listed: {problem}", path=str(place)) from problem
        if not free:
            raise StorageError(f"{place} holds files that are not this warehouse's",
                               remedy="move it away, or use another name", path=str(place))

    def remove_unclaimed(self) -> None:
        """Remove the folders of dropped collections, and of collections that a process did not finish making. Removes
        only folders that the journal names. Raises no error: what it cannot remove, the next opening removes, and the
        change that left it behind is done."""
        try:
            found = [folder for folder in self.journal.unclaimed() if folder not in self.known]
            gone = [folder for folder in found if self.clear(in_site(self.site, folder))]
            if gone:
                self.journal.removed(gone)
        except HalfjoinError as problem:  # for example, the disk is full
            _log.warning("the folders of dropped collections are left behind for now: %s", problem)

    @staticmethod
    def clear(place: Place, keep: Container[str] = ()) -> bool:
        """Empty a folder, except for `keep`. Returns whether it is empty; if not, the next opening tries again."""
        try:
            place.clear(keep)
            return not any(place.names())
        except (DeltaError, OSError) as problem:
            _log.warning("%s is left behind for now: %s", place, problem)
            return False
