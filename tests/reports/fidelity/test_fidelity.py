"""The page that says what of the paper holds: its numbers and sentences follow from the records."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import scipy.stats
from aggregate_command import aggregate
from made_studies import Cell, gated, runs, trial, vanilla, write_study
from paper_configuration import configured
from statsmodels.stats.multitest import multipletests

from reports.fidelity.page import GateSpan, fidelity, render_fidelity, write_fidelity
from reports.records.plan import ResultsError
from study.records import TrialRecord, write_record

VANILLA = (0.470, 0.468, 0.474, 0.472)
BILATERAL = (0.400, 0.404, 0.398, 0.402)
UNIFORM = (0.401, 0.403, 0.399, 0.401)


BY_PROTOCOL: dict[str, Any] = {
    "num_clusters": 9,
    "sigma_m": 1.0,
    "unsupervised_weight": 1.0,
    "budget": None,
    "hidden_dim": 145,
}
PLAIN = vanilla("zinc", "gcn", budget=None, hidden_dim=145)
GATED = gated("zinc", "gcn", **BY_PROTOCOL)
UNIFORM_GATE = gated("zinc", "gcn", gate="uniform", **BY_PROTOCOL)


def protocol_runs(cell: Cell, tests: tuple[float, ...], **changes: Any) -> list[TrialRecord]:
    """Runs of a cell as the paper's authors ran theirs, but for ``changes`` of the configuration."""
    params = 103_077 if cell["placement"] == "none" else 125_651
    return [configured(record, **changes) for record in runs(cell, tests, params=params)]


def made_folder(
    folder: Path, bilateral: tuple[float, ...] = BILATERAL, span: tuple[float, float] = (0.93, 1.12)
) -> Path:
    moved = [
        replace(
            record,
            epochs=(
                replace(record.epochs[0], gate_min=1.0, gate_max=span[1], gate_std=0.0),
                replace(record.epochs[1], gate_min=span[0], gate_max=1.0, gate_std=0.0),
            ),
        )
        for record in protocol_runs(GATED, bilateral)
    ]
    trials = [*protocol_runs(PLAIN, VANILLA), *moved, *protocol_runs(UNIFORM_GATE, UNIFORM)]
    write_study(folder / "zinc", [PLAIN, GATED, UNIFORM_GATE], trials, caption="ZINC, run again.", study="zinc")
    return folder


def test_three_tests_of_a_gate_and_their_correction(tmp_path: Path) -> None:
    (study,) = fidelity(made_folder(tmp_path))
    (control,) = study.controls
    sides = [(BILATERAL, UNIFORM), (BILATERAL, VANILLA), (UNIFORM, VANILLA)]
    found = [control.gate_alone, control.whole, control.rest]
    p_values = [scipy.stats.ttest_ind(left, right, equal_var=False).pvalue for left, right in sides]
    assert [item.outcome.p_value for item in found if item] == pytest.approx(p_values)
    assert [item.p_holm for item in found if item] == pytest.approx(multipletests(p_values, method="holm")[1])
    assert control.span == GateSpan(low=0.93, high=1.12)


@pytest.mark.parametrize(("key", "value"), [("semantics", "paper"), ("pos_enc_dim", 8)])
def test_an_arm_of_another_reading_or_other_encodings_is_no_control(tmp_path: Path, key: str, value: object) -> None:
    other = {**UNIFORM_GATE, "id": "other", key: value}
    trials = [*protocol_runs(other, UNIFORM), *protocol_runs(GATED, BILATERAL)]
    write_study(tmp_path / "alone", [other, GATED], trials)
    trials += protocol_runs(UNIFORM_GATE, UNIFORM)
    write_study(tmp_path / "both", [other, GATED, UNIFORM_GATE], trials)
    alone, both = (study.controls[0].uniform for study in fidelity(tmp_path))
    assert alone is None
    assert both is not None
    assert both.summary.cell.id == UNIFORM_GATE["id"]


def test_a_gain_that_the_uniform_arm_has_too_is_not_the_gates(tmp_path: Path) -> None:
    page = render_fidelity(fidelity(made_folder(tmp_path)))
    assert "*bi*-GCN with its gate and without it **cannot be told apart**" in page
    # both arms have the mean 0.401, the vanilla model 0.471
    assert "over the vanilla model (-0.070), the uniform arm has too (-0.070)" in page
    assert "within 0.930 to 1.120 over all edges" in page


def test_a_difference_that_rounds_to_zero_has_no_sign(tmp_path: Path) -> None:
    # the uniform arm has the mean 0.401
    page = render_fidelity(fidelity(made_folder(tmp_path, bilateral=(0.4008, 0.4028, 0.3988, 0.4008))))
    assert "| *bi*-GCN: gated - uniform | 0.000 | " in page


def test_a_gate_that_helps_and_one_that_harms(tmp_path: Path) -> None:
    better = tuple(value - 0.05 for value in UNIFORM)
    worse = tuple(value + 0.05 for value in UNIFORM)
    helped = render_fidelity(fidelity(made_folder(tmp_path / "better", better)))
    harmed = render_fidelity(fidelity(made_folder(tmp_path / "worse", worse)))
    assert "The gate of *bi*-GCN helps: -0.050 against the uniform arm (p < 0.001)" in helped
    assert "The gate of *bi*-GCN harms: +0.050 against the uniform arm" in harmed


def test_a_span_shows_as_many_digits_as_tell_it_from_one(tmp_path: Path) -> None:
    page = render_fidelity(fidelity(made_folder(tmp_path, span=(0.9999979, 1.0000004))))
    assert "within 0.999998 to 1.000000 over all edges" in page


