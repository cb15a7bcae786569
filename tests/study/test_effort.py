"""What `plan` estimates, by values worked out by hand."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from made_trials import assignment, config, record
from rich.console import Console

from bimp.config import TrialConfig
from bimp.data import GraphSplit, open_prepared, prepare
from study import probe as probing
from study.measured_speed import measured_speeds
from study.past_speed import past_speeds
from study.plan import StudyPlan, plan, plan_json
from study.plan.effort import Epochs, efforts
from study.plan.heaviest import heaviest
from study.plan.hours import Speed, estimate, estimate_json, range_text, render_estimate
from study.planned_hours import EstimateError, planned_hours
from study.probe import Probe, ProbeError, probe
from study.records import write_record
from study.results import ResultsFolder
from study.spec import StudySpec, read_study

STUDY = """
name: made
arms: {dataset: digits, backbone: gcn, placement: [none, boosting], hidden_dim: 6, layers: 2}
space: {num_clusters: {int: [2, 5]}, batch_size: {int: [64, 512]}}
fixed: {max_epochs: 12}
search: {trials: 9, asha: {grace_epochs: 2, reduction_factor: 3}}
confirm: {seeds: [41, 95]}
"""
VANILLA, GATED = "digits-gcn-none-L2-h6", "digits-gcn-boosting-L2-h6"


def made(text: str = STUDY) -> tuple[StudyPlan, StudySpec]:
    spec = read_study(text)
    return plan(spec), spec


def test_epochs_of_a_search_with_halving() -> None:
    # Rungs at 2 and 6 of 12 epochs, one in three goes on: 2 + 4/3 + 6/9 = 4 epochs a trial.
    effort, _ = efforts(*made())
    assert effort.cell.rungs == (2, 6)
    assert effort.search == Epochs(least=18, expected=pytest.approx(36), most=108)
    assert effort.confirm == 24
    assert effort.epochs == Epochs(least=42, expected=pytest.approx(60), most=132)


def test_a_rung_at_the_last_epoch_ends_nothing_more() -> None:
    # Rungs at 4 and 12: 4 + 8/3.
    effort, _ = efforts(*made(STUDY.replace("grace_epochs: 2", "grace_epochs: 4")))
    assert effort.search == Epochs(least=36, expected=pytest.approx(9 * (4 + 8 / 3)), most=108)


def test_without_halving_every_trial_trains_to_its_end() -> None:
    effort, _ = efforts(*made(STUDY.replace(", asha: {grace_epochs: 2, reduction_factor: 3}", "")))
    assert effort.search == Epochs(least=108, expected=108, most=108)


def test_no_more_search_trials_train_than_there_are_configurations() -> None:
    # Vanilla: 2 batch sizes. Gated: 4 K by 2 batch sizes, which are 8. Of 9 trials that are asked for.
    space = "{num_clusters: {int: [2, 5]}, batch_size: {choice: [64, 512]}}"
    study = STUDY.replace("{int: [64, 512]}", "{choice: [64, 512]}")
    planned, spec = made(study)
    assert [effort.search.most for effort in efforts(planned, spec)] == [2 * 12, 8 * 12]
    told = "assumed: where a cell has fewer configurations than search trials each is trained once"
    assert told in shown(estimate(efforts(planned, spec), spec, {}, slots=1, slots_from="told"))
    # Of K = 2, 3, 4, 5 two search a batch size as well: 2 + 2 * 2. The vanilla cell has no K, and so nothing to search.
    parted = space.replace("[64, 512]", "[64, 512], when: {num_clusters: [2, 4]}")
    assert [effort.search.most for effort in efforts(*made(study.replace(space, parted)))] == [0, 6 * 12]
    endless = space.replace("batch_size", "learning_rate: {log_uniform: [1e-3, 1e-2]}, batch_size")
    planned, spec = made(study.replace(space, endless))
    assert [effort.search.most for effort in efforts(planned, spec)] == [9 * 12, 9 * 12]
    assert told not in shown(estimate(efforts(planned, spec), spec, {}, slots=1, slots_from="told"))


def test_what_is_not_searched_is_only_confirmed() -> None:
    text = STUDY.replace("space: {num_clusters: {int: [2, 5]}, batch_size: {int: [64, 512]}}\n", "")
    found = efforts(*made(text.replace("max_epochs: 12", "max_epochs: 12, num_clusters: 3")))
    assert [(effort.search.most, effort.confirm) for effort in found] == [(0, 24), (0, 24)]


def speeds(vanilla: float = 10.0, gated: float = 20.0) -> dict[str, Speed]:
    return {
        VANILLA: Speed(seconds_an_epoch=vanilla, known_from="measured"),
        GATED: Speed(seconds_an_epoch=gated, known_from="measured"),
    }


def test_hours_are_epochs_by_seconds() -> None:
    planned, spec = made()
    found = estimate(efforts(planned, spec), spec, speeds(), slots=2, slots_from="told")
    # 60 epochs of 10 s and 60 of 20 s: 1,800 s.
    assert found.all_hours == Epochs(
        least=pytest.approx(42 * 30 / 3600), expected=pytest.approx(0.5), most=pytest.approx(1.1)
    )
    assert found.by_the_clock == Epochs(
        least=pytest.approx(42 * 15 / 3600), expected=pytest.approx(0.25), most=pytest.approx(0.55)
    )
    assert estimate_json(found)[VANILLA] == {
        "search_epochs": [18, pytest.approx(36), 108],
        "confirm_epochs": 24,
        "seconds_an_epoch": 10.0,
        "hours": [pytest.approx(42 / 360), pytest.approx(60 / 360), pytest.approx(132 / 360)],
    }


def test_no_number_of_slots_makes_a_confirm_trial_start_before_its_search_has_ended() -> None:
    planned, spec = made()
    found = estimate(efforts(planned, spec), spec, speeds(), slots=1000, slots_from="told")
    # The slower cell: a search trial of 12 epochs, then a confirm trial of 12, of 20 s each.
    assert found.by_the_clock is not None
    assert found.by_the_clock.expected == pytest.approx(24 * 20 / 3600)


@pytest.mark.parametrize(("seeds", "share"), [("[41, 95, 12]", 3), (str(list(range(12))), 10)])
def test_seeds_that_are_trained_together_share_one_slot_however_many_there_are(seeds: str, share: int) -> None:
    planned, spec = made(STUDY.replace("[41, 95]", seeds) + "resources: {seeds_together: true}\n")
    found = estimate(efforts(planned, spec), spec, speeds(), slots=1000, slots_from="told")
    # The slower cell: a search trial of 12 epochs, then so many confirm trials of 12 in one slot, of 20 s an epoch.
    assert found.by_the_clock is not None
    assert found.by_the_clock.expected == pytest.approx((1 + share) * 12 * 20 / 3600)
    assert "assumed: seeds that are trained together take as long as one after another" in shown(found)


def shown(found: Any) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(render_estimate(found))
    assert isinstance(console.file, io.StringIO)
    assert all(len(line) <= 100 for line in console.file.getvalue().splitlines())
    return " ".join(console.file.getvalue().split())


def test_the_estimate_is_told_with_what_it_takes_for_granted() -> None:
    planned, spec = made(STUDY + "resources: {gpus_per_trial: 0.5}\n")
    text = shown(estimate(efforts(planned, spec), spec, speeds(), slots=2, slots_from="told"))
    assert f"{VANILLA} 36 (18 to 108) 24 10 10 min 0.0833" in text
    assert "epochs of all trials: 120 (84 to 264)" in text
    assert "time of all trials: 30 min (21 min to 66 min); GPU-hours: 0.25 (0.175 to 0.55)" in text
    assert "time by the clock: 15 min (10 min to 33 min) with trials 2 side by side (told)" in text
    assert "assumed: of the trials that reach a rung one in 3 goes on" in text
    assert text.count("assumed: measured") == 1


@pytest.mark.parametrize(("asked", "hours"), [("0.5", True), ("1", True), ("0", False), ("auto", False)])
def test_gpu_hours_are_told_where_it_is_known_what_a_trial_has(asked: str, hours: bool) -> None:
    planned, spec = made(STUDY + f"resources: {{gpus_per_trial: {asked}}}\n")
    text = shown(estimate(efforts(planned, spec), spec, speeds(), slots=2, slots_from="told"))
    assert ("an epoch Time GPU-hours" in text) is hours
    assert ("; GPU-hours: " in text) is hours
    assert ("GPU-hours depend on how many trials share a GPU" in text) is (asked == "auto")
    assert ("assumed: trials that share a GPU are as fast as" in text) is (asked in ("0.5", "auto"))


@pytest.mark.parametrize("asha", [True, False])
def test_pruning_is_assumed_where_any_cell_has_rungs(asha: bool) -> None:
    # Vanilla then has nothing to search, and no rungs.
    text = STUDY.replace(", batch_size: {int: [64, 512]}", "")
    planned, spec = made(text if asha else text.replace(", asha: {grace_epochs: 2, reduction_factor: 3}", ""))
    assert [bool(cell.rungs) for cell in planned.cells] == [False, asha]
    text = shown(estimate(efforts(planned, spec), spec, speeds(), slots=2, slots_from="told"))
    assert ("of the trials that reach a rung one in 3 goes on" in text) is asha


def test_without_a_measurement_epochs_alone_are_told() -> None:
    planned, spec = made()
    text = shown(planned_hours(planned, spec, earlier=None, data=None, slots=None))
    assert "epochs of all trials: 120 (84 to 264)" in text
    assert "time: not known before an epoch was measured (--measure, or --from RESULTS" in text
    assert "hours" not in text.lower().replace("gpu-hours", "")


@pytest.mark.parametrize(
    ("resources", "gpus", "slots", "known_from"),
    [
        ("gpus_per_trial: 0", 2, 8, "the 16 cores of this machine, 2 a trial; --slots for another"),
        ("gpus_per_trial: 1", 0, 8, "the 16 cores of this machine, 2 a trial; --slots for another"),
        ("gpus_per_trial: 1", 1, 1, "the GPU of this machine, 1 a trial; --slots for another"),
        ("gpus_per_trial: 0.5", 2, 4, "the 2 GPUs of this machine, 0.5 a trial; --slots for another"),
        ("gpus_per_trial: 0.4", 2, 4, "the 2 GPUs of this machine, 0.4 a trial; --slots for another"),
        ("gpus_per_trial: 0.1", 1, 8, "the 16 cores of this machine, 2 a trial; --slots for another"),
        ("gpus_per_trial: auto", 0, 8, "the 16 cores of this machine, 2 a trial; --slots for another"),
        (
            "gpus_per_trial: auto, max_trials_per_gpu: 3",
            2,
            6,
            "the 2 GPUs of this machine, at most 3 trials on one; --slots for another",
        ),
        ("gpus_per_trial: 0.5, max_concurrent: 3", 2, 3, "resources.max_concurrent"),
    ],
)
def test_as_many_run_side_by_side_as_this_machine_has_cores_and_gpus_for(
    monkeypatch: pytest.MonkeyPatch, resources: str, gpus: int, slots: int, known_from: str
) -> None:
    monkeypatch.setattr("study.planned_hours.cores_here", lambda: 16)
    monkeypatch.setattr("torch.cuda.device_count", lambda: gpus)
    planned, spec = made(f"{STUDY}resources: {{cpus_per_trial: 2, {resources}}}")
    found = planned_hours(planned, spec, earlier=None, data=None, slots=None)
    assert (found.slots, found.slots_from) == (slots, known_from)


@pytest.mark.parametrize(("told", "slots", "known_from"), [(64, 3, "resources.max_concurrent"), (2, 2, "--slots")])
def test_a_study_uses_no_more_slots_than_it_runs_trials_side_by_side(told: int, slots: int, known_from: str) -> None:
    planned, spec = made(f"{STUDY}resources: {{max_concurrent: 3}}")
    found = planned_hours(planned, spec, earlier=None, data=None, slots=told)
    assert (found.slots, found.slots_from) == (slots, known_from)


def test_a_cell_whose_speed_is_not_known_makes_the_whole_unknown() -> None:
    planned, spec = made()
    found = estimate(efforts(planned, spec), spec, {VANILLA: speeds()[VANILLA]}, slots=1, slots_from="told")
    assert (found.all_hours, found.by_the_clock) == (None, None)
    text = shown(found)
    assert f"{GATED} 36 (18 to 108) 24 ? ?" in text
    assert "time: not known of 1 cell (marked ?), and so not of the whole" in text


def test_numbers_of_one_value_have_no_bounds() -> None:
    assert range_text(Epochs(least=1234, expected=1234, most=1234)) == "1,234"


def test_the_json_of_a_plan_has_the_effort_of_its_cell() -> None:
    planned, spec = made()
    found = planned_hours(planned, spec, earlier=None, data=None, slots=3)
    with_effort = plan_json(planned, found)
    assert [{key: cell[key] for key in cell if key != "effort"} for cell in with_effort] == plan_json(planned)
    assert with_effort[0]["effort"]["hours"] is None


class TestEarlierRecords:
    def written(self, root: Path, **changes: Any) -> None:
        made = record(assignment(root, config=config(seed=changes.pop("seed"))), changes.pop("epochs"), **changes)
        write_record(made, ResultsFolder(root).record(made.key))

    def test_an_epoch_takes_as_long_as_in_trials_alike(self, tmp_path: Path) -> None:
        ResultsFolder(tmp_path).create()
        planned, _ = made()
        params = planned.cells[1].params.low
        self.written(tmp_path, seed=1, epochs=2, seconds=8.0, status="pruned", params=params, placement="dense")
        self.written(tmp_path, seed=2, epochs=3, seconds=27.0, status="finished", params=params)
        for seed, other in enumerate(
            ({"dataset": "zinc"}, {"backbone": "gat"}, {"layers": 4}, {"params": 2 * params}, {"placement": "none"}), 3
        ):
            self.written(
                tmp_path, seed=seed, epochs=1, seconds=1000.0, status="finished", **{"params": params, **other}
            )
        found = past_speeds(tmp_path, planned.cells)
        assert found[GATED].seconds_an_epoch == pytest.approx(35 / 5)
        assert found[VANILLA].seconds_an_epoch == pytest.approx(1000.0), "the one without a gate"
        assert found[GATED].known_from.endswith("1.5 times the size: batches of 512, on a processor with 1 thread")

    def test_what_an_epoch_s_time_hangs_on_beside_is_told(self, tmp_path: Path) -> None:
        """A larger dataset of the same name takes longer: nobody scales that, so its graphs are told."""
        folder = ResultsFolder(tmp_path)
        folder.create()
        splits = {"a": {"split_graphs": {"train": 500}}, "b": {"split_graphs": {"train": 10_000}}, "c": {"train": 7}}
        folder.data_file.write_text(json.dumps({"format": 1, "datasets": splits}))
        planned, _ = made()
        params = planned.cells[1].params.low
        for seed, data, size in ((1, "a", 16), (2, "b", 16), (3, "c", 512)):
            self.written(
                tmp_path, seed=seed, epochs=1, params=params, data_fingerprint=data, batch_size=size, status="finished"
            )
        told = past_speeds(tmp_path, planned.cells)[GATED].known_from
        assert ": 500 or 10,000 training graphs in batches of 16 or 512, on a processor" in told

    def test_none_alike_is_an_error(self, tmp_path: Path) -> None:
        ResultsFolder(tmp_path).create()
        with pytest.raises(EstimateError, match=rf"^--from {tmp_path}: found no record of"):
            planned_hours(*made(), earlier=tmp_path, data=None, slots=None)

    def test_both_ways_at_once_are_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(EstimateError, match="--measure and --from: found both"):
            planned_hours(*made(), earlier=tmp_path, data=tmp_path, slots=None)


class TestHeaviest:
    def test_it_is_the_deepest_and_widest_at_the_largest_batch(self) -> None:
        text = STUDY.replace("layers: 2}", "backbone: gat}").replace("backbone: gcn, ", "")
        planned, spec = made(text.replace("space: {", "space: {layers: {int: [2, 6]}, heads: {choice: [1, 4]}, "))
        chosen = heaviest(planned.cells[1], spec)
        assert (chosen.model.layers, chosen.model.heads, chosen.model.num_clusters) == (6, 4, 5)
        assert chosen.train.batch_size == 512
        assert chosen.seed == 41

    def test_without_a_choice_it_is_the_one_there_is(self) -> None:
        text = STUDY.replace(", batch_size: {int: [64, 512]}", "").replace("max_epochs: 12", "batch_size: 32")
        planned, spec = made(text)
        assert heaviest(planned.cells[0], spec).train.batch_size == 32


@dataclass(frozen=True)
class Result:
    seconds: float
    status: str = "running"
    reason: str | None = None


@pytest.fixture(scope="module")
def digits_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    prepare("digits", folder)
    return folder


@pytest.fixture(scope="module")
def digits(digits_folder: Path) -> tuple[GraphSplit, GraphSplit]:
    prepared = open_prepared("digits", digits_folder)
    return prepared.split("train", None), prepared.split("val", None)


class TestMeasuredSpeeds:
    def measured(
        self, text: str, data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> tuple[list[Speed], list[TrialConfig], list[str]]:
        """The speeds where an epoch takes as many seconds as layers, what was trained for them, and the lines told."""
        trained: list[TrialConfig] = []
        told: list[str] = []

        def probe_of(config: TrialConfig, train: GraphSplit, validation: GraphSplit, device: torch.device) -> Probe:
            assert len(train) > len(validation) > 0
            assert device.type == "cpu"
            trained.append(config)
            return Probe(seconds_an_epoch=float(config.model.layers), memory_bytes=1, utilisation=None)

        monkeypatch.setattr("study.measured_speed.probe", probe_of)
        monkeypatch.setattr("torch.cuda.is_available", lambda: False)
        return list(measured_speeds(*made(text), data, told.append).values()), trained, told

    def test_the_heaviest_model_of_each_cell_is_measured(
        self, digits_folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text = STUDY.replace("layers: 2", "layers: [2, 3]")
        found, trained, told = self.measured(text, digits_folder, monkeypatch)
        # Cells in the order of the plan: vanilla of 2 and 3 layers, then gated ones.
        assert [speed.seconds_an_epoch for speed in found] == [2.0, 3.0, 2.0, 3.0]
        heaviest = [(config.model.layers, config.model.num_clusters, config.train.batch_size) for config in trained]
        assert heaviest == [(2, None, 512), (3, None, 512), (2, 5, 512), (3, 5, 512)]
        assert told[0] == f"measuring cell 1 of 4: {VANILLA}"

    @pytest.mark.parametrize(("gpus", "instead"), [("0", ""), ("0.5", " (its trials are to have a GPU)")])
    def test_it_is_told_on_what_it_was_measured(
        self, digits_folder: Path, monkeypatch: pytest.MonkeyPatch, gpus: str, instead: str
    ) -> None:
        text = f"{STUDY}resources: {{gpus_per_trial: {gpus}, cpus_per_trial: 1}}\n"
        found, _, _ = self.measured(text, digits_folder, monkeypatch)
        (said,) = {speed.known_from for speed in found}
        assert f"measured on this machine{instead}: " in said
        assert said.endswith(" with 1 of its cores")


class TestProbe:
    def test_seconds_of_a_few_batches_become_those_of_an_epoch(
        self, digits: tuple[GraphSplit, GraphSplit], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[tuple[int, int]] = []

        def fit(config: Any, train: GraphSplit, validation: GraphSplit, device: torch.device) -> Iterator[Result]:
            asked.append((len(train), len(validation)))
            yield from (Result(seconds) for seconds in (10.0, 12.0, 13.0, 14.0, 15.0)[: config.train.max_epochs])

        monkeypatch.setattr(probing, "fit", fit)
        train, validation = digits
        found = probe(config(batch_size=20), train, validation, torch.device("cpu"))
        # The first epoch took 10 s, the others 2 and 1: the median of those, for 8 batches of 20.
        steps = -(-len(train) // 20)
        assert found.seconds_an_epoch == pytest.approx((2.0 + 1.0) / 2 * steps / 8)
        assert asked == [(20, 20), (160, round(len(validation) * 160 / len(train)))]

    def test_it_trains_on_the_largest_graphs_first(
        self, digits: tuple[GraphSplit, GraphSplit], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        splits: list[GraphSplit] = []

        def fit(config: Any, train: GraphSplit, validation: GraphSplit, device: torch.device) -> Iterator[Result]:
            splits.append(train)
            yield Result(1.0)

        monkeypatch.setattr(probing, "fit", fit)
        probe(config(batch_size=20), *digits, torch.device("cpu"))
        graphs = digits[0].graphs
        sizes = (graphs.node_counts + graphs.edge_counts)[digits[0].indices].sort(descending=True).values
        chosen = splits[0].indices
        assert (graphs.node_counts + graphs.edge_counts)[chosen].tolist() == sizes[:20].tolist()

    def test_it_really_trains_and_measures_this_process(self, digits: tuple[GraphSplit, GraphSplit]) -> None:
        found = probe(config(batch_size=256), *digits, torch.device("cpu"))
        assert isinstance(found, Probe)
        assert 0 < found.seconds_an_epoch < 60
        assert found.memory_bytes > 50 * 2**20, "PyTorch alone is larger"
        assert found.utilisation is None

    def test_training_that_diverges_is_told(
        self, digits: tuple[GraphSplit, GraphSplit], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ended = Result(1.0, "diverged", "epoch 1: loss nan in training")
        monkeypatch.setattr(probing, "fit", lambda *_, **__: iter([ended]))
        with pytest.raises(ProbeError, match=r"a short training of digits diverged \(epoch 1: loss nan"):
            probe(config(), *digits, torch.device("cpu"))
