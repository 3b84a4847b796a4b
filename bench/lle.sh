#!/usr/bin/env bash
# What locally linear embedding takes on this machine, and its ordering and factor beside METIS and CHOLMOD: JSON into a
# folder. Parts: ordering, time, large (bench/peers/lle.py says what these are); default: all, some twelve minutes on two quiet
# cores. It needs 16 GB, VICINAL_DATA, a Python of peers/requirements-lle.txt and, for the ordering, libmetis-dev and
# libsuitesparse-dev. A peer that fails or is missing is said to be so in the JSON; the others go on.
#
#   bench/lle.sh build/release/cli/vicinal FOLDER [PYTHON [PART...]]
set -euo pipefail
command=$1 folder=$2 python=${3:-bench/.venv-peers-lle/bin/python}
parts=("${@:4}")
[[ ${#parts[@]} -gt 0 ]] || parts=(ordering time large)
machine=${VICINAL_MACHINE:-$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)}
commit=$(git rev-parse --short HEAD)
mkdir -p "$folder"
failed=0
for part in "${parts[@]}"; do
  case $part in
    ordering)
      "$python" bench/peers/build_native.py || failed=1
      "$python" bench/peers/ordering.py --command "$command" --machine "$machine" --commit "$commit" \
        -o "$folder/ordering-$commit.json" || failed=1
      ;;
    *)
      "$python" bench/peers/lle.py --command "$command" --machine "$machine" --commit "$commit" \
        -o "$folder/lle-$part-$commit.json" "$part" || failed=1
      ;;
  esac
done
exit $failed
