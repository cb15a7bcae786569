"""How many trials share a GPU: by values, and what is kept of a probe. No GPU is asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from made_trials import assignment, config

from bimp.data import prepare
from study import gpu_probe
from study.assignment import TrialAssignment
from study.cell_run import PlannedTrial
from study.cluster import Slots
from study.gpu_probe import packed_resources, probe_assignment
from study.packing import CONTEXT_BYTES, COUNTS, Packing, Probed, packing
from study.plan import plan
from study.results import ResultsFolder
from study.spec import SpecError, read_study
from study.threads import thread_variables, variables_set

GIB = 2**30
STUDY = """
name: made
arms: {dataset: digits, backbone: gcn, placement: [none, boosting], hidden_dim: 6, layers: 2}
fixed: {num_clusters: 3, max_epochs: 1}
resources: {gpus_per_trial: auto, max_trials_per_gpu: 6}
"""


def probed(gib: float | None, utilisation: float | None = None, gpu_memory: int = 80) -> Probed:
    """Of a trial that takes so many GiB, CUDA's context in them."""
    memory = None if gib is None else round(gib * GIB) - CONTEXT_BYTES
    return Probed(memory_bytes=memory, utilisation=utilisation, gpu="a GPU", gpu_memory=gpu_memory * GIB)


@pytest.mark.parametrize(
    ("cells", "most", "trials", "reason"),
    [
        # 72 of 80 GiB may be taken: 24 times 3, 14 times 5, 7 times 10, 2 times 30, 1 time 40.
        ({"a": probed(3)}, 32, 24, "a takes 3.0 GiB of 80"),
        ({"a": probed(5)}, 32, 12, "a takes 5.0 GiB of 80"),
        ({"a": probed(10)}, 32, 6, "a takes 10.0 GiB of 80"),
        ({"a": probed(30)}, 32, 2, "a takes 30.0 GiB of 80"),
        ({"a": probed(40)}, 32, 1, "a takes 40.0 GiB of 80"),
        ({"a": probed(200)}, 32, 1, "a takes 200.0 GiB of 80"),
        ({"a": probed(None)}, 32, 1, "a fills it"),
        ({"a": probed(1)}, 8, 8, "resources.max_trials_per_gpu: 8"),
        ({"a": probed(1)}, 7, 6, "resources.max_trials_per_gpu: 7"),
        ({"a": probed(1)}, 1, 1, "resources.max_trials_per_gpu: 1"),
        # 1.2 of a GPU's time: 4 times 0.3, 3 times 0.38, once 0.9.
        ({"a": probed(1, 0.3)}, 32, 4, "a keeps it busy 30% of the time"),
        ({"a": probed(1, 0.38)}, 32, 3, "a keeps it busy 38% of the time"),
        ({"a": probed(1, 0.9)}, 32, 1, "a keeps it busy 90% of the time"),
        ({"a": probed(1, 0.0)}, 8, 8, "resources.max_trials_per_gpu: 8"),
        # The cell that needs the most decides, on the smallest GPU that was seen.
        ({"a": probed(3), "b": probed(20), "c": probed(1, 0.5)}, 32, 2, "c keeps it busy 50% of the time"),
        ({"a": probed(3), "b": probed(5, gpu_memory=20)}, 32, 3, "b takes 5.0 GiB of 20"),
    ],
)
def test_a_share_follows_from_memory_and_use(cells: dict[str, Probed], most: int, trials: int, reason: str) -> None:
    assert packing(cells, most) == Packing(trials=trials, reason=reason)


@given(gib=st.floats(0.7, 100), most=st.integers(1, 40), utilisation=st.none() | st.floats(0, 1))
def test_as_many_as_are_packed_fit(gib: float, most: int, utilisation: float | None) -> None:
    found = packing({"a": probed(gib, utilisation)}, most)
    assert found.trials in COUNTS
    assert found.trials <= most
    assert found.trials == 1 or found.trials * gib <= 0.9 * 80 + 1e-6
    resources = read_study(STUDY).resources.with_gpus(found.share)
    node = {"Alive": True, "NodeID": "a", "Resources": {"CPU": 64.0, "GPU": 2.0}}
    assert Slots.of([node], resources).total == 2 * found.trials, "Ray counts in parts of ten thousand"
    assert round(found.share * 10_000) * found.trials <= 10_000


class TestSpec:
    def test_auto_is_a_word_among_numbers(self) -> None:
        resources = read_study(STUDY).resources
        assert (resources.gpus_per_trial, resources.max_trials_per_gpu, resources.gpus) == ("auto", 6, 0.0)
        assert read_study(STUDY.replace("auto, max_trials_per_gpu: 6", "0.25")).resources.gpus == 0.25

    @pytest.mark.parametrize(
        ("given", "told"),
        [
            ("many", "resources.gpus_per_trial: found 'many', expected a number, 0 or more, or auto"),
            ("true", "resources.gpus_per_trial: found true, expected a number, 0 or more, or auto"),
            ("-1", "resources.gpus_per_trial: found -1, expected a number, 0 or more, or auto"),
            (".inf", "resources.gpus_per_trial: found inf, expected a number, 0 or more, or auto"),
            (
                "0.5",
                "max_trials_per_gpu: found 6 beside gpus_per_trial: 0.5, expected none: it limits gpus_per_trial: a",
            ),
        ],
    )
    def test_what_is_wrong_is_told(self, given: str, told: str) -> None:
        with pytest.raises(SpecError) as refused:
            read_study(STUDY.replace("auto", given))
        assert told in str(refused.value)


