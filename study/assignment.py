"""What a worker is told of a trial."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from bimp.config import Phase, TrialConfig
from study.out_of_memory import MemoryPlace
from study.results import FIRST_ATTEMPT


@dataclass(frozen=True, kw_only=True)
class TrialAssignment:
    """All that a worker is told: one trial and where its data and results lie.

    Attributes:
        key: identity of the trial.
        study, cell, phase, number, chosen_from, budget: as in :class:`study.records.TrialRecord`.
        config: the complete configuration.
        data_fingerprint: of the prepared dataset that the driver checked.
        data_root: the driver's data folder. results: a folder that every node sees, or a place in an object store.
        threads: cores that the trial was given; torch uses exactly as many.
        use_gpu: whether it was given a GPU.
        git_commit, git_dirty: state of the code that drives the study.
        alone: what it has to itself, since memory ran out when it was tried beside others; None: nothing.
        attempt: which attempt at the trial this is; it writes where no other does.
        data_version, data_store: which files of the dataset, and whence to pull them (:mod:`study.node_data`); None:
            the node sees ``data_root``.
        versions: of the driver's libraries, which the node must have; empty: any will do.
        avoided: ids of nodes that are not fit for it.
        companions: trials that differ in seed and fold alone and are trained with it (:mod:`study.together`).
    """

    key: str
    study: str
    cell: str
    phase: Phase
    number: int | None
    chosen_from: str | None
    budget: int | None
    config: TrialConfig
    data_fingerprint: str
    data_root: str
    results: str
    threads: int
    use_gpu: bool
    git_commit: str | None
    git_dirty: bool | None
    alone: MemoryPlace | None = None
    attempt: str = FIRST_ATTEMPT
    data_version: str | None = None
    data_store: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    avoided: tuple[str, ...] = ()
    companions: tuple[TrialAssignment, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """A plain dict that JSON can hold."""
        return {
            **{name: getattr(self, name) for name in self.__dataclass_fields__},
            "config": self.config.to_dict(),
            "companions": [companion.to_dict() for companion in self.companions],
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> TrialAssignment:
        """The assignment that :meth:`to_dict` wrote."""
        return cls(
            **{
                **plain,
                "config": TrialConfig.from_dict(plain["config"]),
                "avoided": tuple(plain.get("avoided", ())),
                "companions": tuple(cls.from_dict(companion) for companion in plain.get("companions", ())),
            }
        )

    @property
    def members(self) -> tuple[TrialAssignment, ...]:
        """Each trial that is trained here, by itself: this one and its companions."""
        return (replace(self, companions=()), *self.companions)

    @property
    def name(self) -> str:
        """How messages call the trial."""
        return f"trial {self.key} ({self.cell}, {self.phase}, seed {self.config.seed})"
