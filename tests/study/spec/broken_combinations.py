"""Keys that do not fit each other: what is replaced in the good study file, by what, and the whole line of it."""

from __future__ import annotations

BROKEN_COMBINATIONS = {
    "setting of another backbone": (
        "  max_epochs: 12",
        "  max_epochs: 12\n  edge_gate: raw",
        "f.yaml:13: fixed.edge_gate: found a setting of gated_gcn, expected none: no cell has the backbone gated_gcn",
    ),
    "gate setting on vanilla cells only": (
        "[none, boosting]",
        "none",
        "f.yaml:10: space.num_clusters: found a gate setting, expected none: every cell is vanilla (placement none)",
    ),
    "bilateral setting on uniform gates only": (
        "  max_epochs: 12",
        "  gate: uniform",
        "f.yaml:9: space.sigma_m: found a setting of the bilateral gate, expected none: every gate is uniform",
    ),
    "heads without gat": (
        "[gcn, gat]",
        "gcn\n  heads: 4",
        "f.yaml:5: arms.heads: found a setting of gat, expected none: no cell has the backbone gat",
    ),
    "key in two sections": (
        "  max_epochs: 12",
        "  sigma_m: 1",
        "f.yaml:12: fixed.sigma_m: found it in space too, expected it in one section only",
    ),
    "budget and width": (
        "  max_epochs: 12",
        "  hidden_dim: 70",
        "f.yaml:12: fixed.hidden_dim: found it beside arms.budget, expected either budget or hidden_dim",
    ),
    "neither budget nor width": (
        "  budget: 100000\n",
        "",
        "f.yaml:2: arms.budget: found nothing, expected budget or hidden_dim, here or in space or fixed",
    ),
    "no layers": (
        "  layers: 4\n",
        "",
        "f.yaml:2: arms.layers: found nothing, expected the number of layers, here or in space or fixed",
    ),
    "no clusters": (
        "  num_clusters: {int: [2, 16]}\n",
        "",
        "f.yaml:2: arms.num_clusters: found nothing, "
        "expected the number of clusters, here or in space or fixed: layers are gated",
    ),
    "folds without folds": (
        "seeds: [41, 95]",
        "folds: [0]",
        "f.yaml:17: confirm.folds[0]: found 0, expected none: digits has no folds",
    ),
    "all folds without folds": (
        "seeds: [41, 95]",
        "folds: all",
        "f.yaml:17: confirm.folds: found all, expected none: digits has no folds",
    ),
    "search fold without folds": (
        "  trials: 8",
        "  trials: 8\n  fold: 0",
        "f.yaml:15: search.fold: found 0, expected none: digits has no folds",
    ),
    "no trials": (
        "  trials: 8\n",
        "",
        "f.yaml:13: search.trials: found nothing, expected the number of search trials of a cell",
    ),
    "no search": (
        "search:\n  trials: 8\n  asha: {grace_epochs: 2}\n",
        "",
        "f.yaml:1: search: found nothing, expected a mapping with trials: space is not empty",
    ),
    "grid over a continuous range": (
        "trials: 8",
        "sampler: grid",
        "f.yaml:9: space.sigma_m.log_uniform: found a continuous range, "
        "expected values that a grid can list, such as choice: [0.1, 1, 10]",
    ),
    "grid with trials": (
        "  trials: 8",
        "  sampler: grid\n  trials: 8",
        "f.yaml:15: search.trials: found 8, expected none: a grid runs every combination",
    ),
    "grace beyond the end": (
        "grace_epochs: 2",
        "grace_epochs: 13",
        "f.yaml:15: search.asha.grace_epochs: found 13, expected at most max_epochs = 12",
    ),
    "grace beyond the protocol's end": (
        "fixed:\n  max_epochs: 12\nsearch:\n  trials: 8\n  asha: {grace_epochs: 2}",
        "search:\n  trials: 8\n  asha: {grace_epochs: 1001}",
        "f.yaml:13: search.asha.grace_epochs: found 1001, expected at most max_epochs = 1000",
    ),
    "placement that gates nothing": (
        "layers: 4",
        "layers: [4, 1]",
        "f.yaml:5: arms.placement[1]: found 'boosting', "
        "expected layers >= 2: boosting gates no layer of a network of 1",
    ),
    "layer that is not there": (
        "[none, boosting]",
        "[none, [2, 5]]",
        "f.yaml:5: arms.placement[1]: found [2, 5], expected different layers from 1 to 4",
    ),
    "condition on a key that stands nowhere": (
        "{int: [2, 16]}",
        "{int: [2, 16], when: {readout: sum}}",
        "f.yaml:10: space.num_clusters.when.readout: found a condition on readout, "
        "expected a key that stands in arms, space or fixed",
    ),
    "condition on a later key": (
        "{log_uniform: [0.1, 10]}",
        "{log_uniform: [0.1, 10], when: {num_clusters: 2}}",
        "f.yaml:9: space.sigma_m.when.num_clusters: found a condition on num_clusters, "
        "expected a key that is sampled before sigma_m",
    ),
    "condition on a continuous range": (
        "{int: [2, 16]}",
        "{int: [2, 16], when: {sigma_m: [0.5, 2.0]}}",
        "f.yaml:10: space.num_clusters.when.sigma_m: found a condition on sigma_m, which has a continuous range, "
        "expected a key of single values; make sigma_m a choice",
    ),
    "condition that never holds": (
        "{int: [2, 16]}",
        "{int: [2, 16], when: {backbone: gated_gcn}}",
        "f.yaml:10: space.num_clusters.when.backbone: found 'gated_gcn', "
        "expected a value that backbone can have: 'gcn', 'gat'",
    ),
    "conditions that never hold together": (
        "  num_clusters: {int: [2, 16]}\n",
        "  num_clusters: {int: [2, 16]}\n  batch_size: {choice: [64, 128], when: {placement: none, num_clusters: 3}}\n",
        "f.yaml:11: space.batch_size.when: found conditions that no trial meets, "
        "expected values with which placement, num_clusters and batch_size exist together",
    ),
    "condition under which the key does not exist": (
        "{int: [2, 16]}",
        "{int: [2, 16], when: {placement: none}}",
        "f.yaml:10: space.num_clusters.when: found conditions that no trial meets, "
        "expected values with which placement and num_clusters exist together",
    ),
}
