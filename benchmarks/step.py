"""What a training step costs, as ratios measured in one run: ``python -m benchmarks.step``.

``--quick`` takes a few turns at 4 layers and writes nothing. ``--only DATASET`` takes all turns of one dataset, writes
its targets beside those of other processors and leaves the rest of docs/performance.md as it is.
"""

from __future__ import annotations

import argparse

from benchmarks.environment import start_as_a_worker


def main() -> None:
    """Start anew with the environment of a study's workers, which is read when a process starts; then measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="4 layers, few turns; writes no page")
    parser.add_argument("--only", metavar="DATASET", help="one dataset; writes its targets")
    given = parser.parse_args()
    start_as_a_worker("benchmarks.step")
    from benchmarks.graphs import WORKLOADS  # torch is loaded once, in the right environment
    from benchmarks.suite import run

    if given.only is not None and given.only not in WORKLOADS:
        parser.error(f"--only: found {given.only}, expected one of {', '.join(WORKLOADS)}")
    run(quick=given.quick, only=given.only)


if __name__ == "__main__":
    main()
