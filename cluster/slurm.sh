#!/bin/bash
# A study on Slurm: one Ray node on each machine of the allocation, the driver on the first of them.
#
#     STUDY=search_spaces/zinc_100k.yaml sbatch cluster/slurm.sh
#
# Submitted again, or requeued at its time limit, the same job goes on where it stopped. What may be set before sbatch:
#
#     STUDY      the study file (needed)
#     RESULTS    the results: a folder that every machine sees, or s3://...     results/NAME OF THE STUDY
#     DATA       the prepared datasets, as the driver sees them                  data
#     SCRATCH    a disk of each machine: data is pulled there, and Ray works there   /tmp
#     VENV       the environment with the libraries, on every machine            .venv
#     MLFLOW     of a tracking server; else mlflow.db in the results
#
# The machines, for the whole job. One task a machine: Ray shares out its cores and GPUs among trials.
#SBATCH --job-name=bimp-study
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --gpus-per-node=1
#SBATCH --mem=32G
#SBATCH --time=24:00:00
# Ten minutes before the limit this script, and nothing else, is told to end: more than an epoch takes.
#SBATCH --signal=B:TERM@600
# Pre-empted or stopped at its limit, the job goes back into the queue, and its output goes on in the same file.
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=slurm-%j.log

set -euo pipefail

study=${STUDY:?"name a study file: STUDY=search_spaces/zinc_100k.yaml sbatch cluster/slurm.sh"}
scratch=${SCRATCH:-/tmp}/bimp-$USER
cd "${SLURM_SUBMIT_DIR:-.}"
# shellcheck source=/dev/null
source "${VENV:-.venv}/bin/activate"

# --- what every process of this cluster is told

# A token of this job's own: without it whoever reaches a port of Ray could run code as you. The file must be seen by
# every machine, and by no other user.
token=$PWD/.ray-token-$SLURM_JOB_ID
(umask 077 && python -c 'import secrets; print(secrets.token_hex(32), end="")' >"$token")
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=$token
# Sockets lie here, whose paths must be short; jobs that share a machine must not share a folder or a port.
export RAY_TMPDIR=/tmp/ray-$SLURM_JOB_ID
export RAY_USAGE_STATS_ENABLED=0
port=$((20000 + SLURM_JOB_ID % 10000 * 2))
# Where a machine that does not see $DATA keeps what it pulls from the results. The driver itself is told by --data.
export BIMP_DATA=$scratch/data
# Trials count their own threads.
export OMP_NUM_THREADS=1
# srun does not take this from sbatch by itself; without, all trials of a machine would share one core.
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}

# --- the nodes

mapfile -t machines < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
first=${machines[0]}
# A machine may have several addresses; the first one is that of the name by which the others know it.
head=$(srun --overlap --nodes=1 --ntasks=1 --nodelist="$first" hostname --ip-address | awk '{print $1; exit}')
# Any port will do but for the head's, as long as no other job's Ray has it: 0 asks for a free one.
ports=(--min-worker-port=0 --max-worker-port=0)
given=(--num-cpus="${SLURM_CPUS_PER_TASK:-1}" --num-gpus="${SLURM_GPUS_ON_NODE:-0}" --disable-usage-stats --block)

steps=()
# shellcheck disable=SC2329 # called by the trap
end_of_job() {
    kill "${steps[@]}" 2>/dev/null || true
    wait || true
    rm -rf "$token" "$RAY_TMPDIR"
}
trap end_of_job EXIT

# Each node in a step of its own, which lives as long as the job.
srun --overlap --nodes=1 --ntasks=1 --nodelist="$first" \
    ray start --head --node-ip-address="$head" --port=$port --ray-client-server-port=$((port + 1)) \
    --include-dashboard=false "${ports[@]}" "${given[@]}" &
steps+=($!)
others=$((${#machines[@]} - 1))
if ((others > 0)); then
    # Until the head is there they ask for it again and again.
    srun --overlap --nodes=$others --ntasks=$others --exclude="$first" \
        ray start --address="$head:$port" "${ports[@]}" "${given[@]}" &
    steps+=($!)
fi

# A study counts its slots when it starts: it waits for all machines, for five minutes.
python - "$head:$port" "${#machines[@]}" <<'WAIT'
import sys
import time

import ray

until = time.monotonic() + 300
while True:
    try:
        ray.init(address=sys.argv[1], logging_level="ERROR", log_to_driver=False)
        break
    except Exception:
        if time.monotonic() > until:
            raise
        time.sleep(2)
while sum(node["Alive"] for node in ray.nodes()) < int(sys.argv[2]):
    if time.monotonic() > until:
        sys.exit(f"{sys.argv[0]}: not all {sys.argv[2]} machines joined within five minutes")
    time.sleep(1)
WAIT

# --- the study

arguments=("$study" --address "$head:$port" --data "${DATA:-data}")
[[ -n ${RESULTS:-} ]] && arguments+=(--results "$RESULTS")
[[ -n ${MLFLOW:-} ]] && arguments+=(--mlflow "$MLFLOW")
python run_study.py run "${arguments[@]}" &
driver=$!
told=false
code=0
# The driver takes SIGTERM as Ctrl-C: each trial ends its epoch, and its checkpoint is what the next start goes on from.
# shellcheck disable=SC2329 # called by the trap
stop_driver() {
    told=true
    kill -TERM "$driver"
    wait "$driver" || code=$?
}
trap stop_driver TERM
ended=0
wait "$driver" || ended=$?
$told || code=$ended # a signal ends wait before the driver has ended

# 130: stopped, 75: Ray was lost under it, and there is more to do. 0: done. 1: trials failed, 2: it cannot run: neither
# would get better by itself.
if ($told && ((code == 130))) || ((code == 75)); then
    scontrol requeue "$SLURM_JOB_ID" || true
fi
exit "$code"
