"""Cause every fault, or those that are named, and print what was seen: ``python -m benchmarks.faults [NAME ...]``."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.faults.leases import LEASE_SCENARIOS
from benchmarks.faults.lost_ray import RAY_SCENARIOS
from benchmarks.faults.mirror_scenarios import MIRROR_SCENARIOS
from benchmarks.faults.scenarios import SCENARIOS
from benchmarks.faults.scene import Stage
from benchmarks.faults.stopped import STOP_SCENARIOS


def main() -> int:
    """Run what was asked for; 1 if something was not as it should be."""
    together = (*SCENARIOS, *LEASE_SCENARIOS, *RAY_SCENARIOS, *STOP_SCENARIOS, *MIRROR_SCENARIOS)
    scenarios = {scenario.__name__: scenario for scenario in together}
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of {', '.join(scenarios)}; all where none is given"
    )
    parser.add_argument("--keep", type=Path, help="work in this folder, and leave it")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in scenarios]
    if unknown:
        parser.error(f"no such fault: {', '.join(unknown)}")
    # Ray's sockets lie below it: its path must be short.
    folder = given.keep or Path(tempfile.mkdtemp(prefix="faults-"))
    folder.mkdir(parents=True, exist_ok=True)
    stage = Stage(folder)
    bad = 0
    try:
        for name in given.names or scenarios:
            try:
                seen = scenarios[name](stage)
            except PermissionError as error:
                sys.stdout.write(f"{name}: left out, this user may not cause it ({error})\n\n")
                continue
            bad += not seen.good
            lines = "".join(f"  {line}\n" for line in seen.lines).replace(str(folder), "FOLDER")
            verdict = "as it should be" if seen.good else "NOT as it should be"
            sys.stdout.write(f"{name}: {verdict}\n  caused: {seen.caused}\n{lines}\n")
            sys.stdout.flush()
    finally:
        for running in stage.running:
            running.kill()
        if given.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
