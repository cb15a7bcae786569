"""Names of cells and trials in MLflow, and the plan from which they come."""

from __future__ import annotations

import pytest
from made_mirrors import VANILLA, mirror_of, planned_cell, record, write_plan

from study.found_study import NoStudyError
from study.results import ResultsFolder
from study.tracking import MirrorError
from study.tracking.names import cell_names, read_plan, trial_name


def test_cells_that_would_share_a_name_are_told_apart(folder: ResultsFolder) -> None:
    write_plan(
        folder,
        planned_cell("a"),
        planned_cell("b", placement="dense"),
        planned_cell("c", placement=[2, 4], layers=16),
        planned_cell("d", gate="uniform"),
        planned_cell("e", budget=None, hidden_dim=146, dataset_title="ZINC", backbone="gated_gcn"),
        planned_cell("f", budget=12_345, placement=None),
        planned_cell("g", backbone="gat", seeds=[1]),
        planned_cell("h", backbone="gat", seeds=[2]),
        planned_cell("i", **VANILLA),
    )
    assert cell_names(read_plan(folder.plan_file).cells) == {
        "a": "bi-GCN Digits 100k boosting L=4",
        "b": "bi-GCN Digits 100k dense L=4",
        "c": "bi-GCN Digits 100k 2,4 L=16",
        "d": "uniform-GCN Digits 100k",
        "e": "bi-GatedGCN ZINC width 146",
        "f": "bi-GCN Digits 12345",
        "g": "bi-GAT Digits 100k",
        "h": "bi-GAT Digits 100k (h)",
        "i": "GCN Digits 100k",
    }


def test_cells_that_differ_in_another_setting_are_named_by_it_the_first_one_too(folder: ResultsFolder) -> None:
    alike = {"semantics": "paper", "pos_enc_dim": None}
    write_plan(
        folder,
        planned_cell("a", **alike, departures={}, other_settings={"precision": "float32", "time_limit_s": None}),
        planned_cell("b", **alike, departures={}, other_settings={"precision": "bfloat16", "time_limit_s": None}),
        planned_cell("c", **VANILLA, **alike, departures={}),
        planned_cell("d", **VANILLA, **alike, departures={"gcn_normalisation": "symmetric"}),
    )
    assert list(cell_names(read_plan(folder.plan_file).cells).values()) == [
        "bi-GCN Digits 100k precision=float32",
        "bi-GCN Digits 100k precision=bfloat16",
        "GCN Digits 100k",
        "GCN Digits 100k gcn_normalisation=symmetric",
    ]


def test_thousands_of_cells_are_named_without_setting_each_against_each(folder: ResultsFolder) -> None:
    settings = {"readout": "mean", "head": "mlp", "time_limit_s": None}
    write_plan(
        folder,
        *(planned_cell(f"c{width}", other_settings={**settings, "heads": width}) for width in range(10_000)),
    )
    names = cell_names(read_plan(folder.plan_file).cells)
    assert list(names.values()) == [f"bi-GCN Digits 100k heads={width}" for width in range(10_000)]


def test_a_trial_is_named_by_its_fold_and_without_a_plan_by_itself() -> None:
    assert trial_name(record(fold=3), "bi-GCN ENZYMES 100k") == "bi-GCN ENZYMES 100k seed 41 fold 3"
    assert trial_name(record(), None) == "bi-GCN Digits 100k seed 41"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not the plan of a study .not readable as JSON .EOF"),
        ('{"format": 2}', "found plan format 2, expected 1"),
        (
            '{"format": 1, "study": "s", "caption": null, "cells": [{}]}',
            r"cells\[0\].id: found nothing, expected a value",
        ),
        ('{"format": 1, "study": 7, "caption": null, "cells": []}', "study: found 7, expected a valid string"),
        ("[]", "expected an object"),
    ],
)
def test_a_plan_that_cannot_be_read_is_named(folder: ResultsFolder, content: str, words: str) -> None:
    folder.plan_file.write_text(content)
    with pytest.raises(MirrorError, match=words) as caught:
        mirror_of(folder)
    assert str(folder.plan_file) in str(caught.value)
    assert str(caught.value).endswith("; run the study again, which writes it")


def test_a_folder_without_a_plan_is_no_study(folder: ResultsFolder) -> None:
    folder.plan_file.unlink()
    with pytest.raises(NoStudyError, match=rf"^{folder.root}: no study here \(plan.json is missing\)"):
        mirror_of(folder)
