"""Faults of whole nodes, on clusters of several nodes on this machine's loopback."""

from __future__ import annotations

from pathlib import Path

from benchmarks.faults.hungry import CROWD
from benchmarks.faults.nodes import cluster
from benchmarks.faults.scene import ROOT, Stage, in_words, live_record, records, same_numbers, study_text
from benchmarks.faults.seen import Seen, same_in_words, told, undisturbed, yes
from study.pool import NO_NODE

OWN_LAYER = "benchmarks.faults.hungry:Modest"
"""A layer that the study names by import path."""

CROWDED_LAYER = "benchmarks.faults.hungry:LargeInACrowd"
"""One that runs out of memory once, beside others."""

OTHER_VERSION = "1.2.3"


def vanished_node(stage: Stage) -> Seen:
    """One of two nodes of a cluster is killed in mid-study."""
    results = stage.folder / "vanished_node"
    text = study_text(beside=2).replace("resources: {", "resources: {gpus_per_trial: 1, ")
    with cluster(stage.folder / "ray") as nodes:
        both = [nodes.join(cpus=1, gpus=2), nodes.join(cpus=1, gpus=2)]
        running = stage.run(text, results, "--address", nodes.address, "--on-cpu")
        before = running.until(lambda: live_record(results), "an epoch")
        min(both, key=lambda node: node.trains_since()).vanish()  # the other may have begun this moment
        code = running.end()
    same = same_numbers(results, undisturbed(stage))
    after = next(record for record in records(results) if record.key == before.key)
    kept = after.epochs[: before.num_epochs] == before.epochs
    lost = sum("its worker was lost" in line for line in running.err)
    return Seen(
        "two nodes of one CPU and two counted GPUs each train a trial; every process of one of them is killed",
        (
            *told(running),
            f"exit code {code}; {in_words(results)}; epochs kept: {yes(kept)}; {same_in_words(same)}",
        ),
        code == 0 and kept and lost == 1 and same,
    )


def lost_nodes(stage: Stage) -> Seen:
    """The only node that trains is killed; later one joins in its place, and then one more."""
    results = stage.folder / "lost_nodes"
    with cluster(stage.folder / "ray") as nodes:
        first = nodes.join(cpus=1)
        running = stage.run(study_text(beside=2), results, "--address", nodes.address)
        before = running.until(lambda: live_record(results), "an epoch")
        first.vanish()
        running.until_told("the study waits for one to join")
        status = running.until(lambda: _waits_in_status(stage, results, NO_NODE), "a status that says so")
        second = nodes.join(cpus=1)
        running.until_told("here now: 1 slot")
        third = nodes.join(cpus=1)
        running.until_told("here now: 2 slots")
        trained = running.until(lambda: all(node.trains_since() < float("inf") for node in (second, third)), "both")
        code = running.end()
    after = next(record for record in records(results) if record.key == before.key)
    kept = after.epochs[: before.num_epochs] == before.epochs
    same = same_numbers(results, undisturbed(stage))
    return Seen(
        "a cluster's only node that trains is killed; then a node joins, and then another one",
        (
            *told(running),
            f"status meanwhile: {status}",
            f"exit code {code}; {in_words(results)}; both new nodes trained: {yes(trained)}; epochs kept: {yes(kept)}; "
            f"{same_in_words(same)}",
        ),
        code == 0 and kept and same,
    )


def lost_largest_node(stage: Stage) -> Seen:
    """The node that a trial is to have to itself is killed before it has it; later one of that size joins."""
    results, alone = stage.folder / "lost_largest_node", stage.folder / "lost_largest_node_alone"
    text = study_text(backbone=CROWDED_LAYER, epochs=4, trials=4, beside=3)
    if stage.run(text, alone).end():
        raise SystemExit("the undisturbed study failed")
    crowd = stage.folder / "crowd"
    crowd.mkdir()
    where = {CROWD: str(crowd)}
    with cluster(stage.folder / "ray") as nodes:
        large = nodes.join(cpus=2, environment=where)
        nodes.join(cpus=1, environment=where)
        running = stage.run(text, results, "--address", nodes.address)
        running.until_told("once it can have a node to itself")
        large.vanish()
        line = running.until_told("and none here has as much")
        status = running.until(lambda: _waits_in_status(stage, results, "none here has as much"), "a status so")
        others = running.until(lambda: len(records(results)) >= 3, "the other trials")
        nodes.join(cpus=2, environment=where)
        code = running.end()
    same = same_numbers(results, alone)
    said = sum("none here has as much" in each for each in running.err)
    return Seen(
        "a trial runs out of memory beside others, and the larger of two nodes is killed before it has that to itself; "
        "once the other trials have ended one of its size joins",
        (
            *told(running),
            f"status meanwhile: {status}",
            f"exit code {code}; {in_words(results)}; the others ended meanwhile: {yes(others)}; {same_in_words(same)}",
        ),
        code == 0 and same and said == 1 and "a node of 2 CPUs" in line,
    )


