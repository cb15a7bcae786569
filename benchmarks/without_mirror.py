"""``run_study.py`` without MLflow's mirror, to compare with: ``python -m benchmarks.without_mirror run ...``."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any
from unittest import mock

from run_study import main


def no_mirror(*arguments: Any, **named: Any) -> nullcontext[None]:
    """In the place of the mirror's thread: nothing."""
    return nullcontext()


if __name__ == "__main__":
    from study.cluster import prepare_environment

    prepare_environment()
    with mock.patch("study.driver.MirrorThread", no_mirror):
        main()
