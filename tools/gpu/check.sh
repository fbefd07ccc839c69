#!/bin/bash
# Everything that needs a GPU, from the bare tree: builds with all cores, runs the CUDA tests, the
# op records and recorded calls on the GPU, the memory and race checkers, and times kernels and
# whole models, beside those of PyTorch where an interpreter that has it is named.
#
#   tools/gpu/check.sh [build] [test] [records] [conformance] [sanitize] [bench] [models] [launch]
#                      [profiler]                              default: build test records models
#
#   records      every op record with a CUDA kernel: values and gradients; fails below 97 %
#   conformance  recorded calls of the folder CONFORMANCE, see tools/gpu/conformance.py
#   sanitize     compute-sanitizer memcheck over the tests, one small call per op record and, where
#                CONFORMANCE is named, per recorded operator; racecheck over the tests
#   bench        bandwidth of kernels and the host's time for small calls
#   models       training steps and launch-bound work, in turns with PEER
#   launch       what the driver's launch costs by itself, without any torch
#   profiler     what the profiler records of the GPU, see tools/gpu/check_profiler.py
#
#   PYTHON       interpreter to build for and to test with (default python3); needs NumPy and pytest
#   PEER         interpreter that has PyTorch, for the comparison
#   BUILD        build folder (default build-gpu)
#   OUT          folder for logs and figures (default the build folder)
#   JOBS         processes that share the GPU (default the cores, at most 16)
#   CONFORMANCE  folder of recorded calls
#   FAMILIES     families of these, by commas (default those that have CUDA kernels)
#
# Nothing is downloaded. Python packages that the machine lacks (PyYAML for the code generator) may
# be put into build/gpu-python beforehand: pip install --target build/gpu-python pyyaml
set -uo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
build=${BUILD:-build-gpu}
steps=${*:-build test records models}
mkdir -p "$build"
out=${OUT:-$build}
cores=$(nproc)
jobs=${JOBS:-$((cores < 16 ? cores : 16))}
families=activation,attention,cumulative,distance,embedding,index,loss,matmul,norm,pointwise
families=${FAMILIES:-$families,reduce,shape,sort}
export PYTHONPATH="$PWD:$PWD/build/gpu-python${PYTHONPATH:+:$PYTHONPATH}"
failed=()

# Asking the driver about memory it does not know is how pinned memory is told from other memory:
# its refusal is no fault. The matrix products are NVIDIA's.
sanitizer="compute-sanitizer --error-exitcode 9 --report-api-errors no
  --kernel-name-exclude kns=cublas"

step_build() {
  "$python" -c 'import yaml' || {
    echo "check: $python has no PyYAML; see the head of this script" >&2
    return 1
  }
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TEST=0 \
    -DPython_EXECUTABLE="$(command -v "$python")" >"$out/configure.log" 2>&1 || {
    tail -30 "$out/configure.log"
    return 1
  }
  grep -h "Device programs" "$out/configure.log"
  ninja -C "$build" >"$out/build.log" 2>&1 || {
    grep -E -A20 "FAILED|error" "$out/build.log" | head -80
    return 1
  }
  ls -la "$build/lib/libtorch.so" "$build/cuda/images.bin"
}

step_test() {
  "$python" -m pytest -q --tb=short test/cuda 2>&1 |
    tee "$out/cuda-tests.log" | tail -40
  return "${PIPESTATUS[0]}"
}

step_records() {
  "$python" tools/gpu/records.py --jobs "$jobs" --out "$out/records.txt" 2>&1 |
    tee "$out/records.log" | tail -60
  return "${PIPESTATUS[0]}"
}

step_conformance() {
  test -n "${CONFORMANCE:-}" || {
    echo "check: name the folder of recorded calls in CONFORMANCE" >&2
    return 1
  }
  "$python" tools/gpu/conformance.py "$CONFORMANCE" --jobs "$jobs" --family "$families" \
    --verbose >"$out/conformance.log" 2>&1
  local rc=$?
  tail -20 "$out/conformance.log"
  echo "without a kernel: $(grep -c NotImplementedError "$out/conformance.log")"
  return $rc
}

