"""What a training step costs, as ratios measured in one run: ``python -m benchmarks.step``; ``--quick``: a few turns.

A quick run prints what it measures and leaves docs/performance.md as it is.
"""

from __future__ import annotations

import argparse
import os
import sys

from study.cluster import prepare_environment


def main() -> None:
    """Start anew with the environment of a study's workers, which is read when a process starts; then measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="4 layers, few turns; writes no page")
    quick: bool = parser.parse_args().quick
    found = dict(os.environ)
    prepare_environment()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if dict(os.environ) != found:
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.step", *sys.argv[1:]])
    from benchmarks.suite import run  # torch is loaded once, in the right environment

    run(quick=quick)


if __name__ == "__main__":
    main()
