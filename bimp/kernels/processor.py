"""Who made the processor: which of two libraries is faster hangs on it."""

from __future__ import annotations

import platform
from pathlib import Path


def maker_of_processor(cpu_information: Path = Path("/proc/cpuinfo")) -> str:
    """As processors of the x86 family name their maker, ``AuthenticAMD`` or ``GenuineIntel``; empty: none is named.

    Args:
        cpu_information: the file in which Linux describes its processors.
    """
    try:
        lines = cpu_information.read_text(errors="replace").splitlines()
    except OSError:
        return platform.processor().rpartition(" ")[2]  # Windows names it last
    named = (value.strip() for key, _, value in (line.partition(":") for line in lines) if key.strip() == "vendor_id")
    return next(named, "")
