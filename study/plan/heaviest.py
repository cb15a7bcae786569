"""The configuration of a cell that asks the most of a machine."""

from __future__ import annotations

from dataclasses import replace

from bimp.budget import parameters_of
from bimp.config import TrialConfig
from bimp.tasks import task_of
from study.plan.cells import Cell, resolve
from study.space import width_corners
from study.spec import StudySpec


def heaviest(cell: Cell, spec: StudySpec) -> TrialConfig:
    """Of the extreme configurations, that of the most node rows by their width over all layers, at the largest batch.

    Where models have the same of these, the one with more parameters.
    """
    configs = [
        resolve(cell, values, spec, seed=cell.search_seed, fold=cell.search_fold)
        for values in width_corners(cell.space)
    ]
    config = max(configs, key=_weight)
    return replace(config, train=replace(config.train, batch_size=_largest_batch(cell, config)))


def _weight(config: TrialConfig) -> tuple[int, int]:
    model = config.model
    return model.layers * model.row_dim, parameters_of(model, task_of(config.dataset))


def _largest_batch(cell: Cell, config: TrialConfig) -> int:
    searched = [parameter.domain for parameter in cell.space.parameters if parameter.key == "batch_size"]
    sizes = [size for domain in searched for size in (domain.bounds or domain.choices or ())]
    return max([int(size) for size in sizes], default=config.train.batch_size)
