"""What Linux says of the processor: which of two libraries is faster hangs on who made it."""

from __future__ import annotations

import platform
from pathlib import Path

CPU_INFORMATION = Path("/proc/cpuinfo")
"""The file in which Linux describes its processors."""


def described(cpu_information: Path = CPU_INFORMATION) -> dict[str, str]:
    """What the file says of the first processor that has it, by its words; nothing where it cannot be read."""
    try:
        lines = cpu_information.read_text(errors="replace").splitlines()
    except OSError:
        return {}
    found: dict[str, str] = {}
    for key, _, value in (line.partition(":") for line in lines):
        if value.strip():
            found.setdefault(key.strip(), value.strip())
    return found


def maker_of_processor(cpu_information: Path = CPU_INFORMATION) -> str:
    """As processors of the x86 family name their maker, ``AuthenticAMD`` or ``GenuineIntel``; empty: none is named."""
    found = described(cpu_information)
    # Windows, which has no such file, names it last.
    return found.get("vendor_id", "") if found else platform.processor().rpartition(" ")[2]
