#!/bin/bash
# Prepares a machine for one kind of work: setup.sh build|test|lint|docs. Installs what is missing
# with apt-get where that is possible (Debian or Ubuntu, as root), otherwise says in one line what
# to install. Then makes .venv and installs the Python requirements of that kind into it. Called
# by the Makefile once per change of the requirements; safe to run again at any time.
set -euo pipefail
cd "$(dirname "$0")/../.."
kind=$1
python=${PYTHON:-python3}

die() {
  echo "setup: $*" >&2
  exit 1
}

# need <command> <Debian package>: collects what is missing.
missing=()
need() { command -v "$1" >/dev/null || missing+=("$2"); }

have_gtest() { echo '#include <gtest/gtest.h>' | g++ -E -x c++ - >/dev/null 2>&1; }
have_gloo() { echo '#include <gloo/context.h>' | g++ -E -x c++ - >/dev/null 2>&1; }
have_mpi() { command -v mpicc >/dev/null; }
have_python_headers() {
  [ -f "$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ]
}

need "$python" python3
if [ "$kind" = build ]; then
  need g++ g++
  need cmake cmake
  need ninja ninja-build
  [ "${BUILD_TEST:-1}" = 0 ] || have_gtest || missing+=(libgtest-dev)
  # Optional: without it torch.distributed has no Gloo, and its tests are skipped.
  have_gloo || [ "$(id -u)" != 0 ] || missing+=(libgloo-dev)
  # Optional in the same way: MPI.
  have_mpi || [ "$(id -u)" != 0 ] || missing+=(libopenmpi-dev openmpi-bin)
fi
if command -v "$python" >/dev/null; then
  "$python" -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
  [ "$kind" != build ] || have_python_headers || missing+=(python3-dev)
else
  missing+=(python3-venv python3-dev)
fi

if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "setup: installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    log=$(mktemp)
    if ! { apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; } \
      >"$log" 2>&1; then
      tail -5 "$log" >&2
      die "apt-get failed; install by hand: ${missing[*]}"
    fi
    rm -f "$log"
  else
    die "missing (Debian package names); run: sudo apt-get install ${missing[*]}"
  fi
fi

"$python" -c 'import sys; exit(sys.version_info < (3, 10))' ||
  die "Python 3.10 or newer is needed; set PYTHON=<interpreter>"

if [ ! -x .venv/bin/python ]; then
  echo "setup: creating .venv"
  "$python" -m venv .venv
  # The tree itself is the package: this line is the whole installation.
  site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  pwd >"$site/cresset.pth"
fi
echo "setup: installing tools/build/requirements-$kind.txt"
requirements=tools/build/requirements-$kind.txt
# With what the package itself requires, so that pip finds the environment whole.
needed=()
if [ "$kind" = build ]; then
  mapfile -t needed < <(.venv/bin/python tools/build/metadata.py --dependencies)
fi
.venv/bin/python -m pip install -qq --disable-pip-version-check -r "$requirements" "${needed[@]}" ||
  die "pip could not install $requirements; is the package index reachable?"
touch ".venv/.stamp-$kind"
