"""Slips that show at the key itself: what is replaced in the good study file, by what, and the whole line of it."""

from __future__ import annotations

from study_text import BASE

from bimp.tasks import TASKS

BROKEN_VALUES = {
    "unknown reading": (
        "  max_epochs: 12",
        "  max_epochs: 12\n  semantics: code",
        "f.yaml:13: fixed.semantics: found 'code', expected one of paper, released",
    ),
    "word for a truth value": (
        "  max_epochs: 12",
        "  max_epochs: 12\n  metric_bias: 'yes'",
        "f.yaml:13: fixed.metric_bias: found 'yes', expected true or false",
    ),
    "unknown key": ("trials: 8", "trails: 8", "f.yaml:14: search.trails: found an unknown key, expected trials"),
    "unknown section": ("fixed:", "fixd:", "f.yaml:11: fixd: found an unknown key, expected fixed"),
    "unknown key like no other": (
        "  asha: {grace_epochs: 2}",
        "  asha: {zzz: 2}",
        "f.yaml:15: search.asha.zzz: found an unknown key, expected one of grace_epochs, reduction_factor",
    ),
    "unknown hyperparameter": (
        "sigma_m:",
        "sigma:",
        "f.yaml:9: space.sigma: found an unknown key, expected sigma_m",
    ),
    "unknown kind of range": (
        "{int: [2, 16]}",
        "{uniform: [2, 16]}",
        "f.yaml:10: space.num_clusters.uniform: found an unknown key, expected one of int, log_int, choice, when",
    ),
    "two kinds of range": (
        "{int: [2, 16]}",
        "{int: [2, 16], choice: [3]}",
        "f.yaml:10: space.num_clusters: found [int, choice], expected exactly one of int, log_int, choice",
    ),
    "no kind of range": (
        "{int: [2, 16]}",
        "{}",
        "f.yaml:10: space.num_clusters: found nothing, expected exactly one of int, log_int, choice",
    ),
    "word for a number": ("layers: 4", "layers: four", "f.yaml:7: arms.layers: found 'four', expected a whole number"),
    "number in quotes": ("layers: 4", "layers: '4'", "f.yaml:7: arms.layers: found '4', expected a whole number"),
    "fraction of a layer": ("layers: 4", "layers: 4.5", "f.yaml:7: arms.layers: found 4.5, expected a whole number"),
    "truth value for a number": (
        "layers: 4",
        "layers: true",
        "f.yaml:7: arms.layers: found true, expected a whole number",
    ),
    "infinite": (
        "[0.1, 10]",
        "[0.1, .inf]",
        "f.yaml:9: space.sigma_m.log_uniform[1]: found inf, expected a number",
    ),
    "second entry of an arm": (
        "[gcn, gat]",
        "[gcn, gta]",
        "f.yaml:4: arms.backbone[1]: found 'gta', expected one of gcn, graphsage, gat, gated_gcn",
    ),
    "range instead of a mapping": (
        "{int: [2, 16]}",
        "[2, 16]",
        "f.yaml:10: space.num_clusters: found [2, 16], expected a mapping with keys such as int",
    ),
    "section without content": (
        "  seeds: [41, 95]",
        "",
        "f.yaml:16: confirm: found nothing, expected a mapping with keys such as seeds",
    ),
    "one seed without its list": (
        "[41, 95]",
        "41",
        "f.yaml:17: confirm.seeds: found 41, expected a list of at least one whole number",
    ),
    "empty choice": (
        "{int: [2, 16]}",
        "{choice: []}",
        "f.yaml:10: space.num_clusters.choice: found an empty list, expected a list of at least one value",
    ),
    "empty arm": (
        "[none, boosting]",
        "[]",
        "f.yaml:5: arms.placement: found an empty list, expected at least one value",
    ),
    "value twice": (
        "[gcn, gat]",
        "[gcn, gcn]",
        "f.yaml:4: arms.backbone: found [gcn, gcn], expected different values: 'gcn' stands twice",
    ),
    "range upside down": (
        "[0.1, 10]",
        "[10, 0.1]",
        "f.yaml:9: space.sigma_m.log_uniform: found [10.0, 0.1], expected low below high",
    ),
    "range of three": (
        "[2, 16]",
        "[2, 4, 16]",
        "f.yaml:10: space.num_clusters.int: found [2, 4, 16], expected [low, high]",
    ),
    "log range from 0": (
        "fixed:\n  max_epochs: 12",
        "  unsupervised_weight: {log_uniform: [0, 1]}",
        "f.yaml:11: space.unsupervised_weight.log_uniform: found [0.0, 1.0], "
        "expected low above 0: the range is logarithmic",
    ),
    "range below its key's least": (
        "[0.1, 10]",
        "[0, 10]",
        "f.yaml:9: space.sigma_m.log_uniform[0]: found 0, expected a number above 0",
    ),
    "key twice": (
        "  layers: 4",
        "  layers: 4\n  budget: 5",
        "f.yaml:8: arms.budget: found the key a second time (first in line 6), expected it once",
    ),
    "syntax": (
        "[gcn, gat]",
        "[gcn, gat",
        "f.yaml:5: expected ',' or ']', but got ':', expected valid YAML",
    ),
    "tab": (
        "  trials: 8",
        "\ttrials: 8",
        "f.yaml:14: found character '\\t' that cannot start any token, expected valid YAML",
    ),
    "python object": (
        "seeds: [41, 95]",
        "seeds: !!python/object:os.system x",
        "f.yaml:17: confirm.seeds: found 'x', expected text, a number or true or false",
    ),
    "unknown dataset": (
        "digits",
        "mnist",
        f"f.yaml:3: arms.dataset: found 'mnist', expected one of {', '.join(TASKS)}",
    ),
    "key in the wrong section": (
        "  max_epochs: 12",
        "  backbone: gcn",
        "f.yaml:12: fixed.backbone: found an unknown key, expected it in arms: backbone cannot stand here",
    ),
    "epochs in the space": (
        "fixed:\n  max_epochs: 12",
        "  max_epochs: {int: [5, 12]}",
        "f.yaml:11: space.max_epochs: found an unknown key, expected it in arms or fixed: max_epochs cannot stand here",
    ),
    "no dataset": (
        "  dataset: digits\n",
        "",
        "f.yaml:2: arms.dataset: found nothing, expected one dataset or a list of them",
    ),
    "no name": (
        "name: trial_study\n",
        "",
        "f.yaml:1: name: found nothing, expected letters, digits, - and _, at most 100, the first no -",
    ),
    "name that leaves the folder": (
        "trial_study",
        "../elsewhere",
        "f.yaml:1: name: found '../elsewhere', expected letters, digits, - and _, at most 100, the first no -",
    ),
    "seed twice": (
        "[41, 95]",
        "[41, 95, 41]",
        "f.yaml:17: confirm.seeds: found [41, 95, 41], expected different values: 41 stands twice",
    ),
    "negative seed": ("[41, 95]", "[41, -1]", "f.yaml:17: confirm.seeds[1]: found -1, expected 0 or more"),
    "more layers than anybody counts": (
        "layers: 4",
        "layers: 1000000000",
        "f.yaml:7: arms.layers: found 1000000000, expected 1000 or less",
    ),
    "negative trials": ("trials: 8", "trials: -8", "f.yaml:14: search.trials: found -8, expected 1 or more"),
    "reduction by one": (
        "{grace_epochs: 2}",
        "{grace_epochs: 2, reduction_factor: 1}",
        "f.yaml:15: search.asha.reduction_factor: found 1, expected 2 or more",
    ),
    "unknown sampler": (
        "trials: 8",
        "sampler: bayes",
        "f.yaml:14: search.sampler: found 'bayes', expected one of tpe, random, grid",
    ),
    "layers not in a list of their own": (
        "[none, boosting]",
        "[2, 4]",
        "f.yaml:5: arms.placement[0]: found 2, "
        "expected one of none, boosting, interleaved, dense, "
        "or a list of layers such as [2, 4] as an entry of its own: [[2, 4]]",
    ),
    "layer 0": (
        "[none, boosting]",
        "[none, [0, 2]]",
        "f.yaml:5: arms.placement[1]: found [0, 2], expected a list of different layers, counted from 1",
    ),
    "condition on an unknown key": (
        "{int: [2, 16]}",
        "{int: [2, 16], when: {bakbone: gat}}",
        "f.yaml:10: space.num_clusters.when.bakbone: found an unknown key, expected backbone",
    ),
    "condition of a wrong type": (
        "{int: [2, 16]}",
        "{int: [2, 16], when: {layers: deep}}",
        "f.yaml:10: space.num_clusters.when.layers: found 'deep', expected a whole number",
    ),
    "part of a second GPU": (
        "fixed:",
        "resources: {gpus_per_trial: 1.5}\nfixed:",
        "f.yaml:11: resources.gpus_per_trial: found 1.5, expected a part of one GPU, or whole ones",
    ),
    "resources": (
        "fixed:",
        "resources: {cpus_per_trial: 0}\nfixed:",
        "f.yaml:11: resources.cpus_per_trial: found 0, expected 1 or more",
    ),
    "list": (BASE, "- 1\n", "f.yaml:1: found [1], expected a mapping with keys such as name"),
    "empty file": (BASE, "", "f.yaml:1: found nothing, expected a mapping with keys such as name"),
}