class TestPackedResources:
    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
        """Layers and gates of the configurations that a cluster was asked to probe; it answers by their gate."""
        asked: list[set[str]] = []

        def answer(assignments: Mapping[str, TrialAssignment], cpus: int, gpus: float) -> dict[str, Any]:
            asked.append({each.config.model.gate or "vanilla" for each in assignments.values()})
            gibs = {None: 10.0, "bilateral": 20.0}
            return {name: probed(gibs[each.config.model.gate]) for name, each in assignments.items()}

        monkeypatch.setattr(gpu_probe, "probe_on_cluster", answer)
        return asked

    def decide(self, folder: ResultsFolder, text: str = STUDY, gpus: float = 4.0) -> tuple[float, str]:
        def make(trial: PlannedTrial) -> TrialAssignment:
            return assignment(folder.root, config=trial.config, key=trial.key)

        spec = read_study(text)
        resources, told = packed_resources(plan(spec), spec, folder, gpus, make)
        assert resources.cpus_per_trial == spec.resources.cpus_per_trial
        return resources.gpus, told

    def test_every_cell_is_probed_once_and_resume_probes_none_again(
        self, tmp_path: Path, asked: list[set[str]]
    ) -> None:
        folder = ResultsFolder(tmp_path)
        told = "gpus_per_trial: auto: 3 trials share a GPU (digits-gcn-boosting-L2-h6 takes 20.0 GiB of 80)"
        assert self.decide(folder) == (0.3333, told)
        assert asked == [{"vanilla", "bilateral"}]
        kept = json.loads(folder.packing_file.read_text())
        assert sorted(probed["memory_bytes"] + CONTEXT_BYTES for probed in kept.values()) == [10 * GIB, 20 * GIB]
        assert self.decide(folder) == (0.3333, told)
        assert asked[1:] == [set()]

    def test_a_cell_that_is_new_is_probed_alone(self, tmp_path: Path, asked: list[set[str]]) -> None:
        folder = ResultsFolder(tmp_path)
        assert (
            self.decide(folder, STUDY.replace("[none, boosting]", "none").replace("num_clusters: 3, ", ""))[0] == 0.1666
        )
        self.decide(folder)
        assert asked == [{"vanilla"}, {"bilateral"}]

    def test_a_file_that_was_cut_is_measured_again(self, tmp_path: Path, asked: list[set[str]]) -> None:
        folder = ResultsFolder(tmp_path)
        self.decide(folder)
        folder.packing_file.write_text(folder.packing_file.read_text()[:50])
        self.decide(folder)
        assert asked == [{"vanilla", "bilateral"}] * 2

    def test_without_gpus_nothing_is_probed(self, tmp_path: Path, asked: list[set[str]]) -> None:
        told = "gpus_per_trial: auto: the cluster has no GPU, trials run on CPUs"
        assert self.decide(ResultsFolder(tmp_path), gpus=0.0) == (0.0, told)
        assert asked == []

    def test_a_probe_that_fails_gives_every_trial_a_gpu_and_is_tried_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        asked: list[int] = []

        def answer(assignments: Mapping[str, TrialAssignment], cpus: int, gpus: float) -> dict[str, Any]:
            asked.append(len(assignments))
            return {
                name: "OSError: gone" if each.config.model.gate else probed(10.0) for name, each in assignments.items()
            }

        monkeypatch.setattr(gpu_probe, "probe_on_cluster", answer)
        for _ in range(2):
            found = self.decide(ResultsFolder(tmp_path))
            assert found == (1.0, "gpus_per_trial: auto: a trial has a GPU to itself (a probe failed)")
        assert asked == [2, 1]
        assert "cell digits-gcn-boosting-L2-h6: its probe failed (OSError: gone)" in caplog.text


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    root = tmp_path_factory.mktemp("data")
    return root, prepare("digits", root).fingerprint


class TestProbeOfAWorker:
    """The step loop on this machine's CPU, where the memory of the process stands for a GPU's."""

    def given(self, tmp_path: Path, data: tuple[Path, str]) -> TrialAssignment:
        return assignment(tmp_path, data[0], data_fingerprint=data[1], config=config(batch_size=256))

    def test_it_gives_what_the_packing_needs_and_writes_nothing(self, tmp_path: Path, data: tuple[Path, str]) -> None:
        found = Probed(**probe_assignment(self.given(tmp_path, data).to_dict()))
        assert found.memory_bytes is not None
        assert found.memory_bytes > 50 * 2**20
        assert (found.utilisation, found.gpu, found.gpu_memory) == (None, "none", 0)
        assert list(tmp_path.iterdir()) == []

    def test_what_goes_wrong_is_told(self, tmp_path: Path, data: tuple[Path, str]) -> None:
        missing = replace(self.given(tmp_path, data), data_root=str(tmp_path))
        assert probe_assignment(missing.to_dict())["failed"].startswith("DataError: ")

    def test_a_model_that_fills_a_gpu_takes_more_than_it_has(
        self, tmp_path: Path, data: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> None:
            raise torch.OutOfMemoryError("CUDA out of memory")

        monkeypatch.setattr(gpu_probe, "probe", full)
        assert Probed(**probe_assignment(self.given(tmp_path, data).to_dict())).memory_bytes is None

    def test_a_gpu_that_others_fill_is_no_finding_about_the_model(
        self, tmp_path: Path, data: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(_: torch.device) -> tuple[str, int]:
            raise RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be ...")

        monkeypatch.setattr(gpu_probe, "_gpu", full)
        found = probe_assignment(self.given(tmp_path, data).to_dict())
        assert found == {"failed": "RuntimeError: CUDA error: out of memory"}


def test_a_worker_starts_with_as_many_threads_as_cores_and_the_driver_keeps_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with variables_set(thread_variables(2)):
        assert [os.environ[name] for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")] == [
            "2"
        ] * 3
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ
