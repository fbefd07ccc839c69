#!/bin/bash
# Everything that needs a card, from the bare tree: builds with all cores, runs the CUDA tests,
# times the kernels, and beside them those of PyTorch where an interpreter that has it is named.
#
#   tools/gpu/check.sh [build] [test] [bench] [sanitize]     default: build test bench
#
#   PYTHON   interpreter to build for and to test with (default python3); needs NumPy and pytest
#   PEER     interpreter that has PyTorch, for the comparison
#   BUILD    build folder (default build-gpu)
#   OUT      folder for logs and figures (default the build folder)
#
# Nothing is downloaded. Python packages that the machine lacks (PyYAML for the code generator) may
# be put into build/gpu-python beforehand: pip install --target build/gpu-python pyyaml
set -uo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
build=${BUILD:-build-gpu}
steps=${*:-build test bench}
mkdir -p "$build"
out=${OUT:-$build}
export PYTHONPATH="$PWD:$PWD/build/gpu-python${PYTHONPATH:+:$PYTHONPATH}"
failed=()

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
  "$python" -m pytest -q --tb=short test/test_cuda*.py 2>&1 |
    tee "$out/cuda-tests.log" | tail -40
  return "${PIPESTATUS[0]}"
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

# Bad memory accesses and races in the kernels, on the tests.
step_sanitize() {
  for tool in memcheck racecheck; do
    compute-sanitizer --tool "$tool" --error-exitcode 9 --kernel-regex-exclude kns=cublas \
      "$python" -m pytest -q -x -p no:cacheprovider test/test_cuda_pointwise.py \
      test/test_cuda_reduce.py >"$out/$tool.log" 2>&1
    local rc=$?
    tail -5 "$out/$tool.log"
    [ $rc = 0 ] || return 1
  done
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
