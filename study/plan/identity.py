"""Whether two versions of a study file describe the same trials."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from study.spec import ConfirmSpec, SearchSpec, StudySpec
from study.spec.domains import Domain
from study.spec.source import value_text


def identity_differences(old: StudySpec, new: StudySpec) -> list[str]:
    """What differs between two versions of a study, as lines such as ``search.asha.grace_epochs: 2 -> 3``.

    Left out is what changes no trial that was already run: caption, resources, the order of arms, and more of the
    same (``search.trials`` raised, seeds or folds added to ``confirm``).
    """
    before, after = dict(_fields(old)), dict(_fields(new))
    differences = [
        f"{key}: {_text(before.get(key))} -> {_text(after.get(key))}"
        for key in dict.fromkeys((*before, *after))
        if before.get(key) != after.get(key) or (key in before) != (key in after)
    ]
    return differences + _shrunk(old, new)


def _fields(spec: StudySpec) -> Iterator[tuple[str, Any]]:
    yield "name", spec.name
    yield "seed", spec.seed
    for key, values in spec.arms.items():
        yield f"arms.{key}", sorted(values, key=repr)
    for position, row in enumerate(spec.rows):
        for key, values in row.items():
            yield f"rows[{position}].{key}", sorted(values, key=repr)
    for key, domain in spec.space.items():
        yield f"space.{key}", _domain(domain)
    # Samplers draw in the order of the keys.
    yield "space (order of keys)", list(spec.space)
    for key, value in spec.fixed.items():
        yield f"fixed.{key}", value
    yield from _search_fields(spec.search)


def _search_fields(search: SearchSpec | None) -> Iterator[tuple[str, Any]]:
    if search is None:
        return
    yield "search.sampler", search.sampler
    yield "search.seed", search.seed
    yield "search.fold", search.fold
    if search.asha is not None:
        yield "search.asha.grace_epochs", search.asha.grace_epochs
        yield "search.asha.reduction_factor", search.asha.reduction_factor


def _shrunk(old: StudySpec, new: StudySpec) -> list[str]:
    lines = []
    before = old.search.trials if old.search is not None else None
    after = new.search.trials if new.search is not None else None
    if before is not None and (after is None or after < before):
        lines.append(f"search.trials: {before} -> {_text(after)}")
    if set(old.confirm.seeds) - set(new.confirm.seeds):
        lines.append(f"confirm.seeds: {_text(old.confirm.seeds)} -> {_text(new.confirm.seeds)}")
    if not _folds_kept(old.confirm, new.confirm):
        lines.append(f"confirm.folds: {_text(old.confirm.folds)} -> {_text(new.confirm.folds)}")
    return lines


def _folds_kept(old: ConfirmSpec, new: ConfirmSpec) -> bool:
    if new.folds == "all" or old.folds == "all":
        return new.folds == "all"
    return set(old.folds) <= set(new.folds)


def _domain(domain: Domain) -> str:
    values = value_text(domain.bounds or domain.choices)
    conditions = ", ".join(f"{key}: {value_text(allowed)}" for key, allowed in sorted(domain.when.items()))
    return f"{domain.kind} {values}" + (f" when {conditions}" if conditions else "")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else value_text(value)