def test_rows_stand_beside_the_printed_ones(tmp_path: Path) -> None:
    (study,) = fidelity(made_folder(tmp_path))
    # printed in Table 2: GCN 0.459, bi-GCN 0.394
    assert [(row.printed_mean, round(row.difference or 0, 4)) for row in study.rows] == [
        (0.459, 0.012),
        (0.394, 0.007),
        (0.394, 0.007),
    ]
    assert [row.counterpart for row in study.rows][2] is False
    assert "| *uniform*-GCN | 4 | 0.401 ± 0.001 | bi-GCN L4 (nearest) |" in render_fidelity(fidelity(tmp_path))


def test_runs_that_are_missing_are_said_and_not_compared(tmp_path: Path) -> None:
    trials = [*protocol_runs(PLAIN, VANILLA), *protocol_runs(GATED, BILATERAL)[:3]]
    write_study(tmp_path / "zinc", [PLAIN, GATED], trials, caption="ZINC")
    page = render_fidelity(fidelity(tmp_path))
    assert "*bi*-GCN: incomplete: 3 of 4 runs." in page
    assert "| *bi*-GCN: gated - vanilla | — | runs are missing | — |" in page


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    folder = made_folder(tmp_path / "studies")
    first, second = write_fidelity(folder, tmp_path / "a.md"), write_fidelity(folder, tmp_path / "b.md")
    assert first.read_bytes() == second.read_bytes()


def test_a_folder_without_studies_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="found no results folder in it"):
        fidelity(tmp_path)
    result = aggregate("fidelity", tmp_path, "--out", tmp_path / "page.md")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert not (tmp_path / "page.md").exists()


def test_a_study_by_another_protocol_stands_beside_nothing(tmp_path: Path) -> None:
    trials = [*protocol_runs(PLAIN, VANILLA, max_epochs=20), *protocol_runs(GATED, BILATERAL, max_epochs=20)]
    write_study(tmp_path / "zinc", [PLAIN, GATED], trials, caption="Twenty epochs.")
    (study,) = fidelity(tmp_path)
    assert (study.rows, study.controls) == ((), ())
    page = render_fidelity((study,))
    assert "80 of the 80 rows. Each is a line" in page
    assert "Twenty epochs" not in page


def test_another_vanilla_model_is_set_beside_the_gain(tmp_path: Path) -> None:
    symmetric = vanilla(
        "zinc", "gcn", id="symmetric", budget=None, hidden_dim=145, departures={"gcn_normalisation": "symmetric"}
    )
    better = (0.411, 0.409, 0.410, 0.410)
    trials = [*protocol_runs(PLAIN, VANILLA), *protocol_runs(GATED, BILATERAL), *protocol_runs(symmetric, better)]
    write_study(tmp_path / "zinc", [PLAIN, symmetric, GATED], trials, caption="ZINC")
    page = render_fidelity(fidelity(tmp_path))
    # 0.410 - 0.471, and 0.401 - 0.410
    assert "alone is -0.061 from GCN, without clusters, gate or further parameters; *bi*-GCN is -0.009 from it" in page


def test_runs_that_are_not_behind_the_number_do_not_widen_the_gate(tmp_path: Path) -> None:
    """A run of another learning rate, begun before, and one of a seed that the plan has no more."""
    made_folder(tmp_path)
    others = [trial(GATED, 41, 0.4, learning_rate=5e-3, started_at=1.0), trial(GATED, 7, 0.4)]
    for record in others:
        wide = replace(record.epochs[0], gate_min=0.1, gate_max=3.0, gate_std=1.0)
        rate = {"learning_rate": record.learning_rate}
        write_record(
            replace(configured(record, **rate), epochs=(wide,)), tmp_path / f"zinc/records/{record.key}.parquet"
        )
    (study,) = fidelity(tmp_path)
    assert study.controls[0].span == GateSpan(low=0.93, high=1.12)


def test_models_of_several_depths_are_told_apart(tmp_path: Path) -> None:
    """As in search_spaces/paper_zinc.yaml: of two depths no sentence tells which, unless it says so."""
    deep = [{**cell, "id": f"{cell['id']}-deep", "layers": 16} for cell in (PLAIN, GATED)]
    trials = [*protocol_runs(PLAIN, VANILLA), *protocol_runs(GATED, BILATERAL)]
    trials += [*protocol_runs(deep[0], (0.37, 0.38, 0.36, 0.37)), *protocol_runs(deep[1], (0.30, 0.31, 0.32, 0.31))]
    write_study(tmp_path / "zinc", [PLAIN, GATED, *deep], trials, caption="ZINC")
    page = render_fidelity(fidelity(tmp_path))
    assert "- *bi*-GCN L4 agrees with the printed value" in page
    assert "- *bi*-GCN L16 **parts** from the printed value" in page
    assert "| *bi*-GCN L4: gated - vanilla | -0.070 |" in page
    assert "| *bi*-GCN L16: gated - vanilla | -0.060 |" in page


def test_models_of_several_datasets_are_told_apart(tmp_path: Path) -> None:
    """As in search_spaces/paper_small.yaml: four datasets in one study, each with its own metric."""
    other = vanilla("enzymes", "gcn", budget=None, hidden_dim=146)
    trials = [*protocol_runs(PLAIN, VANILLA), *protocol_runs(GATED, BILATERAL), *runs(other, (0.6, 0.7, 0.6, 0.7))]
    write_study(tmp_path / "both", [PLAIN, GATED, other], trials, caption="ZINC and ENZYMES")
    page = render_fidelity(fidelity(tmp_path))
    assert "| Model | Runs | MAE, ACC, ours |" in page
    assert "| ENZYMES, GCN | 4 | 65.000 ± 5.000 |" in page
    assert "- ZINC, *bi*-GCN agrees with the printed value" in page
    assert "| ZINC, *bi*-GCN: gated - vanilla | -0.070 |" in page
