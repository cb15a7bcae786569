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
#     SCRATCH    a disk of each machine, to which data is pulled                 /tmp
#     VENV       the environment with the libraries, on every machine            .venv
#     MLFLOW     URI of a tracking server                                        mlflow.db in the results
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

# --- the end, whichever moment it comes at

told=0      # by Slurm to end, how often
waited=     # the process that this script waits for
driver=none # or begun
steps=()

# shellcheck disable=SC2329 # called by the trap
on_term() {
    told=$((told + 1))
    if [[ -n $waited ]]; then kill -TERM "$waited" 2>/dev/null || true; fi
}
trap on_term TERM

# A command in the background, since this script hears no signal while one runs in front.
waits_for() {
    "$@" &
    waited=$!
    if ((told)); then kill -TERM "$waited" 2>/dev/null || true; fi
    local heard ended
    while true; do
        heard=$told
        ended=0
        wait "$waited" || ended=$?
        # A signal ends wait before the command has ended.
        ((heard != told)) || break
    done
    waited=
    return "$ended"
}

requeue() {
    local state
    state=$(scontrol show job "$SLURM_JOB_ID" | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p' | head -n 1) || true
    if [[ -n $state && $state != RUNNING ]]; then
        echo "not requeued by this script: Slurm ends job $SLURM_JOB_ID itself ($state); it requeues what it pre-empts" >&2
    elif ! scontrol requeue "$SLURM_JOB_ID"; then
        echo "not requeued: scontrol refuses; the same sbatch goes on" >&2
    fi
}

# shellcheck disable=SC2329 # called by the trap
end_of_job() {
    local code=$?
    trap '' TERM
    # Whatever the signal did to the command that ran; 143 is its work too, on a program that could not hear it yet.
    if ((told)) && [[ $driver == none || $code == 143 ]]; then
        code=130
    fi
    # A driver that ends by a signal to itself alone was stopped by somebody who wants that.
    if [[ " $go_on " == *" $code "* ]] && { ((told)) || ((code != 130)); }; then
        requeue
    fi
    kill "${steps[@]}" 2>/dev/null || true
    rm -f "$token"
    wait || true
    rm -rf "$RAY_TMPDIR"
    exit "$code"
}

study=${STUDY:?"name a study file: STUDY=search_spaces/zinc_100k.yaml sbatch cluster/slurm.sh"}
scratch=${SCRATCH:-/tmp}/bimp-$USER
cd "${SLURM_SUBMIT_DIR:-.}"
# shellcheck source=/dev/null
source "${VENV:-.venv}/bin/activate"
# The exit codes by which run_study.py says that the same command goes on: it was stopped, or Ray was lost under it.
go_on=$(python -m study.exit_codes)

# --- what every process of this cluster is told

# A token of this job's own: without it whoever reaches a port of Ray could run code as you. The file must be seen by
# every machine, and by no other user.
token=$PWD/.ray-token-$SLURM_JOB_ID
# Sockets lie here, whose paths must be short; jobs that share a machine must not share a folder or a port.
export RAY_TMPDIR=/tmp/ray-$SLURM_JOB_ID
trap end_of_job EXIT
(umask 077 && python -c 'import secrets; print(secrets.token_hex(32), end="")' >"$token")
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=$token
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
# Where Ray's client is installed too, the head opens a port for it; where it is not, no port may be named.
client=()
if python -c 'import grpc' 2>/dev/null; then client=(--ray-client-server-port=$((port + 1))); fi
given=(--num-cpus="${SLURM_CPUS_PER_TASK:-1}" --num-gpus="${SLURM_GPUS_ON_NODE:-0}" --disable-usage-stats --block)

((told)) && exit 130
# Each node in a step of its own, which lives as long as the job.
srun --overlap --nodes=1 --ntasks=1 --nodelist="$first" \
    ray start --head --node-ip-address="$head" --port=$port "${client[@]}" \
    --include-dashboard=false "${ports[@]}" "${given[@]}" &
steps+=($!)
others=$((${#machines[@]} - 1))
if ((others > 0)); then
    # Until the head is there they ask for it again and again.
    srun --overlap --nodes=$others --ntasks=$others --exclude="$first" \
        ray start --address="$head:$port" "${ports[@]}" "${given[@]}" &
    steps+=($!)
fi

# The study begins once all machines are there; where one is missing after five minutes, the job ends with exit code 2.
((told)) && exit 130
waits_for python -m study.joined_nodes "$head:$port" "${#machines[@]}"
((told)) && exit 130

# --- the study

arguments=("$study" --address "$head:$port" --data "${DATA:-data}")
[[ -n ${RESULTS:-} ]] && arguments+=(--results "$RESULTS")
[[ -n ${MLFLOW:-} ]] && arguments+=(--mlflow "$MLFLOW")
driver=begun
# The driver takes SIGTERM as Ctrl-C: each trial ends its epoch, and its checkpoint is what the next start goes on from.
# Its exit code is this job's. 1: trials failed, 2: it cannot run: neither would get better by itself.
waits_for python run_study.py run "${arguments[@]}"
