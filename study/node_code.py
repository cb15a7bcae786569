"""The project's code on the nodes of a cluster that is joined: shipped by Ray, so that a node needs only the libraries.

Outside a Ray job a copy is made of the packages and of the user's own layers that the study names, and sent as the
working folder of the job: what is edited here while the study runs reaches no worker. Within a job (``ray job submit``)
Ray has sent what the job named; only what lies elsewhere, as in an image, is added.
"""

from __future__ import annotations

import json
import os
import shutil
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bimp.config import BACKBONES

PROJECT = Path(__file__).resolve().parents[1]
PACKAGES = ("bimp", "study", "reports")

NO_CODE = frozenset({"data", "results", "mlruns", "mlartifacts", "reproduction"})
"""Folders that are left out where they are no packages, beside caches and what is hidden."""

LARGEST_BYTES = 100 * 2**20
"""Ray keeps what is sent in the memory of its head node."""

JOB_CONFIG = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""By this variable Ray tells a job's driver what the job named."""

SENT_SETTINGS = ("MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")
"""Environment variables of :func:`study.cluster.prepare_environment` that a worker reads when it starts."""


class CodeError(ValueError):
    """Code that cannot be sent to the nodes; says what, and how to mend it."""


@contextmanager
def shipped_code(
    backbones: Iterable[str], variables: Mapping[str, str], environment: Mapping[str, str] = os.environ
) -> Iterator[dict[str, Any]]:
    """What ``ray.init`` is to be given as ``runtime_env``; it is read within the block.

    Args:
        backbones: of the study's cells; those of the user's own (``module:Class``) must be imported.
        variables: environment variables of the workers, unless the job has its own.
        environment: of this process.

    Raises:
        CodeError: a layer's package is too large.
    """
    job = job_environment(environment)
    wanted = {**{name: environment[name] for name in SENT_SETTINGS if name in environment}, **variables}
    # Ray refuses a variable that the job has too.
    sent = {name: value for name, value in wanted.items() if name not in job.get("env_vars", {})}
    settings = {"env_vars": sent} if sent else {}
    code = code_of(backbones)
    if "working_dir" in job:
        here = Path.cwd()
        elsewhere = [str(path) for path in code if not path.is_relative_to(here)]
        # Ray takes py_modules from the job or from here, not from both.
        yield {**settings, **({"py_modules": elsewhere} if elsewhere and "py_modules" not in job else {})}
        return
    with TemporaryDirectory(prefix="bimp-code-") as folder:
        for path in code:
            _copy(path, Path(folder))
        _require_small(Path(folder), code)
        yield {**settings, "working_dir": folder}


def job_environment(environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """The runtime environment that the Ray job named whose driver this process is; empty outside a job."""
    given = json.loads(environment.get(JOB_CONFIG, "{}"))
    return dict(given.get("runtime_env") or {})


def code_of(backbones: Iterable[str]) -> list[Path]:
    """The project's packages, and the modules and packages of layers that no installation of the nodes has."""
    own = {backbone.partition(":")[0].partition(".")[0] for backbone in backbones if backbone not in BACKBONES}
    found = [path for name in sorted(own - set(PACKAGES)) for path in _of_module(name) if not _is_library(path)]
    return [*(PROJECT / name for name in PACKAGES), *found]


def _of_module(name: str) -> list[Path]:
    module = sys.modules[name]
    folders = getattr(module, "__path__", None)
    if folders is None:
        return [Path(str(module.__file__)).resolve()]
    return [Path(folder).resolve() for folder in folders]


def _is_library(path: Path) -> bool:
    """Whether it lies where pip installs: the nodes have it as they have torch."""
    paths = sysconfig.get_paths()
    places = [paths["purelib"], paths["platlib"], *site.getsitepackages(), site.getusersitepackages()]
    return any(path.is_relative_to(Path(place).resolve()) for place in places)


def _copy(path: Path, folder: Path) -> None:
    if path.is_file():
        shutil.copy2(path, folder / path.name)
        return

    # A package without an __init__ may lie in several folders.
    shutil.copytree(path, folder / path.name, ignore=_left_out, dirs_exist_ok=True)


def _left_out(where: str, names: list[str]) -> set[str]:
    without = {name for name in NO_CODE.intersection(names) if not (Path(where) / name / "__init__.py").exists()}
    return without | {name for name in names if name == "__pycache__" or name.startswith(".")}


def _require_small(folder: Path, code: list[Path]) -> None:
    sizes = {
        path: sum(file.stat().st_size for file in (folder / path.name).rglob("*") if file.is_file()) for path in code
    }
    largest = max(sizes, key=lambda path: sizes[path])
    total = sum(sizes.values())
    if total > LARGEST_BYTES:
        raise CodeError(
            f"{largest}: {sizes[largest] / 2**20:.1f} of {total / 2**20:.1f} MiB that would be sent to every node, "
            f"more than {LARGEST_BYTES / 2**20:g} in all; move data out of this package, or install it on the nodes"
        )
