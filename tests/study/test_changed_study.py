"""An edited study file on a results folder: what is taken up, what is refused and how, and what ``--as`` does."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from made_trials import assignment, config, record

import run_study
from bimp.data import prepare
from study.begun import begun_cells
from study.claim import claim
from study.journal import Journal, JournalEntry
from study.plan import BegunCell, StudyChange, identities, in_short, plan, study_change
from study.records import write_record
from study.results import FIRST_ATTEMPT, ResultsFolder
from study.spec import SpecError, load_study, read_study, study_text

STUDY = """\
name: edited
caption: a few cells
arms: {dataset: digits, backbone: [gcn, gated_gcn], placement: [none, boosting], hidden_dim: 8, layers: 2}
space:
  sigma_m: {log_uniform: [0.1, 10]}
  num_clusters: {int: [2, 16]}
fixed: {max_epochs: 12}
search: {trials: 8, asha: {grace_epochs: 2, reduction_factor: 3}}
confirm: {seeds: [41, 95, 12]}
"""
"""Two vanilla cells, of which nothing is searched, and two gated ones."""

GCN, GATED_GCN = "digits-gcn-none-L2-h8", "digits-gated_gcn-none-L2-h8"
BI_GCN, BI_GATED_GCN = "digits-gcn-boosting-L2-h8", "digits-gated_gcn-boosting-L2-h8"
CELLS = (GCN, BI_GCN, GATED_GCN, BI_GATED_GCN)
RUNS = frozenset({(41, None), (95, None), (12, None)})
FINISHED = {
    GCN: BegunCell(confirmed=RUNS, records=3),
    GATED_GCN: BegunCell(confirmed=RUNS, records=3),
    BI_GCN: BegunCell(asked=8, confirmed=RUNS, records=11),
    BI_GATED_GCN: BegunCell(asked=8, confirmed=RUNS, records=11),
}


def changed(
    old: str, new: str, begun: dict[str, BegunCell] | None = None, *, text: str = STUDY, without: str = ""
) -> StudyChange:
    """What it means to put ``new`` in the place of ``old``, and to take ``without`` out, once every cell has ended."""
    assert text.count(old) == 1
    edited = text.replace(old, new).replace(without, "")
    return study_change(
        identities(read_study(text)), identities(read_study(edited)), FINISHED if begun is None else begun
    )


UNCHANGED = {
    "caption": ("a few cells", "other words"),
    "resources": ("fixed:", "resources: {cpus_per_trial: 2, max_concurrent: 3}\nfixed:"),
    "order of arms": ("[none, boosting]", "[boosting, none]"),
    "order of confirm seeds with the search's own": ("trials: 8,", "trials: 8, seed: 41,"),
    "comment": ("fixed:", "# why\nfixed:"),
    "a default written out": (
        "max_epochs: 12",
        "max_epochs: 12, readout: mean, batch_size: 128, unsupervised_weight: 1",
    ),
    "a default of the reading written out": ("max_epochs: 12", "max_epochs: 12, semantics: paper, metric_relu: false"),
}


@pytest.mark.parametrize(("old", "new"), UNCHANGED.values(), ids=UNCHANGED.keys())
def test_what_leaves_every_trial_as_it_was(old: str, new: str) -> None:
    assert changed(old, new) == StudyChange()


def test_more_of_the_same_is_taken_up() -> None:
    gated = "(2 cells)"
    assert changed("trials: 8", "trials: 9").amounts == (f"search.trials: 8 -> 9 {gated}",)
    more_seeds = changed("95, 12]", "95, 12, 7]")
    assert (more_seeds.refused, more_seeds.amounts) == (
        (),
        ("confirm.seeds: [41, 95, 12] -> [41, 95, 12, 7] (every cell)",),
    )


def test_folds_may_be_added_and_not_taken_away_once_they_ran() -> None:
    def study(folds: str) -> dict:
        arms = "{dataset: enzymes, backbone: gcn, hidden_dim: 8, layers: 2}"
        text = f"name: n\narms: {arms}\nconfirm: {{seeds: [41], folds: {folds}}}\n"
        return identities(read_study(text))

    def ran(*folds: int) -> dict[str, BegunCell]:
        return {"enzymes-gcn-none-L2-h8": BegunCell(confirmed=frozenset((41, fold) for fold in folds))}

    assert study_change(study("[0]"), study("[0, 1]"), ran(0)) == StudyChange(amounts=("confirm.folds: [0] -> [0, 1]",))
    assert study_change(study("[0]"), study("all"), ran(0)).refused == ()
    assert study_change(study("all"), study("[0, 1]"), ran(0, 1)).refused == ()
    assert study_change(study("all"), study("[0, 1]"), ran(0, 2)).refused == (
        "confirm.folds: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] -> [0, 1]",
    )


REFUSED = {
    "fixed value": ("max_epochs: 12", "max_epochs: 13", ["max_epochs: 12 -> 13 (every cell)"]),
    "value against the protocol": (
        "max_epochs: 12",
        "max_epochs: 12, batch_size: 64",
        ["batch_size: nothing -> 64 (every cell)"],
    ),
    "value of a gate": (
        "max_epochs: 12",
        "max_epochs: 12, unsupervised_weight: 0.5",
        ["unsupervised_weight: 1.0 -> 0.5 (2 cells)"],
    ),
    "range": (
        "[0.1, 10]",
        "[0.1, 5]",
        ["space.sigma_m: log_uniform [0.1, 10.0] -> log_uniform [0.1, 5.0] (2 cells)"],
    ),
    "order of sampling": (
        "  sigma_m: {log_uniform: [0.1, 10]}\n  num_clusters: {int: [2, 16]}\n",
        "  num_clusters: {int: [2, 16]}\n  sigma_m: {log_uniform: [0.1, 10]}\n",
        ["space (order of keys): [sigma_m, num_clusters] -> [num_clusters, sigma_m] (2 cells)"],
    ),
    "something more to search": (
        "  num_clusters:",
        "  learning_rate: {log_uniform: [1e-3, 1e-2]}\n  num_clusters:",
        [
            "space.learning_rate: nothing -> log_uniform [0.001, 0.01] (every cell)",
            "space (order of keys): [sigma_m, num_clusters] -> [sigma_m, learning_rate, num_clusters] (2 cells)",
        ],
    ),
    "semantics": (
        "max_epochs: 12",
        "max_epochs: 12, semantics: released",
        ["semantics: nothing -> released (every cell)"],
    ),
    "sampler": ("{trials: 8", "{sampler: random, trials: 8", ["search.sampler: tpe -> random (2 cells)"]),
    "seed of the samplers": ("fixed:", "seed: 3\nfixed:", ["seed: 0 -> 3 (2 cells)"]),
    "seed of the search by another first one": ("[41, 95, 12]", "[95, 41, 12]", ["search.seed: 41 -> 95 (2 cells)"]),
    "rung": ("grace_epochs: 2", "grace_epochs: 3", ["search.asha.grace_epochs: 2 -> 3 (2 cells)"]),
    "no more pruning": (
        ", asha: {grace_epochs: 2, reduction_factor: 3}",
        "",
        [
            "search.asha.grace_epochs: 2 -> nothing (2 cells)",
            "search.asha.reduction_factor: 3 -> nothing (2 cells)",
        ],
    ),
    "fewer trials than were begun": (
        "trials: 8",
        "trials: 7",
        ["search.trials: 8 -> 7, of which 8 were begun (2 cells)"],
    ),
    "fewer seeds": ("95, 12]", "95]", ["confirm.seeds: [41, 95, 12] -> [41, 95] (every cell)"]),
    "width of an arm": ("hidden_dim: 8", "hidden_dim: 9", ["hidden_dim: 8 -> 9 (4 cells)"]),
    "one arm in the place of another": (
        "[none, boosting]",
        "[none, dense]",
        ["placement: boosting -> dense (2 cells)"],
    ),
    "an arm that renames its cells": (
        "layers: 2}",
        "layers: 2, max_epochs: 12}",
        ["its name, and so its trials, would be another (4 cells)"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_alter_trials_that_were_run(name: str) -> None:
    old, new, lines = REFUSED[name]
    without = "fixed: {max_epochs: 12}\n" if "renames" in name else ""
    assert list(changed(old, new, without=without).refused) == lines


@pytest.mark.parametrize("name", REFUSED)
def test_what_was_not_begun_may_change_at_will(name: str) -> None:
    old, new, _ = REFUSED[name]
    without = "fixed: {max_epochs: 12}\n" if "renames" in name else ""
    change = changed(old, new, {}, without=without)
    assert (change.refused, change.dropped) == ((), ())


def test_what_matters_to_no_begun_cell_is_taken_up() -> None:
    vanilla = {name: FINISHED[name] for name in (GCN, GATED_GCN)}
    assert changed("[0.1, 10]", "[0.1, 5]", vanilla).refused == ()
    one_gated = {**vanilla, BI_GCN: FINISHED[BI_GCN]}
    assert changed("[0.1, 10]", "[0.1, 5]", one_gated).refused == (
        f"space.sigma_m: log_uniform [0.1, 10.0] -> log_uniform [0.1, 5.0] (cell {BI_GCN})",
    )


def test_amounts_may_shrink_as_far_as_nothing_was_begun() -> None:
    half = {BI_GCN: BegunCell(asked=5, records=4)}
    assert changed("trials: 8", "trials: 5", half) == StudyChange(amounts=("search.trials: 8 -> 5 (2 cells)",))
    assert changed("trials: 8", "trials: 4", half).refused == (
        f"search.trials: 8 -> 4, of which 5 were begun (cell {BI_GCN})",
    )
    assert changed("95, 12]", "95]", half).refused == ()
    one_seed = {BI_GCN: BegunCell(asked=8, confirmed=frozenset({(12, None)}))}
    assert changed("95, 12]", "95]", one_seed).refused == (f"confirm.seeds: [41, 95, 12] -> [41, 95] (cell {BI_GCN})",)


def test_new_cells_are_taken_up_and_leave_the_old_alone() -> None:
    change = changed("[none, boosting]", "[none, boosting, dense]")
    assert change == StudyChange(added=("digits-gcn-dense-L2-h8", "digits-gated_gcn-dense-L2-h8"))


def test_a_new_row_is_taken_up() -> None:
    text = STUDY.replace(", placement: [none, boosting]", "").replace("space:", "rows:\n  - {placement: none}\nspace:")
    text = text.replace("fixed:", "  learning_rate: {uniform: [1e-3, 2e-3]}\nfixed:").replace(
        "  - {placement: none}\n", "  - {placement: none}\n  - {placement: boosting}\n"
    )
    change = changed("  - {placement: none}\n", "  - {placement: none}\n  - {placement: dense}\n", text=text)
    assert change == StudyChange(added=("digits-gcn-dense-L2-h8", "digits-gated_gcn-dense-L2-h8"))
    change = changed("{placement: none}", "{placement: none, batch_size: 64}", text=text)
    assert change.refused == ("batch_size: nothing -> 64 (2 cells)",)


def test_the_order_of_keys_in_arms_is_in_the_names_of_cells() -> None:
    """Of values it is not; of dataset, backbone, placement, depth and size, which a name has first, neither."""
    arms = "dataset: digits, backbone: gcn, placement: boosting, hidden_dim: 8, layers: 2"
    text = f"name: n\narms: {{{arms}, sigma_m: [1, 2], num_clusters: [3, 4]}}\n"
    begun = {name: BegunCell(confirmed=RUNS, records=3) for name in identities(read_study(text))}
    assert changed(
        "sigma_m: [1, 2], num_clusters: [3, 4]", "sigma_m: [2, 1], num_clusters: [4, 3]", begun, text=text
    ) == (StudyChange())
    assert changed("backbone: gcn, placement: boosting", "placement: boosting, backbone: gcn", begun, text=text) == (
        StudyChange()
    )
    keys = changed("sigma_m: [1, 2], num_clusters: [3, 4]", "num_clusters: [3, 4], sigma_m: [1, 2]", begun, text=text)
    assert keys.refused == ("its name, and so its trials, would be another (4 cells)",)


def test_cells_may_be_dropped() -> None:
    assert changed("[gcn, gated_gcn]", "gcn") == StudyChange(dropped=(GATED_GCN, BI_GATED_GCN))
    assert changed("[gcn, gated_gcn]", "gcn", {GCN: FINISHED[GCN]}) == StudyChange()


def test_dropped_cells_come_back_as_they_were_or_not_at_all() -> None:
    whole = identities(read_study(STUDY))
    without = identities(read_study(STUDY.replace("[gcn, gated_gcn]", "gcn")))
    assert study_change(without, whole, FINISHED, whole) == StudyChange(added=(GATED_GCN, BI_GATED_GCN))
    other = identities(read_study(STUDY.replace("[0.1, 10]", "[0.1, 5]")))
    only_there = {name: FINISHED[name] for name in (GCN, BI_GATED_GCN)}
    assert study_change(without, other, only_there, whole).refused == (
        f"space.sigma_m: log_uniform [0.1, 10.0] -> log_uniform [0.1, 5.0] (cell {BI_GATED_GCN})",
    )
    # In the place of one that goes, a cell may come back: nothing of either is altered.
    swapped = identities(read_study(STUDY.replace("[gcn, gated_gcn]", "gated_gcn")))
    assert study_change(without, swapped, FINISHED, whole) == StudyChange(
        added=(GATED_GCN, BI_GATED_GCN), dropped=(GCN, BI_GCN)
    )


def test_the_fold_of_a_search_is_a_part_of_it() -> None:
    arms = "{dataset: enzymes, backbone: gcn, placement: boosting, hidden_dim: 8, layers: 2}"
    text = f"name: n\narms: {arms}\nspace: {{sigma_m: {{choice: [1, 2]}}}}\nfixed: {{num_clusters: 3}}\n"
    text += "search: {trials: 8, sampler: random}\nconfirm: {seeds: [41], folds: [3]}\n"
    begun = {"enzymes-gcn-boosting-L2-h8": BegunCell(asked=8)}
    refused = changed("{trials: 8,", "{trials: 8, fold: 3,", begun, text=text).refused
    assert refused == ("search.fold: 0 -> 3",)


def test_the_seed_of_the_samplers_means_nothing_to_a_grid() -> None:
    text = STUDY.replace("{log_uniform: [0.1, 10]}", "{choice: [1, 2]}").replace("{trials: 8", "{sampler: grid")
    assert changed("fixed:", "seed: 3\nfixed:", text=text) == StudyChange()


def test_a_message_tells_six_differences_and_counts_the_rest() -> None:
    assert in_short(tuple("abcdef")) == "a; b; c; d; e; f"
    assert in_short(tuple("abcdefg")) == "a; b; c; d; e; f; 1 more difference"
    assert in_short(tuple("abcdefgh")) == "a; b; c; d; e; f; 2 more differences"


@pytest.fixture
def folder(tmp_path: Path) -> ResultsFolder:
    folder = ResultsFolder(tmp_path / "results")
    folder.create()
    return folder


def test_what_was_begun_is_read_from_journal_records_and_live_trials(folder: ResultsFolder) -> None:
    journal = Journal(folder.journal)
    journal.begin()
    for place, (cell, number) in enumerate(((BI_GCN, 0), (BI_GCN, 1), (GATED_GCN, 0))):
        journal.append(JournalEntry(cell=cell, number=number, key=f"s{place}", values={}))

    def trial(key: str, cell: str, seed: int, **changes: object) -> object:
        return record(assignment(folder.root, key=key, cell=cell, config=config(seed=seed)), 1, **changes)

    ended = trial("c0", BI_GCN, 95, phase="confirm", status="finished")
    old = trial("c1", BI_GCN, 12, phase="confirm", status="superseded")
    searched = trial("s0", BI_GCN, 41, status="pruned")
    for made in (ended, old, searched):
        write_record(made, folder.record(made.key))
    under_way = trial("c2", GCN, 41, phase="confirm")
    write_record(under_way, folder.live_record("c2", FIRST_ATTEMPT))
    folder.live_record("c3", FIRST_ATTEMPT).parent.mkdir(parents=True)
    folder.live_record("c3", FIRST_ATTEMPT).write_bytes(b"PAR1")
    assert begun_cells(folder) == {
        BI_GCN: BegunCell(asked=2, confirmed=frozenset({(95, None)}), records=3),
        GATED_GCN: BegunCell(asked=1),
        GCN: BegunCell(confirmed=frozenset({(41, None)})),
    }


def test_what_a_version_without_attempts_left_of_a_trial_was_begun_too(folder: ResultsFolder, tmp_path: Path) -> None:
    file = write_study(tmp_path, STUDY)
    spec = load_study(file)
    under_way = record(assignment(folder.root, key="c2", cell=GCN, config=config(seed=41)), 1, phase="confirm")
    write_record(under_way, folder.live_folder("c2") / "record.parquet")
    claim(folder, file, STUDY, spec, plan(spec))
    assert begun_cells(folder) == {GCN: BegunCell(confirmed=frozenset({(41, None)}))}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    prepare("digits", root)
    return root


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], data: Path) -> Run:
    """``run_study.py run ARGUMENTS`` up to the moment at which Ray would start; then it is interrupted (code 130)."""

    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("study.study_ray.start_ray", interrupted)
    monkeypatch.setattr("study.cluster.prepare_environment", lambda **_: None)

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["run_study.py", "run", *map(str, arguments), "--data", str(data)])
        with pytest.raises(SystemExit) as ended:
            run_study.main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return run


def write_study(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "study.yaml"
    file.write_text(text)
    return file


def finish(folder: ResultsFolder, file: Path) -> None:
    """Records of confirm trials of every cell, as if they had run."""
    for cell in plan(load_study(file)).cells:
        for seed, _ in cell.confirm_runs:
            key = f"{cell.id}-{seed}".replace("_", "")
            ran = assignment(folder.root, study="edited", key=key, cell=cell.id, phase="confirm")
            write_record(record(replace(ran, config=config(seed=seed)), 1, status="finished"), folder.record(key))


def contents(folder: ResultsFolder) -> dict[str, bytes]:
    files = (path for path in folder.root.rglob("*") if path.is_file() and path.parent != folder.leases)
    return {str(path.relative_to(folder.root)): path.read_bytes() for path in files}


def test_run_refuses_in_one_line_and_leaves_the_folder_as_it_was(
    run: Run, folder: ResultsFolder, tmp_path: Path
) -> None:
    file = write_study(tmp_path, STUDY)
    assert run(file, "--results", folder.root)[0] == 130
    finish(folder, file)
    before = contents(folder)
    write_study(tmp_path, STUDY.replace("[0.1, 10]", "[0.1, 5]").replace("max_epochs: 12", "max_epochs: 13"))
    code, _, err = run(file, "--results", folder.root)
    assert (code, err) == (
        2,
        f"error: {folder.root}: {file} would alter trials that were run here: max_epochs: 12 -> 13 (every cell); "
        "space.sigma_m: log_uniform [0.1, 10.0] -> log_uniform [0.1, 5.0] (2 cells); undo this, or give the changed "
        "study a name and a folder of its own with --as NEW_NAME\n",
    )
    assert contents(folder) == before


def test_as_runs_the_changed_study_beside_the_old_one(run: Run, folder: ResultsFolder, tmp_path: Path) -> None:
    file = write_study(tmp_path, STUDY)
    run(file, "--results", folder.root)
    finish(folder, file)
    before = contents(folder)
    write_study(tmp_path, STUDY.replace("max_epochs: 12", "max_epochs: 13"))
    code, _, err = run(file, "--results", folder.root, "--as", "longer")
    longer = ResultsFolder(folder.root.parent / "longer")
    assert (code, err) == (130, f"stopped; nothing that ended is lost; the same command goes on in {longer.root}\n")
    assert contents(folder) == before
    assert longer.study_file.read_text() == STUDY.replace("max_epochs: 12", "max_epochs: 13").replace(
        "name: edited", 'name: "longer"'
    )
    assert json.loads(longer.plan_file.read_text())["study"] == "longer"
    assert load_study(longer.study_file).name == "longer"
    kept = longer.study_file.stat()
    assert run(file, "--results", folder.root, "--as", "longer")[0] == 130
    # The folder's own copy is a study like any other.
    assert run(longer.study_file, "--results", longer.root)[0] == 130
    assert longer.study_file.stat().st_size == kept.st_size


def test_as_without_results_names_the_folder_in_results(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(write_study(tmp_path, STUDY), "--as", "other")[0] == 130
    assert (tmp_path / "results" / "other" / "study.yaml").exists()
    assert not (tmp_path / "results" / "edited").exists()


@pytest.mark.parametrize("name", ["../up", "a/b", "", "-x", "a b", "ü"])
def test_as_takes_a_studys_name_only(run: Run, tmp_path: Path, name: str) -> None:
    code, _, err = run(write_study(tmp_path, STUDY), "--results", tmp_path / "results", f"--as={name}")
    assert (code, err) == (
        2,
        f"error: --as: found {name!r}, expected letters, digits, - and _, at most 100, the first no -\n",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["study.yaml"]


@pytest.mark.parametrize(
    ("line", "renamed"),
    [
        ("name: edited", 'name: "1e5"'),
        ("name:   'edited'   # why", 'name:   "1e5"   # why'),
        ('"name": "edited"', '"name": "1e5"'),
        ("name:\n  edited", 'name:\n  "1e5"'),
    ],
)
def test_a_renamed_study_is_otherwise_the_same_text(tmp_path: Path, line: str, renamed: str) -> None:
    text = STUDY.replace("name: edited", line).replace("\n", "\r\n")
    file = tmp_path / "study.yaml"
    file.write_bytes(text.encode())
    assert study_text(file, "1e5") == STUDY.replace("name: edited", renamed).replace("\n", "\r\n")
    assert read_study(study_text(file, "1e5")).name == "1e5"


def test_a_study_without_a_name_is_refused_under_another_too(tmp_path: Path) -> None:
    file = write_study(tmp_path, STUDY.replace("name: edited\n", ""))
    with pytest.raises(SpecError, match="name: found nothing"):
        read_study(study_text(file, "other"), str(file))


def test_run_takes_up_what_alters_nothing_and_says_so(run: Run, folder: ResultsFolder, tmp_path: Path) -> None:
    file = write_study(tmp_path, STUDY)
    run(file, "--results", folder.root)
    finish(folder, file)
    text = STUDY.replace("trials: 8", "trials: 10").replace("95, 12]", "95, 12, 7]").replace("few", "few more")
    write_study(tmp_path, text.replace("[none, boosting]", "[none, boosting, dense]"))
    code, out, _ = run(file, "--results", folder.root)
    assert code == 130
    assert out.splitlines()[:2] == [
        "taken up: confirm.seeds: [41, 95, 12] -> [41, 95, 12, 7] (4 cells); search.trials: 8 -> 10 (2 cells)",
        "taken up: 2 new cells (digits-gcn-dense-L2-h8, digits-gated_gcn-dense-L2-h8)",
    ]
    assert folder.study_file.read_bytes() == file.read_bytes()
    assert not folder.earlier_studies.exists()
    code, out, _ = run(file, "--results", folder.root)
    assert "taken up" not in out, "a change is told once"


def test_dropped_cells_stay_on_disk_and_may_come_back_unchanged(
    run: Run, folder: ResultsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_study(tmp_path, STUDY)
    run(file, "--results", folder.root)
    finish(folder, file)
    journal = Journal(folder.journal)
    journal.begin()
    journal.append(JournalEntry(cell=BI_GATED_GCN, number=0, key="k", values={}))
    records = {path.name for path in folder.records.iterdir()}
    write_study(tmp_path, STUDY.replace("[gcn, gated_gcn]", "gcn"))
    code, out, err = run(file, "--results", folder.root)
    assert (code, out.splitlines()[0]) == (
        130,
        f"no longer in the study: 2 cells ({GATED_GCN}, {BI_GATED_GCN}); the tables leave out what is on record of "
        "them (6 trials), and it stays on disk",
    )
    assert {path.name for path in folder.records.iterdir()} == records
    assert (folder.earlier_studies / "0001.yaml").read_text() == STUDY

    monkeypatch.setattr(sys, "argv", ["run_study.py", "status", str(folder.root)])
    with pytest.raises(SystemExit) as ended:
        run_study.main()
    told = capsys.readouterr()
    assert (ended.value.code, told.err) == (0, "")
    assert f"{BI_GATED_GCN}: no longer in the study; 3 on record, left out" in told.out.splitlines()

    write_study(tmp_path, STUDY.replace("grace_epochs: 2", "grace_epochs: 3"))
    code, _, err = run(file, "--results", folder.root)
    assert code == 2
    assert "search.asha.grace_epochs: 2 -> 3 (2 cells)" in err


def test_no_study_file_that_was_kept_is_overwritten(run: Run, folder: ResultsFolder, tmp_path: Path) -> None:
    file = write_study(tmp_path, STUDY)
    run(file, "--results", folder.root)
    finish(folder, file)
    folder.earlier_studies.mkdir()
    kept = folder.earlier_studies / "0002.yaml"
    kept.write_text(STUDY.replace("a few cells", "the one before was removed by hand"))
    before = kept.read_text()
    write_study(tmp_path, STUDY.replace("[gcn, gated_gcn]", "gcn"))
    run(file, "--results", folder.root)
    assert kept.read_text() == before
    assert (folder.earlier_studies / "0003.yaml").read_text() == STUDY


def test_another_study_is_refused_by_its_name(run: Run, folder: ResultsFolder, tmp_path: Path) -> None:
    file = write_study(tmp_path, STUDY)
    run(file, "--results", folder.root)
    write_study(tmp_path, STUDY.replace("name: edited", "name: other"))
    code, _, err = run(file, "--results", folder.root)
    assert (code, err) == (
        2,
        f"error: {folder.root}: holds another study than {file} (name: edited -> other); name another folder with "
        "--results\n",
    )


def test_a_study_of_which_nothing_ran_may_be_mended(run: Run, folder: ResultsFolder, tmp_path: Path) -> None:
    file = write_study(tmp_path, STUDY)
    run(file, "--results", folder.root)
    write_study(tmp_path, STUDY.replace("max_epochs: 12", "max_epochs: 13").replace("hidden_dim: 8", "hidden_dim: 9"))
    assert run(file, "--results", folder.root)[0] == 130
    assert folder.study_file.read_bytes() == file.read_bytes()
