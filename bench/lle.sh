#!/usr/bin/env bash
# What locally linear embedding takes on this machine, and its ordering and factor beside METIS and CHOLMOD: JSON into a
# folder. Some twelve minutes on two quiet cores; it needs 16 GB, VICINAL_DATA, a Python of peers/requirements-lle.txt and,
# for the ordering, libmetis-dev and libsuitesparse-dev.
#
#   bench/lle.sh build/release/cli/vicinal FOLDER [PYTHON]
set -euo pipefail
command=$1 folder=$2 python=${3:-bench/.venv-peers/bin/python}
machine=${VICINAL_MACHINE:-$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)}
commit=$(git rev-parse --short HEAD)
mkdir -p "$folder"
"$python" bench/peers/build_native.py
"$python" bench/peers/ordering.py --command "$command" --machine "$machine" --commit "$commit" -o "$folder/ordering-$commit.json"
"$python" bench/peers/lle.py --command "$command" --machine "$machine" --commit "$commit" -o "$folder/lle-$commit.json" time large
