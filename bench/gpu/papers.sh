#!/usr/bin/env bash
# Usage: papers.sh FOLDER RESULTS [DATA]. The tables of the papers on a CUDA device, at full size: all sections of
# `vicinal-bench papers`, one JSON file each; DATA holds the LOF paper's rows (bench/data/papers.py) and the
# classical k-means tools' data, else rows of the same shape are made. LLE's search is repeated on the host, whose kd-tree the paper's tables are about.
# FOLDER: what carry.sh made. A section that takes too long is ended; its file holds the lines that were measured.
set -uo pipefail
folder=$(cd "$1" && pwd) results=$2 data=${3-}
export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} VICINAL_CUDA_PLUGIN=$folder/libvicinal_cuda.so
commit=${VICINAL_COMMIT:-$(cat "$folder/commit")}
mkdir -p "$results"
failed=0

# papers SECONDS NAME ARGUMENTS...
papers() {
  local seconds=$1 name=$2 started=$SECONDS
  shift 2
  echo "== papers $*"
  timeout -s KILL "$seconds" "$folder/vicinal" bench papers "$@" --repeat 5 --commit "$commit" \
    -o "$results/papers-$name.json" || { echo "papers $*: exit code $?"; failed=1; }
  echo "($((SECONDS - started)) s)"
}

papers 150 gs gs --device cuda
papers 120 lof lof --device cuda ${data:+--data-dir "$data"}
papers 90 lle-search lle-search --device cuda
papers 90 lle-search-host lle-search --device cpu
papers 90 km km --device cuda ${data:+--data-dir "$data"}
exit "$failed"
