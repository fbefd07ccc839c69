#!/bin/bash
# C++ tests and fuzzed Python calls under the address and undefined-behaviour sanitizers, in a
# build folder of their own. Python imports a shadow package: links to every file of torch/ with
# the sanitized libraries in place of the usual ones, so that the tree itself is left alone.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=build-sanitize
calls=${CALLS:-10000}
files=${FILES:-5000}

BUILD=$build SANITIZE=address,undefined CRESSET_INPLACE=OFF tools/build/build.sh

# Leaks are not looked for: CPython keeps what it has interned until the process ends.
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1
"$build/bin/cresset_tests" --gtest_brief=1

shadow=$build/shadow/torch
rm -rf "$shadow"
mkdir -p "$shadow"
for entry in torch/*; do
  case $entry in
  torch/lib | torch/_C*.so) ;;
  *) ln -s "$PWD/$entry" "$shadow/" ;;
  esac
done
ln -s "$PWD/$build"/torch/_C*.so "$shadow/"
ln -s "$PWD/$build/lib" "$shadow/lib"
if [ -f tools/fuzz/ops.py ]; then
  # The interpreter is not instrumented, so the run-time library has to come first. The children
  # get a limit on single allocations from ops.py, since none can be set on the address space.
  LD_PRELOAD=$(g++ -print-file-name=libasan.so):$(g++ -print-file-name=libubsan.so) \
    PYTHONPATH=$build/shadow .venv/bin/python tools/fuzz/ops.py --calls "$calls"
fi
if [ -f tools/fuzz/load.py ]; then
  # The shadow memory of the sanitizer is larger than any limit on the address space.
  LD_PRELOAD=$(g++ -print-file-name=libasan.so):$(g++ -print-file-name=libubsan.so) \
    PYTHONPATH=$build/shadow .venv/bin/python tools/fuzz/load.py --n "$files" --memory 0 --limit 60
fi
echo "sanitize: clean"
