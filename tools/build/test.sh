#!/bin/bash
# Runs the C++ and the Python tests and closes with one summary: test.sh all|quick. Both kinds
# always run, so that one failure does not hide another. The quick set leaves out what is marked
# slow.
set -uo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
python=.venv/bin/python
jobs=${MAX_JOBS:-$(nproc)}
select=()
if [ "${1:-all}" = quick ]; then select=(-m "not slow"); fi

start=$SECONDS
cpp="not built"
cpp_rc=0
if [ -x "$build/bin/cresset_tests" ]; then
  "$build/bin/cresset_tests" --gtest_brief=1 2>&1 | tee "$build/cpp-tests.log"
  cpp_rc=${PIPESTATUS[0]}
  outcome='^\[ +(PASSED|FAILED) +\] [0-9]+ tests?'
  cpp=$(grep -E "$outcome" "$build/cpp-tests.log" | head -2 | tr -d '\n')
  if [ "$cpp_rc" -gt 1 ]; then cpp="crashed with status $cpp_rc"; fi
fi
cpp_s=$((SECONDS - start))

start=$SECONDS
"$python" -m pytest test -q -n "$jobs" --durations=10 ${select[@]+"${select[@]}"} 2>&1 |
  tee "$build/python-tests.log"
py_rc=${PIPESTATUS[0]}
outcome='(passed|failed|error|no tests ran).* in [0-9.]+'
py=$(grep -E "$outcome" "$build/python-tests.log" | tail -1 | tr -d '=')
py_s=$((SECONDS - start))

echo
echo "---- tests: summary"
printf '%-8s %-60s %5d s\n' "C++" "${cpp}" "$cpp_s" "Python" "${py:-no result}" "$py_s"
if [ "$cpp_rc" = 0 ] && [ "$py_rc" = 0 ]; then
  echo "tests: passed"
else
  echo "tests: FAILED"
  exit 1
fi
