from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from made_trials import assignment, config, record

from study import status
from study.found_study import NoStudyError
from study.journal import Journal, JournalEntry
from study.lease import Lease
from study.plan import plan, plan_document
from study.presence import Presence, who_works_here
from study.progress import StudyView
from study.records import RecordError, TrialRecord, write_record
from study.results import FIRST_ATTEMPT, ResultsFolder
from study.spec import read_study
from study.status import StatusError, how_to_go_on, study_status

GATED, VANILLA = "digits-gcn-boosting-L2-h6", "digits-gcn-none-L2-h6"
STUDY = """
name: made
arms: {dataset: digits, backbone: gcn, placement: [none, boosting], hidden_dim: 6, layers: 2}
space: {learning_rate: {log_uniform: [1e-3, 1e-2]}}
fixed: {max_epochs: 3, num_clusters: 3, sigma_m: 0.5}
search: {trials: 4}
confirm: {seeds: [41, 95]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> ResultsFolder:
    folder = ResultsFolder(tmp_path / "results")
    folder.create()
    folder.plan_file.write_text(json.dumps(plan_document(plan(read_study(STUDY)))))
    return folder


def made(folder: ResultsFolder, seed: int, epochs: int = 3, phase: Any = "search", **changes: Any) -> TrialRecord:
    return record(assignment(folder.root, phase=phase, config=config(seed=seed)), epochs, **changes)


def sealed(folder: ResultsFolder, seed: int, **changes: Any) -> TrialRecord:
    ended = made(folder, seed, **changes)
    write_record(ended, folder.record(ended.key))
    return ended


def begun(folder: ResultsFolder, seed: int, **changes: Any) -> Path:
    under_way = made(folder, seed, **changes)
    write_record(under_way, folder.live_record(under_way.key, FIRST_ATTEMPT))
    return folder.live_record(under_way.key, FIRST_ATTEMPT)


def view(folder: ResultsFolder) -> StudyView:
    return study_status(folder.root).view


def test_a_study_that_has_just_begun(folder: ResultsFolder) -> None:
    seen = view(folder)
    assert (seen.study, seen.ended, seen.total, seen.running, seen.slots) == ("made", 0, 12, 0, None)
    assert [line.goal.cell for line in seen.cells] == [VANILLA, GATED]
    assert seen.time_left is None


def test_a_study_in_the_middle(folder: ResultsFolder) -> None:
    sealed(folder, 1, status="finished", reason="max_epochs")
    sealed(folder, 2, epochs=2, status="pruned", reason="at the rung of epoch 2")
    diverged = sealed(folder, 3, epochs=0, status="diverged", reason="epoch 1: loss nan in training")
    sealed(folder, 41, phase="confirm", status="finished", reason="max_epochs")
    begun(folder, 95, phase="confirm", epochs=1)
    found = study_status(folder.root)
    seen, troubles = found.view, found.troubles
    vanilla, gated = seen.cells
    assert (vanilla.searched, vanilla.confirmed, vanilla.best) == (0, 0, None)
    assert (gated.searched, gated.running, gated.pruned, gated.diverged, gated.failed) == (3, 1, 1, 1, 0)
    assert gated.confirmed == 1
    assert gated.best == 0.3, "of the search: 0.3 finished, 0.2 pruned"
    assert (seen.ended, seen.running) == (4, 1)
    assert troubles == (f"{diverged.key} {GATED} search seed 3: diverged, epoch 1: loss nan in training",)


def test_the_best_is_one_that_may_be_chosen(folder: ResultsFolder) -> None:
    """Accuracies: 0.2 finished, 0.3 pruned at a rung in between, 0.4 pruned at the last one."""
    planned = json.loads(folder.plan_file.read_text())
    planned["cells"] = [{**cell, "rungs": [3, 4]} for cell in planned["cells"]]
    folder.plan_file.write_text(json.dumps(planned))
    sealed(folder, 1, epochs=2, status="finished", reason="min_lr")
    sealed(folder, 2, epochs=3, status="pruned", reason="at the rung of epoch 3")
    assert view(folder).cells[1].best == 0.2
    sealed(folder, 3, epochs=4, status="pruned", reason="at the rung of epoch 4")
    assert view(folder).cells[1].best == 0.4


def test_trials_that_never_come_are_not_in_the_total(folder: ResultsFolder) -> None:
    """Of 4 search trials none can be chosen: that cell has 4 trials, the other 4 and 2 to confirm."""
    for seed in range(3):
        sealed(folder, seed, epochs=0, status="diverged", reason="epoch 1: loss nan in training")
    assert (view(folder).ended, view(folder).total) == (3, 12), "the last may still be chosen"
    sealed(folder, 3, epochs=2, status="pruned", reason="at the rung of epoch 2")
    seen = view(folder)
    assert (seen.ended, seen.total) == (4, 10)
    assert [(line.ended, line.confirm_trials) for line in seen.cells] == [(False, 2), (True, 0)]


def test_a_failed_trial_waits_for_the_next_start_and_does_not_run(folder: ResultsFolder) -> None:
    failed = sealed(folder, 1, epochs=1, status="failed", reason="OSError: gone")
    begun(folder, 1, epochs=1, status="failed", reason="OSError: gone")
    found = study_status(folder.root)
    seen, troubles = found.view, found.troubles
    assert (seen.cells[1].failed, seen.running) == (1, 0)
    assert troubles == (f"{failed.key} {GATED} search seed 1: failed, OSError: gone",)


def test_a_trial_whose_worker_was_lost_for_good_has_failed_and_does_not_run(folder: ResultsFolder) -> None:
    """Its worker could not say so: the live record still says that it runs. Once it is tried again it does."""
    live = begun(folder, 1, epochs=1)
    failed = sealed(folder, 1, epochs=1, status="failed", reason="its worker was lost")
    seen = view(folder)
    assert (seen.cells[1].failed, seen.cells[1].searched, seen.running) == (1, 1, 0)
    os.utime(live, times=(1e9, 1e9 + 1))
    os.utime(folder.record(failed.key), times=(1e9, 1e9))
    found = study_status(folder.root)
    assert (found.view.cells[1].failed, found.view.cells[1].searched, found.view.running) == (0, 0, 1)
    assert found.troubles == ()


def test_a_trial_that_was_sealed_and_not_yet_cleared_away_has_ended(folder: ResultsFolder) -> None:
    changes: dict[str, Any] = {"phase": "confirm", "status": "finished", "reason": "max_epochs"}
    sealed(folder, 41, **changes)
    begun(folder, 41, **changes)
    seen = view(folder)
    assert (seen.ended, seen.running) == (1, 0)


def test_a_configuration_that_was_sampled_twice_counts_twice(folder: ResultsFolder) -> None:
    once = sealed(folder, 1, status="finished", reason="max_epochs")
    for number in range(2):
        journal = Journal(folder.journal)
        journal.begin()
        journal.append(JournalEntry(cell=GATED, number=number, key=once.key, values={}))
    assert view(folder).cells[1].searched == 2


def test_a_live_record_that_vanishes_was_sealed(folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    path = begun(folder, 1)
    seen = list(folder.live.glob("*/*/record.parquet"))
    path.unlink()
    monkeypatch.setattr(Path, "glob", lambda self, pattern: iter(seen if self == folder.live else []))
    assert view(folder).running == 0


def test_a_record_that_cannot_be_read_is_named(folder: ResultsFolder) -> None:
    path = begun(folder, 1)
    path.write_bytes(b"PAR1")
    with pytest.raises(RecordError, match=str(path)):
        study_status(folder.root)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"cells": [{"id": "a"}]}', '{"cells": 3}'])
def test_a_plan_that_is_none_is_named(folder: ResultsFolder, content: str) -> None:
    folder.plan_file.write_text(content)
    with pytest.raises(StatusError, match=rf"^{folder.plan_file}: not the plan of a study .* run the study again"):
        study_status(folder.root)


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("trials", "many", "cells[0].trials: found 'many', expected a valid integer"),
        ("trials", None, "cells[0].trials: found None, expected a valid integer"),
        ("id", 3, "cells[0].id: found 3, expected a valid string"),
        ("direction", "up", "cells[0].direction: found 'up', expected 'min' or 'max'"),
        ("rungs", "x", "cells[0].rungs: found 'x', expected a valid array"),
    ],
)
def test_a_value_of_the_plan_that_is_of_another_type_is_named(
    folder: ResultsFolder, key: str, value: object, line: str
) -> None:
    plan = json.loads(folder.plan_file.read_text())
    plan["cells"][0][key] = value
    folder.plan_file.write_text(json.dumps(plan))
    with pytest.raises(StatusError) as caught:
        study_status(folder.root)
    assert str(caught.value) == (
        f"{folder.plan_file}: not the plan of a study ({line}); run the study again, which writes it"
    )


def test_a_record_of_another_study_is_named(folder: ResultsFolder) -> None:
    stray = sealed(folder, 1, cell="another-cell", study="another", status="finished")
    with pytest.raises(StatusError, match=rf"{stray.key}.parquet: found trial {stray.key} of study another, expected"):
        study_status(folder.root)


def test_a_cell_that_the_study_has_no_more_is_left_out_with_a_line(folder: ResultsFolder) -> None:
    sealed(folder, 1, status="finished", reason="max_epochs")
    for seed in (2, 3):
        sealed(folder, seed, cell="dropped-cell", status="failed", reason="OSError: gone")
    found = study_status(folder.root)
    seen = found.view
    assert ([line.goal.cell for line in seen.cells], seen.ended) == ([VANILLA, GATED], 1)
    assert found.troubles == ()
    assert found.left_out == ("dropped-cell: no longer in the study; 2 on record, left out",)


def test_a_folder_without_a_study_is_said(tmp_path: Path) -> None:
    with pytest.raises(NoStudyError, match=r"no study here \(plan.json is missing\)"):
        study_status(tmp_path)


def goes_on(folder: ResultsFolder, now: float = 1000.0) -> list[str]:
    return list(how_to_go_on(study_status(folder.root), folder.root, now))


@pytest.fixture
def at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "who_works_here", lambda folder: Presence(True, "process 7 of a node", 2.5))


@pytest.mark.usefixtures("at_work")
def test_while_a_run_works_it_says_so_and_since_when_it_gave_no_sign(folder: ResultsFolder) -> None:
    works = "a run works on it now (process 7 of a node); it showed that it lives"
    assert goes_on(folder, now=62.5) == [f"{works} 60 s ago"]
    begun(folder, 1, epochs=3)  # epoch 3 ended 3 s after 1970
    assert study_status(folder.root).view.at_work
    assert goes_on(folder, now=12.5) == [f"{works} 10 s ago; the last epoch or end on record was 10 s ago"]
    assert goes_on(folder, now=1.0)[0].endswith("was 1 s ago"), "another machine's clock may be ahead"


_DIES = """
import os, signal, sys
from pathlib import Path
from study.lease import Lease
from study.results import ResultsFolder
Lease(ResultsFolder(Path(sys.argv[1]))).__enter__()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_who_works_is_known_by_the_lease(folder: ResultsFolder) -> None:
    assert who_works_here(folder) == Presence(works=False)
    with Lease(folder):
        found = who_works_here(folder)
        assert (found.works, found.who) == (True, f"process {os.getpid()} of {socket.gethostname()}")
        assert goes_on(folder)[0].startswith("a run works on it now (process ")
    assert who_works_here(folder) == Presence(works=False)
    assert goes_on(folder)[0] == "no run works on it"


