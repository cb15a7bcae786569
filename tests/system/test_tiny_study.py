from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path

import pytest
from aggregate_command import aggregate
from conftest import Finished, Studies
from finished import mirrored_epochs, mirrored_trials, records

from study.journal import Journal
from study.plan import plan
from study.spec import load_study

pytestmark = pytest.mark.system


def test_it_ends_with_its_table_and_every_file_that_it_names(tiny: Finished) -> None:
    assert tiny.ended.code == 0, tiny.ended
    out = tiny.ended.out
    assert "bi-GCN" in out
    assert "Test ACC" in out
    assert out.count("±") >= 4, "mean and std of test and train for both rows"
    tables = tiny.results / "tables"
    for suffix in (".tex", ".md", ".csv"):
        files = list(tables.glob(f"results{suffix}"))
        assert files, suffix
        assert all(str(file) in out for file in files)
    assert (tables / "results.tex").read_text().count(r"\pm") >= 4
    for named in ("records", "weights", "mlflow.db"):
        assert str(tiny.results / named) in out


def test_nothing_but_the_study_speaks(tiny: Finished) -> None:
    assert tiny.ended.err == ""
    for other in ("raylet", "run_assignment", "WARNING", "INFO", "alembic"):
        assert other not in tiny.ended.out


def test_every_planned_trial_is_on_record_and_in_mlflow_once(tiny: Finished) -> None:
    planned = plan(load_study(tiny.file))
    found = records(tiny.results)
    for cell in planned.cells:
        mine = [record for record in found.values() if record.cell == cell.id]
        searched = [record for record in mine if record.phase == "search"]
        confirmed = [record for record in mine if record.phase == "confirm"]
        assert sorted(record.number for record in searched) == list(range(cell.trials))
        assert sorted(record.seed for record in confirmed) == [41, 95]
        assert {record.status for record in confirmed} == {"finished"}
        assert {record.num_epochs for record in confirmed} == {2}
        assert all(record.test_metric is None for record in searched)
        (chosen_from,) = {record.chosen_from for record in confirmed}
        assert chosen_from in {record.key for record in searched}
    assert len(found) == planned.search_trials + planned.confirm_trials == 10
    assert mirrored_trials(tiny.results) == dict.fromkeys(found, 1)
    assert mirrored_epochs(tiny.results) == {
        key: [(epoch.epoch, epoch.val_loss) for epoch in record.epochs] for key, record in found.items()
    }


def test_weights_are_kept_of_confirm_trials_alone_and_nothing_is_left_over(tiny: Finished) -> None:
    confirmed = {key for key, record in records(tiny.results).items() if record.phase == "confirm"}
    assert {path.stem for path in (tiny.results / "weights").iterdir()} == confirmed
    assert list((tiny.results / "live").iterdir()) == []
    assert sorted(path.name for path in tiny.results.iterdir()) == [
        "data.json",
        "journal",
        "lease",
        "live",
        "log.jsonl",
        "mlartifacts",
        "mlflow.db",
        "plan.json",
        "records",
        "study.yaml",
        "tables",
        "weights",
    ]


def test_the_log_has_every_step_of_every_trial_with_its_key_and_node(tiny: Finished) -> None:
    lines = [json.loads(line) for line in (tiny.results / "log.jsonl").read_text().splitlines()]
    found = records(tiny.results)
    for key, record in found.items():
        mine = [line for line in lines if line.get("trial") == key]
        assert [line["event"] for line in mine if line["event"] != "worker"] == ["handed_out", "started", record.status]
        assert {(line["cell"], line["phase"]) for line in mine} == {(record.cell, record.phase)}
        (begins,) = (line for line in mine if line["event"] == "worker")
        assert begins["message"].startswith("begins on ")
        assert begins["node"]
    others = [line["event"] for line in lines if "trial" not in line]
    assert (others[0], others[-1]) == ("run_began", "run_ended")
    assert all(datetime.fromisoformat(line["time"]).tzinfo is not None for line in lines)


def test_a_finished_study_is_mirrored_to_a_server_that_lacks_it(
    tiny: Finished, studies: Studies, tmp_path: Path
) -> None:
    ended = studies.run(tiny.file, tiny.results, "--mlflow", f"sqlite:///{tmp_path / 'mlflow.db'}")
    assert ended.code == 0, ended
    assert mirrored_trials(tmp_path) == dict.fromkeys(records(tiny.results), 1)


def test_the_same_command_again_trains_nothing_and_starts_no_cluster(tiny: Finished, studies: Studies) -> None:
    before = {path: path.stat().st_mtime_ns for path in (tiny.results / "records").iterdir()}
    journal = list(Journal(tiny.results / "journal").entries())
    table = (tiny.results / "tables" / "results.tex").read_bytes()
    again = studies.start(tiny.file, tiny.results)
    programs: set[str] = set()
    again.until_ended(lambda: programs.update(again.names_of_descendants()))
    outcome = again.end()
    assert outcome.code == 0, outcome
    assert not programs & {"raylet", "gcs_server"}
    assert "±" in outcome.out
    assert {path: path.stat().st_mtime_ns for path in (tiny.results / "records").iterdir()} == before
    assert list(Journal(tiny.results / "journal").entries()) == journal
    assert (tiny.results / "tables" / "results.tex").read_bytes() == table


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core runs one trial at a time")
def test_two_trials_run_side_by_side_with_one_thread_each(tiny: Finished) -> None:
    found = records(tiny.results).values()
    assert {record.threads for record in found} == {1}
    spans = [(record.started_at, record.ended_at or record.started_at) for record in found]
    side_by_side = max(sum(start <= moment < end for start, end in spans) for moment, _ in spans)
    assert 2 <= side_by_side <= (os.cpu_count() or 1)


def test_status_shows_a_finished_study(tiny: Finished, studies: Studies) -> None:
    told = studies.status(tiny.results)
    assert told.code == 0, told
    assert "tiny: 10/10 trials\n0 running, " in told.out
    assert told.out.endswith("\nit has ended, and no run works on it\n")
    cells = [cell["id"] for cell in json.loads((tiny.results / "plan.json").read_text())["cells"]]
    assert all(cell in told.out for cell in cells)


def test_its_tables_made_again_have_the_same_bytes(tiny: Finished, tmp_path: Path) -> None:
    made = aggregate("tables", tiny.results, "--out", tmp_path)
    assert (made.exit_code, made.stderr) == (0, "")
    for table in (tiny.results / "tables").iterdir():
        assert (tmp_path / table.name).read_bytes() == table.read_bytes()
