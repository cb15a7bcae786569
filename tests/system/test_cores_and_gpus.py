"""What a worker is given: threads before PyTorch is loaded, and GPUs by a probe; no real GPU is needed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from conftest import Studies
from finished import records
from started import ROOT, run_study

from benchmarks.faults.nodes import cluster

pytestmark = pytest.mark.system

LAYER = """
import json, os
import torch
from torch import nn

AT_IMPORT = {"environment": os.environ.get("OMP_NUM_THREADS"), "threads": torch.get_num_threads()}


class Watching(nn.Module):
    def __init__(self, row_dim):
        super().__init__()
        self.own = nn.Linear(row_dim, row_dim)

    def forward(self, h, edge_index, beta_hat=None):
        if os.environ.get("SEEN_IN"):
            with open(os.environ["SEEN_IN"], "a") as file:
                file.write(json.dumps({**AT_IMPORT, "in_training": torch.get_num_threads()}) + "\\n")
        return torch.relu(self.own(h))
"""

STUDY = """
name: watched
arms: {dataset: digits, backbone: "watching_layer:Watching", hidden_dim: 6, layers: 2}
fixed: {max_epochs: 1, batch_size: 512}
confirm: {seeds: [1]}
resources: {cpus_per_trial: 2, gpus_per_trial: auto}
"""

PROBE_ON_RAY = """
import json, sys
from study.cluster import prepare_environment
prepare_environment()
import ray
from study.gpu_probe import probe_on_cluster
from study.assignment import TrialAssignment

ray.init(address="local", num_cpus=1, num_gpus=1, include_dashboard=False, log_to_driver=False)
given = TrialAssignment.from_dict(json.loads(sys.argv[1]))
found = probe_on_cluster({"good": given, "bad": TrialAssignment.from_dict(json.loads(sys.argv[2]))}, cpus=1, gpus=1)
print(json.dumps([found["good"].memory_bytes, found["good"].gpu_memory, found["bad"]]))
ray.shutdown()
"""


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="a trial of two cores")
@pytest.mark.slow
def test_threads_are_set_before_pytorch_starts_and_auto_is_no_gpu_where_there_is_none(
    studies: Studies, tmp_path: Path
) -> None:
    (tmp_path / "watching_layer.py").write_text(LAYER)
    file, seen = tmp_path / "study.yaml", tmp_path / "seen"
    file.write_text(STUDY)
    # OMP_NUM_THREADS is 1 in this environment, as in make's: the study's word counts in its workers.
    where = {**studies.environment, "PYTHONPATH": str(tmp_path), "SEEN_IN": str(seen)}
    results = tmp_path / "results"
    ended = run_study("run", file, "--results", results, "--data", studies.data, environment=where).end()
    assert ended.code == 0, ended
    assert set(seen.read_text().splitlines()) == {json.dumps({"environment": "2", "threads": 2, "in_training": 2})}
    assert {record.threads for record in records(results).values()} == {2}
    assert "gpus_per_trial: auto: the cluster has no GPU, trials run on CPUs" in ended.out
    assert not (results / "packing.json").exists()


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="a trial of two cores")
@pytest.mark.slow
def test_threads_are_set_on_the_nodes_of_a_cluster_whatever_started_them(studies: Studies, tmp_path: Path) -> None:
    """One node has a GPU, says Ray; ``auto`` asks that node alone, whose torch finds none."""
    # Ray's sockets lie there: their paths must be short.
    short = Path(tempfile.mkdtemp(prefix="cores-"))
    (tmp_path / "watching_layer.py").write_text(LAYER)
    file, seen = tmp_path / "study.yaml", tmp_path / "seen"
    file.write_text(STUDY)
    where = {**studies.environment, "PYTHONPATH": str(tmp_path)}
    with cluster(short / "ray") as nodes:
        nodes.join(cpus=2, environment={"OMP_NUM_THREADS": "1", "SEEN_IN": str(seen)})
        arguments = ("run", file, "--data", studies.data, "--address", nodes.address, "--results")
        ended = run_study(*arguments, tmp_path / "results", environment=where).end()
        assert ended.code == 0, ended
        with_gpu = nodes.join(cpus=2, gpus=1)
        refused = run_study(*arguments, tmp_path / "other", environment=where).end()
    shutil.rmtree(short, ignore_errors=True)
    assert set(seen.read_text().splitlines()) == {json.dumps({"environment": "2", "threads": 2, "in_training": 2})}
    assert refused.code == 2
    assert re.match(rf"error: node \S+ \({with_gpu.id[:8]}\): trials ask for a GPU, and its torch finds ", refused.err)


@pytest.mark.slow
def test_a_probe_runs_as_a_task_of_the_cluster_on_a_gpu_of_its_own(studies: Studies, tmp_path: Path) -> None:
    """Ray takes our word that there is a GPU; the trial is told to train on the CPU."""
    sys.path.insert(0, str(ROOT / "tests" / "study"))
    from made_trials import assignment, config

    fingerprint = json.loads((studies.data / "digits" / "manifest.json").read_text())["fingerprint"]
    good = assignment(tmp_path, studies.data, data_fingerprint=fingerprint, config=config(batch_size=512))
    bad = assignment(tmp_path, tmp_path, config=config(batch_size=512))
    program = [sys.executable, "-c", PROBE_ON_RAY, *(json.dumps(each.to_dict()) for each in (good, bad))]
    ended = subprocess.run(
        program, cwd=ROOT, env=studies.environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended
    memory, gpu_memory, failed = json.loads(ended.stdout.splitlines()[-1])
    assert memory > 50 * 2**20
    assert gpu_memory == 0
    assert failed.startswith("DataError: ")
