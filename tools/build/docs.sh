#!/bin/bash
# Builds the documentation site into build/docs: the pages of docs/ and, when the code generator
# wrote one, the operator reference.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
tools/build/build.sh cresset_codegen
stage=$build/docs-src
rm -rf "$stage"
mkdir -p "$stage"
cp -r docs/. "$stage/"
if [ -d "$build/gen/docs" ]; then
  mkdir -p "$stage/ops"
  cp -r "$build/gen/docs/." "$stage/ops/"
fi
sed "s|@BUILD@|$PWD/$build|" tools/build/mkdocs.yml.in >"$build/mkdocs.yml"
.venv/bin/python -m mkdocs build --quiet --strict --config-file "$build/mkdocs.yml"
echo "docs: $build/docs/index.html"
