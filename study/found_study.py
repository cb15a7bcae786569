"""Whether there is a study in a folder that somebody named: asked first by every command that reads one."""

from __future__ import annotations

from pathlib import Path

from study.location import is_remote
from study.results import ResultsFolder
from study.store_access import is_there


class NoStudyError(ValueError):
    """A folder or URL without a study; says what is missing, and what to give instead."""


def require_study(results: Path, needed: str = "plan.json") -> None:
    """Check that ``results`` is the results folder of a study, by the file or folder in it that is ``needed``.

    Raises:
        NoStudyError: it is none, or a file lies where it has a folder, which would look like a study without trials.
        StoreAccessError: it lies in an object store that cannot be asked, or in a bucket that is not there.
    """
    if not is_remote(results) and not results.exists():
        cause = "there is no such folder"
    elif not is_remote(results) and not results.is_dir():
        cause = "it is a file"
    elif not is_there(results, needed):
        cause = f"{needed} is missing"
    else:
        _require_folders(results)
        return
    raise NoStudyError(f"{results}: no study here ({cause}); give a study's results folder, or its URL")


def _require_folders(results: Path) -> None:
    if is_remote(results):  # an object store knows no folders
        return
    for folder in ResultsFolder(results).folders:
        if folder.exists() and not folder.is_dir():
            raise NoStudyError(
                f"{folder}: found a file, expected a folder; move it away, or name another results folder"
            )
