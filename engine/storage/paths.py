"""Turn a user's path or URL into an absolute path on this machine, or a place in an object store.

The library that writes Delta tables gets their places as URLs, and a URL changes some names of folders: it would write
`w%20x` to `w x`. The engine refuses such names before it writes anything.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from urllib.parse import unquote_to_bytes

from halfjoin.errors import StorageError

# Bytes of a warehouse's path. Names inside have up to 200 bytes, and file systems allow 4,096 in all.
LONGEST = 3500
_URL = re.compile("[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_FILE = re.compile("file:", re.IGNORECASE)
_WITHIN_A_TABLE = "(?<![^/])_delta_log(?![^/])"  # the library takes what is in it for the log of a table around it
_ODD = re.compile(rf"%[0-9a-fA-F]{{2}}|[\x00-\x1f\x7f\\]|{_WITHIN_A_TABLE}")
_ODD_URL = re.compile(rf"[\x00-\x20\x7f\\%?#]|{_WITHIN_A_TABLE}")


def is_url(text: str) -> bool:
    """Whether a text is the URL of an object store."""
    return _URL.match(text) is not None and not _FILE.match(text)


def is_relative(text: str) -> bool:
    """Whether a text is a path relative to another folder."""
    return not is_url(text) and not _FILE.match(text) and not text.startswith(("/", "~"))


def local_path(text: str) -> Path:
    """The absolute path, with links resolved, of a path or a `file:` URL. `~` is the user's home.

    Raises:
        StorageError: the text does not lead anywhere, or a Delta table's URL cannot have a name in it.
    """
    if not text:
        raise StorageError("'' is not a path", remedy="give the path of a folder")
    if "\0" in text:
        raise StorageError(f"{text!r} is not a path: it contains a NUL", path=text)
    try:
        named = Path(_of_url(text) if _FILE.match(text) else text)
        path = (named.expanduser() if text.startswith("~") else named).resolve()  # Path("./~name") is "~name"
    except UnicodeEncodeError:
        raise StorageError(f"the path {text!r} cannot be written in {sys.getfilesystemencoding()}, which is how names "
                           "of files are written in this process", remedy="set LC_ALL=C.UTF-8 or PYTHONUTF8=1",
                           path=text) from None  # fmt: skip
    except (RuntimeError, OSError) as problem:  # no such user, or a circle of links
        raise StorageError(f"the path {text!r} leads nowhere: {problem}",
                           remedy="write ./~name for a folder whose name begins with ~",
                           path=text) from problem  # fmt: skip
    check_name(str(path))
    if len(os.fsencode(path)) > LONGEST:
        raise StorageError(f"the path {str(path)[:80]}... is too long for the files in it: {LONGEST} bytes at most")
    return path


def check_name(name: str) -> None:
    """Refuse names that a URL would change, and those of folders in the log of a Delta table.

    Raises:
        StorageError: with the part of the name that would change.
    """
    odd = _ODD.search(name)
    if odd is not None:
        raise StorageError(f"the path {name!r} cannot hold Delta tables, as other tools would look for them elsewhere: "
                           f"it contains {odd.group()!r}", remedy="rename the folder", path=name)  # fmt: skip
    try:
        name.encode()
    except UnicodeEncodeError:
        raise StorageError(f"the path {name!r} cannot hold Delta tables: it is not UTF-8",
                           remedy="rename the folder", path=name) from None


def check_url(url: str) -> None:
    """Refuse URLs of object stores that different libraries read as different names.

    Raises:
        StorageError: with the character that does this.
    """
    odd = _ODD_URL.search(url)
    if odd is not None:
        raise StorageError(f"the path {url!r} cannot hold Delta tables: it contains {odd.group()!r}, which libraries "
                           "read in different ways", remedy="choose another name", path=url)  # fmt: skip


def _of_url(text: str) -> str:
    """The path of a `file:` URL. A percent sign and two digits are a byte."""
    rest = _FILE.sub("", text, count=1)
    if rest.startswith("//"):
        host, slash, rest = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise StorageError(f"{text!r} is not a path of this machine: the engine cannot reach files of {host!r}",
                               remedy="write file:///absolute/path", path=text)  # fmt: skip
        rest = slash + rest
    if not rest.startswith("/"):
        raise StorageError(f"{text!r} is not an absolute path", remedy="write file:///absolute/path", path=text)
    if "?" in rest or "#" in rest:
        raise StorageError(f"{text!r} is more than a path",
                           remedy="in a URL write %3F for ? and %23 for #", path=text)
    path = os.fsdecode(unquote_to_bytes(rest))
    if "\0" in path:
        raise StorageError(f"{text!r} is not a path: it contains a NUL", path=text)
    return path
