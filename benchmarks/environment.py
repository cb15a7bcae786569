"""The environment in which a study's workers run, for a benchmark that is to run as they do."""

from __future__ import annotations

import os
import sys

from study.cluster import prepare_environment


def start_as_a_worker(benchmark: str) -> None:
    """Start ``python -m benchmark`` anew where its environment is another than a worker's of one thread.

    The C library and PyTorch read it when a process starts: call this before they are needed.
    """
    found = dict(os.environ)
    prepare_environment()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if dict(os.environ) != found:
        os.execv(sys.executable, [sys.executable, "-m", benchmark, *sys.argv[1:]])
