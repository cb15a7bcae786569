"""The Ray cluster that a study runs on: start or join one, and count the trials that fit side by side."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from study.node_code import shipped_code
from study.ray_session import RaySession
from study.spec import ResourcesSpec
from study.threads import thread_variables, variables_set
from study.tracking.address import masked_addresses


class ClusterError(RuntimeError):
    """A cluster that cannot be joined or on which no trial fits; says what was asked and what is there."""


@dataclass(frozen=True, kw_only=True)
class Slots:
    """How many trials fit, and how many of them one takes that is to be alone.

    Attributes:
        total: side by side on the cluster.
        on_a_node: on the largest node. on_a_gpu: on one GPU.
        trial, gpu, node: what Ray is asked for: an ordinary trial, one with a GPU to itself, one with the largest node.
        nodes: ids of the nodes on which a trial fits. sizes: CPUs and GPUs of each kind of them.
    """

    total: int
    on_a_node: int = 1
    on_a_gpu: int = 1
    trial: dict[str, float] = field(default_factory=dict)
    gpu: dict[str, float] = field(default_factory=dict)
    node: dict[str, float] = field(default_factory=dict)
    nodes: frozenset[str] = frozenset()
    sizes: frozenset[tuple[float, float]] = frozenset()

    @classmethod
    def of(cls, nodes: list[dict[str, Any]], resources: ResourcesSpec) -> Slots:
        """The slots of ``nodes``, as ``ray.nodes()`` lists them; none where no trial fits on any."""
        alive = {node["NodeID"]: node["Resources"] for node in nodes if node["Alive"]}
        fit = {name: node for name, node in alive.items() if _slots_of(node, resources)}
        total = sum(_slots_of(node, resources) for node in fit.values())
        largest: dict[str, float] = max(alive.values(), key=lambda node: _slots_of(node, resources), default={})
        gpus = resources.gpus
        return cls(
            total=min(total, resources.max_concurrent) if resources.max_concurrent else total,
            on_a_node=_slots_of(largest, resources),
            on_a_gpu=fit_on_gpus(max(1.0, gpus), gpus) if gpus else 1,
            trial={"CPU": resources.cpus_per_trial, "GPU": gpus},
            gpu={"CPU": resources.cpus_per_trial, "GPU": max(1.0, gpus)},
            node={name: largest.get(name, 0.0) for name in ("CPU", "GPU")},
            nodes=frozenset(fit),
            sizes=frozenset((node.get("CPU", 0.0), node.get("GPU", 0.0)) for node in fit.values()),
        )

    def taken_by(self, alone: Literal["gpu", "host"] | None) -> int:
        """The slots that a trial takes."""
        return {None: 1, "gpu": self.on_a_gpu, "host": self.on_a_node}[alone]

    def asked_by(self, alone: Literal["gpu", "host"] | None) -> dict[str, float]:
        """The resources that a trial asks Ray for."""
        asked = {None: self.trial, "gpu": self.gpu, "host": self.node}[alone]
        return {name: amount for name, amount in asked.items() if amount > 0}

    def can_give(self, asked: Mapping[str, float]) -> bool:
        """Whether a node, were it empty, has the CPUs and GPUs that are ``asked`` for."""
        wanted = (asked.get("CPU", 0.0), asked.get("GPU", 0.0))
        return not asked or any(cpus >= wanted[0] and gpus >= wanted[1] for cpus, gpus in self.sizes)


def fit_on_gpus(there: float, asked: float) -> int:
    """The trials that fit on ``there`` GPUs of a machine, each of which asks for a part of one, or for several.

    What is left of one GPU and of another is no place for a trial.
    """
    return int(there) * int(1 / asked) if asked < 1 else int(there / asked)


def cores_here() -> int:
    """The cores of this machine for trials: as Ray counts them, but no more than this process may run on.

    Ray heeds a container's limit, and not the cores that a batch system or ``taskset`` leaves to a process.
    """
    from ray._private import utils  # after prepare_environment

    there = int(utils.get_num_cpus(override_docker_cpu_warning=True))
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else there
    return max(1, min(there, allowed))


def prepare_environment(*, joins: bool = False) -> None:
    """Settings that Ray and the C library read when they are first loaded; call before Ray is imported.

    Ray's own lines are silenced: the study has its own view. A local Ray is kept on the loopback interface. The C
    library keeps freed memory for the next operation, since mapping large edge tensors anew at each costs more than the
    arithmetic; it keeps it once, not once for each of the threads in which a worker runs its trials.
    What the user has set stands.

    Args:
        joins: whether a running cluster is to be joined. Ray then asks for it once, not for a quarter of an hour.
    """
    settings = {
        "RAY_AIR_NEW_OUTPUT": "0",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DEDUP_LOGS": "0",
        "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
        "MALLOC_ARENA_MAX": "1",
        "MALLOC_MMAP_THRESHOLD_": str(256 * 2**20),
        "MALLOC_TRIM_THRESHOLD_": str(2**30),
    }
    if joins:
        settings["RAY_NUM_REDIS_GET_RETRIES"] = "1"
        settings["RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL"] = "minor"
    for name, value in settings.items():
        os.environ.setdefault(name, value)


def start_ray(
    address: str | None, resources: ResourcesSpec, backbones: Iterable[str] = (), session: RaySession | None = None
) -> Slots:
    """Start a local Ray, or join the one at ``address``; gives how many trials fit side by side.

    Args:
        address: of the cluster, HOST:PORT; it is sent the project's code.
        resources: what a trial asks for.
        backbones: of the study's cells; layers of the user's own are sent too.
        session: of the processes of a local Ray.

    Raises:
        ClusterError: there is no cluster at ``address``, or no node of it holds a trial.
        CodeError: a layer's package is too large to be sent.
    """
    import ray  # after prepare_environment

    # Ray prints what it has to say of a lost worker into the study's view; the study says it itself.
    ray._private.worker._worker_logs_enabled = False
    threads = thread_variables(resources.cpus_per_trial)
    if address is None:
        with variables_set(threads), (session or RaySession()).starting():
            # Without an address Ray would join whatever cluster it finds on this machine.
            _connect("local", num_cpus=cores_here())
    else:
        with shipped_code(backbones, threads) as runtime_env:
            _join(address, runtime_env)
    return slots_of_cluster(resources)


def slots_of_cluster(resources: ResourcesSpec) -> Slots:
    """How many trials fit side by side on the cluster that was started or joined.

    Raises:
        ClusterError: no node of it holds a trial.
    """
    import ray  # after prepare_environment

    slots = Slots.of(ray.nodes(), resources)
    if slots.total < 1:
        raise ClusterError(
            f"resources: a trial asks for {resources.cpus_per_trial} CPUs and {resources.gpus:g} GPUs, and "
            f"no node has them; the cluster has {ray.cluster_resources().get('CPU', 0):g} CPUs and "
            f"{ray.cluster_resources().get('GPU', 0):g} GPUs; lower resources.cpus_per_trial or gpus_per_trial"
        )
    return slots


def gpus_of_cluster() -> float:
    """How many GPUs the cluster has that was started or joined."""
    import ray  # after prepare_environment

    return float(ray.cluster_resources().get("GPU", 0.0))


def stop_ray(session: RaySession) -> None:
    """Leave the cluster; a local one ends, with all of its processes."""
    import ray  # after prepare_environment

    if not session.gone:  # else Ray would ask for it for a minute, and then end this program
        ray.shutdown()
    session.end()


def _connect(address: str, runtime_env: dict[str, Any] | None = None, num_cpus: int | None = None) -> None:
    import ray  # after prepare_environment

    with masked_command():
        ray.init(
            address=address,
            num_cpus=num_cpus,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            runtime_env=runtime_env,
        )


@contextmanager
def masked_command() -> Iterator[None]:
    """Mask what addresses in this program's command line give away, where Ray keeps it.

    The command of every job is shown to all who see the cluster, and a tracking server's password may be in it.
    """
    from ray._private import utils as rays_own

    utils: Any = rays_own
    own = utils.get_entrypoint_name
    utils.get_entrypoint_name = lambda: masked_addresses(own())
    try:
        yield
    finally:
        utils.get_entrypoint_name = own


def _join(address: str, runtime_env: dict[str, Any]) -> None:
    try:
        with _silent_stderr():
            try:
                _connect(address, dict(runtime_env))
            except ConnectionError:
                if not _show_token():
                    raise
                _connect(address, dict(runtime_env))
    except (ConnectionError, RuntimeError, ValueError) as error:
        if "Version mismatch" in str(error):
            raise ClusterError(
                f"--address {address}: the cluster has another Ray or Python than this driver; install the same on "
                f"both ({' '.join(str(error).split())})"
            ) from error
        raise ClusterError(
            f"--address {address}: no Ray cluster there, or one that wants the token of the user who started it "
            f"(~/.ray/auth_token) and does not find it here ({error})"
        ) from error


def _show_token() -> bool:
    """Make Ray show this user's token, which a cluster wants that was started where there was one.

    False if there is none, or if the user has said how Ray is to prove itself. It cannot be shown from the first: a
    cluster that wants none starts no workers for those who show one.
    """
    try:
        from ray._private.authentication import authentication_token_setup
    except ImportError:  # a Ray that knows no tokens
        return False
    if "RAY_AUTH_MODE" in os.environ:
        return False
    return bool(authentication_token_setup.maybe_enable_token_auth_if_token_available(warn_if_disabled=False))


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Keep lines off the screen that Ray's C++ part writes by itself, whatever the level of logging."""
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _slots_of(node: dict[str, Any], resources: ResourcesSpec) -> int:
    on_cpus, gpus = int(node.get("CPU", 0) / resources.cpus_per_trial), resources.gpus
    if not gpus:
        return on_cpus
    return min(on_cpus, fit_on_gpus(node.get("GPU", 0), gpus))
