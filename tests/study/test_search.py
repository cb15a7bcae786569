"""The search within one cell, with outcomes that follow from the proposals by hand."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean
from typing import Any

import pytest

from bimp.tasks import Direction
from study.choice import Outcome
from study.plan import plan
from study.search import CellRungs, CellSampler, Proposal
from study.spec import AshaSpec, SearchSpec, read_study

SEARCHED = """\
name: made
arms: {dataset: digits, backbone: gcn, placement: boosting, hidden_dim: 16, layers: 2}
space:
  unsupervised_weight: {uniform: [0, 1]}
  num_clusters: {int: [2, 21]}
"""
CELL = plan(read_study(f"{SEARCHED}search: {{trials: 40}}\n")).cells[0]


def sampler(cell_id: str = "cell", seed: int = 1, direction: Direction = "min", **search: Any) -> CellSampler:
    given = SearchSpec.model_validate({"trials": 40, **search})
    return CellSampler(cell_id, CELL.space, given, seed, direction)


def outcome(proposal: Proposal, metric: float | None, status: Any = "finished", epochs: int = 9) -> Outcome:
    return Outcome(key=f"{proposal.number}", status=status, epochs=epochs, metric=metric)


def search(cell: CellSampler, ending: Callable[[Proposal], Outcome], trials: int = 40) -> list[Proposal]:
    proposals = []
    for _ in range(trials):
        proposals.append(cell.ask())
        cell.tell(proposals[-1].number, ending(proposals[-1]))
    return proposals


def late_weights(proposals: list[Proposal]) -> list[float]:
    return [proposal.values["unsupervised_weight"] for proposal in proposals[-15:]]


def test_tpe_goes_where_the_metric_is_better() -> None:
    by_weight = lambda proposal: outcome(proposal, proposal.values["unsupervised_weight"])  # noqa: E731
    # Uniform ones, 15 of each of 3 seeds, would have the mean 0.5 with a standard deviation of 0.04.
    lowest = [weight for seed in range(3) for weight in late_weights(search(sampler(seed=seed), by_weight))]
    assert mean(lowest) < 0.3
    highest = [
        weight for seed in range(3) for weight in late_weights(search(sampler(seed=seed, direction="max"), by_weight))
    ]
    assert mean(highest) > 0.7


def test_random_sampling_goes_nowhere() -> None:
    proposals = search(
        sampler(sampler="random"), lambda proposal: outcome(proposal, proposal.values["unsupervised_weight"])
    )
    assert 0.3 < mean(late_weights(proposals)) < 0.7


def test_tpe_learns_from_pruned_trials() -> None:
    def ending(proposal: Proposal) -> Outcome:
        weight = proposal.values["unsupervised_weight"]
        status, epochs = ("finished", 9) if weight > 0.7 else ("pruned", 1)
        return outcome(proposal, weight, status, epochs)

    assert mean(late_weights(search(sampler(direction="max"), ending))) > 0.75


def test_a_trial_without_a_metric_is_passed_over() -> None:
    def ending(proposal: Proposal) -> Outcome:
        lost = proposal.number % 2 == 1
        return outcome(
            proposal, None if lost else proposal.values["unsupervised_weight"], "diverged" if lost else "finished"
        )

    proposals = search(sampler(), ending)
    assert [proposal.number for proposal in proposals] == list(range(40))
    assert mean(late_weights(proposals)) < 0.25


def test_proposals_follow_from_study_cell_number_and_outcomes() -> None:
    by_weight = lambda proposal: outcome(proposal, proposal.values["unsupervised_weight"])  # noqa: E731
    assert search(sampler(), by_weight) == search(sampler(), by_weight)
    first = sampler().ask()
    assert sampler(cell_id="other").ask() != first
    assert sampler(seed=2).ask() != first
    # The first ones are drawn before there is anything to learn.
    by_clusters = lambda proposal: outcome(proposal, proposal.values["num_clusters"])  # noqa: E731
    learned, otherwise = search(sampler(), by_weight, 20), search(sampler(), by_clusters, 20)
    assert learned[:10] == otherwise[:10]
    assert learned[10:] != otherwise[10:]


@pytest.mark.parametrize(("trials", "drawn"), [(3, 4), (12, 4), (18, 6), (30, 10), (300, 10), (None, 10)])
def test_a_third_of_the_trials_and_no_less_than_4_or_more_than_10_are_drawn_before_tpe_begins(
    trials: int | None, drawn: int
) -> None:
    up = search(
        sampler(trials=trials), lambda proposal: outcome(proposal, proposal.values["unsupervised_weight"]), drawn + 3
    )
    down = search(
        sampler(trials=trials), lambda proposal: outcome(proposal, -proposal.values["unsupervised_weight"]), drawn + 3
    )
    assert up[:drawn] == down[:drawn]
    assert all(one != other for one, other in zip(up[drawn:], down[drawn:], strict=True))


def test_a_replayed_search_goes_on_as_it_would_have() -> None:
    by_weight = lambda proposal: outcome(proposal, proposal.values["unsupervised_weight"])  # noqa: E731
    whole = search(sampler(), by_weight, 20)
    again = sampler()
    for proposal in whole[:15]:
        assert again.replay(proposal.sampled) == proposal
        again.tell(proposal.number, by_weight(proposal))
    assert search(again, by_weight, 5) == whole[15:]


def test_a_grid_is_gone_through_in_order() -> None:
    gridded = plan(
        read_study(
            "name: made\nsearch: {sampler: grid}\n"
            "arms: {dataset: digits, backbone: gcn, placement: boosting, hidden_dim: 16, layers: 2}\n"
            "space:\n  sigma_m: {choice: [0.1, 10]}\n  num_clusters: {int: [2, 3]}\n"
        )
    ).cells[0]
    cell = CellSampler("cell", gridded.space, SearchSpec.model_validate({"sampler": "grid"}), 1, "min")
    found = [(proposal.values["sigma_m"], proposal.values["num_clusters"]) for proposal in (cell.ask() for _ in "abcd")]
    assert found == [(0.1, 2), (0.1, 3), (10, 2), (10, 3)]


@pytest.mark.parametrize(("direction", "sign"), [("max", 1), ("min", -1)])
def test_rungs_by_hand(direction: Direction, sign: int) -> None:
    rungs = CellRungs(AshaSpec(grace_epochs=2, reduction_factor=2), 8, direction)
    # Before the first rung nothing is compared; at it, with the median of those that came before.
    assert rungs.keeps("a", 1, sign * 0.0)
    assert rungs.keeps("a", 2, sign * 5.0)
    assert rungs.keeps("b", 1, sign * -9.0)
    assert not rungs.keeps("b", 2, sign * 4.0)
    assert rungs.keeps("c", 2, sign * 4.5)  # as good as the median of 4 and 5
    assert rungs.keeps("d", 2, sign * 6.0)
    # Between rungs a trial is let be, however bad; each rung has its own trials.
    assert rungs.keeps("d", 3, sign * -100.0)
    assert rungs.keeps("d", 4, sign * 1.0)
    assert not rungs.keeps("a", 4, sign * 0.5)
    assert rungs.keeps("c", 4, sign * 1.0)


def test_without_asha_every_trial_goes_on() -> None:
    rungs = CellRungs(None, 8, "min")
    assert all(rungs.keeps("a", epoch, 1e9) for epoch in range(1, 9))
