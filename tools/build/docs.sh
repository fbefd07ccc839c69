#!/bin/bash
# Builds the documentation site into build/docs: the pages of docs/, the operator reference and
# the page of limits that the code generator wrote, the pages of limits that the built package is
# asked for (tools/limits.py), and the tables of the migration page (tools/migration.py).
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
stage=$build/docs-src
rm -rf "$stage"
mkdir -p "$stage"
cp -r docs/. "$stage/"
mkdir -p "$stage/ops"
cp -r "$build/gen/docs/." "$stage/ops/"
.venv/bin/python tools/limits.py "$stage/ops"
.venv/bin/python tools/migration.py "$stage/migration.md"
sed "s|@BUILD@|$PWD/$build|" tools/build/mkdocs.yml.in >"$build/mkdocs.yml"
.venv/bin/python -m mkdocs build --quiet --strict --config-file "$build/mkdocs.yml"
echo "docs: $build/docs/index.html"
