"""Several studies as one: what wins, what is said of it, and that no trial is lost or counted twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from made_studies import Cell, gated, runs, trial, vanilla, write_study

from reports.records.load import StudyResults, Trial, load_results
from reports.records.plan import Plan, PlanCell
from reports.summary.summarise import trials_outside_plan
from reports.tables.merge import GIVEN_WAY, SAME, merge_studies
from reports.words.prose import Note

GCN, BI_GCN = vanilla("zinc", "gcn"), gated("zinc", "gcn")


def loaded(folder: Path, cells: list[Cell], tests: list[float], study: str) -> StudyResults:
    trials = [
        record for cell, test in zip(cells, tests, strict=True) for record in runs(cell, [test] * len(cell["seeds"]))
    ]
    return load_results(write_study(folder, cells, trials, study=study))


def merge(studies: Sequence[StudyResults]) -> tuple[StudyResults, tuple[Note, ...]]:
    return merge_studies(studies, [f"folder{place}" for place in range(len(studies))])


def test_studies_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    studies = [loaded(tmp_path / str(place), [GCN], [0.5], "same") for place in range(3)]
    merged, (note,) = merge(studies)
    assert note.heading == GIVEN_WAY
    assert note.items == (
        (f"{GCN['id']}: of same in folder2, not of same in folder0",),
        (f"{GCN['id']}: of same in folder2, not of same in folder1",),
    )
    assert merged.plan.study == "same+same+same"
    assert len(merged.trials) == 4


def test_a_cell_differs_by_any_of_its_settings(tmp_path: Path) -> None:
    ours = loaded(tmp_path / "ours", [BI_GCN], [0.5], "ours")
    changed = [
        {"num_clusters": 9},
        {"sigma_m": 0.4},
        {"unsupervised_weight": 0.5},
        {"gate": "uniform"},
        {"budget": 500_000},
        {"layers": 5},
        {"departures": {"gcn_normalisation": "symmetric"}},
        {"semantics": "released"},
        {"pos_enc_dim": 4},
        {"budget": None, "hidden_dim": 70},
        {"backbone": "gat"},
        {"dataset": "digits"},
        {"placement": "dense"},
    ]
    assert {name for change in changed for name in change} == set(SAME)
    for place, change in enumerate(changed):
        others = loaded(tmp_path / str(place), [{**BI_GCN, **change}], [0.4], "others")
        merged, notes = merge([ours, others])
        assert [cell.id for cell in merged.plan.cells] == [BI_GCN["id"], f"others:{BI_GCN['id']}"], change
        assert notes == ()


def test_other_settings_make_another_cell_where_every_plan_holds_them(tmp_path: Path) -> None:
    def of(name: str, other: dict[str, object] | None) -> StudyResults:
        cell = {**BI_GCN, **({} if other is None else {"other_settings": other})}
        return loaded(tmp_path / name, [cell], [0.5], name)

    half, same, whole = (
        of(name, {"precision": value, "out_dim": None})
        for name, value in (("half", "bfloat16"), ("same", "bfloat16"), ("whole", "float32"))
    )
    older = of("older", None)
    assert [cell.id for cell in merge([half, whole])[0].plan.cells] == [BI_GCN["id"], f"whole:{BI_GCN['id']}"]
    assert [cell.other_settings for cell in merge([half, same])[0].plan.cells] == [
        (("out_dim", "none"), ("precision", "bfloat16"))
    ]
    assert len(merge([older, whole])[0].plan.cells) == 1


def test_seeds_do_not_make_another_cell(tmp_path: Path) -> None:
    few, many = loaded(tmp_path / "a", [GCN], [0.5], "a"), loaded(tmp_path / "b", [{**GCN, "seeds": [1]}], [0.4], "b")
    merged, notes = merge([few, many])
    assert [cell.seeds for cell in merged.plan.cells] == [(1,)]
    assert len(notes) == 1


def test_what_no_plan_names_is_counted_of_every_study_and_joins_no_cell_of_another(tmp_path: Path) -> None:
    stray = vanilla("zinc", "gat")
    first = load_results(
        write_study(tmp_path / "a", [GCN], [*runs(GCN, [0.5] * 4), trial(stray, 41, 0.1), trial(stray, 95, 0.1)])
    )
    second = loaded(tmp_path / "b", [stray], [0.3], "b")
    for studies in ([first, second], [second, first]):
        merged, _ = merge(studies)
        assert trials_outside_plan(merged) == 2
        count = Counter(one.cell for one in merged.trials)
        assert sorted(count[cell.id] for cell in merged.plan.cells) == [4, 4]


def test_captions_stand_one_after_the_other_and_once(tmp_path: Path) -> None:
    captions = ("First", None, "Second!", " First ", "")
    studies = [
        load_results(write_study(tmp_path / str(place), [{**GCN, "layers": place + 1}], [], caption))
        for place, caption in enumerate(captions)
    ]
    assert merge(studies)[0].plan.caption == "First. Second!"
    assert merge(studies[1:2] * 2)[0].plan.caption is None


def made(study: str, cells: list[tuple[str, int]]) -> StudyResults:
    """A study of GCN cells of these ids and depths, one trial each, of which the key says whose it is."""
    plain = {**GCN, "seeds": (41,), "departures": ()}
    plan = Plan(
        study=study,
        caption=None,
        cells=tuple(PlanCell(**{**plain, "id": name, "layers": depth}) for name, depth in cells),
    )
    trials = tuple(_trial(f"{study} {name}", name, depth) for name, depth in cells)
    return StudyResults(plan=plan, trials=trials)


def _trial(key: str, cell: str, layers: int) -> Trial:
    return Trial(
        key=key, cell=cell, phase="confirm", status="finished", reason=None, layers=layers, hidden_dim=8, budget=None,
        params=1, placement="none", gate=None, num_clusters=None, sigma_m=None, unsupervised_weight=None,
        semantics="paper", departures=None, seed=41, fold=None, train_metric=None, test_metric=0.5,
        started_at=0.0, data_fingerprint="", config_json="{}", num_epochs=1,
    )  # fmt: skip


STUDIES = st.lists(
    st.dictionaries(st.sampled_from("abc"), st.integers(1, 4), min_size=1).filter(
        lambda cells: len(set(cells.values())) == len(cells)
    ),
    min_size=2,
    max_size=4,
)


@given(STUDIES)
def test_each_row_is_of_the_last_study_that_has_it(contents: list[dict[str, int]]) -> None:
    studies = [made(f"s{place}", list(cells.items())) for place, cells in enumerate(contents)]
    merged, notes = merge(studies)
    wanted = {depth: f"s{place} {name}" for place, cells in enumerate(contents) for name, depth in cells.items()}
    ids = [cell.id for cell in merged.plan.cells]
    assert len(set(ids)) == len(ids)
    by_cell = {one.cell: one.key for one in merged.trials}
    assert {cell.layers: by_cell[cell.id] for cell in merged.plan.cells} == wanted
    assert len(merged.trials) == len(wanted)
    given_way = sum(map(len, contents)) - len(wanted)
    assert sum(len(note.items) for note in notes) == given_way
