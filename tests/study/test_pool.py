"""Nodes come and go: how many trials fit then, and what is said of it, once."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from study.cluster import Slots
from study.pool import Pool
from study.spec import ResourcesSpec

RESOURCES = ResourcesSpec(cpus_per_trial=2)
HEAD = ("head", 0, True)


def nodes(*there: tuple[str, int, bool]) -> list[dict[str, Any]]:
    return [
        {"NodeID": name, "Alive": alive, "NodeManagerAddress": f"{name}.lan", "Resources": {"CPU": float(cpus)}}
        for name, cpus, alive in there
    ]


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "study")
    return caplog


def pool(*there: tuple[str, int, bool], resources: ResourcesSpec = RESOURCES) -> Pool:
    return Pool(Slots.of(nodes(*there), resources), resources)


def events(told: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    found = [(record.event, record.getMessage()) for record in told.records]
    told.clear()
    return found


def test_a_node_that_is_lost_takes_its_slots_along_and_is_told_of_once(told: pytest.LogCaptureFixture) -> None:
    seen = pool(HEAD, ("a", 4, True), ("b", 2, True))
    assert seen.slots.total == 3
    seen.hear(nodes(HEAD, ("a", 4, True), ("b", 2, True)))
    assert events(told) == []
    for _ in range(3):
        seen.hear(nodes(HEAD, ("a", 4, False), ("b", 2, True)))
    assert (seen.slots.total, seen.slots.nodes, seen.waits) == (1, {"b"}, None)
    assert events(told) == [("node_lost", "node a.lan (a) is lost: 1 slot left")]


def test_without_a_node_the_study_waits_and_goes_on_when_one_comes(told: pytest.LogCaptureFixture) -> None:
    seen = pool(HEAD, ("a", 4, True))
    for _ in range(3):
        seen.hear(nodes(HEAD, ("a", 4, False)))
    assert (seen.slots.total, seen.waits) == (0, "no node is left on which trials fit")
    assert events(told) == [
        ("node_lost", "node a.lan (a) is lost: 0 slots left"),
        (
            "waits",
            "no node is left on which trials fit: the study waits for one to join, and goes on then; Ctrl-C ends it",
        ),
    ]
    assert seen.slots.asked_by("host") == {"CPU": 4.0}, "as before: without a node nothing is known of the largest"
    seen.hear(nodes(HEAD, ("a", 4, False), ("b", 6, True)))
    assert (seen.slots.total, seen.waits) == (3, None)
    assert seen.slots.asked_by("host") == {"CPU": 6.0}
    assert events(told) == [("node_joined", "node b.lan (b) is here now: 3 slots")]


def test_a_cluster_that_grows_is_used_up_to_what_was_asked_for(told: pytest.LogCaptureFixture) -> None:
    seen = pool(("a", 2, True), resources=ResourcesSpec(cpus_per_trial=2, max_concurrent=4))
    seen.hear(nodes(("a", 2, True), ("b", 4, True), ("c", 8, True)))
    assert seen.slots.total == 4
    assert events(told) == [("node_joined", "2 nodes (b.lan (b), c.lan (c)) are here now: 4 slots")]


def test_nodes_that_hold_no_trial_or_are_unfit_count_for_nothing(told: pytest.LogCaptureFixture) -> None:
    seen = pool(("a", 2, True))
    seen.hear(nodes(("a", 2, True), ("small", 1, True)))
    assert (seen.slots.total, events(told)) == (1, [])
    seen.hear(nodes(("a", 2, True), ("unfit", 2, True)))
    assert seen.slots.total == 2
    events(told)
    seen.hear(nodes(("a", 2, True), ("unfit", 2, True)), avoided=("unfit",))
    assert (seen.slots.total, events(told)) == (1, [])
