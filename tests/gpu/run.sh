#!/usr/bin/env bash
# Usage: run.sh [tests|portable|sanitize|all|devices|python|sklearn] in the folder that carry.sh made. Runs the
# contract tests on the CUDA device alone, as many at a time as there are cores; then all again with the screen that
# other devices have (portable); then the smaller ones of them under compute-sanitizer, where that is at hand. Needs
# bash, a driver, and nothing else. `devices`: what several devices give, and the contract tests of searches, k-means
# and outlier scores on DEVICES (cuda:0,1) as one; of the searches that are made for each dtype, those of float32 and
# uint8, because no dtype is divided in its own way. `python` runs python_tables.py and scikit-learn's own tests with
# vicinal on the device. It needs Python 3.12 or later with pytest, and the wheels that carry.sh was given; CuPy,
# PyTorch and JAX are used where they are installed. `sklearn` uses the machine's cores instead: scikit-learn's tests
# with seeds 42, 0 and 7, what uses its classes, and, as far as MINUTES (8) allow, the whole suite; what is done is
# not done again.
# Where polars is lacking (its wheels can be carried) twelve tests are skipped that `common` counts, which fails.
# SHARDS sets how many run at a time, FILTER which tests, SANITIZE_FILTER which are sanitized, PYTHON which Python,
# GROUPS_OF_TESTS which of scikit-learn's tests (suite.py --list), PYTEST_FILTER which of python_tables.py.
set -uo pipefail
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
what=${1:-all}
own_libraries=${LD_LIBRARY_PATH-}
export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export VICINAL_CUDA_PLUGIN=$folder/libvicinal_cuda.so VICINAL_TEST_DEVICE=cuda
logs=${LOGS:-$(mktemp -d)}
mkdir -p "$logs"
failed=0

# run_tests NAME [VARIABLE=VALUE...]
run_tests() {
  local name=$1 failed_before=$failed
  failed=0
  shift
  local shards=${SHARDS:-$(nproc)} started=$SECONDS shard
  ((shards > 16)) && shards=16
  local jobs=()
  for ((shard = 0; shard < shards; ++shard)); do
    env "$@" GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard "$folder/vicinal_contract_tests" --gtest_brief=0 \
      "--gtest_filter=${FILTER:-*}" >"$logs/$name-$shard.log" 2>&1 &
    jobs+=($!)
  done
  local job
  for job in "${jobs[@]}"; do wait "$job" || failed=1; done
  local passed
  passed=$(cat "$logs/$name"-*.log | grep -c '^\[       OK \]')
  echo "contract tests on CUDA ($name): $passed passed in $((SECONDS - started)) s with $shards at a time"
  grep -h 'a cancel took\|compute capability\|tensor cores:' "$logs/$name"-*.log | sort -u
  grep -h '^\[  SKIPPED \]' "$logs/$name"-*.log | sort -u | head -20
  # A shard that crashed has no summary.
  for ((shard = 0; shard < shards; ++shard)); do
    grep -q '^\[==========\].*ran\.' "$logs/$name-$shard.log" || { echo "shard $shard did not end:"; tail -5 "$logs/$name-$shard.log"; failed=1; }
  done
  if ((failed)); then
    echo "FAILED:"
    grep -h '^\[  FAILED  \]' "$logs/$name"-*.log | sort -u | head -60
    grep -h -A4 'Failure$' "$logs/$name"-*.log | cut -c1-600 | head -80
  fi
  failed=$((failed || failed_before))
}

# What unit tests ask of a device.
run_units() {
  local started=$SECONDS
  if "$folder/vicinal_unit_tests" '--gtest_filter=*OnDevice*' >"$logs/units.log" 2>&1; then
    echo "unit tests on CUDA: $(grep -c '^\[       OK \]' "$logs/units.log") passed in $((SECONDS - started)) s"
  else
    echo "unit tests on CUDA FAILED:"
    grep '^\[  FAILED  \]\|Failure$' -A2 "$logs/units.log" | cut -c1-600 | head -40
    failed=1
  fi
}

