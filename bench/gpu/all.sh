#!/usr/bin/env bash
# Usage: all.sh SECTION FOLDER RESULTS [DATA] [SITE]. One section of the measurements on a CUDA device, each within ten
# minutes, its results as JSON in RESULTS (what is there already is not measured again):
#   knn        the table of docs/performance.md, beside torch and what lies in SITE (peers.sh): about 5 minutes
#   data-sets  data that screens find hard: 2 minutes
#   large      sizes beyond 32 bits, a stream of 400 GB, 2 GB of device memory: 5 minutes
#   papers     the tables of the papers: 3 minutes
#   ablation   one idea left out at a time: 2 minutes
#   density    minimum spanning trees, HDBSCAN and DBSCAN, beside what is installed: 15 minutes
# FOLDER: what carry.sh made. DATA: of what bench/data/gpu.py made, papers/ for the papers and else real/. The minutes
# are estimates.
set -uo pipefail
usage() {
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
  exit 2
}
(($# >= 3)) || usage
section=$1 folder=$(cd "$2" && pwd) results=$3 data=${4-} site=${5-}
mkdir -p "$results"
export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} VICINAL_CUDA_PLUGIN=$folder/libvicinal_cuda.so
export PYTHONUNBUFFERED=1
VICINAL_COMMIT=${VICINAL_COMMIT:-$(cat "$folder/commit")}
export VICINAL_COMMIT
readonly run_again=75

# measure SECONDS FILE SCRIPT ARGUMENTS...: again while the process was ended by what it measured, three times at most.
measure() {
  local seconds=$1 file=$2 script=$3 started=$SECONDS code=0 left try
  shift 3
  for try in 1 2 3; do
    left=$((seconds - (SECONDS - started)))
    ((left > 5)) || break
    timeout -s KILL "$left" python3 "$folder/$script" "$folder" -o "$results/$file.json" "$@"
    code=$?
    # Ended by a signal that is not the clock's, or the device was lost.
    if ((code == run_again || (code > 128 && code != 137))); then
      echo "== $file: exit code $code, try $try"
      continue
    fi
    break
  done
  echo "== $file: exit code $code, $((SECONDS - started)) s"
}

case $section in
  knn)
    [[ -n $site && -e $site/complete ]] && eval "$("$BASH" "$folder/peers.sh" env "$site")"
    fashion=()
    [[ -n $data && -e $data/train-images-idx3-ubyte.gz ]] && fashion=(--fashion "$data")
    measure 540 knn knn.py "${fashion[@]}"
    ;;
  data-sets) measure 400 data-sets data_sets.py ${data:+--data "$data"} ;;
  large)
    # Each in a process of its own, and so in device memory of its own.
    measure 60 large-pairs large.py pairs
    measure 90 large-values large.py values
    measure 90 large-answers large.py answers
    measure 60 large-little large.py little
    measure 280 large-stream large.py stream
    ;;
  papers) "$BASH" "$folder/papers.sh" "$folder" "$results" "$data" ;;
  ablation)
    measure 300 ablation ablation.py
    measure 100 kmeans-ablation kmeans_ablation.py
    ;;
  density)
    [[ -n $site && -e $site/complete ]] && eval "$("$BASH" "$folder/peers.sh" env "$site")"
    measure 560 density density.py
    measure 400 density-dbscan density_dbscan.py
    ;;
  *) usage ;;
esac
