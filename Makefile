# The commands of a contributor's day. Each target sets up what it needs: the toolchain (on Debian
# as root), a virtual environment in .venv, a CMake + Ninja build in build/. The tree is
# importable from .venv through a .pth file and the built libraries are linked into torch/, so a
# rebuild is plain Ninja and no `pip install` is involved.
#
#   make build        build the library, the Python extension and the C++ tests
#   make test         everything; make test-quick: without the tests marked slow
#   make train        train the small GPT of examples/gpt, about two minutes on two cores; builds
#                     only what that needs
#   make lint         format, ruff, layers, budgets;  make format: rewrite files into the format
#   make bench PEER=<python with PyTorch>
#   make sanitize     C++ tests and fuzzed calls under the address and undefined sanitizers
#   make test-ecosystem [PROJECTS=a,b] [PEER=<python>]   other projects' test suites on our torch
#   make wheel docs clean
#
# Options, from the environment or the command line: DEBUG=1 USE_CUDA=0/1 BUILD_TEST=0/1 MAX_JOBS=n
# SANITIZE=address,undefined BUILD=<folder> PYTHON=<interpreter>

SHELL := /bin/bash
PYTHON ?= python3
BUILD ?= build
VENV := .venv
PY := $(VENV)/bin/python
export DEBUG USE_CUDA BUILD_TEST MAX_JOBS SANITIZE BUILD PYTHON

.DEFAULT_GOAL := build
.PHONY: build test test-quick test-ecosystem train lint format bench sanitize wheel docs clean

$(VENV)/.stamp-%: tools/build/requirements-%.txt tools/build/setup.sh pyproject.toml
	@tools/build/setup.sh $*

build: $(VENV)/.stamp-build
	@tools/build/build.sh

test: build $(VENV)/.stamp-test
	@tools/build/test.sh all

test-quick: build $(VENV)/.stamp-test
	@tools/build/test.sh quick

test-ecosystem: build
	@$(PY) tools/ecosystem/run.py --projects "$(PROJECTS)" --peer "$(PEER)" \
	  --work "$(BUILD)/ecosystem" --wheel "$(WHEEL)" --jobs "$(or $(JOBS),1)"

train: $(VENV)/.stamp-build $(VENV)/.stamp-train
	@tools/build/build.sh --lean
	@$(PY) examples/gpt/train.py

lint: $(VENV)/.stamp-lint
	@$(PY) tools/lint/run.py

format: $(VENV)/.stamp-lint
	@$(PY) tools/lint/run.py --fix

bench: build $(VENV)/.stamp-test
	@test -n "$(PEER)" || { echo "make bench PEER=<python>: name one that has PyTorch"; exit 2; }
	@$(PY) benchmarks/compare.py --peer "$(PEER)"

sanitize: $(VENV)/.stamp-build $(VENV)/.stamp-test
	@tools/build/sanitize.sh

wheel: $(VENV)/.stamp-build
	@$(PY) -m pip wheel --no-deps --wheel-dir dist .

docs: build $(VENV)/.stamp-docs $(VENV)/.stamp-test
	@tools/build/docs.sh

clean:
	rm -rf build build-* dist $(VENV) torch/lib torch/_C*.so torch-*.dist-info
	rm -rf .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
