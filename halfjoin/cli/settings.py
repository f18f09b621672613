"""The settings of a process: from arguments, the environment and a file, each with the place that it came from.

An argument counts before `HALFJOIN_...` in the environment, that before the file `halfjoin.toml`, that before the
default. The file is the one that HALFJOIN_CONFIG names, or the one in the current folder. (A reader of our own, since
the libraries for this do not tell where a value came from, and take longer to import than all of this takes to run.)
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from halfjoin.engine.batch.clock import Clock
from halfjoin.errors import HalfjoinError

PREFIX, CONFIG, FILE = "HALFJOIN_", "HALFJOIN_CONFIG", "halfjoin.toml"
_PLACES = ("warehouse", "password_file", "tls_cert", "tls_key")  # paths: in the file, relative to its folder


class Settings(BaseModel):
    """What a process can be told. Times are in seconds; a port of 0 is any free one, an `http_port` of -1 none.

    `password`: of the user halfjoin; `password_file`: of several users. The engine's own are those of `Engine`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    warehouse: str | None = None
    memory: int | str | None = None
    retain: int | str | None = None
    clock: Clock | None = None
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 6875
    http_port: Annotated[int, Field(ge=-1, le=65535)] = 6876
    password: SecretStr | None = None
    password_file: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    max_connections: Annotated[int, Field(ge=1)] = 100
    idle_timeout: Annotated[float, Field(gt=0)] = 8 * 3600
    statement_timeout: Annotated[float, Field(gt=0)] = 3600

    @property
    def engine(self) -> dict[str, Any]:
        """The arguments of `Engine` for an engine that writes."""
        retain = int(self.retain) if isinstance(self.retain, str) and self.retain.isdigit() else self.retain
        return {"memory": self.memory, "retain": retain, "clock": self.clock}


@dataclass(frozen=True)
class Found:
    """Settings, and the origin of each: `argument`, a name of the environment, a file, or `default`."""

    settings: Settings
    origins: Mapping[str, str]

    def lines(self) -> list[tuple[str, str, str]]:
        """Each setting that is not None: its name, its value without secrets, its origin."""
        values = dict(self.settings)
        return [(name, _shown(value), self.origins[name]) for name, value in values.items() if value is not None]


def read_settings(
    given: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None
) -> Found:
    """The settings of this process.

    Args:
        given: the arguments by name; None and empty texts are not given.
        environment: that of the process by default.

    Raises:
        HalfjoinError: the file cannot be read, a name is unknown, or a value is not valid.
    """
    env = os.environ if environment is None else environment
    values: dict[str, Any] = {}
    origins = dict.fromkeys(Settings.model_fields, "default")
    file = Path(env.get(CONFIG) or FILE)
    kept = _of_file(file) if file.exists() or env.get(CONFIG) else {}
    told = {name: env.get(_variable(name)) for name in origins}
    for place, found in ((str(file), kept), ("", told), ("argument", given or {})):
        for name, value in found.items():
            if value is not None and value != "":
                values[name], origins[name] = value, place or _variable(name)
    try:
        return Found(Settings(**values), origins)
    except ValidationError as problem:
        first = problem.errors(include_input=False)[0]
        name = str(first["loc"][0])
        raise HalfjoinError(f"the setting {name} ({origins[name]}) is not valid: {first['msg']}",
                            remedy="`halfjoin doctor` shows where settings come from") from None  # fmt: skip


def _variable(name: str) -> str:
    """The name of a setting in the environment."""
    return f"{PREFIX}{name.upper()}"


def _shown(value: Any) -> str:
    """A value without secrets: a password, or that of a URL."""
    return "(hidden)" if isinstance(value, SecretStr) else re.sub(r"//[^/@]*@", "//(hidden)@", str(value))


def strange(environment: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """Names of the environment that look like settings and are none, with the setting that may be meant."""
    env = os.environ if environment is None else environment
    known = [_variable(name) for name in Settings.model_fields]
    found = []
    for name in sorted(env):
        if name.startswith(PREFIX) and name not in (*known, CONFIG):
            near = difflib.get_close_matches(name, known, 1, 0.8)
            found += [(name, near[0])] if near else []
    return found


def _of_file(file: Path) -> dict[str, Any]:
    """The settings of a file; its paths are relative to its folder.

    Raises:
        HalfjoinError: it cannot be read, or has a name that is no setting.
    """
    try:
        found = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise HalfjoinError(f"{file} cannot be read: {problem}") from None
    for name in found:
        if name not in Settings.model_fields:
            near = difflib.get_close_matches(name, Settings.model_fields, 1)
            remedy = f"did you mean {near[0]}?" if near else f"settings: {', '.join(Settings.model_fields)}"
            raise HalfjoinError(f"{file}: {name} is not a setting", remedy=remedy)
    for name in _PLACES:
        if isinstance(found.get(name), str) and "://" not in found[name]:
            found[name] = str(file.parent / Path(found[name]).expanduser())
    return found