step_bench() {
  "$python" tools/gpu/bench.py >"$out/bench-ours.txt" || return 1
  if [ -n "${PEER:-}" ]; then
    (cd /tmp && env -u PYTHONPATH "$PEER" "$OLDPWD/tools/gpu/bench.py") \
      >"$out/bench-peer.txt" || return 1
    "$python" tools/gpu/bench.py --join "$out/bench-ours.txt" "$out/bench-peer.txt"
  else
    cat "$out/bench-ours.txt"
  fi
}

step_models() {
  "$python" tools/gpu/bench_models.py ${PEER:+--peer "$PEER"} | tee "$out/models.txt"
  return "${PIPESTATUS[0]}"
}

step_launch() {
  "$python" tools/gpu/bench_launch.py | tee "$out/launch.txt"
  return "${PIPESTATUS[0]}"
}

step_profiler() {
  "$python" tools/gpu/check_profiler.py | tee "$out/profiler.txt"
  return "${PIPESTATUS[0]}"
}

# The tests under a tool, in as many processes as there are jobs. One asks that no driver be loaded,
# which the tool does; those of other processes, and of compilation, gain nothing by it.
sanitize_tests() {
  local tool=$1 file rc=0 pids=()
  local names="pointwise reduce rows nn random optim matmul attention more_ops"
  for file in $names; do
    # shellcheck disable=SC2086
    $sanitizer --tool "$tool" "$python" -m pytest -q -p no:cacheprovider \
      -k "not never_load_the_driver" "test/cuda/test_cuda_$file.py" \
      >"$out/$tool-test-$file.log" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || rc=1; done
  grep -h -E "ERROR SUMMARY|RACECHECK SUMMARY|passed|failed" "$out/$tool"-test*.log
  return $rc
}

sanitize_records() {
  "$python" tools/gpu/records.py --jobs "$jobs" --thin 1 --threshold 0.9 \
    --under "$sanitizer --tool memcheck" --out "$out/memcheck-records.txt" \
    >"$out/memcheck-records.log" 2>&1
  local rc=$?
  grep -E "ERROR SUMMARY|Invalid|calls match|records in" "$out/memcheck-records.log" |
    sort | uniq -c
  return $rc
}

sanitize_conformance() {
  local i rc=0 pids=()
  for ((i = 0; i < jobs; ++i)); do
    # shellcheck disable=SC2086
    $sanitizer --tool memcheck "$python" tools/gpu/conformance.py "$CONFORMANCE" --thin 1 \
      --shard "$i/$jobs" >"$out/memcheck-conformance-$i.log" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || rc=1; done
  cat "$out"/memcheck-conformance-*.log >"$out/memcheck-conformance.log"
  rm -f "$out"/memcheck-conformance-[0-9]*.log
  grep -E "ERROR SUMMARY|^shard" "$out/memcheck-conformance.log" | sort | uniq -c
  return $rc
}

step_sanitize() {
  local rc=0
  sanitize_tests memcheck || rc=1
  sanitize_records || rc=1
  if [ -n "${CONFORMANCE:-}" ]; then sanitize_conformance || rc=1; fi
  sanitize_tests racecheck || rc=1
  (cd "$out" && cat memcheck-test*.log racecheck-test*.log >sanitize-tests.log &&
    rm -f memcheck-test*.log racecheck-test*.log)
  return $rc
}

for step in $steps; do
  start=$SECONDS
  echo "---- $step"
  if "step_$step"; then outcome=passed; else
    outcome=FAILED
    failed+=("$step")
  fi
  echo "---- $step: $outcome, $((SECONDS - start)) s"
  if [ "$step" = build ] && [ $outcome = FAILED ]; then break; fi
done
[ ${#failed[@]} = 0 ]