def test_a_run_that_died_leaves_its_last_beat(folder: ResultsFolder) -> None:
    died = subprocess.run([sys.executable, "-c", _DIES, str(folder.root)], check=False, timeout=60)
    assert died.returncode == -signal.SIGKILL
    found = who_works_here(folder)
    assert not found.works
    assert found.who is not None
    assert found.last_sign is not None
    assert goes_on(folder, now=found.last_sign + 600.0)[0] == (
        "no run works on it; the last sign of life was 10 min ago"
    )


def test_after_a_run_died_it_says_how_to_go_on(folder: ResultsFolder) -> None:
    begun(folder, 1, epochs=1)
    sealed(folder, 2, status="failed", reason="OSError: gone", ended_at=400.0)
    found = study_status(folder.root).view
    assert (found.running, found.at_work, found.time_left) == (1, False, None)
    assert goes_on(folder) == [
        "no run works on it; the last sign of life was 10 min ago",
        "1 unfinished trial goes on from the last epoch",
        "1 failed trial is tried again",
        f"to go on: python run_study.py run {folder.study_file} --results {folder.root} (and the options that it had)",
    ]


def test_before_any_trial_there_is_no_sign_of_life(folder: ResultsFolder) -> None:
    assert goes_on(folder)[0] == "no run works on it"


