#!/usr/bin/env bash
# Usage: carry.sh BUILD FOLDER [WHEEL...]. Puts what the GPU tests need into one folder: test programs, command,
# library, plug-in and the shared objects they need that another Linux with glibc 2.36 or later may lack.
# `FOLDER/run.sh` runs them. With wheels (vicinal's of `./dev wheel` and, where the other machine lacks it,
# scikit-learn's, both for its Python) the folder has the tests of the Python package, too: `FOLDER/run.sh python`.
# PYTHON_ONLY=1 leaves the test programs out.
set -euo pipefail
build=$1 folder=$2
shift 2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

rm -rf "$folder"
mkdir -p "$folder"
cp "$here/run.sh" "$folder/"
if (($#)); then
  mkdir -p "$folder/wheels" "$folder/python/sklearn_patch"
  cp "$@" "$folder/wheels/"
  cp "$here/python_tables.py" "$here/../python/device_arrays.py" "$folder/python/"
  cp "$here/../python/sklearn_patch/"{suite,outcomes}.py "$folder/python/sklearn_patch/"
fi
if [[ -n ${PYTHON_ONLY-} ]]; then
  cp -L "$build/src/libvicinal_cuda.so" "$folder/"
  strip --strip-unneeded "$folder"/*.so
  du -sh "$folder"
  exit
fi
cp "$build/tests/vicinal_contract_tests" "$build/tests/vicinal_unit_tests" "$build/cli/vicinal" \
  "$build/bench/vicinal-bench" "$folder/"
cp -L "$build/src/libvicinal.so.0" "$build/src/libvicinal_cuda.so" "$folder/"
# The C library is the one thing that must be the other machine's own.
ldd "$folder"/vicinal_*_tests "$folder/vicinal" "$folder/vicinal-bench" "$folder/libvicinal_cuda.so" |
  awk '/=> \// { print $3 }' | sort -u |
  grep -Ev '/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv|util)|libvicinal)\.so[^/]*$' |
  xargs -r cp -L -t "$folder"
strip --strip-unneeded "$folder"/*.so* "$folder/vicinal" "$folder/vicinal-bench" "$folder"/vicinal_*_tests
du -sh "$folder"
