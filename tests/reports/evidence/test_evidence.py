"""What lies behind a number: values written into the records by hand, found again, and told the same twice."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from aggregate_command import aggregate
from made_studies import SEEDS, gated, runs, trial, vanilla, worked_study, write_study, write_used_data
from searched_study import BEST, GATED, TESTS, VANILLA, changed, clean_study, trials_of

from reports.evidence.cell_evidence import CellEvidence, code_state, evidence
from reports.evidence.explain import explain
from reports.evidence.find_cell import find_cell, name_of
from reports.records.plan import ResultsError
from study.records import TrialRecord


def cell_of(results: Path, cell: str) -> CellEvidence:
    return next(found for found in evidence(results) if found.cell == cell)


def test_cells_come_in_the_order_of_the_plan(tmp_path: Path) -> None:
    results = worked_study(tmp_path)
    plan = json.loads((results / "plan.json").read_text(encoding="utf-8"))
    assert [cell.cell for cell in evidence(results)] == [cell["id"] for cell in plan["cells"]]


def test_the_number_and_the_trials_behind_it(tmp_path: Path) -> None:
    results = worked_study(tmp_path)
    (results / "mlflow.db").touch()
    found = cell_of(results, "zinc-gcn-none-L4-100000")
    assert (found.study, found.dataset_title, found.label) == ("Worked_Study", "ZINC", "GCN")
    assert (found.metric, found.number, found.finished, found.asked) == ("MAE", "0.460 ± 0.010", 4, 4)
    assert [(run.seed, run.test, run.train, run.epochs) for run in found.trials] == [
        (41, 0.45, 0.3, 100),
        (95, 0.47, 0.3, 101),
        (12, 0.45, 0.3, 101),
        (35, 0.47, 0.3, 103),
    ]
    for run in found.trials:
        assert run.counted
        assert (run.status, run.reason, run.params) == ("finished", "max_epochs", 103_077)
        assert run.record == f"records/{run.key}.parquet"
        assert (tmp_path / run.record).is_file()
        assert run.mlflow_filter == f'tags.trial_key = "{run.key}"'
        assert run.mlflow_page == (
            f"/#/experiments/1/runs?workflowType=machine_learning&searchFilter=tags.trial_key%20%3D%20%22{run.key}%22"
        )


def test_a_page_of_mlflow_is_named_only_where_there_is_a_database(tmp_path: Path) -> None:
    results = worked_study(tmp_path)
    text = explain(results, "zinc-gcn-none-L4-100000")
    assert "tags.trial_key = " in text
    assert "/#/experiments" not in text
    assert "is served" not in text
    (results / "mlflow.db").touch()
    text = explain(results, "zinc-gcn-none-L4-100000")
    assert "/#/experiments/1/runs" in text
    # The one command that says how to serve it (study.outcome).
    assert "(the last lines of `run_study.py run` tell how)" in text


def test_accuracy_is_in_per_cent_in_the_number_and_a_fraction_in_its_trials(tmp_path: Path) -> None:
    found = cell_of(worked_study(tmp_path), "digits-gcn-none-L4-100000")
    assert (found.metric, found.number, found.trials[0].test) == ("ACC", "97.438 (1 run)", 0.97438)


def test_what_is_missing_is_said_and_shown(tmp_path: Path) -> None:
    found = cell_of(worked_study(tmp_path), "zinc-gat-boosting-bilateral-L4-100000")
    assert (found.number, found.finished, found.asked) == ("0.100 ± 0.000 (3/4)", 3, 4)
    assert found.missing == ("seed 35: diverged: train loss is NaN in epoch 3",)
    assert [(run.seed, run.counted, run.status) for run in found.trials] == [
        (41, True, "finished"),
        (95, True, "finished"),
        (12, True, "finished"),
        (35, False, "diverged"),
    ]


def test_a_cell_that_was_only_searched(tmp_path: Path) -> None:
    found = cell_of(worked_study(tmp_path), "enzymes-gat-dense-bilateral-L4-100000")
    assert (found.number, found.trials, found.configuration) == ("–", (), ())  # noqa: RUF001
    assert (found.chosen.key, found.chosen.tried, found.chosen.ranked) == (None, 1, 0)
    assert found.chosen.ends == (("pruned", 1),)


def test_how_the_configuration_was_chosen(tmp_path: Path) -> None:
    made = trials_of(GATED)
    found = cell_of(clean_study(tmp_path), GATED["id"])
    chosen = found.chosen
    # Trials 0 to 5 finished, each better than the one before; 6 and 7 were pruned at the last rung with 0.9, which
    # is all the way there: they are ranked too, ties by key.
    pruned = sorted((made[6].key, made[7].key))
    assert (chosen.key, chosen.rank, chosen.number) == (made[5].key, 1, 5)
    assert (chosen.tried, chosen.ranked, chosen.ends) == (8, 8, (("finished", 6), ("pruned", 2)))
    assert [entry.key for entry in chosen.trials] == [*(made[number].key for number in (5, 4, 3, 2, 1, 0)), *pruned]
    assert [entry.rank for entry in chosen.trials] == list(range(1, 9))
    assert chosen.trials[0].val == 0.45
    assert chosen.searched == (("learning_rate", "log_uniform [0.0001, 0.01]"),)
    assert [run.test for run in found.trials] == list(TESTS["boosting"])
    assert {run.chosen_from for run in found.trials} == {made[5].key}


def test_trials_that_could_not_be_chosen_have_no_rank(tmp_path: Path) -> None:
    # Without rungs, only those that finished can be chosen; then by number.
    cells = [{**cell, "rungs": []} for cell in (VANILLA, GATED)]
    found = cell_of(clean_study(tmp_path, cells=cells), GATED["id"]).chosen
    assert [(entry.number, entry.rank) for entry in found.trials] == [
        (5, 1),
        (4, 2),
        (3, 3),
        (2, 4),
        (1, 5),
        (0, 6),
        (6, None),
        (7, None),
    ]


def test_the_ways_in_which_trials_ended_are_counted_in_order(tmp_path: Path) -> None:
    ends = ("running", "failed", "diverged", "diverged", "pruned", "failed")
    change = [trial(GATED, 41, phase="search", learning_rate=n / 100, status=end) for n, end in enumerate(ends, 1)]  # type: ignore[arg-type]
    results = write_study(tmp_path, [GATED], change)
    found = cell_of(results, GATED["id"]).chosen
    assert found.ends == (("diverged", 2), ("failed", 2), ("pruned", 1), ("running", 1))
    assert "  6 search trials: 2 diverged, 2 failed, 1 pruned, 1 running\n" in explain(results, "bi-gcn")


@pytest.mark.parametrize(("count", "rest"), [(10, []), (11, ["  and 1 more"])])
def test_ten_search_trials_are_listed_and_the_rest_counted(tmp_path: Path, count: int, rest: list[str]) -> None:
    trials = [trial(GATED, 41, phase="search", learning_rate=1 / number) for number in range(1, count + 1)]
    text = explain(write_study(tmp_path, [GATED], trials), "bi-gcn")
    assert "  nothing chosen yet\n" in text
    _, *listed = text.partition("  rank  key")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in listed[:10]] == [str(rank) for rank in range(1, 11)]
    assert listed[10:] == rest


def test_a_choice_without_a_search_on_record(tmp_path: Path) -> None:
    cell = vanilla("zinc", "gcn", seeds=[41])
    fixed = write_study(tmp_path / "fixed", [cell], [trial(cell, 41, 0.4)])
    assert "  nothing was searched: the plan fixes the configuration\n" in explain(fixed, "gcn")
    other = trial(cell, 41, phase="search", status="failed")
    failed = write_study(tmp_path / "failed", [cell], [other, replace(trial(cell, 41, 0.4), chosen_from=other.key)])
    told = f"  chosen: trial {other.key}, which is not among those that could be chosen\n"
    assert told in explain(failed, "gcn")
    lost = write_study(tmp_path / "lost", [cell], [replace(trial(cell, 41, 0.4), chosen_from="ab12")])
    assert "  from search trial ab12, which is not on record\n" in explain(lost, "gcn")


def test_configuration_without_what_means_nothing(tmp_path: Path) -> None:
    cell = vanilla("zinc", "gcn", seeds=[41])
    config = {
        "dataset": "zinc",
        "seed": 41,
        "fold": None,
        "model": {
            "backbone": "gcn",
            "sigma_m": None,
            "gate_epsilon": 0.0,
            "layers": 4,
            "gcn_normalisation": "symmetric",
        },
        "train": {"learning_rate": BEST, "max_epochs": 1000},
    }
    record = replace(
        trial(cell, 41, 0.4),
        config_json=json.dumps(config),
        gcn_normalisation="symmetric",
        departures='{"gcn_normalisation": "symmetric", "clip_norm": 1.0, "attention_bias": true}',
    )
    (found,) = evidence(write_study(tmp_path, [cell], [record]))
    # gate_epsilon is empty in the record of a vanilla model: it means nothing there.
    assert found.configuration == (
        ("budget", "100000"),
        ("params", "99000"),
        ("dataset", "zinc"),
        ("backbone", "gcn"),
        ("layers", "4"),
        ("gcn_normalisation", "symmetric"),
        ("learning_rate", "0.0015"),
        ("max_epochs", "1000"),
    )
    assert (found.semantics, found.departures) == (
        "paper",
        (("attention_bias", "true"), ("clip_norm", "1.0"), ("gcn_normalisation", "symmetric")),
    )


@pytest.mark.parametrize(
    ("backbone", "task", "shown"),
    [
        ("gcn", "graph_regression", ["readout"]),
        ("gat", "graph_regression", ["heads", "readout"]),
        ("gat", "node_classification", ["heads"]),
        ("gcn", "edge_classification", []),
    ],
)
def test_heads_and_readout_are_told_where_they_have_an_effect(
    tmp_path: Path, backbone: str, task: str, shown: list[str]
) -> None:
    cell = vanilla("zinc", backbone, seeds=[41])
    config = json.dumps({"dataset": "zinc", "model": {"heads": 1, "readout": "mean"}, "train": {}})
    record = replace(trial(cell, 41, 0.4), config_json=config, task=task)
    (found,) = evidence(write_study(tmp_path, [cell], [record]))
    assert [name for name, _ in found.configuration if name in ("heads", "readout")] == shown


def test_code_data_and_libraries_are_each_named_once(tmp_path: Path) -> None:
    def change(trials: list[TrialRecord]) -> list[TrialRecord]:
        return [replace(record, git_commit=f"c{record.seed}", git_dirty=record.seed == 12) for record in trials]

    found = cell_of(clean_study(tmp_path, change), GATED["id"])
    assert found.code_states == ("c12 (with changed files)", "c35 (clean)", "c41 (clean)", "c95 (clean)")
    assert found.data == ("0f",)
    assert found.versions == (("python", "3.11.7"), ("torch", "2.9.0"))
    assert code_state("cc", None) == "cc (changes unknown)"
    assert code_state(None, None) == "unknown code state"


def test_confirm_trials_of_an_older_choice_stand_apart(tmp_path: Path) -> None:
    cell = vanilla("zinc", "gcn")
    old = runs(cell, [0.1, 0.1, 0.1, 0.1], learning_rate=0.5, status="superseded", started_at=1.0)
    (found,) = evidence(write_study(tmp_path, [cell], [*old, *runs(cell, [0.4, 0.5, 0.4, 0.5])]))
    assert found.number == "0.450 ± 0.050"
    assert [(run.seed, run.counted) for run in found.trials] == [
        *((seed, True) for seed in SEEDS),
        *((seed, False) for seed in sorted(SEEDS)),
    ]


def test_compacted_records_are_named_by_their_file(tmp_path: Path) -> None:
    cell = vanilla("zinc", "gcn", seeds=[41])
    record = trial(cell, 41, 0.4)
    results = write_study(tmp_path, [cell], [record])
    alone = results / "records" / f"{record.key}.parquet"
    alone.rename(results / "records" / "compacted.parquet")
    (found,) = evidence(results)
    assert (found.number, found.trials[0].record) == ("0.400 (1 run)", "records/compacted.parquet")


# ---- which cell is meant


def test_every_cell_is_found_by_its_name_and_by_its_id(tmp_path: Path) -> None:
    cells = evidence(worked_study(tmp_path))
    for cell in cells:
        assert find_cell(cells, name_of(cell)) is cell
        assert find_cell(cells, cell.cell.upper()) is cell


@pytest.mark.parametrize(
    ("words", "cell"),
    [
        ("ZINC bi-GCN 500k", "zinc-gcn-boosting-bilateral-L16-500000"),
        ("zinc gcn l16", "zinc-gcn-none-L16-500000"),
        ("500000 vanilla", "zinc-gcn-none-L16-500000"),
        ("ZINC GCN 100k", "zinc-gcn-none-L4-100000"),
        ("uniform-gcn", "zinc-gcn-boosting-uniform-L4-100000"),
        ("digits K=16", "digits-bi-16"),
        ("interleaved", "zinc-gcn-interleaved-bilateral-L4-100000"),
    ],
)
def test_words_that_name_a_cell(tmp_path: Path, words: str, cell: str) -> None:
    assert find_cell(evidence(worked_study(tmp_path)), words).cell == cell


def test_a_name_that_is_whole_is_meant_before_one_with_details(tmp_path: Path) -> None:
    plain = vanilla("zinc", "gcn", semantics="paper")
    departing = {**plain, "id": "other", "departures": {"gcn_normalisation": "symmetric"}}
    cells = evidence(write_study(tmp_path, [plain, departing], []))
    assert find_cell(cells, "zinc gcn").cell == plain["id"]
    assert find_cell(cells, "gcn symmetric").cell == "other"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("zinc bi-gcn", "'zinc bi-gcn': found 2 such cells; add a word to mean one: ZINC bi-GCN"),
        ("zinc bi-gnc 500k", "found no such cell; nearest: ZINC bi-GCN 500k L16"),
        ("cora", "found no such cell; nearest: "),
        (" ", "found no word, expected some of a cell's name; cells: ZINC GCN 100k L4; "),
    ],
)
def test_words_that_name_none_or_several(tmp_path: Path, words: str, message: str) -> None:
    with pytest.raises(ResultsError) as error:
        find_cell(evidence(worked_study(tmp_path)), words)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("count", "ending"), [(8, "ZINC GCN 100k L8"), (9, "ZINC GCN 100k L8 and 1 more")])
def test_an_error_names_eight_cells_and_counts_the_rest(tmp_path: Path, count: int, ending: str) -> None:
    cells = evidence(write_study(tmp_path, [vanilla("zinc", "gcn", layers) for layers in range(1, count + 1)], []))
    with pytest.raises(ResultsError) as error:
        find_cell(cells, "cora")
    named = "; ".join(f"ZINC GCN 100k L{layers}" for layers in range(1, 8))
    assert str(error.value) == f"'cora': found no such cell; nearest: {named}; {ending}"


# ---- as text


def test_the_text_of_a_cell(tmp_path: Path) -> None:
    made = trials_of(GATED)
    best, last = made[5].key, made[8].key
    text = explain(clean_study(tmp_path), "bi-gcn")
    lines = text.splitlines()
    assert lines[:5] == [
        "ZINC bi-GCN 100k L4",
        f"cell {GATED['id']} of study made",
        "",
        "Test MAE: 0.415 ± 0.011",
        "  mean ± population standard deviation over 4 of 4 runs",
    ]
    assert f"  {last}  seed 41  0.4   0.4    0.5         3       99000   finished (min_lr)" in lines
    assert "  8 search trials: 6 finished, 2 pruned" in lines
    assert f"  chosen: trial {best}, rank 1 of the 8 that could be chosen" in lines
    assert "  searched learning_rate: log_uniform [0.0001, 0.01]" in lines
    assert "  aa11 (clean)" in lines
    assert f"  records/{last}.parquet" in lines
    assert f'  tags.trial_key = "{last}"' in lines
    assert str(tmp_path) not in text


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = worked_study(tmp_path / "first"), worked_study(tmp_path / "second")
    for cell in evidence(first):
        assert explain(first, cell.cell) == explain(second, cell.cell)


def test_odd_names_and_values_stay_in_their_lines(tmp_path: Path) -> None:
    cell = gated("zinc", "gcn", seeds=[41], dataset_title="_&%$#{}~^\\<>\nü\x1b[31m", id="odd\tid")
    record = trial(cell, 41, float("nan"), reason="two\nlines")
    lines = explain(write_study(tmp_path, [cell], [record]), "bi-gcn").splitlines()
    assert lines[:2] == ["_&%$#{}~^\\<> ü [31m bi-GCN 100k L4", "cell odd id of study made"]
    assert all(line.isprintable() for line in lines)
    assert any("nan" in line and "finished (two lines)" in line for line in lines)


def test_half_a_surrogate_pair_is_replaced(tmp_path: Path) -> None:
    results = write_used_data(clean_study(tmp_path), "ZINC", train=10_000, val=1_000, test=1_000)
    content = (results / "data.json").read_text(encoding="utf-8")
    (results / "data.json").write_text(content.replace('"made"', r'"a\ud800b"'), encoding="utf-8")
    assert "; a?b\n" in explain(results, "bi-gcn")


# ---- as commands


def test_explain_prints_the_evidence(tmp_path: Path) -> None:
    results = clean_study(tmp_path)
    done = aggregate("explain", results, "ZINC bi-GCN 100k")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == explain(results, "bi-GCN")


@pytest.mark.parametrize("command", ["explain", "check"])
def test_wrong_input_is_one_line(tmp_path: Path, command: str) -> None:
    words = ["bi-gcn"] if command == "explain" else []
    done = aggregate(command, tmp_path / "missing", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    said = "no study here (there is no such folder); give a study's results folder, or its URL"
    assert done.stderr == f"error: {tmp_path / 'missing'}: {said}\n"
    results = clean_study(tmp_path / "results")
    (results / "records" / "0a.parquet").write_bytes(b"PAR1 cut")
    done = aggregate(command, results, *words)
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert "0a.parquet: not a readable Parquet file" in done.stderr


def test_explain_of_an_unknown_cell_names_the_nearest(tmp_path: Path) -> None:
    done = aggregate("explain", clean_study(tmp_path), "bi-gcm")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "error: 'bi-gcm': found no such cell; nearest: ZINC bi-GCN 100k L4\n"


def test_check_ends_by_what_it_found(tmp_path: Path) -> None:
    done = aggregate("check", clean_study(tmp_path / "clean"))
    assert (done.exit_code, done.stdout, done.stderr) == (0, "nothing found in 1 study\n", "")
    warned = clean_study(tmp_path / "warned", changed(lambda record: record.phase == "confirm", test_metric=0.4))
    done = aggregate("check", warned)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == (
        "0 findings that forbid publishing, 2 warnings in 1 study: say in the text what the warnings name"
    )
    done = aggregate("check", warned, clean_study(tmp_path / "forbidden", lambda trials: trials[:-1]))
    assert (done.exit_code, done.stderr) == (1, "")
    first, *_, last = done.stdout.splitlines()
    assert first.startswith("forbids missing-run: made: ZINC bi-GCN 100k L4: 3 of 4 runs gave a number; seed 35")
    # Of the warned study all runs of one cell, too, have other numbers under the same keys.
    assert last == "2 findings that forbid publishing, 2 warnings in 2 studies: do not publish yet"
