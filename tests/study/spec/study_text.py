"""The text of a good study file, for tests that change one place of it."""

from __future__ import annotations

BASE = """\
name: trial_study
arms:
  dataset: digits
  backbone: [gcn, gat]
  placement: [none, boosting]
  budget: 100000
  layers: 4
space:
  sigma_m: {log_uniform: [0.1, 10]}
  num_clusters: {int: [2, 16]}
fixed:
  max_epochs: 12
search:
  trials: 8
  asha: {grace_epochs: 2}
confirm:
  seeds: [41, 95]
"""


def edited(old: str, new: str) -> str:
    """The good file with ``old``, which stands in it once, replaced."""
    assert BASE.count(old) == 1, f"{old!r} does not stand in the base file once"
    return BASE.replace(old, new)