run_sanitizer() {
  local tool sanitizer tests
  sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
  [[ -x $sanitizer ]] || { echo "not run: there is no compute-sanitizer"; return; }
  local filter=${SANITIZE_FILTER:-Cuda.TablesInDeviceMemory:Cuda.ListsIntoMemoryOfTheCallers:Cuda.AnIndexMoves*:Cuda.Custom*:CudaTree.AnIndex*:CudaTree.ListsOf*:Refusal.Values*:Search/PerMetric.InEveryLayout/*:KMeans.Shapes*:KMeans.WeightsOfZero:KMeans.GivenCentres*:ImputerOnDevice.HasTheBitsOfTheProcessor:ImputerOnDevice.LeavesOut*}
  # racecheck is slower by orders of magnitude: those that end in a minute or two.
  local races=${RACE_FILTER:-Cuda.TablesInDeviceMemory:Cuda.ListsIntoMemoryOfTheCallers:Cuda.AnIndexMoves*:Cuda.Custom*:CudaTree.ListsOf*:Refusal.Values*:Search/PerMetric.InEveryLayout/hamming:KMeans.ConstantColumns:KMeans.OneRowAndEqualRows:KMeans.GivenCentres*:KMeans.MoreClusters*}
  for tool in memcheck racecheck initcheck synccheck; do
    local started=$SECONDS
    tests=$filter
    [[ $tool == racecheck ]] && tests=$races
    if timeout "${SANITIZE_SECONDS:-240}" "$sanitizer" --tool "$tool" --error-exitcode 9 --print-limit 20 \
      "$folder/vicinal_contract_tests" "--gtest_filter=$tests" >"$logs/$tool.log" 2>&1; then
      echo "$tool: clean in $((SECONDS - started)) s ($(grep -c '^\[       OK \]' "$logs/$tool.log") tests)"
    else
      echo "$tool: exit code $? after $((SECONDS - started)) s"
      grep -m 40 '^=========\|FAILED\|Failure' "$logs/$tool.log" | cut -c1-300
      failed=1
    fi
  done
}

# The wheel brings its own libraries; PyTorch's are not to meet those of carry.sh.
python=${PYTHON:-python3}
suite() { "$python" "$folder/python/sklearn_patch/suite.py" --commit "${COMMIT:-unknown}" "$@"; }
install_wheels() {
  export LD_LIBRARY_PATH=$own_libraries PYTHONPATH=$folder/site
  [[ -d $folder/site ]] || "$python" -m pip install -q --disable-pip-version-check --no-index --no-deps \
    --target "$folder/site" "$folder"/wheels/*.whl
}

run_python() {
  local started=$SECONDS
  install_wheels || { failed=1; return; }
  "$python" -c 'import vicinal; print(vicinal.doctor(device="cuda"))' || failed=1
  if "$python" -m pytest -q -rs -p no:cacheprovider "$folder/python/python_tables.py" -k "${PYTEST_FILTER-}" \
    >"$logs/python.log" 2>&1; then
    echo "tables in device memory: $(tail -1 "$logs/python.log")"
  else
    echo "tables in device memory FAILED:"
    grep '^FAILED\|^ERROR' "$logs/python.log" | cut -c1-300 | head -60
    failed=1
  fi
  grep '^SKIPPED' "$logs/python.log"
  if suite --device cuda --workers "${SHARDS:-8}" --cores 2 ${GROUPS_OF_TESTS:+--group $GROUPS_OF_TESTS} \
    -o "$logs/sklearn-tests-device.json" >"$logs/sklearn-device.log" 2>&1; then
    echo "scikit-learn's own tests with vicinal on the device: the same outcomes"
  else
    echo "scikit-learn's own tests with vicinal on the device FAILED:"
    failed=1
  fi
  head -60 "$logs/sklearn-device.log" | cut -c1-300
  echo "Python: $((SECONDS - started)) s"
}

run_sklearn() {
  local ends=$((SECONDS + 60 * ${MINUTES:-8})) keep=$folder/outcomes workers=$(($(nproc) / 2)) part
  install_wheels || { failed=1; return; }
  unset VICINAL_CUDA_PLUGIN
  for part in "--seed 42 0 7" --consumers --all; do
    ((ends > SECONDS)) &&
      timeout $((ends - SECONDS)) "$python" "$folder/python/sklearn_patch/suite.py" $part --workers "$workers" \
        --cores 2 --keep "$keep" >"$logs/sklearn.log" 2>&1
    echo "scikit-learn's own tests, ${part#--}:"
    suite $part --keep "$keep" --kept -o "$logs/sklearn-tests-$(tr -d ' -' <<<"$part").json" || failed=1
  done
}

[[ $what == python || $what == sklearn ]] || "$folder/vicinal" doctor || exit 5
case $what in
  tests)
    run_tests usual
    run_units
    ;;
  portable) run_tests portable VICINAL_CUDA_PATH=portable ;;
  sanitize) run_sanitizer ;;
  all)
    run_tests usual
    run_units
    run_tests portable VICINAL_CUDA_PATH=portable
    run_sanitizer
    ;;
  devices)
    FILTER='OnDevice/Devices*:Devices*' run_tests devices
    searches='Search/PerMetricAndDType.*_float32:Search/PerMetricAndDType.*_uint8:Search/PerMetric.*'
    searches+=':Search/Large.*:Search/Tree.*:Search/PartsOf.*'
    FILTER=${FILTER:-$searches:Random*:Radius*:Vote*:Regress*:KMeans*:Lof*:LOF*:Outlier*:Parts*:Tree*:Refusal*} \
      run_tests together "VICINAL_TEST_DEVICES=${DEVICES:-cuda:0,1}"
    ;;
  python) run_python ;;
  sklearn) run_sklearn ;;
  *) echo "usage: run.sh [tests|portable|sanitize|all|devices|python|sklearn]" >&2; exit 2 ;;
esac
((failed)) && echo "GPU tests FAILED, logs in $logs" || echo "GPU tests passed"
exit "$failed"
