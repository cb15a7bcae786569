"""Names that LaTeX, Markdown and rich would act on, and pdflatex to show that they do not."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from made_studies import gated, trial, vanilla, write_study

SPECIAL = r"_ & % $ # { } ~ ^ \ [x] *y* `z` <a> |b| --"
FOREIGN = "Müller Ångström Erdős ß σ µ ± – “q” 图 Привет 😀 ą\u200b"  # noqa: RUF001


def pdflatex(document: Path) -> str:
    """Compile ``document`` beside itself and return the log; without pdflatex, skip (on CI: fail)."""
    if shutil.which("pdflatex") is None:
        assert os.environ.get("CI") != "true", "CI must have pdflatex"
        pytest.skip("pdflatex is not installed")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", document.name]
    done = subprocess.run(command, cwd=document.parent, capture_output=True, check=False, timeout=120)
    log = document.with_suffix(".log").read_text(encoding="latin-1")
    assert done.returncode == 0, log[-3000:]
    assert document.with_suffix(".pdf").stat().st_size > 0
    return log


def names_study(folder: Path) -> Path:
    """A study whose every name holds what LaTeX, Markdown and rich would act on."""
    names = {"dataset_title": f"{SPECIAL} {FOREIGN}", "seeds": [1]}
    cells = [
        vanilla(f"d{SPECIAL}", f"[{SPECIAL}", id=f"1{SPECIAL}", **names),
        gated(f"d{SPECIAL}", f"[{SPECIAL}", id=f"2{SPECIAL}{FOREIGN}", **names),
        gated(f"d{SPECIAL}", f"[{SPECIAL}", id=f"3{SPECIAL}{FOREIGN}", **names),
    ]
    failed = trial(cells[1], 1, status="failed", reason=f"[/red] {SPECIAL} {FOREIGN}")
    return write_study(folder, cells, [failed], f"{SPECIAL}\n\n{FOREIGN}", f"{SPECIAL}{FOREIGN}")
