"""The settings of a session: SET, RESET and SHOW. Only TIME changes what statements do; others are for clients."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from halfjoin.errors import UnknownName, UnsupportedSQL

# Each setting with its default, and the values that it can have (None: any). They say what always holds.
SETTINGS: Mapping[str, tuple[str, tuple[str, ...] | None]] = {
    "application_name": ("", None),
    "client_encoding": ("UTF8", ("utf8", "utf-8", "unicode")),
    "client_min_messages": ("notice", None),
    "datestyle": ("ISO", ("iso", "iso, mdy", "iso, ymd", "iso, dmy")),
    "extra_float_digits": ("1", ("0", "1", "2", "3")),
    "intervalstyle": ("postgres", ("postgres",)),
    "search_path": ("public", None),
    "server_encoding": ("UTF8", ("utf8",)),
    "standard_conforming_strings": ("on", ("on", "true")),
    "timezone": ("UTC", ("utc", "etc/utc", "etc/gmt", "gmt", "zulu", "0", "+0", "-0", "+00", "-00", "00:00", "+00:00",
                         "-00:00")),
}


def checked(name: str, value: str | None) -> str:
    """The value of a setting; None: its default.

    Raises:
        UnknownName: there is no such setting.
        UnsupportedSQL: it cannot have that value.
    """
    if name not in SETTINGS:
        raise UnknownName("setting", name, ("time", *SETTINGS))
    default, allowed = SETTINGS[name]
    if value is None:
        return default
    if allowed is not None and value.lower() not in allowed:
        raise UnsupportedSQL(f"{name} cannot be {value!r}", remedy=f"it is {default}")
    return value


def show_settings(settings: Mapping[str, str], time: int | None) -> pa.Table:
    """All settings by name."""
    every = {"time": None if time is None else str(time)} | {name: checked(name, None) for name in SETTINGS} | {
        **settings}  # fmt: skip
    return pa.table({"name": pa.array(sorted(every), pa.string()),
                     "setting": pa.array([every[name] for name in sorted(every)], pa.string())})  # fmt: skip
