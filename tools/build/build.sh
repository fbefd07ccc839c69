#!/bin/bash
# CMake + Ninja into $BUILD. Configures only when there is no build yet or an option changed, so
# that a build with nothing to do takes a fraction of a second. `build.sh --lean` is for those who
# want to use the library at once: a first build then leaves out the C++ front end, the C++ tests
# and, where there is no GPU, the device programs, and optimises kernels for this machine's
# instruction set alone; an existing build is brought up to date as it is.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
python=$PWD/.venv/bin/python

lean=0
if [ "${1:-}" = --lean ]; then
  lean=1
  shift
  export BUILD_TEST=${BUILD_TEST:-0} BUILD_CPP_API=${BUILD_CPP_API:-0}
  export OPTIMIZE_ALL_ISA=${OPTIMIZE_ALL_ISA:-0}
  command -v nvidia-smi >/dev/null || export CUDA_PRECOMPILE=${CUDA_PRECOMPILE:-0}
fi

options=("-DCMAKE_BUILD_TYPE=Release" "-DPython_EXECUTABLE=$python")
for name in DEBUG USE_CUDA CUDA_PRECOMPILE CUDA_ARCH \
  BUILD_TEST BUILD_CPP_API OPTIMIZE_ALL_ISA PRECOMPILE_HEADERS MAX_JOBS SANITIZE CRESSET_INPLACE; do
  if [ -n "${!name:-}" ]; then options+=("-D$name=${!name}"); fi
done

mkdir -p "$build"
configured=$(cat "$build/.options" 2>/dev/null || true)
if [ ! -f "$build/build.ninja" ] ||
  { [ "$lean" = 0 ] && [ "${options[*]}" != "$configured" ]; }; then
  # An option that is no longer given must fall back to its default: hence a fresh cache.
  rm -f "$build/CMakeCache.txt"
  cmake -S . -B "$build" -G Ninja "${options[@]}"
  echo "${options[*]}" >"$build/.options"
fi

start=$SECONDS
ninja -C "$build" ${MAX_JOBS:+-j "$MAX_JOBS"} "$@" | "$python" tools/build/progress.py
"$python" tools/build/metadata.py "$PWD"
# Byte code of the package, as an installation has it: without it the first torch.compile of every
# process parses 200 modules where nothing may be written beside the sources.
"$python" -m compileall -q torch
echo "build: done in $((SECONDS - start)) s"
