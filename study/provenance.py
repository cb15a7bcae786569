"""Where a result comes from: the code's git state, the libraries' versions and the device."""

from __future__ import annotations

import platform
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

import torch

from bimp.kernels.processor import CPU_INFORMATION, described

LIBRARIES = ("torch", "torch-geometric", "ray", "optuna", "mlflow", "pyarrow", "numpy", "bimp-study")
"""Distributions whose version can change a result or its record, by their names on the package index."""

CODE_FOLDER = Path(__file__).resolve().parent
"""A folder of the project's own code: its repository is asked, whatever the working folder is."""

GIT_TIMEOUT_S = 5.0
"""A repository on a network disk that answers later than this counts as unknown; no study waits for it."""


@dataclass(frozen=True)
class GitState:
    """The commit that is checked out and whether files differ from it; both None where this is not known."""

    commit: str | None
    dirty: bool | None


def git_state(folder: Path = CODE_FOLDER, timeout_s: float = GIT_TIMEOUT_S) -> GitState:
    """The state of the repository that tracks ``folder``.

    None and None where git is missing or answers too late, or where ``folder`` is in no repository, lies in one
    that does not track it (a package installed below somebody else's checkout) or in one without a commit.
    ``dirty`` counts changed files of the whole repository and ignores untracked ones: results, notes and
    caches lie beside the code and change no result.
    """
    tracked = _git(folder, timeout_s, "ls-files", "--", ".")
    commit = _git(folder, timeout_s, "rev-parse", "--verify", "HEAD") if tracked else None
    if not commit:
        return GitState(commit=None, dirty=None)
    changes = _git(folder, timeout_s, "status", "--porcelain", "--untracked-files=no")
    return GitState(commit=commit, dirty=None if changes is None else bool(changes))


def library_versions() -> dict[str, str]:
    """Version by name: of ``python`` and of every installed one of :data:`LIBRARIES`; imports none of them."""
    installed = {name: version for name in LIBRARIES if (version := _version(name)) is not None}
    return {"python": platform.python_version(), **installed}


# Every trial's record holds them, and each is looked up in a file of many lines.
@cache
def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def device_name(device: torch.device, cpu_information: Path = CPU_INFORMATION) -> str:
    """What people call ``device``: the GPU's name, or the processor's model.

    Args:
        device: where a trial runs.
        cpu_information: the file in which Linux describes its processors.
    """
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    model = described(cpu_information).get("model name")
    return model or platform.processor() or platform.machine() or "unknown processor"


def _git(folder: Path, timeout_s: float, *arguments: str) -> str | None:
    try:
        # Without optional locks a status never disturbs a commit that someone makes at the same time.
        answer = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None
