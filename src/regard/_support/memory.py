"""Memory of this machine, to refuse what cannot fit before it is tried."""

import os
from contextlib import suppress
from pathlib import Path


def total_memory(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the memory that this process may use, in bytes; None where it is unknown.

    It is the machine's, or less if the control group (a container) has a limit.

    Args:
        root: where control groups are mounted.
    """
    limits = []
    with suppress(OSError, ValueError, AttributeError):  # Windows has no sysconf
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # version 2 and version 1
        with suppress(OSError, ValueError):  # "max" is no limit
            limits.append(int((root / name).read_text()))
    return min(limits, default=None)


def format_gigabytes(size: int) -> str:
    """Format a number of bytes in gigabytes.

    Example:
        >>> format_gigabytes(16_400_000_000)
        '16.4 GB'
    """
    return f"{size / 1e9:,.1f} GB"
