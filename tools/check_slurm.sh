#!/usr/bin/env bash
# Runs a sweep with --shard as a Slurm array and under mpirun, merges the shards, and compares with one process.
# Usage: tools/check_slurm.sh
# Installs slurm-wlm and OpenMPI from Debian, and starts a cluster of one node on this machine during the check. Needs
# root, and programs built by ./test.sh. The tests do not run this script; docs/clusters.md shows the commands.
set -euo pipefail
export LC_ALL=C
case "${1-}" in '') ;; --help | -h) sed -n '2,5s/^# //p' "$0"; exit ;; *) echo "error: expected no argument or --help, got '$1'" >&2; exit 2 ;; esac
root=$(cd "$(dirname "$0")/.." && pwd)
bin=$root/build/release/bin
[ -x "$bin/depth_stability" ] && [ -x "$bin/merge" ] || { echo "error: the programs are not built; run ./test.sh first" >&2; exit 1; }
[ "$(id -u)" = 0 ] || { echo "error: this script installs packages and starts daemons; run it as root" >&2; exit 1; }
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends slurm-wlm slurm-client munge openmpi-bin >/dev/null

work=$(mktemp -d)
chmod 755 "$work"
host=$(hostname -s)
stop() {
  for daemon in slurmd slurmctld; do [ -f "$work/$daemon.pid" ] && kill "$(cat "$work/$daemon.pid")" 2>/dev/null || true; done
  [ -f "$work/munged.pid" ] && kill "$(cat "$work/munged.pid")" 2>/dev/null || true
  sleep 1
  rm -rf "$work"
}
trap stop EXIT

# munge authenticates the user who submits jobs. The cluster has one node and no accounting.
mkdir -p /run/munge /var/log/munge /var/lib/munge
chown munge: /run/munge /var/log/munge /var/lib/munge
[ -s /etc/munge/munge.key ] || { dd if=/dev/urandom bs=1 count=1024 of=/etc/munge/munge.key status=none; chown munge: /etc/munge/munge.key; chmod 400 /etc/munge/munge.key; }
runuser -u munge -- munged --force --pid-file=/run/munge/munged.pid
cp /run/munge/munged.pid "$work/munged.pid"
mkdir -p "$work/state" "$work/spool"
cat >"$work/slurm.conf" <<END
ClusterName=check
SlurmctldHost=$host
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldPort=16817
SlurmdPort=16818
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=$host CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF=$work/slurm.conf
slurmctld -f "$SLURM_CONF"
slurmd -f "$SLURM_CONF" -N "$host"
for ((t = 0; t < 60; ++t)); do [ "$(sinfo -h -o %T 2>/dev/null)" = idle ] && break; sleep 1; done
[ "$(sinfo -h -o %T)" = idle ] || { echo "error: the node did not become idle:" >&2; tail -20 "$work"/*.log >&2; exit 1; }
echo "slurm $(sinfo --version | cut -d' ' -f2), one node of $(nproc) processors"

cd "$work"
sweep="$bin/depth_stability --gates pre,layerscale,rezero --depths 2,3 --seeds 0..1 --dim 16 --batch 8 --steps 50 --no-progress"
$sweep --out whole >/dev/null 2>&1
cat >array.sh <<END
#!/bin/bash
#SBATCH --array=1-3 --cpus-per-task=1 --output=$work/array-%a.log
$sweep --threads "\$SLURM_CPUS_PER_TASK" --shard "\$SLURM_ARRAY_TASK_ID/\$SLURM_ARRAY_TASK_COUNT" --out "slurm-parts/\$SLURM_ARRAY_TASK_ID" --resume
END
sbatch --wait --chdir="$work" array.sh >/dev/null || { cat array-*.log >&2; exit 1; }
"$bin/merge" slurm-parts/* --out slurm >/dev/null
mpirun --allow-run-as-root --oversubscribe --bind-to none -n 3 sh -c \
  "exec $sweep --shard \$((OMPI_COMM_WORLD_RANK + 1))/\$OMPI_COMM_WORLD_SIZE --out mpi-parts/\$OMPI_COMM_WORLD_RANK --resume" >mpi.log 2>&1 || { cat mpi.log >&2; exit 1; }
"$bin/merge" mpi-parts/* --out mpi >/dev/null

timeless() { awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) keep[i] = $i != "seconds" && $i != "images_per_second" } { line = ""; for (i = 1; i <= NF; ++i) if (keep[i]) line = line "," $i; print line }' "$1"; }
for merged in slurm mpi; do
  for file in metrics.jsonl layers.csv; do cmp "whole/$file" "$merged/$file"; done
  cmp <(timeless whole/results.csv) <(timeless "$merged/results.csv")
  echo "$merged: $(($(wc -l <"$merged/results.csv") - 1)) trials, equal to those of one process"
done
