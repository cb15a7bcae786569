"""The exit codes of ``run_study.py``, and which of them say that the same command goes on."""

from __future__ import annotations

import sys
from typing import Final

TRIALS_FAILED: Final = 1
WRONG_INPUT: Final = 2
INTERRUPTED: Final = 130
"""Stopped from outside; as a shell has it of a program that Ctrl-C ended."""

CLUSTER_LOST: Final = 75
"""The Ray that it ran on is gone: ``EX_TEMPFAIL`` of sysexits.h."""

GO_ON: Final = frozenset({CLUSTER_LOST, INTERRUPTED})
"""The run has not ended, and starting it again goes on without anything being mended; batch jobs requeue on these."""


if __name__ == "__main__":  # for shells: python -m study.exit_codes
    sys.stdout.write(" ".join(map(str, sorted(GO_ON))) + "\n")
