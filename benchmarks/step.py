"""What a training step costs, as ratios measured in one run: ``python -m benchmarks.step``."""

from __future__ import annotations

import os
import sys

from study.cluster import prepare_environment


def main() -> None:
    """Start anew with the environment of a study's workers, which is read when a process starts; then measure."""
    found = dict(os.environ)
    prepare_environment()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if dict(os.environ) != found:
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.step", *sys.argv[1:]])
    from benchmarks.suite import run  # torch is loaded once, in the right environment

    run()


if __name__ == "__main__":
    main()
