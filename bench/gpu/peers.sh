#!/usr/bin/env bash
# Brings FlashLib, jz-tree, FAISS and cuVS to a GPU machine without a network, in parts that may travel one by one.
#   peers.sh fetch FOLDER [MEGABYTES]  here: downloads the wheels, unpacks them over one another, leaves out what is not
#                                      for running, packs, and splits into FOLDER/part-00, part-01, ... of at most so
#                                      many megabytes (40)
#   peers.sh keep FOLDER SITE          there: puts away the parts that came in FOLDER; when all have come, unpacks them
#                                      into SITE
#   eval "$(peers.sh env SITE)"        there: sets what Python needs to find them
# VICINAL_PEERS_FAISS=1 brings FAISS and cuVS, which FAISS is linked to: some 330 MB more. VICINAL_PEERS_CUVS=1 brings
# cuVS without FAISS, and VICINAL_PEERS_ARCHITECTURE=90 leaves out the machine code of cuVS for other GPUs than that
# one: together some 38 MB instead of 250.
# The wheels are for CPython 3.12 and CUDA 13; torch, Triton, JAX, NumPy and cuda-bindings are the other machine's own.
# The versions are those that were seen working together. FlashLib's Triton kernels need only its own wheel.
set -euo pipefail

FLASHLIB=(flashlib==0.3.0 nvidia-cutlass-dsl-libs-core==4.6.3 nvidia-cutlass-dsl-libs-base==4.6.3
  nvidia-cutlass-dsl-libs-cu13==4.6.3)
JZTREE=(jztree==1.1.0 jztree-cu13==1.1.0)
FAISS=()
CUVS=(libcuvs-cu13==26.6.0 libraft-cu13==26.6.0 librmm-cu13==26.6.0 rapids-logger==0.2.3 cuvs-cu13==26.6.0
  pylibraft-cu13==26.6.0 rmm-cu13==26.6.0)
[[ -z ${VICINAL_PEERS_CUVS-} ]] || FAISS=("${CUVS[@]}")
[[ -z ${VICINAL_PEERS_FAISS-} ]] || FAISS=(faiss-gpu-cu13-cuvs==1.15.0 "${CUVS[@]}")

fetch() {
  local folder=$1 megabytes=${2:-40} wheels site platform wheel library platforms=() here
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
  wheels=$(mktemp -d) site=$(mktemp -d)
  trap "rm -rf '$wheels' '$site'" EXIT
  for platform in _2_39 _2_34 _2_31 _2_28 _2_27 _2_24 _2_17 2014; do
    platforms+=(--platform "manylinux${platform}_x86_64")
  done
  # Without what they require: that is the other machine's, or named above.
  python3 -m pip download -q --no-deps --only-binary=:all: --python-version 3.12 --implementation cp \
    "${platforms[@]}" -d "$wheels" "${FLASHLIB[@]}" "${JZTREE[@]}" "${FAISS[@]}"
  for wheel in "$wheels"/*.whl; do
    python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])' "$wheel" "$site"
  done
  rm -rf "$site"/nvidia_cutlass_dsl/cu13/lib/stubs "$site"/nvidia_cutlass_dsl/cu13/include
  find "$site" -name '*.a' -delete
  if [[ -n ${VICINAL_PEERS_ARCHITECTURE-} ]]; then
    for library in "$site"/lib{cuvs/lib64/libcuvs,raft/lib64/libraft}.so; do
      [[ ! -e $library ]] || python3 "$here/one_architecture.py" "$library" "$VICINAL_PEERS_ARCHITECTURE"
    done
  fi
  mkdir -p "$folder"
  rm -f "$folder"/part-* "$folder"/parts
  tar -C "$site" -c . | xz -T0 -6 | split -d -b "${megabytes}M" - "$folder/part-"
  (cd "$folder" && sha256sum part-* >parts)
  du -sh "$folder"/part-*
}

keep() {
  local folder=$1 site=$2 kept=$2.parts
  [[ -e $site/complete ]] && return
  mkdir -p "$kept"
  cp "$folder"/parts "$kept"
  cp "$folder"/part-* "$kept"
  if ! (cd "$kept" && sha256sum -c --quiet parts >/dev/null 2>&1); then
    echo "peers: $(find "$kept" -name 'part-*' | wc -l) of $(wc -l <"$kept/parts") parts are here"
    return
  fi
  mkdir -p "$site"
  cat "$kept"/part-* | python3 -c '
import lzma, sys, tarfile
with lzma.open(sys.stdin.buffer) as packed, tarfile.open(fileobj=packed, mode="r|") as site:
    site.extractall(sys.argv[1], filter="data")' "$site"
  rm -rf "$kept"
  touch "$site/complete"
  echo "peers: unpacked in $site"
}

env_of() {
  local site=$1 own folder libraries=
  # The CUDA libraries that torch brought.
  own=$(python3 -c 'import pathlib, torch; print(pathlib.Path(torch.__file__).parent.parent / "nvidia")')
  echo "export PYTHONPATH=$site/nvidia_cutlass_dsl/dsl_packages:$site\${PYTHONPATH:+:\$PYTHONPATH}"
  echo "export CUTE_DSL_LIBS=$site/nvidia_cutlass_dsl/cu13/lib/libcute_dsl_runtime.so"
  for folder in "$own"/{cu13,nccl}/lib "$site"/{libcuvs,libraft,librmm,rapids_logger}/lib64; do
    libraries+=:$folder
  done
  echo "export LD_LIBRARY_PATH=\${LD_LIBRARY_PATH-}$libraries"
}

case ${1-} in
  fetch) fetch "${@:2}" ;;
  keep) keep "${@:2}" ;;
  env) env_of "${@:2}" ;;
  *)
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
    exit 2
    ;;
esac
