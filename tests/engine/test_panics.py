"""Errors of libraries in Rust are ordinary ones in plain text."""

from __future__ import annotations

import pytest
from deltalake.exceptions import DeltaError

from halfjoin.engine.system.panics import panics_caught


def test_an_error_has_no_colours() -> None:
    """A full disk is told in colours, which would go into logs and into SHOW SINKS."""
    with pytest.raises(DeltaError) as told, panics_caught():
        raise DeltaError("Generic LocalFileSystem error\n \x1b[31m↳\x1b[0m No space left on device")
    assert str(told.value) == "Generic LocalFileSystem error\n ↳ No space left on device"
    with pytest.raises(OSError, match="No space") as raised, panics_caught():
        raise OSError(28, "No space left on device")
    assert raised.value.errno == 28


def test_a_panic_is_an_error() -> None:
    panic = type("PanicException", (BaseException,), {})
    with pytest.raises(OSError, match="no more threads"), panics_caught():
        raise panic("no more threads")
