"""`run_study.py best`: the file that it writes is the study of the confirm trials, read back as any study is."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
import torch
from torch import Tensor, nn

from benchmarks.simulated_pool import FakeTraining, SimulatedPool, simulated_coordinator
from bimp.config import TrialConfig
from study import records
from study.best import BestError, best_of_study
from study.best_file import best_study_text, write_best
from study.cell_run import CellRun
from study.claim import claim
from study.compaction import compact
from study.found_study import NoStudyError
from study.journal import Journal
from study.key_comments import KEY_COMMENTS, RESOURCE_COMMENTS
from study.plan import plan
from study.record_files import read_singles
from study.records import read_records, write_record
from study.results import ResultsFolder
from study.spec import ResourcesSpec, StudySpec, load_study, read_study
from study.spec.hyperparameters import HYPERPARAMETERS


class Summed(nn.Module):
    def __init__(self, row_dim: int) -> None:
        super().__init__()
        self.own = nn.Linear(row_dim, row_dim)

    def forward(self, h: Tensor, edge_index: Tensor, beta_hat: Tensor | None = None) -> Tensor:
        return torch.relu(self.own(h))


STUDIES = {
    "tpe with a budget": """
name: made
arms: {dataset: digits, backbone: [gcn, gat], placement: [none, boosting], budget: 9000, layers: 4}
space:
  sigma_m: {log_uniform: [0.1, 10]}
  num_clusters: {int: [2, 16]}
  learning_rate: {log_uniform: [3e-4, 3e-3]}
fixed: {max_epochs: 4, lr_patience: 0}
search: {trials: 5, asha: {grace_epochs: 1, reduction_factor: 2}}
confirm: {seeds: [7, 1]}
resources: {cpus_per_trial: 2, max_concurrent: 3}
""",
    "a grid over placements, of which some are lists": """
name: made
arms: {dataset: [digits, enzymes], backbone: graphsage, hidden_dim: 8}
space:
  layers: {choice: [4, 6]}
  placement: {choice: [none, dense, [2, 4], [3]]}
  gate: {choice: [bilateral, uniform]}
  readout: {choice: [mean, sum], when: {placement: [none, [2, 4]]}}
fixed: {max_epochs: 2, num_clusters: 3, sigma_m: 0.25, pos_enc_dim: 4, out_dim: 5, time_limit_s: 3600}
search: {sampler: grid}
confirm: {seeds: [41, 95], folds: [3, 1]}
""",
    "departures, fixed and searched": """
name: made
arms: {dataset: cifar10, backbone: [gcn, gated_gcn], placement: [[1, 3]], layers: 3, num_clusters: [2, 4]}
space:
  budget: {choice: [5000, 9000]}
  semantics: {choice: [paper, released]}
  cut_scope: {choice: [graph, batch]}
  unsupervised_weight: {uniform: [0, 2]}
fixed: {max_epochs: 2, clip_norm: null, head: linear, gcn_normalisation: symmetric, edge_features: ones}
search: {sampler: random, trials: 4}
""",
    "rows, nothing searched": """
name: made
arms: {dataset: zinc, backbone: gcn, layers: 4, hidden_dim: 14}
rows:
  - {placement: none, gcn_normalisation: [mean, symmetric]}
  - {placement: boosting, gate: [bilateral, uniform]}
fixed: {semantics: released, num_clusters: 9, max_epochs: 2}
""",
    "cells that share no arm": """
name: made
arms: {dataset: [digits, zinc], backbone: [gcn, gat]}
fixed: {hidden_dim: 8, layers: 2, max_epochs: 2}
""",
    "a layer of the user's own": f"""
name: made
arms: {{dataset: digits, backbone: ["{__name__}:Summed", gat], placement: dense, hidden_dim: 8, layers: 2}}
space: {{num_clusters: {{int: [2, 16]}}, heads: {{choice: [2, 4]}}}}
fixed: {{max_epochs: 2}}
search: {{trials: 3}}
""",
    "cells that can choose the same configuration": """
