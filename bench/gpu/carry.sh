#!/usr/bin/env bash
# Usage: carry.sh BUILD FOLDER [DATA]. Puts what the measurements need into one folder for a machine that has a driver,
# Python and torch: the command, the library, its plug-in, libvicinal_bench.so, the scripts beside this file and the
# commit. DATA: real data go there (bench/data/gpu.py), to travel only with what reads them. There:
#   bash FOLDER/all.sh SECTION FOLDER RESULTS [DATA]
set -euo pipefail
build=$1 folder=$2 data=${3-}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

rm -rf "$folder"
mkdir -p "$folder"
cp "$build/cli/vicinal" "$folder/"
cp -L "$build/src/libvicinal.so.0" "$build/src/libvicinal_cuda.so" "$folder/"
"${CXX:-c++}" -std=c++20 -O3 -mavx2 -shared -fPIC -I "$root/include" -I "$root/src" "$here/resident.cpp" \
  -L "$folder" -l:libvicinal.so.0 -pthread -o "$folder/libvicinal_bench.so"
# The C library is the one thing that must be the other machine's own.
ldd "$folder/vicinal" "$folder/libvicinal_bench.so" "$folder/libvicinal_cuda.so" |
  awk '/=> \// { print $3 }' | sort -u |
  grep -Ev '/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv|util)|libvicinal[^/]*)\.so[^/]*$' |
  xargs -r cp -L -t "$folder"
strip --strip-unneeded "$folder"/*.so* "$folder/vicinal"
cp "$here"/*.py "$here"/*.sh "$folder/"
git -C "$root" rev-parse --short HEAD >"$folder/commit"
[[ -z $data ]] || python3 "$root/bench/data/gpu.py" "$data"
du -sh "$folder" ${data:+"$data"}
