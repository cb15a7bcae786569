"""What is kept of our own runs: tables and page follow from the records, byte for byte."""

from pathlib import Path

import pytest
from aggregate_command import aggregate

from reports.fidelity.page import studies_in
from reports.records.load import load_records, load_results

ROOT = Path(__file__).parents[3]
KEPT = ROOT / "reports" / "reproduction"
STUDIES = studies_in(KEPT)


@pytest.mark.parametrize("study", STUDIES, ids=[study.name for study in STUDIES])
def test_the_kept_tables_are_those_of_the_records(study: Path, tmp_path: Path) -> None:
    assert aggregate("tables", study, "--out", tmp_path).exit_code == 0
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_bytes() for path in (study / "tables").iterdir()}


def test_the_page_is_that_of_the_records(tmp_path: Path) -> None:
    page = tmp_path / "fidelity.md"
    assert aggregate("fidelity", KEPT, "--out", page).exit_code == 0
    assert page.read_bytes() == (ROOT / "docs" / "fidelity.md").read_bytes()


@pytest.mark.parametrize("study", STUDIES, ids=[study.name for study in STUDIES])
def test_every_number_comes_from_code_that_was_committed(study: Path) -> None:
    results = load_results(study)
    assert results.plan.study == f"reproduction_{study.name}"
    assert {trial.phase for trial in results.trials} == {"confirm"}
    assert {trial.status for trial in results.trials} == {"finished"}
    states = load_records(study, ["git_commit", "git_dirty"]).to_pylist()
    assert all(state["git_commit"] and not state["git_dirty"] for state in states)
