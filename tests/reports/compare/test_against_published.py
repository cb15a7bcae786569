"""Which published row stands beside a cell, what differs, and the numbers between them, worked by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from made_studies import SEEDS, Cell, gated, runs, trial, vanilla, write_study, write_used_data
from paper_configuration import TRAIN, configured
from ruamel.yaml import YAML
from scipy.stats import t

from reports.compare.against_published import BesidePublished, beside_published
from reports.compare.published_table import SEEDS_ON_FOLDS, published_grid
from reports.published.protocol_flags import flags_text, gated_layers
from reports.published.rows import PaperRow, paper_protocols, paper_rows
from reports.records.load import load_results

ROOT = Path(__file__).parents[3]


def beside(folder: Path, cell: Cell, tests: Mapping[int, float], sizes: dict[str, int], **changes: Any) -> Any:
    trials = [configured(trial(cell, seed, test, **sizes), **changes) for seed, test in tests.items()]
    return beside_published(load_results(write_study(folder, [cell], trials)))


def zinc(folder: Path, tests: Mapping[int, float] | None = None, **changes: Any) -> BesidePublished:
    """bi-GCN on ZINC as the paper ran it, but for ``changes`` of the cell or its configuration, beside its row."""
    planned = {key: changes.pop(key) for key in list(changes) if key in ("placement", "gate", "layers", "departures")}
    planned = {"num_clusters": 9, "sigma_m": 1.0} | planned
    planned |= {key: changes.pop(key) for key in ("num_clusters", "sigma_m", "unsupervised_weight") if key in changes}
    sizes = {"params": changes.pop("params", 125_651), "hidden_dim": changes.pop("hidden_dim", 145)}
    cell = gated("zinc", "gcn", **planned)
    rows = beside(folder, cell, tests or dict(zip(SEEDS, [0.39, 0.40, 0.39, 0.40], strict=True)), sizes, **changes)
    found: BesidePublished = rows[0]
    assert found.kind == "paper"
    return found


class TestNumbers:
    def test_difference_spread_and_p(self, tmp_path: Path) -> None:
        found = zinc(tmp_path)
        assert found.name == "bi-GCN L4"
        assert (found.printed_mean, found.printed_std, found.printed_runs) == (0.394, 0.006, 4)
        # Ours: mean 0.395, deviations of 0.005. Printed: 0.394 +- 0.006.
        assert found.difference == pytest.approx(0.001)
        assert found.within_spread is True
        ours, theirs = 0.005**2 * 4 / 3 / 4, 0.006**2 * 4 / 3 / 4
        freedom = (ours + theirs) ** 2 / ((ours**2 + theirs**2) / 3)
        assert found.outcome.p_value == pytest.approx(2 * t.sf(0.001 / math.sqrt(ours + theirs), freedom))
        assert (found.counterpart, found.flags, found.origin) == (True, (), "the paper's authors")

    @pytest.mark.parametrize(("shift", "within"), [(0.010, True), (0.0101, False), (-0.012, True), (-0.0121, False)])
    def test_within_is_the_sum_of_both_spreads(self, tmp_path: Path, shift: float, within: bool) -> None:
        # 0.395 + 0.010 is 0.011 above what is printed, and so are the two spreads, 0.005 and 0.006, together.
        tests = [value + shift for value in (0.39, 0.40, 0.39, 0.40)]
        assert zinc(tmp_path, dict(zip(SEEDS, tests, strict=True))).within_spread is within

    def test_seeds_on_a_fold_are_one_value_of_it(self, tmp_path: Path) -> None:
        """Seeds that repeat what the first one found on each fold are no further evidence."""
        tests = [0.60, 0.70, 0.65, 0.62, 0.68, 0.66, 0.64, 0.63, 0.67, 0.69]
        p_values = []
        for seeds in ([41], [41, 95, 12, 35]):
            cell = vanilla("enzymes", "gcn", seeds=seeds, folds=list(range(10)))
            trials = [configured(trial(cell, seed, test, fold=f)) for seed in seeds for f, test in enumerate(tests)]
            results = load_results(write_study(tmp_path / str(len(seeds)), [cell], trials))
            (row,) = beside_published(results)
            p_values.append(row.outcome.p_value)
            told = [note.heading for note in published_grid([row]).notes]
            assert (SEEDS_ON_FOLDS in told) is (len(seeds) > 1)
        assert p_values[0] is not None
        assert p_values[1] == pytest.approx(p_values[0])

    def test_where_the_spreads_are_equal_it_is_where_p_crosses(self) -> None:
        # Difference 2 s from two times four runs with standard deviation s of ddof 0.
        assert 2 * t.sf(2 / math.sqrt(2 * 4 / 3 / 4), 6) == pytest.approx(0.05, abs=2e-4)

    def test_accuracies_are_fractions(self, tmp_path: Path) -> None:
        cell = vanilla("smnist", "gcn", dataset_title="SMNIST")
        (found,) = [
            row
            for row in beside(tmp_path, cell, dict.fromkeys(SEEDS, 0.9), {"params": 101_365, "hidden_dim": 146})
            if row.kind == "paper"
        ]
        assert (found.printed_mean, found.printed_std) == (pytest.approx(0.90705), pytest.approx(0.00218))
        assert found.difference == pytest.approx(-0.00705)
        assert found.outcome.p_value is None
        assert found.outcome.reason.startswith("all runs of the own model are equal")

    def test_a_missing_run_is_not_compared(self, tmp_path: Path) -> None:
        found = zinc(tmp_path, dict(zip(SEEDS[:3], [0.39, 0.40, 0.39], strict=True)))
        assert found.difference is found.within_spread is found.outcome.p_value is None
        assert found.outcome.reason == "incomplete: 3 of 4 runs"

    def test_one_seed_has_no_p(self, tmp_path: Path) -> None:
        cell = gated("zinc", "gcn", seeds=[41], num_clusters=9, sigma_m=1.0)
        found = beside(tmp_path, cell, {41: 0.4}, {"params": 125_651, "hidden_dim": 145})[0]
        assert found.difference == pytest.approx(0.006)
        assert (found.within_spread, found.outcome.p_value) == (True, None)
        assert [str(flag) for flag in found.flags] == ["seeds 1 (4)"]

    def test_the_range_of_one_seed_is_not_said_to_be_apart(self, tmp_path: Path) -> None:
        cell = gated("zinc", "gcn", seeds=[41], num_clusters=9, sigma_m=1.0)
        found = beside(tmp_path, cell, {41: 0.401}, {"params": 125_651, "hidden_dim": 145})[0]
        assert found.difference == pytest.approx(0.007)  # beyond the printed 0.006, by less than any usual spread
        assert found.within_spread is None

    def test_another_metric_is_not_compared(self, tmp_path: Path) -> None:
        cell = vanilla("zinc", "gcn", metric="f1", direction="max")
        found = beside(tmp_path, cell, dict.fromkeys(SEEDS, 0.4), {"hidden_dim": 145})[0]
        assert (found.difference, found.outcome.reason) == (None, "not the same metric: f1 and mae")


class TestFlags:
    @pytest.mark.parametrize(
        ("change", "flag"),
        [
            ({"params": 103_077}, "params 103,077 (125,651)"),
            ({"hidden_dim": 144}, "hidden dim 144 (145)"),
            ({"pos_enc_dim": 8}, "positional encodings 8 (0)"),
            ({"num_clusters": 8}, "num clusters 8 (9)"),
            ({"sigma_m": 0.1}, "sigma m 0.1 (1)"),
            ({"unsupervised_weight": 0.0}, "unsupervised weight 0 (1)"),
            ({"readout": "sum"}, "readout sum (mean)"),
            ({"batch_size": 64}, "batch size 64 (128)"),
            ({"learning_rate": 5e-4}, "learning rate 0.0005 (0.001)"),
            ({"lr_factor": 0.9}, "lr factor 0.9 (0.5)"),
            ({"lr_patience": 25}, "lr patience 25 (10)"),
            ({"min_lr": 1e-6}, "min lr 1e-06 (1e-05)"),
            ({"max_epochs": 40}, "max epochs 40 (1,000)"),
            ({"time_limit_s": None}, "time limit s none (43200)"),
            ({"semantics": "paper"}, "semantics paper (released)"),
            ({"out_dim": 70}, "out dim 70 (145)"),
        ],
    )
    def test_each_setting_alone(self, tmp_path: Path, change: dict[str, Any], flag: str) -> None:
        found = zinc(tmp_path, **change)
        assert [str(each) for each in found.flags] == [flag]
        assert found.counterpart

    def test_a_uniform_gate_has_no_row_of_its_own(self, tmp_path: Path) -> None:
        found = zinc(tmp_path, gate="uniform", sigma_m=None)
        assert (found.name, found.counterpart) == ("bi-GCN L4", False)
        assert [str(flag) for flag in found.flags] == ["gate uniform (bilateral)"]

    def test_nor_has_a_departure(self, tmp_path: Path) -> None:
        found = zinc(tmp_path, departures={"gcn_normalisation": "symmetric"})
        assert not found.counterpart
        assert [str(flag) for flag in found.flags] == ["gcn normalisation symmetric (not that of released)"]

    def test_what_was_searched_and_what_was_cut(self, tmp_path: Path) -> None:
        cell = gated("zinc", "gcn", num_clusters=9, sigma_m=1.0)
        sizes = {"params": 125_651, "hidden_dim": 145}
        trials = [
            *(configured(trial(cell, seed, 0.4, **sizes)) for seed in SEEDS[:3]),
            configured(trial(cell, SEEDS[3], 0.4, reason="time_limit", **sizes)),
            *(trial(cell, 0, phase="search", sigma_m=place) for place in (0.1, 0.2)),
        ]
        found = beside_published(load_results(write_study(tmp_path, [cell], trials)))[0]
        assert [str(flag) for flag in found.flags] == [
            "search of 2 trials (none known)",
            "runs 1 ended by the time limit (not said)",
        ]

    def test_what_is_not_on_record_is_not_passed_over(self, tmp_path: Path) -> None:
        results = write_study(tmp_path, [gated("zinc", "gcn", num_clusters=9, sigma_m=1.0)], [])
        found = beside_published(load_results(results))[0]
        assert found.counterpart
        assert flags_text(found.flags) == (
            "seeds 0 (4); not on record: params, hidden dim, positional encodings, readout, batch size, learning rate, "
            "lr factor, lr patience, min lr, max epochs, time limit s, semantics"
        )

    def test_folds(self, tmp_path: Path) -> None:
        cell = vanilla("enzymes", "gcn", seeds=[41], folds=[0, 1])
        changes = {"batch_size": 20, "learning_rate": 7e-4, "lr_patience": 25, "min_lr": 1e-6}
        trials = [
            configured(trial(cell, 41, test, fold=fold, params=103_407, hidden_dim=146), **changes)
            for fold, test in enumerate([0.6, 0.7])
        ]
        (found,) = beside_published(load_results(write_study(tmp_path, [cell], trials)))
        assert [str(flag) for flag in found.flags] == ["folds 2 (10)"]

    def test_heads_and_edge_inputs_where_they_mean_something(self, tmp_path: Path) -> None:
        gat = beside(tmp_path / "gat", vanilla("zinc", "gat"), {41: 0.4}, {"params": 102_385, "hidden_dim": 18})[0]
        assert [str(flag) for flag in gat.flags] == ["heads 1 (8)", "seeds 1 (4)"]
        cell = vanilla("zinc", "gated_gcn")
        sizes = {"params": 105_875, "hidden_dim": 70}
        given = beside(tmp_path / "given", cell, dict.fromkeys(SEEDS, 0.4), sizes)[0]
        ones = beside(tmp_path / "ones", cell, dict.fromkeys(SEEDS, 0.4), sizes, edge_features="ones")[0]
        assert given.flags == ()
        assert [str(flag) for flag in ones.flags] == ["edge features no (yes)"]


class TestRows:
    def test_an_explicit_list_is_the_placement_that_it_spells(self, tmp_path: Path) -> None:
        assert zinc(tmp_path, placement="2").flags == ()

    def test_placements(self) -> None:
        assert gated_layers("boosting", 4) == gated_layers("2", 16) == {2}
        assert gated_layers("interleaved", 4) == gated_layers("2,4", 4) == {2, 4}
        assert gated_layers("dense", 3) == {1, 2, 3}
        assert gated_layers("none", 3) == frozenset()
        assert gated_layers(None, 3) is gated_layers("dense", None) is gated_layers("2,odd", 3) is None

    @pytest.mark.parametrize(
        ("placement", "name", "flags"),
        [
            ("interleaved", "bi-GCN L4", ["placement interleaved (boosting)"]),
            ("1,3", "bi-GCN L4", ["placement 1,3 (boosting)"]),
        ],
    )
    def test_a_placement_without_a_row(self, tmp_path: Path, placement: str, name: str, flags: list[str]) -> None:
        found = zinc(tmp_path, placement=placement)
        assert (found.name, found.counterpart, [str(flag) for flag in found.flags]) == (name, False, flags)

    def test_the_papers_placements(self, tmp_path: Path) -> None:
        cell = gated("zinc", "gated_gcn", "dense")
        found = beside(tmp_path, cell, {41: 0.3}, {})[0]
        assert (found.name, found.published.source, found.counterpart) == ("dense-GatedGCN L4", "Table S1", True)
        boosting = beside(tmp_path / "b", gated("zinc", "gated_gcn"), {41: 0.3}, {})[0]
        assert (boosting.name, boosting.published.source) == ("bi-GatedGCN L4", "Table 2")
        other = beside(tmp_path / "o", gated("zinc", "gated_gcn", "1,3"), {41: 0.3}, {})[0]
        assert (other.name, other.published.source, other.counterpart) == ("bi-GatedGCN L4", "Table 2", False)

    @pytest.mark.parametrize(("layers", "nearest"), [(2, 4), (6, 4), (8, 4), (9, 16), (32, 16)])
    def test_the_nearest_depth(self, tmp_path: Path, layers: int, nearest: int) -> None:
        found = zinc(tmp_path, layers=layers)
        assert isinstance(found.published, PaperRow)
        assert (found.published.layers, found.counterpart) == (nearest, False)
        assert f"layers {layers} ({nearest})" in map(str, found.flags)

    def test_the_benchmark_where_it_says_more_than_the_paper(self, tmp_path: Path) -> None:
        cell = vanilla("tsp", "gat")
        rows = beside(tmp_path, cell, dict.fromkeys(SEEDS, 0.67), {"params": 96_182})
        # The paper prints 0.673, the leaderboard 0.671.
        assert [(row.kind, row.name, row.printed_mean) for row in rows] == [
            *(("paper", "GAT L4", 0.673), ("benchmark", "GAT", 0.671))
        ]
        assert rows[0].origin == "not the paper's authors, and not the benchmark's number"
        assert (rows[1].printed_std, rows[1].printed_runs, rows[1].flags) == (0.002, 4, ())
        # GCN is the same in both.
        assert [row.kind for row in beside(tmp_path / "gcn", vanilla("tsp", "gcn"), {41: 0.6}, {})] == ["paper"]

    def test_a_dataset_that_only_the_benchmark_has(self, tmp_path: Path) -> None:
        cell = vanilla("pattern", "gcn", layers=16, budget=500_000, metric="balanced_accuracy")
        (row,) = beside(tmp_path, cell, dict.fromkeys(SEEDS, 0.72), {"params": 500_823})
        assert (row.kind, row.printed_mean, row.counterpart) == ("benchmark", pytest.approx(0.71892), False)

    def test_later_results_of_the_backbone_or_the_best(self, tmp_path: Path) -> None:
        gcn = beside(tmp_path / "gcn", gated("zinc", "gcn"), dict.fromkeys(SEEDS, 0.4), {})
        gat = beside(tmp_path / "gat", gated("zinc", "gat"), dict.fromkeys(SEEDS, 0.4), {})
        cifar = beside(tmp_path / "cifar", gated("cifar10", "gat"), dict.fromkeys(SEEDS, 0.6), {})
        assert [row.name for row in (*gcn, *gat, *cifar) if row.kind == "later"] == ["GCN+", "GCN+", "GatedGCN+"]
        later = gat[-1]
        assert later.difference == pytest.approx(0.324)
        assert later.outcome.p_value is later.within_spread is None
        assert [str(flag) for flag in later.flags] == [
            "recipe this study's (GCN+)",
            "backbone gat (gcn)",
            "gate bilateral (none)",
            "params 99,000 (budget 500,000)",
            "positional encoding no (yes)",
            "edge features no (yes)",
            "runs 4 (not said)",
        ]

    def test_what_was_never_published(self, tmp_path: Path) -> None:
        assert beside(tmp_path, vanilla("digits", "gcn"), {41: 0.9}, {}) == ()
        own = beside(tmp_path / "own", vanilla("enzymes", "my_lab:Layer"), {41: 0.9}, {})
        assert own == ()

    def test_a_depth_that_is_still_searched(self, tmp_path: Path) -> None:
        results = write_study(tmp_path, [vanilla("enzymes", "gcn", layers=None)], [])
        assert beside_published(load_results(results)) == ()

    def test_every_row_of_the_paper_is_its_own_counterpart(self, tmp_path: Path) -> None:
        cells, trials, expected = [], [], []
        for place, row in enumerate(paper_rows()):
            kind = gated if row.placement != "none" else vanilla
            planned: dict[str, Any] = {"seeds": [41], "layers": row.layers, "budget": row.budget, "id": f"cell-{place}"}
            planned |= {"dataset_title": row.dataset, "metric": row.metric}
            planned |= {"direction": "min" if row.metric == "mae" else "max"}
            if kind is gated:
                planned |= {"placement": row.placement, "num_clusters": row.num_clusters, "sigma_m": row.sigma_m}
            cell = kind(row.dataset.lower(), row.backbone, **planned)
            rule = paper_protocols()[row.dataset]
            training = {name: getattr(rule, name) for name in TRAIN if hasattr(rule, name)}
            training |= {"batch_size": row.batch_size, "learning_rate": row.learning_rate}
            readout = rule.gated_readout if kind is gated else rule.readout
            cells.append(cell)
            trials.append(
                configured(
                    trial(cell, 41, 0.5, params=row.params_true, hidden_dim=row.hidden_dim),
                    **{**training, "heads": row.heads, "pos_enc_dim": row.pos_enc_dim or None, "readout": readout},
                )
            )
            expected.append((row.dataset, row.backbone, row.layers, row.placement))
        found = beside_published(load_results(write_study(tmp_path, cells, trials)))
        paper = [row for row in found if isinstance(row.published, PaperRow)]
        assert all(row.counterpart for row in paper)
        assert {flag.setting for row in paper for flag in row.flags} == {"seeds"}
        beside_each = {
            row.summary.cell.id: (
                *(row.published.dataset, row.published.backbone),
                *(row.published.layers, row.published.placement),
            )
            for row in paper
            if isinstance(row.published, PaperRow)
        }
        assert [beside_each[cell["id"]] for cell in cells] == expected


@pytest.mark.parametrize("dataset", sorted(paper_protocols()))
def test_the_protocol_is_that_of_the_shipped_studies(dataset: str) -> None:
    rule = paper_protocols()[dataset]
    content = YAML(typ="safe").load(ROOT / "search_spaces" / f"paper_{dataset.lower()}.yaml")
    settings = [{**content["arms"], **content["fixed"], **row} for row in content["rows"]]
    for name in ("lr_factor", "lr_patience", "min_lr", "max_epochs", "time_limit_s"):
        assert {float(row[name]) for row in settings} == {getattr(rule, name)}
    readouts = {row["placement"] != "none": row.get("readout", "mean") for row in settings}
    if rule.readout is not None:
        assert readouts == {False: rule.readout, True: rule.gated_readout}
    assert {float(row["unsupervised_weight"]) for row in settings} == {rule.unsupervised_weight}


def test_runs_of_made_studies_are_flagged_not_guessed(tmp_path: Path) -> None:
    cell = vanilla("zinc", "gcn")
    found = beside_published(load_results(write_study(tmp_path, [cell], runs(cell, [0.4, 0.5, 0.4, 0.5]))))[0]
    assert "batch_size" in [flag.setting for flag in found.flags if flag.ours == "not on record"]


def test_fewer_graphs_and_half_precision_are_flagged(tmp_path: Path) -> None:
    assert flags_text(zinc(tmp_path / "half", precision="bfloat16").flags) == "precision bfloat16 (not said)"
    cell = gated("zinc", "gcn", num_clusters=9, sigma_m=1.0)
    sizes = {"params": 125_651, "hidden_dim": 145}
    trials = [configured(trial(cell, seed, 0.39, **sizes)) for seed in SEEDS]
    part = write_used_data(write_study(tmp_path / "part", [cell], trials), "ZINC", train=1_000, val=100, test=100)
    rows = beside_published(load_results(part))
    assert flags_text(rows[0].flags) == "graphs 1,200 (12,000)"
    assert all("graphs 1,200 (12,000)" in flags_text(row.flags) for row in rows)
