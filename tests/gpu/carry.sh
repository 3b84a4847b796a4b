#!/usr/bin/env bash
# Usage: carry.sh BUILD FOLDER. Puts what the GPU tests need into one folder: test programs, command, library, plug-in
# and the shared objects they need that another Linux with glibc 2.36 or later may lack. `FOLDER/run.sh` runs them.
set -euo pipefail
build=$1 folder=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

rm -rf "$folder"
mkdir -p "$folder"
cp "$build/tests/vicinal_contract_tests" "$build/tests/vicinal_unit_tests" "$build/cli/vicinal" \
  "$build/bench/vicinal-bench" "$folder/"
cp -L "$build/src/libvicinal.so.0" "$build/src/libvicinal_cuda.so" "$folder/"
cp "$here/run.sh" "$folder/"
# The C library is the one thing that must be the other machine's own.
ldd "$folder"/vicinal_*_tests "$folder/vicinal" "$folder/vicinal-bench" "$folder/libvicinal_cuda.so" |
  awk '/=> \// { print $3 }' | sort -u |
  grep -Ev '/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv|util)|libvicinal)\.so[^/]*$' |
  xargs -r cp -L -t "$folder"
strip --strip-unneeded "$folder"/*.so* "$folder/vicinal" "$folder/vicinal-bench" "$folder"/vicinal_*_tests
du -sh "$folder"