def _waits_in_status(stage: Stage, results: Path, words: str) -> str | None:
    return next((line for line in stage.status(results).splitlines() if words in line), None)


def bare_node(stage: Stage) -> Seen:
    """The only node that trains has the libraries, and neither the project nor the data."""
    results, alone = stage.folder / "bare_node", stage.folder / "bare_node_alone"
    text, own_data = study_text(backbone=OWN_LAYER), stage.folder / "node_data"
    if stage.run(text, alone).end():
        raise SystemExit("the undisturbed study failed")
    hidden = [*(ROOT / name for name in ("bimp", "study", "reports", "benchmarks")), stage.data]
    with (
        cluster(stage.folder / "ray") as nodes,
        nodes.blind_node(hidden, {"BIMP_DATA": str(own_data)}, stage.folder / "bare_node.log"),
    ):
        running = stage.run(text, results, "--address", nodes.address)
        code = running.end()
    put = sorted(
        str(path.parent.relative_to(results / "data")) for path in (results / "data").glob("*/*/manifest.json")
    )
    pulled = sorted(str(path.parent.relative_to(own_data)) for path in own_data.glob("**/manifest.json"))
    same = same_numbers(results, alone)
    return Seen(
        "a node to which the folders of the project and of the data are empty, with a layer of the user's own",
        (
            *told(running),
            f"exit code {code}; {in_words(results)}; put: {', '.join(put)}; pulled: {', '.join(pulled)}; "
            f"{same_in_words(same)}",
        ),
        code == 0 and same and len(put) == 1 and pulled == [f"pulled/{put[0]}"],
    )


def late_unfit_node(stage: Stage) -> Seen:
    """A node with another library joins in mid-study, is the only one for a while, and then a fit one joins."""
    results = stage.folder / "late_unfit_node"
    fake = stage.folder / "other_libraries"
    pretend(fake, "torch-geometric", OTHER_VERSION)
    with cluster(stage.folder / "ray") as nodes:
        first = nodes.join(cpus=1)
        running = stage.run(study_text(), results, "--address", nodes.address)
        running.until(lambda: live_record(results), "an epoch")
        unfit = nodes.join(cpus=1, environment={"PYTHONPATH": str(fake)})
        first.vanish()
        line = running.until_told("gets no trials")
        nodes.join(cpus=1)
        code = running.end()
    same = same_numbers(results, undisturbed(stage))
    trained_there = any(OTHER_VERSION in record.versions_json for record in records(results))
    named = unfit.id[:8] in line and f"torch-geometric {OTHER_VERSION}, the driver has" in line
    return Seen(
        f"a node says that it has torch-geometric {OTHER_VERSION}, and joins; the only other is killed; a third joins",
        (
            *told(running),
            f"exit code {code}; {in_words(results)}; trials of the unfit node: {yes(trained_there)}; "
            f"{same_in_words(same)}",
        ),
        code == 0 and same and named and not trained_there,
    )


def pretend(folder: Path, library: str, version: str) -> None:
    """A folder for PYTHONPATH by which an installed library passes for one of another version."""
    about = folder / f"{library.replace('-', '_')}-{version}.dist-info"
    about.mkdir(parents=True, exist_ok=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {library}\nVersion: {version}\n")


NODE_SCENARIOS = (vanished_node, lost_nodes, lost_largest_node, bare_node, late_unfit_node)


def _datasets(folder: Path) -> list[str]:
    return sorted(str(path.parent.relative_to(folder)) for path in folder.glob("**/manifest.json"))
