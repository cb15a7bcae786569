"""What a plan says of a search: where a value lies in its range, and plans that are none."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_studies import write_study
from searched_study import GATED

from reports.records.plan import ResultsError
from reports.records.search_plan import SearchedRange, SearchPlan, load_search_plans


@pytest.mark.parametrize(
    ("kind", "values", "value", "place"),
    [
        ("log_uniform", (0.1, 10.0), 1.0, 0.5),
        ("log_int", (1, 16), 4, 0.5),
        ("int", (2, 16), 2, 0.0),
        ("int", (2, 16), 9, 0.5),
        ("int", (2, 3), 2, None),
        ("uniform", (-1.0, 3.0), 0.0, 0.25),
        ("choice", (16, 2, 8), 8, 0.5),
        ("choice", (16, 2, 8), 16, 1.0),
        ("choice", (True, False), True, None),
        ("choice", ("mean", "sum", "max"), "sum", None),
        ("choice", ([2, 4], "dense", "none"), "2,4", None),
        ("choice", (1, 2, 3), None, None),
    ],
)
def test_place_in_a_range(kind: str, values: tuple[object, ...], value: object, place: float | None) -> None:
    found = SearchedRange(name="x", kind=kind, values=values).place(value)
    assert found == (None if place is None else pytest.approx(place))


@given(
    st.sampled_from(["uniform", "log_uniform", "int", "log_int"]),
    st.lists(st.integers(1, 10**6), min_size=4, max_size=4, unique=True).map(sorted),
)
def test_places_are_ordered_and_within_the_range(kind: str, numbers: list[int]) -> None:
    low, first, second, high = numbers
    searched = SearchedRange(name="x", kind=kind, values=(low, high))
    places = [searched.place(value) for value in (low, first, second, high)]
    assert places[0] == 0.0
    assert places[3] == pytest.approx(1.0)
    assert places == sorted(place for place in places if place is not None)


@pytest.mark.parametrize(
    ("settings", "sampled"),
    [
        ({"placement": "2,4", "layers": 16, "readout": "sum", "lr_patience": 7}, "placement readout lr_patience"),
        ({"placement": "2,4", "layers": 16, "readout": "mean", "lr_patience": 10}, "placement readout"),
        # The readout and the patience have their defaults, which a trial could have been given, too.
        ({"placement": "boosting", "layers": 16, "readout": "mean", "lr_patience": 10}, "placement"),
        ({"placement": "boosting", "layers": 16, "readout": "sum", "lr_patience": 10}, "placement"),
        ({"placement": "none", "layers": 16, "readout": None, "lr_patience": 7}, "placement"),
    ],
)
def test_what_was_sampled_in_a_trial(tmp_path: Path, settings: dict[str, object], sampled: str) -> None:
    searched = {
        "placement": {"choice": ["none", "boosting", [2, 4]]},
        "readout": {"choice": ["mean", "sum"], "when": {"placement": ["none", [2, 4]]}},
        "lr_patience": {"int": [5, 20], "when": {"layers": [16], "readout": ["sum"]}},
    }
    (plan,) = load_search_plans(write_study(tmp_path, [{**GATED, "searched": searched}], [])).values()
    assert [entry.name for entry in plan.sampled(settings)] == sampled.split()


def test_of_a_plan_that_does_not_say_what_is_searched_nothing_was_sampled() -> None:
    assert SearchPlan(trials=None, ranges=None, rungs=()).sampled({"sigma_m": 1.0}) == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("searched", [1]),
        ("searched", {"sigma_m": {"uniform": [0, 1], "when": [1]}}),
        ("searched", {"sigma_m": {"uniform": [0, 1], "when": {"layers": 16}}}),
        ("searched", {"sigma_m": {"uniform": [1, 0]}}),
        ("searched", {"sigma_m": {"log_uniform": [0, 1]}}),
        ("searched", {"sigma_m": {"uniform": [0, 1], "choice": [1]}}),
        ("searched", {"sigma_m": 3}),
        ("rungs", 3),
        ("rungs", ["3"]),
        ("trials", "8"),
    ],
)
def test_a_plan_that_is_no_plan(tmp_path: Path, key: str, value: object) -> None:
    results = write_study(tmp_path, [{**GATED, key: value}], [])
    with pytest.raises(ResultsError, match=rf"plan.json: cells\[0\].{key}.*: found .* expected"):
        load_search_plans(results)
