"""Measures the memory of the machine."""

from __future__ import annotations

import os
from pathlib import Path


def machine_memory() -> int:
    """Bytes of memory that this process may use: the machine's, or the container's limit if that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total
