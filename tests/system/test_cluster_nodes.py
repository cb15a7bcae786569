"""A study on a cluster of several nodes: what is refused before it starts, and nodes that come, go and lack things."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import ray
from conftest import TINY, Studies
from started import run_study

from benchmarks.faults.node_scenarios import (
    OTHER_VERSION,
    bare_node,
    late_unfit_node,
    lost_largest_node,
    lost_nodes,
    pretend,
    vanished_node,
)
from benchmarks.faults.nodes import LoopbackCluster, cluster
from benchmarks.faults.scene import Stage
from benchmarks.faults.seen import Seen
from study import node_check
from study.journal import Journal

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def short() -> Iterator[Path]:
    """Ray's sockets lie there: their paths must be short, so it is no folder of pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="nodes-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def stage(short: Path) -> Iterator[Stage]:
    stage = Stage(short)
    yield stage
    for running in stage.running:
        running.kill()


@pytest.fixture
def nodes(short: Path) -> Iterator[LoopbackCluster]:
    with cluster(short / "ray") as nodes:
        yield nodes


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(vanished_node, marks=pytest.mark.slow),
        pytest.param(lost_nodes, marks=pytest.mark.slow),
        pytest.param(lost_largest_node, marks=pytest.mark.slow),
        pytest.param(late_unfit_node, marks=pytest.mark.slow),
        pytest.param(bare_node, marks=pytest.mark.slow),
    ],
)
def test_the_study_ends_as_if_nothing_had_happened(scenario: Callable[[Stage], Seen], stage: Stage) -> None:
    try:
        seen = scenario(stage)
    except PermissionError as error:
        pytest.skip(str(error))
    assert seen.good, "\n".join((seen.caused, *seen.lines))


def refused(studies: Studies, nodes: LoopbackCluster, file: Path, results: Path, *options: str) -> str:
    """The one line in which the study is refused, before a trial began."""
    arguments = ("--results", results, "--data", studies.data, "--address", nodes.address, *options)
    ended = run_study("run", file, *arguments, environment=studies.environment).end()
    assert ended.code == 2, ended
    (line,) = ended.err.splitlines()
    assert list(Journal(results / "journal").entries()) == []
    return line


@pytest.mark.slow
def test_other_libraries_and_gpus_that_torch_cannot_use_are_refused(
    studies: Studies, nodes: LoopbackCluster, short: Path, tmp_path: Path
) -> None:
    pretend(short / "other", "torch-geometric", OTHER_VERSION)
    nodes.join(cpus=1)
    other = nodes.join(cpus=1, environment={"PYTHONPATH": str(short / "other")})
    line = refused(studies, nodes, TINY, tmp_path / "other")
    assert re.match(rf"error: node \S+ \({other.id[:8]}\): torch-geometric {OTHER_VERSION}, the driver has 2\.", line)
    assert "--allow-version-differences" in line

    gpu = nodes.join(cpus=1, gpus=2)
    file = tmp_path / "gpu.yaml"
    file.write_text(TINY.read_text() + "\nresources: {gpus_per_trial: 1}\n")
    line = refused(studies, nodes, file, tmp_path / "gpu")
    # Only the node on which a trial fits is asked.
    assert re.match(rf"error: node \S+ \({gpu.id[:8]}\): trials ask for a GPU, and its torch finds none; ", line)
    assert "--on-cpu" in line


def test_a_node_whose_process_dies_before_it_answers_is_asked_again(
    nodes: LoopbackCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes.join(cpus=1)
    died = tmp_path / "died"

    def look_at_node() -> str:
        if not died.exists():
            died.touch()
            os._exit(1)
        return "found"

    monkeypatch.setattr(node_check, "look_at_node", look_at_node)
    ray.init(address=nodes.address, log_to_driver=False)
    try:
        asked = ray.nodes()[:1]
        assert node_check.ask_nodes(asked) == {node_check.name_of(asked[0]): "found"}
    finally:
        ray.shutdown()


@pytest.mark.slow
def test_auto_says_which_cluster_it_joined(studies: Studies, nodes: LoopbackCluster, tmp_path: Path) -> None:
    nodes.join(cpus=2)
    arguments = ("--results", tmp_path / "auto", "--data", studies.data, "--address", "auto")
    where = {**studies.environment, "RAY_ADDRESS": nodes.address}
    ended = run_study("run", TINY, *arguments, environment=where).end()
    assert ended.code == 0, ended
    assert f"joined the Ray cluster at {nodes.address}\n" in ended.out
