"""The Ray that a study trains on, from its start to its end: GPUs, nodes, and another one where it gets lost."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from study.assignments import Assignments
from study.cluster import Slots, gpus_of_cluster, slots_of_cluster, start_ray, stop_ray
from study.cluster_watch import ClusterLostError, watched_cluster
from study.coordinator import StudyCoordinator
from study.gpu_probe import packed_resources
from study.interruption import Interruption
from study.lease import Lease
from study.node_check import look_at_nodes, require_fit, told_differences
from study.plan import StudyPlan
from study.pool import Pool
from study.provenance import library_versions
from study.ray_session import RaySession
from study.results import ResultsFolder
from study.run_options import RunOptions
from study.spec import ResourcesSpec
from study.tune_bridge import tune_study

logger = logging.getLogger(__name__)

Tell = Callable[[str], object]
"""Says a line to whoever started the run."""

LOCAL_STARTS = 3
"""How often a run starts a Ray on this machine: what ends it again and again would end a fourth one too."""


class StudyRay:
    """A Ray that was started or joined; :func:`ray_of_study` makes one.

    Attributes:
        pool: how many trials fit on it at this moment.
    """

    def __init__(self, assign: Assignments, pool: Pool, session: RaySession, interruption: Interruption) -> None:
        self.pool = pool
        self._assign = assign
        self._session = session
        self._interruption = interruption

    def train(self, coordinator: StudyCoordinator, folder: ResultsFolder, lease: Lease) -> None:
        """Train what is left, on one local Ray after the other where they get lost.

        Raises:
            ClusterLostError: a cluster is gone, or the last of :data:`LOCAL_STARTS` local ones.
            KeyboardInterrupt, LeaseLostError: as :func:`study.tune_bridge.tune_study`.
        """
        address = self._assign.options.address
        for start in range(1, LOCAL_STARTS + 1):
            watched = watched_cluster(address, self._session)
            try:
                tune_study(coordinator, folder, self.pool, lease, self._interruption, watched)
                return
            except ClusterLostError as error:
                if address is not None or start == LOCAL_STARTS:
                    raise
                another = f"another is started ({start + 1} of {LOCAL_STARTS}), and trials go on from their checkpoints"
                logger.warning("%s; %s", error, another, extra={"event": "ray_lost"})
            coordinator.take_back()
            with self._interruption.undisturbed():
                stop_ray(self._session)
                start_ray(None, self._assign.spec.resources, session=self._session)
            self.pool.slots = slots_of_cluster(self._assign.resources)


@contextmanager
def ray_of_study(
    assign: Assignments, plan: StudyPlan, folder: ResultsFolder, interruption: Interruption, tell: Tell
) -> Iterator[StudyRay]:
    """Start or join Ray, decide what ``assign`` is to give a trial of a GPU, and check the nodes; leave Ray at the end.

    Raises:
        ClusterError: no trial fits on the cluster. NodeError: a node is not fit for the study.
        CodeError: the study's layers cannot be sent to the nodes.
    """
    options, session = assign.options, RaySession()
    interruption.last_acts.insert(0, session.end)
    try:
        interruption.lost = lambda: session.gone
        with interruption.undisturbed():
            slots = start_ray(options.address, assign.spec.resources, {cell.backbone for cell in plan.cells}, session)
        if assign.spec.resources.gpus_per_trial == "auto":
            slots = _decide_gpus(assign, plan, folder, tell)
        _check_nodes(assign.resources, options, slots, tell)
        yield StudyRay(assign, Pool(slots, assign.resources), session, interruption)
    finally:
        interruption.lost = lambda: False
        with interruption.undisturbed():
            stop_ray(session)


def _decide_gpus(assign: Assignments, plan: StudyPlan, folder: ResultsFolder, tell: Tell) -> Slots:
    """Give the trials to come their share of a GPU; the slots that there are then."""
    gpus = 0.0 if assign.options.on_cpu else gpus_of_cluster()
    if gpus:
        alone = assign.spec.resources.with_gpus(1.0)
        _check_nodes(alone, assign.options, slots_of_cluster(alone), tell)
    assign.resources, told = packed_resources(plan, assign.spec, folder, gpus, assign.probe)
    tell(told)
    return slots_of_cluster(assign.resources)


def _check_nodes(resources: ResourcesSpec, options: RunOptions, slots: Slots, tell: Tell) -> None:
    needs = options.needs(resources)
    if options.address is None and not needs.cuda:
        return
    found = look_at_nodes(options.address, slots.nodes)
    require_fit(needs, found)
    if options.allow_version_differences:
        for line in told_differences(library_versions(), found):
            tell(line)
