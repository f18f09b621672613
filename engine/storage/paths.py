"""What a path or a URL of the user's means: an absolute path on this machine, or a place in an object store.

The places of Delta tables are URLs to the library that writes them, and not every name of a folder comes through one as
it went in: `w%20x` would be written to `w x`. Such names are refused, before anything is written.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote_to_bytes

from halfjoin.errors import StorageError

# Of a warehouse's path. What is in it has names of up to 200 bytes, and file systems take 4,096 in all.
LONGEST = 3500
_URL = re.compile("[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_FILE = re.compile("file:", re.IGNORECASE)
_ODD = re.compile(r"%[0-9a-fA-F]{2}|[\x00-\x1f\x7f\\]")
_ODD_URL = re.compile(r"[\x00-\x20\x7f\\%?#]")


def is_url(text: str) -> bool:
    """Whether a text is the URL of an object store."""
    return _URL.match(text) is not None and not _FILE.match(text)


def is_relative(text: str) -> bool:
    """Whether a text is a path that says where from somewhere else."""
    return not is_url(text) and not _FILE.match(text) and not text.startswith(("/", "~"))


def local_path(text: str) -> Path:
    """The absolute path, without links, that a path or a `file:` URL means; `~` is the home of the user.

    Raises:
        StorageError: it means none, or a name in it is one that the URL of a Delta table cannot have.
    """
    if not text:
        raise StorageError("'' is not a path", remedy="give that of a folder")
    if "\0" in text:
        raise StorageError(f"{text!r} is not a path: there is a NUL in it", path=text)
    try:
        path = (Path(_of_url(text)) if _FILE.match(text) else Path(text).expanduser()).resolve()
    except (RuntimeError, OSError) as problem:  # no such user, or links in a circle
        raise StorageError(f"the path {text!r} leads nowhere: {problem}",
                           remedy="a folder whose name begins with ~ is written ./~name",
                           path=text) from problem  # fmt: skip
    check_name(str(path))
    if len(os.fsencode(path)) > LONGEST:
        raise StorageError(f"the path {str(path)[:80]}... is too long for the files in it: {LONGEST} bytes at most")
    return path


def check_name(name: str) -> None:
    """Refuse names that do not come through a URL as they are.

    Raises:
        StorageError: says which part of it does not.
    """
    odd = _ODD.search(name)
    if odd is not None:
        raise StorageError(f"the path {name!r} cannot hold Delta tables, as other tools would look for them elsewhere: "
                           f"there is {odd.group()!r} in it", remedy="rename the folder", path=name)  # fmt: skip
    try:
        name.encode()
    except UnicodeEncodeError:
        raise StorageError(f"the path {name!r} cannot hold Delta tables: it is not UTF-8",
                           remedy="rename the folder", path=name) from None


def check_url(url: str) -> None:
    """Refuse URLs of object stores whose names the libraries that read them take for different ones.

    Raises:
        StorageError: says which character it is.
    """
    odd = _ODD_URL.search(url)
    if odd is not None:
        raise StorageError(f"the path {url!r} cannot hold Delta tables: there is {odd.group()!r} in it, which is read "
                           "in several ways", remedy="choose another name", path=url)  # fmt: skip


def _of_url(text: str) -> str:
    """The path that a `file:` URL means: percent signs and two digits are bytes."""
    rest = _FILE.sub("", text, count=1)
    if rest.startswith("//"):
        host, slash, rest = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise StorageError(f"{text!r} is not a path of this machine: files of {host!r} are not to be had",
                               remedy="write file:///absolute/path", path=text)  # fmt: skip
        rest = slash + rest
    if not rest.startswith("/"):
        raise StorageError(f"{text!r} is not an absolute path", remedy="write file:///absolute/path", path=text)
    if "?" in rest or "#" in rest:
        raise StorageError(f"{text!r} is more than a path",
                           remedy="in a URL ? is written %3F, and # is written %23", path=text)
    path = os.fsdecode(unquote_to_bytes(rest))
    if "\0" in path:
        raise StorageError(f"{text!r} is not a path: there is a NUL in it", path=text)
    return path
