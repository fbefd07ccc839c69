"""Check includes and imports against the table in layers.toml.

Only what is written in the file is looked at: an include is resolved by its spelling, not by the
preprocessor, so the check is fast and needs no build.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10; pip's own copy is always there.
    from pip._vendor import tomli as tomllib

from common import ROOT, Finding, cpp_files, python_files, read

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def load_table() -> dict[str, Any]:
    with open(ROOT / "tools/lint/layers.toml", "rb") as file:
        return tomllib.load(file)


def longest_folder(path: str, folders: list[str]) -> str | None:
    inside = [folder for folder in folders if path.startswith(folder + "/")]
    return max(inside, key=len, default=None)


def included_path(spelling: str) -> str:
    """The source path an include spells; generated headers count as if they lay there too."""
    return "aten/src/" + spelling if spelling.startswith("ATen/") else spelling


def is_allowed(target: str, uses: list[str]) -> bool:
    for use in uses:
        if use.endswith("/*"):
            # The files directly in a folder, none of its sub-folders.
            if target.rpartition("/")[0] in (use[:-2], use[:-2] + "/ops"):
                return True
        elif target.startswith(use + "/"):
            return True
    return False


def check_cpp(table: dict[str, Any]) -> Iterator[Finding]:
    layers = table["cpp"]
    groups = {name: tuple(prefixes) for name, prefixes in table["external"].items()}
    for path in cpp_files():
        layer = longest_folder(path, list(layers))
        if layer is None:
            continue
        uses = layers[layer]["uses"] + [layer]
        external = layers[layer].get("external", [])
        text = read(path)
        for match in INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            spelling = match[1]
            group = next(
                (name for name, heads in groups.items() if spelling.startswith(heads)), None
            )
            if group is not None:
                if group not in external:
                    yield Finding(
                        path, line, f"{layer} may not include {group} headers <{spelling}>"
                    )
            elif "/" in spelling and not spelling.startswith(("sys/", "linux/", "asm/")):
                if not is_allowed(included_path(spelling), uses):
                    yield Finding(path, line, f"{layer} may not include <{spelling}> (layers.toml)")
            elif (ROOT / path).parent.joinpath(spelling).exists():
                yield Finding(path, line, f'include "{spelling}" by its full path from the root')


def imported_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        return [node.module.partition(".")[0]]
    return []


def is_type_checking(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def imports(tree: ast.Module) -> Iterator[tuple[ast.AST, str, bool]]:
    """Every import with whether it runs lazily (in a function, or for type checkers only)."""

    def visit(node: ast.AST, lazy: bool) -> Iterator[tuple[ast.AST, str, bool]]:
        for name in imported_names(node):
            yield node, name, lazy
        deeper = lazy or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        deeper = deeper or (isinstance(node, ast.stmt) and is_type_checking(node))
        for child in ast.iter_child_nodes(node):
            yield from visit(child, deeper)

    return visit(tree, False)


def check_python(table: dict[str, Any]) -> Iterator[Finding]:
    layers = table["python"]
    for path in python_files():
        layer = longest_folder(path, list(layers))
        if layer is None:
            continue
        uses, lazily = layers[layer]["uses"], layers[layer].get("lazy", [])
        try:
            tree = ast.parse(read(path))
        except SyntaxError as error:
            yield Finding(path, error.lineno or 1, f"syntax error: {error.msg}")
            continue
        for node, name, lazy in imports(tree):
            if name in sys.stdlib_module_names or name in uses or (lazy and name in lazily):
                continue
            where = " at module level" if name in lazily else ""
            yield Finding(path, node.lineno, f"{layer} may not import {name}{where} (layers.toml)")


def check() -> Iterator[Finding]:
    table = load_table()
    yield from check_cpp(table)
    yield from check_python(table)