def test_a_study_that_has_ended_needs_nothing(folder: ResultsFolder) -> None:
    for cell in (VANILLA, GATED):
        for seed in range(4):
            key = f"{cell[-12:-8]}{seed}"
            sealed(folder, seed, key=key, cell=cell, status="finished", reason="max_epochs", ended_at=1.0)
        for seed in (41, 95):
            key = f"{cell[-12:-8]}{seed}"
            sealed(folder, seed, key=key, cell=cell, phase="confirm", status="finished", reason="max_epochs")
    assert goes_on(folder) == ["it has ended, and no run works on it"]


def test_a_study_of_which_one_cell_has_ended_goes_on(folder: ResultsFolder) -> None:
    for seed in range(4):
        sealed(folder, seed, key=f"{VANILLA[-12:-8]}{seed}", cell=VANILLA, status="finished", reason="max_epochs")
    for seed in (41, 95):
        key = f"{VANILLA[-12:-8]}{seed}"
        sealed(folder, seed, key=key, cell=VANILLA, phase="confirm", status="finished", reason="max_epochs")
    assert [cell.ended for cell in study_status(folder.root).view.cells] == [True, False]
    assert goes_on(folder)[0].startswith("no run works on it")


@pytest.mark.usefixtures("at_work")
def test_trials_under_way_are_known_by_their_epochs(folder: ResultsFolder) -> None:
    sealed(folder, 1, epochs=3, status="finished", reason="max_epochs")
    begun(folder, 2, epochs=2)
    left = view(folder).time_left
    # 2 s an epoch; of the gated cell 2 more search and 2 confirm trials of 3 epochs follow, of the other 4 and 2.
    assert left is not None
    assert left.seconds == 2.0 * (3 * 3 + 2 * 3 - 2 + 6 * 3)
    assert (left.ended, left.borrowed) == (1, 1)
