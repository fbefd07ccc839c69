#!/bin/bash
# CMake + Ninja into $BUILD. Configures only when there is no build yet or an option changed, so
# that a build with nothing to do takes a fraction of a second.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
python=$PWD/.venv/bin/python

options=("-DCMAKE_BUILD_TYPE=Release" "-DPython_EXECUTABLE=$python")
for name in DEBUG USE_CUDA CUDA_PRECOMPILE CUDA_ARCH \
  BUILD_TEST MAX_JOBS SANITIZE CRESSET_INPLACE; do
  if [ -n "${!name:-}" ]; then options+=("-D$name=${!name}"); fi
done

mkdir -p "$build"
configured=$(cat "$build/.options" 2>/dev/null || true)
if [ ! -f "$build/build.ninja" ] || [ "${options[*]}" != "$configured" ]; then
  # An option that is no longer given must fall back to its default: hence a fresh cache.
  rm -f "$build/CMakeCache.txt"
  cmake -S . -B "$build" -G Ninja "${options[@]}"
  echo "${options[*]}" >"$build/.options"
fi

start=$SECONDS
ninja -C "$build" ${MAX_JOBS:+-j "$MAX_JOBS"} "$@"
"$python" tools/build/metadata.py "$PWD"
echo "build: done in $((SECONDS - start)) s"
