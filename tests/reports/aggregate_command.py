"""The command ``aggregate.py``: here, or as a process of its own, with or without the libraries it must not need."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from typer.testing import CliRunner, Result

from aggregate import app

ROOT = Path(__file__).parents[2]
BLOCKED = ("torch", "ray", "mlflow", "torch_geometric")
WITHOUT = f"""
import runpy, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED!r}:
            raise ImportError(f"{{name}} must not be loaded")

sys.meta_path.insert(0, Blocker())
sys.argv = ["aggregate.py", *sys.argv[1:]]
sys.path.insert(0, {str(ROOT)!r})
runpy.run_path({str(ROOT / "aggregate.py")!r}, run_name="__main__")
"""


def aggregate(*arguments: object, environment: Mapping[str, str] | None = None) -> Result:
    """Run in this process, where what the command imports is loaded already."""
    return CliRunner().invoke(app, [*map(str, arguments)], env=environment, catch_exceptions=False)


def aggregate_process(
    *arguments: object, code: str | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run in a process of its own; ``code`` :data:`WITHOUT`: in one that cannot load what is blocked."""
    start = ["-c", code] if code else [str(ROOT / "aggregate.py")]
    command = [sys.executable, *start, *map(str, arguments)]
    variables = {**os.environ, **(environment or {})}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120, env=variables)


def error_of(*arguments: object) -> str:
    """The one line on stderr of a command that must end with exit code 2 and print nothing else."""
    done = aggregate("tables", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return line
