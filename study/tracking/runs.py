"""The runs of one study in MLflow, as the mirror knows them. The only module that writes to MLflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from study.location import is_remote
from study.tracking.address import create_database, set_client_settings
from study.tracking.content import MetricRow
from study.tracking.finished_files import FinishedFile
from study.tracking.state import STATE_TAG

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

METRICS_IN_A_BATCH = 500
"""MLflow takes 1,000; half of them reach a slow server within its timeout."""

_IDENTITY_TAGS = {"study": "study", "cell": "cell", "trial": "trial_key"}
"""By level: the tag that tells its runs apart."""


@dataclass
class MirroredRun:
    """What MLflow holds of a run, as far as the mirror needs it; kept up to date by :class:`MirroredRuns`."""

    run_id: str
    status: str
    tags: dict[str, str]
    parameters: dict[str, str]


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

    Args:
        tracking_uri: of a server or a database.
        study: the experiment's name.
        artifacts: where its runs keep files; None leaves it to the server.
        description: shown above the list of runs.
    """

    def __init__(self, tracking_uri: str, study: str, artifacts: str | None, description: str) -> None:
        set_client_settings()
        create_database(tracking_uri)
        from mlflow import MlflowClient

        self._tracking_uri = tracking_uri
        self._client: MlflowClient = MlflowClient(tracking_uri=tracking_uri)
        self._experiment_id = self._open_experiment(study, artifacts, description)
        self._runs: dict[tuple[str, str], MirroredRun] = {}
        self._find_runs()

    def find(self, level: str, identity: str) -> MirroredRun | None:
        """The run of ``level`` (study, cell or trial) and ``identity``; None where there is none."""
        return self._runs.get((level, identity))

    def create(self, level: str, name: str, started_ms: int, tags: Mapping[str, str]) -> MirroredRun:
        """A new run, its identity read from ``tags``."""
        created = self._client.create_run(self._experiment_id, start_time=started_ms, run_name=name, tags=dict(tags))
        run = MirroredRun(run_id=created.info.run_id, status=created.info.status, tags=dict(tags), parameters={})
        self._runs[level, tags[_IDENTITY_TAGS[level]]] = run
        return run

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
        self._client.delete_run(self._runs.pop((level, identity)).run_id)

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
            page = self._client.search_runs([self._experiment_id], max_results=1000, page_token=token)
            for found in page:
                self._take_in(found)
            token = page.token
            if not token:
                return

    def _take_in(self, found: Run) -> None:
        tags = dict(found.data.tags)
        level = tags.get("level", "")
        if level not in _IDENTITY_TAGS or _IDENTITY_TAGS[level] not in tags:
            return
        place = (level, tags[_IDENTITY_TAGS[level]])
        run = MirroredRun(found.info.run_id, found.info.status, tags, dict(found.data.params))
        known = self._runs.get(place)
        if known is not None:
            run, spare = (known, run) if STATE_TAG in known.tags else (run, known)
            self._client.delete_run(spare.run_id)
        self._runs[place] = run
