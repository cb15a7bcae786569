"""The values of a good study file as the platform sees them."""

from __future__ import annotations

from study_text import BASE, edited

from study.spec import read_study


def test_values_of_a_good_file() -> None:
    spec = read_study(BASE)
    assert spec.arms == {
        "dataset": ("digits",),
        "backbone": ("gcn", "gat"),
        "placement": ("none", "boosting"),
        "budget": (100000,),
        "layers": (4,),
    }
    assert spec.space["sigma_m"].kind == "log_uniform"
    assert spec.space["sigma_m"].bounds == (0.1, 10.0)
    assert spec.fixed == {"max_epochs": 12}
    assert spec.search is not None
    assert (spec.search.sampler, spec.search.trials, spec.search.seed, spec.search.fold) == ("tpe", 8, 41, 0)
    assert spec.search.asha is not None
    assert (spec.search.asha.grace_epochs, spec.search.asha.reduction_factor) == (2, 3)
    assert (spec.seed, spec.caption, spec.resources.cpus_per_trial, spec.resources.gpus_per_trial) == (0, None, 1, 0.0)


def test_yaml_1_2_words_and_numbers() -> None:
    text = BASE.replace("max_epochs: 12", "max_epochs: 12\n  learning_rate: 1e-3\n  time_limit_s: null")
    spec = read_study(text.replace("asha: {grace_epochs: 2}", "asha: none"))
    assert spec.fixed == {"max_epochs": 12, "learning_rate": 0.001, "time_limit_s": None}
    assert spec.search is not None
    assert spec.search.asha is None


def test_whole_numbers_are_taken_for_numbers() -> None:
    spec = read_study(BASE.replace("{log_uniform: [0.1, 10]}", "{choice: [1, 10]}"))
    assert spec.space["sigma_m"].choices == (1.0, 10.0)
    assert all(isinstance(value, float) for value in spec.space["sigma_m"].choices or ())


def test_search_seed_is_the_first_confirm_seed_unless_given() -> None:
    twelve = read_study(BASE.replace("[41, 95]", "[12, 41]"))
    given = read_study(BASE.replace("trials: 8", "trials: 8\n  seed: 7"))
    assert twelve.search is not None
    assert given.search is not None
    assert (twelve.search.seed, given.search.seed) == (12, 7)


def test_explicit_layers_are_ascending_wherever_they_stand() -> None:
    arms = read_study(BASE.replace("[none, boosting]", "[[4, 2], none]"))
    assert arms.arms["placement"] == ((2, 4), "none")
    without = edited("  placement: [none, boosting]\n", "")
    fixed = read_study(without.replace("max_epochs: 12", "placement: [3, 1]"))
    assert fixed.fixed["placement"] == (1, 3)
    sampled = read_study(without.replace("space:", "space:\n  placement: {choice: [[2, 1], dense]}"))
    assert sampled.space["placement"].choices == ((1, 2), "dense")
