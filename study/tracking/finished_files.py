"""What was made of a study's records, as the study's run in MLflow holds it: tables, pictures and the page."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from study.tracking.state import hash_of

FILES_TAG = "mirror_files"
"""The tag of the study's run that says which files it holds; written after them."""

FINISHED = ("tables", "figures", "page.html")
"""Where ``aggregate.py`` writes in a results folder: two folders and a file."""


@dataclass(frozen=True)
class FinishedFile:
    """A file; ``name`` is its place in the results folder and among the run's artifacts, ``digest`` its content's."""

    path: Path
    name: str
    digest: str

    @property
    def folder(self) -> str | None:
        """The folder of ``name``; None at the top."""
        parent = str(PurePosixPath(self.name).parent)
        return None if parent == "." else parent


def finished_files(results: Path) -> tuple[FinishedFile, ...]:
    """Every file that :data:`FINISHED` names in the folder ``results``, ordered by name; hidden ones are left out."""
    found = []
    for top in FINISHED:
        for path in [results / top, *(results / top).rglob("*")]:
            place = path.relative_to(results)
            if path.is_file() and not any(part.startswith(".") for part in place.parts):
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                found.append(FinishedFile(path, place.as_posix(), digest))
    return tuple(sorted(found, key=lambda file: file.name))


def state_of_files(files: tuple[FinishedFile, ...]) -> str:
    """A short hash of names and contents: equal where nothing has changed."""
    return hash_of([(file.name, file.digest) for file in files])