name: made
arms: {dataset: digits, backbone: gcn, hidden_dim: 8, layers: 2}
rows: [{placement: none}, {placement: none, time_limit_s: 100}, {placement: none, time_limit_s: null}]
fixed: {max_epochs: 2}
""",
}


def unit(*parts: object) -> float:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:6], "big") / 2**48


def run(text: str, root: Path) -> tuple[StudySpec, ResultsFolder]:
    """A whole study whose trials train nothing."""
    spec, folder = read_study(text), ResultsFolder(root)
    claim(folder, root / "study.yaml", text, spec, plan(spec))
    training = FakeTraining(
        seconds=lambda assignment: 1.0,
        val_metric=lambda assignment, epoch: unit(assignment.key, epoch),
        last_epoch=lambda assignment: assignment.config.train.max_epochs,
    )
    coordinator = simulated_coordinator(spec, plan(spec), folder)
    SimulatedPool(coordinator, folder, 2, training).run()
    assert coordinator.done
    return spec, folder


def confirmed(folder: ResultsFolder) -> dict[str, set[TrialConfig]]:
    """By cell, the configurations of the confirm trials on record."""
    found: dict[str, set[TrialConfig]] = {}
    for record in read_records(folder.records, "confirm"):
        config = TrialConfig.from_dict(json.loads(record.config_json))
        found.setdefault(record.cell, set()).add(config)
    return found


def of_file(text: str) -> list[set[TrialConfig]]:
    """The confirm configurations of each cell of a study with nothing to search, as its coordinator would hand out."""
    spec = read_study(text)
    planned = plan(spec)
    assert planned.search_trials == 0
    found = []
    for cell in planned.cells:
        run = CellRun(cell, spec, "data")
        run.begin([], {}, {}, {})
        found.append({trial.config for trial in iter(run.next_confirm, None)})
    return found


@pytest.fixture(scope="module", params=STUDIES.values(), ids=STUDIES)
def ended(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ResultsFolder:
    return run(request.param, tmp_path_factory.mktemp("results"))[1]


def test_each_cell_alone_is_the_study_of_its_confirm_trials(ended: ResultsFolder) -> None:
    on_record = confirmed(ended)
    assert on_record
    for cell, configs in on_record.items():
        found = best_of_study(ended.root, cell)
        assert of_file(best_study_text(found.cells, found.spec)) == [configs]


def test_all_cells_in_one_file_are_the_study_of_all_confirm_trials(ended: ResultsFolder) -> None:
    found = best_of_study(ended.root)
    expected: list[set[TrialConfig]] = []
    for configs in confirmed(ended).values():
        if configs not in expected:
            expected.append(configs)
    written = of_file(best_study_text(found.cells, found.spec))
    assert len(written) == len(expected)
    assert all(configs in written for configs in expected)


def test_whole_records_are_read_of_the_chosen_trials_alone(
    ended: ResultsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole: list[str] = []

    def counted(paths: Sequence[Path], columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        whole.extend(path.stem for path in paths if columns is None)
        return read_singles(paths, columns)

    monkeypatch.setattr(records, "read_singles", counted)
    cells = best_of_study(ended.root).cells
    assert {one.trial.key for one in cells if one.trial is not None} <= set(whole)
    assert len(whole) <= 2 * len(cells)  # and of each cell a confirm trial


def test_of_compacted_records_the_same_are_chosen(ended: ResultsFolder, tmp_path: Path) -> None:
    copied = shutil.copytree(ended.root, tmp_path / "compacted")
    compact(copied)
    assert best_of_study(copied).cells == best_of_study(ended.root).cells


def test_what_does_not_enter_a_configuration_is_kept_too(tmp_path: Path) -> None:
    spec, folder = run(STUDIES["tpe with a budget"], tmp_path)
    found = best_of_study(folder.root, "digits-gat-boosting-L4-9k")
    written = read_study(best_study_text(found.cells, found.spec))
    (cell,) = plan(written).cells
    assert (written.resources, written.confirm.seeds, cell.id) == (spec.resources, (7, 1), "digits-gat-boosting-L4-9k")
    assert cell.setting("budget") == 9000, "the row is still one of 9,000 parameters"


def test_every_key_has_a_comment_and_every_line_of_the_file_its_own(tmp_path: Path) -> None:
    assert set(KEY_COMMENTS) == set(HYPERPARAMETERS)
    assert set(RESOURCE_COMMENTS) == set(ResourcesSpec.model_fields)
    _, folder = run(STUDIES["departures, fixed and searched"], tmp_path)
    found = best_of_study(folder.root, "cifar10-gated_gcn-layers1.3-L3-K4")
    lines = best_study_text(found.cells, found.spec).splitlines()
    assert [line for line in lines if line and "#" not in line and line not in ("arms:", "fixed:")] == []


def test_it_says_where_the_configuration_comes_from(tmp_path: Path) -> None:
    _, folder = run(STUDIES["tpe with a budget"], tmp_path)
    cell = "digits-gcn-none-L4-9k"
    searched = {record.key: record for record in read_records(folder.records, "search") if record.cell == cell}
    (chosen,) = {record.chosen_from for record in read_records(folder.records, "confirm") if record.cell == cell}
    assert chosen is not None
    write_record(replace(searched[chosen], git_commit="abc123", git_dirty=True), folder.record(chosen))
    whole = [record for record in searched.values() if record.num_epochs == 4]
    pruned = len(searched) - len(whole)
    assert 0 < pruned < 5
    found = best_of_study(folder.root, cell)
    lines = best_study_text(found.cells, found.spec).splitlines()
    for line in (
        f"# cell {cell}",
        f"# search trial {chosen}, number {searched[chosen].number} (counted from 0) of its cell",
        f"# rank 1 of {len(whole)} that went all the way; in all {len(whole)} finished, {pruned} pruned",
        f"# validation accuracy {max(record.val_metric or 0 for record in whole)} after epoch 4",
        "# code commit abc123, with changes that were not committed",
    ):
        assert line in lines
    assert "NOT OVER" not in "\n".join(lines)


def test_of_a_half_run_study_it_says_that_another_may_be_better(tmp_path: Path) -> None:
    _, whole = run(STUDIES["tpe with a budget"], tmp_path / "whole")
    half = ResultsFolder(tmp_path / "half")
    shutil.copytree(whole.root, half.root)
    cell = "digits-gcn-none-L4-9k"
    entries = [entry for entry in Journal(whole.journal).entries() if entry.cell == cell]
    for record in read_records(whole.records):
        if record.cell == cell and record.key not in [entry.key for entry in entries[:3]]:
            half.record(record.key).unlink()
    best = max(
        (record for record in read_records(half.records, "search") if record.cell == cell and record.num_epochs == 4),
        key=lambda record: record.val_metric or 0,
    )
    found = best_of_study(half.root, cell)
    text = best_study_text(found.cells, found.spec)
    assert "# THE SEARCH IS NOT OVER: 3 of 5 trials have ended, and another may be better" in text
    assert f"# search trial {best.key}, " in text


def test_an_extended_search_is_not_over(tmp_path: Path) -> None:
    text = STUDIES["tpe with a budget"]
    _, folder = run(text, tmp_path)
    assert all(one.search_is_over for one in best_of_study(folder.root).cells)
    folder.study_file.write_text(text.replace("trials: 5", "trials: 6"))
    assert not any(one.search_is_over for one in best_of_study(folder.root).cells)


def test_a_cell_that_is_not_known_is_told_with_those_that_are(tmp_path: Path) -> None:
    _, folder = run(STUDIES["rows, nothing searched"], tmp_path)
    with pytest.raises(BestError) as refused:
        best_of_study(folder.root, "zinc-gin")
    assert str(refused.value) == (
        f"{folder.root}: study made has no cell zinc-gin; it has zinc-gcn-none-L4-h14-gcn_normalisation_mean, "
        "zinc-gcn-none-L4-h14-gcn_normalisation_symmetric, zinc-gcn-boosting-L4-h14, zinc-gcn-boosting-L4-h14-uniform"
    )


def test_before_any_trial_has_gone_all_the_way_there_is_none(tmp_path: Path) -> None:
    text = STUDIES["tpe with a budget"]
    spec, folder = read_study(text), ResultsFolder(tmp_path)
    claim(folder, tmp_path / "study.yaml", text, spec, plan(spec))
    with pytest.raises(BestError, match="no search trial of cell digits-gat-none-L4-9k has gone all the way yet"):
        best_of_study(tmp_path, "digits-gat-none-L4-9k")
    with pytest.raises(BestError, match="no search trial of any cell"):
        best_of_study(tmp_path)
    with pytest.raises(NoStudyError, match="no study here"):
        best_of_study(tmp_path / "records")


def test_cells_without_one_are_left_out_and_named(tmp_path: Path) -> None:
    _, folder = run(STUDIES["tpe with a budget"], tmp_path)
    for record in read_records(folder.records):
        if record.cell != "digits-gcn-none-L4-9k":
            folder.record(record.key).unlink()
    found = best_of_study(folder.root)
    assert [one.cell.id for one in found.cells] == ["digits-gcn-none-L4-9k"]
    assert len(found.without) == 3


def test_a_failed_or_diverged_trial_is_never_the_best(tmp_path: Path) -> None:
    _, folder = run(STUDIES["tpe with a budget"], tmp_path)
    cell = "digits-gcn-none-L4-9k"
    before = best_of_study(folder.root, cell).cells[0]
    assert before.trial is not None
    write_record(replace(before.trial, status="diverged"), folder.record(before.trial.key))
    after = best_of_study(folder.root, cell).cells[0]
    assert after.trial is not None
    assert after.trial.key != before.trial.key
    assert after.candidates == before.candidates - 1


def test_a_failed_trial_is_tried_again_so_that_the_search_is_not_over(tmp_path: Path) -> None:
    spec, folder = run(STUDIES["tpe with a budget"], tmp_path)
    cell = "digits-gcn-none-L4-9k"
    chosen = best_of_study(folder.root, cell).cells[0].trial
    other = next(one for one in read_records(folder.records, "search") if one.cell == cell and one != chosen)
    write_record(replace(other, status="diverged"), folder.record(other.key))
    assert best_of_study(folder.root, cell).cells[0].search_is_over
    write_record(replace(other, status="failed"), folder.record(other.key))
    after = best_of_study(folder.root, cell).cells[0]
    assert not after.search_is_over
    assert (after.ended["failed"], sum(after.ended.values())) == (1, 5)
    assert "# THE SEARCH IS NOT OVER: 4 of 5 trials have ended, and another may be better" in best_study_text(
        [after], spec
    )


def test_a_width_that_the_budget_gives_no_more_is_written_itself(tmp_path: Path) -> None:
    _, folder = run(STUDIES["tpe with a budget"], tmp_path)
    (one,) = best_of_study(folder.root, "digits-gcn-none-L4-9k").cells
    narrower = replace(one.config, model=replace(one.config.model, hidden_dim=one.config.model.hidden_dim - 1))
    text = best_study_text([replace(one, config=narrower)], read_study(STUDIES["tpe with a budget"]))
    assert {config.model.hidden_dim for config in of_file(text)[0]} == {narrower.model.hidden_dim}
    assert "budget:" not in text


def test_files_are_written_to_a_folder_or_a_file_and_none_is_lost(tmp_path: Path) -> None:
    _, folder = run(STUDIES["rows, nothing searched"], tmp_path / "results")
    found = best_of_study(folder.root)
    whole = tmp_path / "new" / "best.yaml"
    assert write_best(found, whole) == [whole]
    assert len(plan(load_study(whole)).cells) == 4
    each = write_best(found, tmp_path / "each")
    assert [path.name for path in each] == [f"{one.cell.id}.yaml" for one in found.cells]
    assert all(len(plan(load_study(path)).cells) == 1 for path in each)
    whole.write_text("mine")
    with pytest.raises(BestError, match=rf"^{whole}: is there already"):
        write_best(found, whole)
    assert whole.read_text() == "mine"
    write_best(found, whole, force=True)
    assert whole.read_text() != "mine"


def test_a_file_is_named_and_captioned_for_the_study_or_for_its_cell(tmp_path: Path) -> None:
    _, folder = run(STUDIES["tpe with a budget"], tmp_path)
    whole, one = best_of_study(folder.root), best_of_study(folder.root, "digits-gcn-none-L4-9k")
    text = best_study_text(whole.cells, whole.spec)
    assert text.startswith("# The best configuration of each cell of the study made, ")
    assert (read_study(text).name, read_study(text).caption) == (
        "made-best",
        "The best configuration of each cell that made found.",
    )
    text = best_study_text(one.cells, one.spec)
    assert text.startswith("# The best configuration of a cell of the study made, ")
    assert (read_study(text).name, read_study(text).caption) == (
        "made-best-digits-gcn-none-L4-9k",
        "The best configuration of digits-gcn-none-L4-9k that made found.",
    )


@pytest.mark.parametrize(("folds", "written"), [("[3, 1]", "[3, 1]"), ("all", "all"), ("[0, 1]", "[0, 1]")])
def test_folds_are_written_as_they_were_given(tmp_path: Path, folds: str, written: str) -> None:
    name = "a grid over placements, of which some are lists"
    text = STUDIES[name].replace("[digits, enzymes]", "enzymes").replace("folds: [3, 1]", f"folds: {folds}")
    text = text.replace("layers: {choice: [4, 6]}", "layers: {choice: [4]}")
    _, folder = run(text, tmp_path)
    found = best_of_study(folder.root)
    assert f"\n  folds: {written} " in best_study_text(found.cells, found.spec)


def test_a_long_name_is_shortened_and_still_a_study_s(tmp_path: Path) -> None:
    name = "n" * 100
    _, folder = run(STUDIES["rows, nothing searched"].replace("name: made", f"name: {name}"), tmp_path)
    found = best_of_study(folder.root)
    texts = [best_study_text([one], found.spec) for one in found.cells] + [best_study_text(found.cells, found.spec)]
    names = {read_study(text).name for text in texts}
    assert len(names) == 5
    assert all(len(one) == 100 and one.startswith("n" * 91) for one in names)
