"""The sections of a study as each of its rows sees them: ``rows`` puts values in the place of the others'."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from study.spec.domains import Domain
from study.spec.hyperparameters import Value
from study.spec.source import KeyPath
from study.spec.study_spec import StudySpec


@dataclass(frozen=True)
class Variant:
    """What one row makes of the study; of a study without rows, the study itself.

    Attributes:
        arms: values of each key, crossed into cells: those of ``arms``, then those of the row.
        space: what is searched: all but what the row gives a value.
        fixed: one value for all trials: all but what the row gives a value.
        row: position of the row; None where the study has none.
        row_keys: the keys that the row gives.
    """

    arms: Mapping[str, tuple[Value, ...]]
    space: Mapping[str, Domain]
    fixed: Mapping[str, Value]
    row: int | None = None
    row_keys: frozenset[str] = frozenset()


def variants(spec: StudySpec) -> tuple[Variant, ...]:
    """One for each row, in order."""
    if not spec.rows:
        return (Variant(spec.arms, spec.space, spec.fixed),)
    return tuple(
        Variant(
            arms={**spec.arms, **row},
            space={key: domain for key, domain in spec.space.items() if key not in row},
            fixed={key: value for key, value in spec.fixed.items() if key not in row},
            row=position,
            row_keys=frozenset(row),
        )
        for position, row in enumerate(spec.rows)
    )


def path_of(variant: Variant, key: str) -> KeyPath:
    """Where the hyperparameter ``key`` stands; just its name if it stands nowhere."""
    if variant.row is not None and key in variant.row_keys:
        return ("rows", variant.row, key)
    for section in ("arms", "space", "fixed"):
        if key in getattr(variant, section):
            return (section, key)
    return (key,)


def options(variant: Variant, key: str) -> Iterator[tuple[KeyPath, Value]]:
    """Every value that the study gives ``key``, with its path; of a range its two ends."""
    path = path_of(variant, key)
    if key in variant.arms:
        yield from (((*path, index), value) for index, value in enumerate(variant.arms[key]))
    elif key in variant.fixed:
        yield path, variant.fixed[key]
    elif key in variant.space:
        domain = variant.space[key]
        for index, value in enumerate(domain.bounds or domain.choices or ()):
            yield (*path, domain.kind, index), value
