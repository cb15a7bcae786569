"""Seconds and peak memory of a program: ``python -m benchmarks.process_cost PROGRAM ARGUMENT...`` prints them as JSON.

A process of its own, and a small one: Linux counts the memory of whoever starts a program as the program's own peak.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class ProgramCost:
    """Of one program: seconds by the clock, seconds of CPU time, and its peak memory."""

    wall: float
    cpu: float
    peak_bytes: int


def cost_of(*arguments: str) -> ProgramCost:
    """Run ``python ARGUMENTS`` here, in a process of its own.

    Raises:
        RuntimeError: it failed; holds the end of what it said.
    """
    command = [sys.executable, "-m", "benchmarks.process_cost", *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}: exit status {answer.returncode}: {answer.stderr[-500:]}")
    return ProgramCost(**json.loads(answer.stdout))


def main(arguments: list[str]) -> ProgramCost:
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(process.returncode)
    return ProgramCost(wall, usage.ru_utime + usage.ru_stime, 1024 * usage.ru_maxrss)


if __name__ == "__main__":
    print(json.dumps(asdict(main(sys.argv[1:]))))
