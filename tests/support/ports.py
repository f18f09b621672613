"""A port for a process that cannot be asked which one it has: nobody else is given it before that process listens."""

from __future__ import annotations

import socket
import sys

_KEPT: list[socket.socket] = []  # bound until this process ends, without listening


def kept_port() -> int:
    """A port of loopback. A server that sets SO_REUSEADDR, as all do, can listen on it."""
    keeper = socket.socket()
    keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    keeper.bind(("127.0.0.1", 0))
    port: int = keeper.getsockname()[1]
    if sys.platform == "linux":
        _KEPT.append(keeper)
    else:  # two sockets cannot have one address there
        keeper.close()
    return port
