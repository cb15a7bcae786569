"""Tables, pictures and the page on the run of the study."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from made_mirrors import mirror_of
from read_mirrors import dump, live_runs

from study.results import ResultsFolder
from study.tracking import MirrorError, MlflowMirror, default_tracking_uri
from study.tracking.loop import MirrorThread


def artifacts(folder: ResultsFolder) -> dict[str, bytes]:
    top = folder.root / "mlartifacts" / live_runs(folder)["study quickstart"] / "artifacts"
    return {path.relative_to(top).as_posix(): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def make_files(folder: ResultsFolder) -> dict[str, bytes]:
    contents = {"tables/results.tex": b"tex", "figures/a/sigma_m.pdf": b"pdf", "page.html": b"<html>"}
    for name, text in contents.items():
        path = folder.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    (folder.root / "tables" / ".half.tmp").write_bytes(b"half")
    return contents


def test_a_database_that_came_with_a_copied_folder_sends_no_file_to_the_first(
    planned: ResultsFolder, tmp_path: Path
) -> None:
    mirror_of(planned).sync_folder()
    copied = ResultsFolder(tmp_path / "copied")
    shutil.copytree(planned.root, copied.root)
    (copied.root / "page.html").write_text("a page")
    mirror = MlflowMirror(default_tracking_uri(copied.root), copied.root)
    mirror.sync_folder()
    with pytest.raises(MirrorError, match=r"came with a copied or moved folder.*remove the database"):
        mirror.sync_files()
    assert not list((planned.root / "mlartifacts").rglob("page.html"))
    bare = tmp_path / "without its database"
    shutil.copytree(copied.root, bare, ignore=shutil.ignore_patterns("mlflow.db*"))
    again = MlflowMirror(default_tracking_uri(bare), bare)
    again.sync_folder()
    assert again.sync_files() == 1
    assert list((bare / "mlartifacts").rglob("page.html"))


def test_what_aggregate_made_lies_on_the_run_of_the_study(folder: ResultsFolder) -> None:
    mirror = mirror_of(folder)
    assert mirror.sync_files() == 0
    contents = make_files(folder)
    assert mirror.sync_files() == 3
    assert artifacts(folder) == contents
    once = dump(folder)
    written = {path: path.stat().st_mtime_ns for path in (folder.root / "mlartifacts").rglob("*")}
    assert [mirror.sync_files(), mirror_of(folder).sync_files()] == [0, 0]
    assert dump(folder) == once
    assert {path: path.stat().st_mtime_ns for path in (folder.root / "mlartifacts").rglob("*")} == written


def test_what_changed_or_is_gone_is_changed_or_gone_there_and_the_rest_stays(folder: ResultsFolder) -> None:
    from mlflow import MlflowClient

    contents = make_files(folder)
    mirror_of(folder).sync_files()
    client = MlflowClient(default_tracking_uri(folder.root))
    client.log_text(live_runs(folder)["study quickstart"], "looks odd", "remarks/mine.txt")
    (folder.root / "tables" / "results.tex").write_bytes(b"other")
    shutil.rmtree(folder.root / "figures")
    assert mirror_of(folder).sync_files() == 2
    expected = {**contents, "tables/results.tex": b"other", "remarks/mine.txt": b"looks odd"}
    del expected["figures/a/sigma_m.pdf"]
    assert artifacts(folder) == expected


def test_the_thread_takes_the_files_along_at_its_end(folder: ResultsFolder) -> None:
    with MirrorThread(None, folder.root, interval_s=3600):
        contents = make_files(folder)
    assert artifacts(folder) == contents
