"""From a planned trial to what a worker is told."""

from __future__ import annotations

from dataclasses import replace

from bimp.data.transfer import put_prepared
from study.assignment import TrialAssignment
from study.cell_run import PlannedTrial
from study.node_data import STORE_FOLDER
from study.provenance import git_state
from study.results import ResultsFolder
from study.run_options import RunOptions
from study.spec import StudySpec


class Assignments:
    """Completes trials with what only the driver knows; ``resources`` may be decided after trials were planned."""

    def __init__(
        self, spec: StudySpec, folder: ResultsFolder, options: RunOptions, fingerprints: dict[str, str]
    ) -> None:
        self.spec = spec
        self.options = options
        self.resources = spec.resources
        self._folder = folder
        self._fingerprints = fingerprints
        self._code = git_state()
        # A node of a cluster may not see the data folder of this machine.
        self._store = None if options.address is None else folder.root / STORE_FOLDER
        self._versions = (
            {}
            if self._store is None
            else {name: put_prepared(options.data / name, self._store) for name in fingerprints}
        )

    def __call__(self, trial: PlannedTrial) -> TrialAssignment:
        """What a worker is told of ``trial``."""
        needs = self.options.needs(self.resources)
        return TrialAssignment(
            key=trial.key,
            study=self.spec.name,
            cell=trial.cell,
            phase=trial.phase,
            number=trial.number,
            chosen_from=trial.chosen_from,
            budget=trial.budget,
            config=trial.config,
            data_fingerprint=self._fingerprints[trial.config.dataset],
            data_root=str(self.options.data.resolve()),
            results=str(self._folder.root),
            threads=self.resources.cpus_per_trial,
            use_gpu=needs.cuda,
            git_commit=self._code.commit,
            git_dirty=self._code.dirty,
            data_version=self._versions.get(trial.config.dataset),
            data_store=None if self._store is None else str(self._store),
            versions=dict(needs.versions),
        )

    def probe(self, trial: PlannedTrial) -> TrialAssignment:
        """The same for a trial that only measures what it takes of a GPU."""
        return replace(self(trial), use_gpu=True)
