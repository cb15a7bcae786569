"""The runs of one study in MLflow, as the mirror knows them. The only module that writes to MLflow."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from study.location import is_remote
from study.tracking.address import set_client_settings
from study.tracking.content import MetricRow
from study.tracking.database import create_database, require_database
from study.tracking.finished_files import FinishedFile
from study.tracking.state import STATE_TAG, hash_of

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

METRICS_IN_A_BATCH = 500
"""MLflow takes 1,000; half of them reach a slow server within its timeout."""

RUNS_IN_A_PAGE = 200
"""Runs with all their tags, parameters and last values that are in memory at one time while a mirror connects."""

_IDENTITY_TAGS = {"study": "study", "cell": "cell", "trial": "trial_key"}
"""By level: the tag that tells its runs apart."""


@dataclass
class MirroredRun:
    """What MLflow holds of a run, as far as the mirror needs it; kept up to date by :class:`MirroredRuns`.

    ``found``: it was there before this mirror, whose predecessor may have been cut off while it sent.
    """

    run_id: str
    status: str
    tags: dict[str, str]
    parameters: dict[str, str]
    found: bool = True


@dataclass(frozen=True)
class KnownRun:
    """A run in short, for studies of many: ``content`` is the hash of its tags and parameters."""

    run_id: str
    status: str
    state: str
    content: str

    @classmethod
    def of(cls, run: MirroredRun, names: frozenset[str]) -> KnownRun:
        """``run`` in short; ``names`` are the tags that count, for people add tags of their own."""
        return cls(
            run.run_id, run.status, run.tags.get(STATE_TAG, ""), hash_of_content(run.tags, run.parameters, names)
        )


def hash_of_content(tags: Mapping[str, str], parameters: Mapping[str, str], names: frozenset[str]) -> str:
    """A hash of those ``tags`` that have one of ``names``, and of ``parameters``."""
    return hash_of((sorted((key, tags[key]) for key in names & tags.keys()), sorted(parameters.items())))


def mirror_errors() -> tuple[type[Exception], ...]:
    """What MLflow's client raises when its server or database is down, locked, full or not what it should be.

    REST calls and database sessions end in MlflowException; opening a database in SQLAlchemyError; a missing
    database driver in ImportError; a full disk and the HTTP library's own errors in OSError.
    """
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    return (MlflowException, SQLAlchemyError, ImportError, OSError)


class MirroredRuns:
    """A study's experiment, opened: every run that is there is known by its level and identity.

    Opening makes the database and the experiment where they are missing, and takes a deleted experiment back.
    Of two runs of one identity (a create whose answer was lost was asked for again) the one that was written stays.
    A trial's run is held in short until it is looked for, and again once it is closed.

    Args:
        tracking_uri: of a server or a database.
        study: the experiment's name.
        artifacts: where its runs keep files; None leaves it to the server.
        description: shown above the list of runs.
        names: of the tags that a trial's run is compared by.
    """

    def __init__(
        self, tracking_uri: str, study: str, artifacts: str | None, description: str, names: frozenset[str]
    ) -> None:
        set_client_settings()
        create_database(tracking_uri)
        require_database(tracking_uri)
        from mlflow import MlflowClient

        self._tracking_uri = tracking_uri
        self._names = names
        self._client: MlflowClient = MlflowClient(tracking_uri=tracking_uri)
        self._experiment_id = self._open_experiment(study, artifacts, description)
        self._known: dict[tuple[str, str], KnownRun] = {}
        self._open: dict[tuple[str, str], MirroredRun] = {}
        self._find_runs()

    def known(self, level: str, identity: str) -> KnownRun | None:
        """The run of ``level`` (study, cell or trial) and ``identity`` in short; None where there is none."""
        run = self._open.get((level, identity))
        return self._known.get((level, identity)) if run is None else KnownRun.of(run, self._names)

    def find(self, level: str, identity: str) -> MirroredRun | None:
        """The run of ``level`` and ``identity``, asked of MLflow if it is known in short; None where there is none."""
        place = (level, identity)
        if place not in self._open and place in self._known:
            self._open[place] = _as_mirrored(self._client.get_run(self._known[place].run_id))
        return self._open.get(place)

    def identities(self, level: str) -> list[str]:
        """The identities of all runs of ``level``."""
        return sorted({identity for at, identity in (*self._known, *self._open) if at == level})

    def close(self, level: str, identity: str) -> None:
        """Hold the run in short from now on."""
        run = self._open.pop((level, identity), None)
        if run is not None:
            self._known[level, identity] = KnownRun.of(run, self._names)

    def create(self, level: str, name: str, started_ms: int, tags: Mapping[str, str]) -> MirroredRun:
        """A new run, its identity read from ``tags``."""
        created = self._client.create_run(self._experiment_id, start_time=started_ms, run_name=name, tags=dict(tags))
        run = MirroredRun(created.info.run_id, created.info.status, dict(tags), parameters={}, found=False)
        self._open[level, tags[_IDENTITY_TAGS[level]]] = run
        return run

    def points(self, run: MirroredRun, name: str) -> list[MetricRow]:
        """All that MLflow holds of the metric ``name``."""
        history = self._client.get_metric_history(run.run_id, name)
        return [MetricRow(point.key, point.value, point.timestamp, point.step) for point in history]

    def hold_others(self, run: MirroredRun, rows: Collection[MetricRow], names: Iterable[str]) -> bool:
        """Whether MLflow has points of the metrics ``names`` that are not among ``rows``.

        A mirror that was killed while it sent leaves points of which its state says nothing yet. They may be of epochs
        that the trial has trained again since, at other times: sent beside them, the new ones would double the curve.
        """
        if not run.found:
            return False
        known = set(rows)
        return any(point not in known for name in names for point in self.points(run, name))

    def write(
        self,
        run: MirroredRun,
        *,
        metrics: Sequence[MetricRow] = (),
        tags: Mapping[str, str],
        parameters: Mapping[str, str],
    ) -> None:
        """Send ``metrics``, and those of ``tags`` and ``parameters`` that are not there yet.

        MLflow writes a batch's tags last, and they go with the last batch: a tag that says what was mirrored is
        there only after it.
        """
        from mlflow.entities import Metric, Param, RunTag

        new_tags = {key: value for key, value in tags.items() if run.tags.get(key) != value}
        new_parameters = {key: value for key, value in parameters.items() if key not in run.parameters}
        points = [Metric(row.name, row.value, row.milliseconds, row.step) for row in metrics]
        while len(points) > METRICS_IN_A_BATCH:
            self._client.log_batch(run.run_id, metrics=points[:METRICS_IN_A_BATCH], synchronous=True)
            points = points[METRICS_IN_A_BATCH:]
        if points or new_tags or new_parameters:
            self._client.log_batch(
                run.run_id,
                metrics=points,
                params=[Param(key, value) for key, value in new_parameters.items()],
                tags=[RunTag(key, value) for key, value in new_tags.items()],
                synchronous=True,
            )
        run.tags.update(new_tags)
        run.parameters.update(new_parameters)

    def remove_tag(self, run: MirroredRun, tag: str) -> None:
        """Take ``tag`` off ``run`` where it has it."""
        if tag in run.tags:
            self._client.delete_tag(run.run_id, tag)
            del run.tags[tag]

    def set_status(self, run: MirroredRun, status: str, ended_ms: int) -> None:
        """Give ``run`` MLflow's ``status``; ``ended_ms`` counts unless it is RUNNING."""
        if run.status == status:
            return
        if status == "RUNNING":
            self._client.update_run(run.run_id, status=status)
        else:
            self._client.set_terminated(run.run_id, status=status, end_time=ended_ms)
        run.status = status

    def delete(self, level: str, identity: str) -> None:
        """Delete a run, as MLflow does: it can be restored there until its garbage is collected."""
        run = self.find(level, identity)
        if run is not None:
            self._client.delete_run(run.run_id)
            del self._open[level, identity]
            self._known.pop((level, identity), None)

    def put_files(self, run: MirroredRun, files: Sequence[FinishedFile], tops: Sequence[str]) -> None:
        """Make ``files`` the artifacts of ``run`` at and below ``tops``; others that lie there are removed."""
        with TemporaryDirectory(prefix="bimp-artifacts-") as scratch:
            for file in files:
                source = file.path
                if is_remote(source):  # MLflow takes files of this machine
                    source = Path(scratch) / source.name
                    source.write_bytes(file.path.read_bytes())
                self._client.log_artifact(run.run_id, str(source), file.folder)
        names = {file.name for file in files}
        spare = [name for name in self._artifacts(run, tops) if name not in names]
        if spare:
            from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

            uri = self._client.get_run(run.run_id).info.artifact_uri
            repository = get_artifact_repository(uri, tracking_uri=self._tracking_uri)
            for name in spare:
                repository.delete_artifacts(name)  # type: ignore[no-untyped-call]

    def _artifacts(self, run: MirroredRun, tops: Sequence[str]) -> list[str]:
        """The names of the run's files that are one of ``tops`` or lie below it."""
        found = []
        waiting = [entry for entry in self._client.list_artifacts(run.run_id) if entry.path in tops]
        while waiting:
            entry = waiting.pop()
            if entry.is_dir:
                waiting += self._client.list_artifacts(run.run_id, entry.path)
            else:
                found.append(str(entry.path))
        return sorted(found)

    def _open_experiment(self, study: str, artifacts: str | None, description: str) -> str:
        experiment = self._client.get_experiment_by_name(study)
        self.artifacts = artifacts if experiment is None else experiment.artifact_location
        if experiment is None:
            # Of this kind, its pages open on training runs and their curves, not on those for language models.
            tags = {"mlflow.experimentKind": "custom_model_development", "mlflow.note.content": description}
            return str(self._client.create_experiment(study, artifact_location=artifacts, tags=tags))
        if experiment.lifecycle_stage == "deleted":
            self._client.restore_experiment(experiment.experiment_id)
        return str(experiment.experiment_id)

    def _find_runs(self) -> None:
        token = None
        while True:
            page = self._client.search_runs([self._experiment_id], max_results=RUNS_IN_A_PAGE, page_token=token)
            for found in page:
                self._take_in(_as_mirrored(found))
            token = page.token
            if not token:
                return

    def _take_in(self, found: MirroredRun) -> None:
        level = found.tags.get("level", "")
        if level not in _IDENTITY_TAGS or _IDENTITY_TAGS[level] not in found.tags:
            return
        place = (level, found.tags[_IDENTITY_TAGS[level]])
        run, other = KnownRun.of(found, self._names), self.known(*place)
        if other is not None:
            run, spare = (other, run) if other.state else (run, other)
            self._client.delete_run(spare.run_id)
        self._known[place] = run
        if level != "trial" and run.run_id == found.run_id:
            self._open[place] = found


def _as_mirrored(found: Run) -> MirroredRun:
    return MirroredRun(found.info.run_id, found.info.status, dict(found.data.tags), dict(found.data.params))
