"""A study file of best configurations: nothing searched, every value written out, and where each comes from."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bimp.config import TrialConfig
from study.best import BestConfiguration, BestError, BestOfStudy
from study.configuration import configuration
from study.faults import require_folder
from study.key_comments import KEY_COMMENTS, RESOURCE_COMMENTS
from study.spec import StudySpec
from study.spec.hyperparameters import Value, exists
from study.store_access import require_bucket
from study.whole_files import write_whole

_LONGEST_NAME = 100
_COMMENT_COLUMN = 28
_TRAINING = ("batch_size", "learning_rate", "lr_factor", "lr_patience", "min_lr", "max_epochs", "time_limit_s")


def best_study_text(best: Sequence[BestConfiguration], spec: StudySpec) -> str:
    """The text of a study file with a cell for each of ``best``, which were found by the study ``spec``.

    It is trained as the cells' confirm trials are: from the same seeds, on the same folds, to the same numbers.
    A single cell has its values in ``arms`` and ``fixed``; several are rows, which give what they do not share. Cells
    that chose the same configuration are one.
    """
    groups: list[_Group] = []
    for one in best:
        values = _values(one)
        same = next((group for group in groups if group.values == values), None)
        if same is None:
            groups.append(_Group(values, [one]))
        else:
            same.best.append(one)
    arms, fixed, rows = _sections(groups)
    return "\n".join(
        [
            *_head(groups, spec),
            "",
            *_entry("name", _name(best, spec), "names the results folder"),
            f"caption: {json.dumps(_caption(best, spec), ensure_ascii=False)}   # stands above the table",
            *_entry("seed", spec.seed, "what is sampled follows from it: nothing here"),
            "",
            *_section("arms", {key: _listed(value) for key, value in arms.items()}),
            "",
            *(_rows(groups, rows) if rows else ()),
            *_section("fixed", fixed),
            "",
            *_confirm(best),
            "",
            *_resources(spec),
            "",
        ]
    )


def write_best(found: BestOfStudy, out: Path, *, force: bool = False) -> list[Path]:
    """Write to ``out``: a file that ends in .yaml or .yml holds all cells, a folder gets a file for each.

    Raises:
        BestError: a file is there already, unless ``force`` lets it be replaced; or it cannot be written.
        FolderError: no folder can be made.
        StoreAccessError: the object store cannot be asked, or has no such bucket.
    """
    require_bucket(out, "name another with --out")
    if out.suffix in (".yaml", ".yml") and not out.is_dir():
        texts = {out: best_study_text(found.cells, found.spec)}
    else:
        texts = {out / f"{one.cell.id}.yaml": best_study_text([one], found.spec) for one in found.cells}
    there = [path for path in texts if path.exists()]
    if there and not force:
        raise BestError(f"{there[0]}: is there already; name another place with --out, or replace it with --force")
    for path, text in texts.items():
        require_folder(path.parent, "--out")
        try:
            write_whole(path, text.encode())
        except OSError as error:
            cause = error.strerror or error
            raise BestError(f"{path}: cannot be written ({cause}); name another with --out") from error
    return list(texts)


@dataclass(frozen=True)
class _Group:
    """Cells with one configuration, as a study file gives it."""

    values: dict[str, Value]
    best: list[BestConfiguration]


# ---- what is written


def _values(best: BestConfiguration) -> dict[str, Value]:
    """Everything that a study file can say of the configuration, as far as it exists."""
    config = best.config
    values = _written(config, best.budget)
    if best.budget is not None and configuration(values, seed=config.seed, fold=config.fold) != config:
        # Another version of the solver found this width: the configuration counts, not the way to it.
        return _written(config, None)
    return values


def _written(config: TrialConfig, budget: int | None) -> dict[str, Value]:
    model, train = config.model, config.train
    size = {"hidden_dim": model.hidden_dim} if budget is None else {"budget": budget}
    whole: dict[str, Value] = {
        "dataset": config.dataset,
        "backbone": model.backbone,
        "placement": model.placement,
        "layers": model.layers,
        **size,
        "gate": model.gate,
        "num_clusters": model.num_clusters,
        "sigma_m": model.sigma_m,
        "unsupervised_weight": train.unsupervised_weight,
        "heads": model.heads,
        "readout": model.readout,
        "pos_enc_dim": model.pos_enc_dim,
        "out_dim": model.out_dim,
        "semantics": model.semantics,
        **config.departures,
        **{key: asdict(train)[key] for key in _TRAINING},
        "precision": None if train.precision == "float32" else train.precision,
    }
    written = {key: value for key, value in whole.items() if exists(key, whole)}
    return {key: value for key, value in written.items() if value is not None or key in config.departures}


def _sections(groups: Sequence[_Group]) -> tuple[dict[str, Value], dict[str, Value], list[dict[str, Value]]]:
    """Arms, fixed values, and what each row gives beside them; no rows where there is a single configuration."""
    named = {"dataset", "backbone"}.union(*(one.cell.arms for group in groups for one in group.best))
    values = [group.values for group in groups]
    keys = dict.fromkeys(key for given in values for key in given)
    common = {key: found for key in keys for found in _shared(key, values)}
    rows = [{key: value for key, value in given.items() if key not in common} for given in values]
    if len(groups) > 1 and not all(rows):
        # A row may not be empty: it says which backbone it has.
        del common["backbone"]
        rows = [{"backbone": given["backbone"], **row} for given, row in zip(values, rows, strict=True)]
    arms = {key: value for key, value in common.items() if key in named}
    fixed = {key: value for key, value in common.items() if key not in named}
    return arms, fixed, rows if len(groups) > 1 else []


def _shared(key: str, values: Sequence[Mapping[str, Value]]) -> tuple[Value, ...]:
    """The value of ``key``, if all configurations have it in which it means anything; else nothing."""
    first, *others = (given[key] for given in values if key in given)
    # Where it is missing though it could be given, it has the value of a preset or protocol.
    is_missing = any(key not in given and exists(key, given) for given in values)
    return () if is_missing or any(other != first for other in others) else (first,)


def _listed(value: Value) -> Any:
    """Among arms a list is a list of values."""
    return [list(value)] if isinstance(value, tuple) else value


# ---- how it is written


def _entry(key: str, value: Any, comment: str | None = None, indent: str = "") -> Iterator[str]:
    yield f"{f'{indent}{key}: {_yaml(value)}':{_COMMENT_COLUMN}} # {comment or KEY_COMMENTS[key]}"


def _section(name: str, values: Mapping[str, Any]) -> Iterator[str]:
    # A name with nothing behind it would be null.
    yield f"{name}:" if values else f"{name}: {{}}"
    for key, value in values.items():
        yield from _entry(key, value, indent="  ")


def _yaml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_yaml, value))}]"
    if isinstance(value, str):
        return value if re.fullmatch(r"[A-Za-z_][\w.:-]*\w|[A-Za-z_]", value) else json.dumps(value)
    if isinstance(value, float) and value.is_integer() and value < 1e15:
        return f"{value:.1f}" if value else "0"
    # JSON's numbers and its true, false and null are YAML's.
    return json.dumps(value)


def _name(best: Sequence[BestConfiguration], spec: StudySpec) -> str:
    whole = f"{spec.name}-best" if len(best) > 1 else f"{spec.name}-best-{best[0].cell.id}"
    name = re.sub(r"[^A-Za-z0-9_-]", "_", whole)
    if len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return f"{name[: _LONGEST_NAME - 9]}-{digest}"


def _caption(best: Sequence[BestConfiguration], spec: StudySpec) -> str:
    of = "each cell" if len(best) > 1 else best[0].cell.id
    return f"The best configuration of {of} that {spec.name} found."


def _head(groups: Sequence[_Group], spec: StudySpec) -> Iterator[str]:
    several = sum(len(group.best) for group in groups) > 1
    what = "The best configuration of each cell" if several else "The best configuration of a cell"
    yield f"# {what} of the study {spec.name}, written by `run_study.py best`."
    yield "# Nothing is searched: trained from the seeds of its confirm trials, it ends with their numbers."
    yield "# The format is explained in docs/search_spaces.md."
    if len(groups) == 1:
        yield "#"
        yield from _origins(groups[0])


def _origins(group: _Group) -> Iterator[str]:
    for one in group.best:
        yield from (f"# {line}" for line in _origin(one))


def _origin(best: BestConfiguration) -> Iterator[str]:
    trial, metric = best.trial, best.cell.task.metric
    yield f"cell {best.cell.id}"
    if not best.cell.trials:
        yield "nothing is searched in it: it has this one configuration"
    elif trial is not None:
        yield f"search trial {trial.key}, number {trial.number} (counted from 0) of its cell"
        yield f"rank 1 of {best.candidates} that went all the way; in all {_ended(best.ended)}"
        yield f"validation {metric} {trial.val_metric} after epoch {trial.num_epochs}"
        if not best.search_is_over:
            ended = sum(count for status, count in best.ended.items() if status != "failed")
            yield f"THE SEARCH IS NOT OVER: {ended} of {best.cell.trials} trials have ended, and another may be better"
    asked = "" if best.budget is None else f", of {best.budget:,} at most"
    if trial is not None:
        yield f"{trial.params:,} parameters{asked}"
        changed = ", with changes that were not committed" if trial.git_dirty else ""
        yield f"code {f'commit {trial.git_commit}{changed}' if trial.git_commit else 'of no known commit'}"
        yield f"data {trial.data_fingerprint}"
    else:
        yield "no trial of it has ended yet"


def _ended(ended: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in sorted(ended.items()))


def _rows(groups: Sequence[_Group], rows: Sequence[Mapping[str, Value]]) -> Iterator[str]:
    yield "# What the rows give:"
    for key in dict.fromkeys(key for row in rows for key in row):
        yield f"#   {f'{key}:':21} {KEY_COMMENTS[key]}"
    yield "rows:"
    for group, row in zip(groups, rows, strict=True):
        yield from (f"  {line}" for line in _origins(group))
        yield f"  - {{{', '.join(f'{key}: {_yaml(_listed(value))}' for key, value in row.items())}}}"
    yield ""


def _confirm(best: Sequence[BestConfiguration]) -> Iterator[str]:
    yield "confirm:                     # every configuration is trained to its end"
    yield from _entry("seeds", best[0].cell.seeds, "once from each", indent="  ")
    folded = [one.cell for one in best if one.cell.folds is not None]
    if folded:
        folds = folded[0].folds
        all_of_them = all(cell.folds == tuple(range(cell.task.folds or 0)) for cell in folded)
        yield from _entry("folds", "all" if all_of_them else folds, "and on each of these, where there are any", "  ")


def _resources(spec: StudySpec) -> Iterator[str]:
    yield "resources:                   # of the machine"
    auto = spec.resources.gpus_per_trial == "auto"
    for key, value in spec.resources.model_dump().items():
        if key == "max_trials_per_gpu" and not auto:
            continue  # it would limit nothing
        yield from _entry(key, value, RESOURCE_COMMENTS[key], "  ")
