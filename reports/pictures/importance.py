"""Which searched hyperparameters mattered: Optuna's importances, from trials rebuilt out of the records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reports.pictures.material import DrawnCell, Material, is_number
from reports.pictures.style import MOST_PANELS, STYLES, Picture, in_parts, panels
from reports.search_plan import CHOICE, SearchedRange

LEAST_TRIALS = 8
"""Finished trials below which an importance would be chance."""

SEED = 0

CAPTION = (
    "Share of the variance of the last validation metric that a hyperparameter explains (fANOVA as in Optuna, seed 0), "
    f"over the search trials that were trained to the end; cells with fewer than {LEAST_TRIALS} are left out."
)


def importances(material: Material) -> Iterator[Picture]:
    """A panel for each cell with enough finished trials and two or more searched hyperparameters."""
    found = [(cell, importance(cell)) for cell in material.cells]
    drawn = [(cell, values) for cell, values in found if values]
    for number, start in enumerate(range(0, len(drawn), MOST_PANELS), start=1):
        part = drawn[start : start + MOST_PANELS]
        figure, axes = panels([cell.name for cell, _ in part])
        for panel, (_, values) in zip(axes, part, strict=True):
            names = sorted(values, key=lambda name: (values[name], name))
            panel.barh(names, [values[name] for name in names], color=STYLES[1][0], height=0.6)
            panel.set_xlim(0, 1)
            panel.set_xlabel("Share of the variance")
        name = in_parts("importance", number, -(-len(drawn) // MOST_PANELS))
        yield Picture(name=name, title="Importance of the hyperparameters", caption=CAPTION, figure=figure)


def importance(cell: DrawnCell) -> Mapping[str, float]:
    """Importance by name; empty where there are too few finished trials, or fewer than two hyperparameters."""
    ranges = [searched for searched in cell.search_plan.ranges or () if _is_known(cell, searched.name)]
    trials = [
        trial
        for trial in cell.search
        if trial.finished and all(trial.settings[searched.name] is not None for searched in ranges)
    ]
    values = {trial.val_metric for trial in trials}
    if len(ranges) < 2 or len(trials) < LEAST_TRIALS or len(values) < 2:
        return {}
    import optuna

    study = optuna.create_study(direction="minimize" if cell.cell.direction == "min" else "maximize")
    domains = {searched.name: _distribution(searched) for searched in ranges}
    for trial in trials:
        params = {searched.name: _external(searched, trial.settings[searched.name]) for searched in ranges}
        value = trial.val_metric if is_number(trial.val_metric) else None
        study.add_trial(optuna.trial.create_trial(params=params, distributions=domains, value=value))
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=SEED)
    return dict(optuna.importance.get_param_importances(study, evaluator=evaluator))


def _is_known(cell: DrawnCell, name: str) -> bool:
    return any(trial.settings.get(name) is not None for trial in cell.search)


def _distribution(searched: SearchedRange):  # type: ignore[no-untyped-def]
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if searched.kind == CHOICE:
        return CategoricalDistribution([str(value) for value in searched.values])
    low, high = searched.values
    is_log = searched.kind.startswith("log")
    return (IntDistribution if "int" in searched.kind else FloatDistribution)(low, high, log=is_log)


def _external(searched: SearchedRange, value: object) -> object:
    return str(value) if searched.kind == CHOICE else value
