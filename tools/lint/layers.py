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
        table = tomllib.load(file)
    native = "aten/src/ATen/native"
    common = table["cpp"][native]
    for family, others in table["families"].items():
        uses = common["uses"] + [f"{native}/{other}" for other in others]
        table["cpp"][f"{native}/{family}"] = {**common, "uses": uses}
    return table


def longest_folder(path: str, folders: list[str]) -> str | None:
    inside = [folder for folder in folders if path.startswith(folder + "/")]
    return max(inside, key=len, default=None)


def included_path(spelling: str) -> str:
    """The source path an include spells; generated headers count as if they lay there too."""
    # Headers that only programs see are written to a folder of their own.
    spelling = spelling.removeprefix("public/")
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


# Folders below these roots are layers of their own and need a row; deeper ones belong to theirs.
ROOTS = ("c10", "aten/src/ATen", "aten/src/ATen/native", "torch/csrc")


def check_rows(table: dict[str, Any]) -> Iterator[Finding]:
    """Every folder of sources is named in the table."""
    seen = set()
    for path in cpp_files():
        root = longest_folder(path, list(ROOTS))
        below = path[len(root) + 1 :].partition("/") if root else ("", "", "")
        folder = f"{root}/{below[0]}" if below[1] else root
        if folder and folder not in ("torch/csrc", *table["cpp"]) and folder not in seen:
            seen.add(folder)
            yield Finding(path, 1, f"{folder} has no row in layers.toml")


def check_cpp(table: dict[str, Any]) -> Iterator[Finding]:
    for path in cpp_files():
        yield from check_includes(table, path, read(path))


def check_includes(table: dict[str, Any], path: str, text: str) -> Iterator[Finding]:
    """Holds the includes of one source, which lies or would lie at `path`, against the table."""
    layer = longest_folder(path, list(table["cpp"]))
    if layer is None:
        return
    uses = table["cpp"][layer]["uses"] + [layer]
    external = table["cpp"][layer].get("external", [])
    for match in INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        spelling = match[1]
        group = next((g for g, heads in table["external"].items() if starts(spelling, heads)), None)
        if group is not None:
            if group not in external:
                yield Finding(path, line, f"{layer} may not include {group} headers <{spelling}>")
        elif "/" in spelling and not spelling.startswith(("sys/", "linux/", "asm/")):
            if not is_allowed(included_path(spelling), uses):
                yield Finding(path, line, f"{layer} may not include <{spelling}> (layers.toml)")
        elif (ROOT / path).parent.joinpath(spelling).is_file():
            yield Finding(path, line, f'include "{spelling}" by its full path from the root')


def starts(spelling: str, heads: list[str]) -> bool:
    return spelling.startswith(tuple(heads))


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


def tier_of(module: str, order: list[list[str]]) -> int:
    """The tier of the longest package named in the table that holds the module."""
    found = [
        (len(name), rank)
        for rank, names in enumerate(order)
        for name in names
        if module == name or module.startswith(name + ".")
    ]
    return max(found)[1] if found else -1


def absolute(node: ast.stmt, package: list[str]) -> list[str]:
    """The modules of torch that an import statement at module level may load."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        up = package[: len(package) - node.level + 1] if node.level else []
        base = ".".join([*up, *([node.module] if node.module else [])])
        return [f"{base}.{alias.name}" for alias in node.names]
    return []


def check_tiers(table: dict[str, Any]) -> Iterator[Finding]:
    order = table["tiers"]["order"]
    for path in python_files():
        if not path.startswith("torch/"):
            continue
        names = path.removesuffix(".py").split("/")
        package = names[:-1]
        module = ".".join(package if names[-1] == "__init__" else names)
        rank = tier_of(module, order)
        for node in ast.parse(read(path)).body:
            for target in absolute(node, package):
                if tier_of(target, order) > rank:
                    text = f"{module} may not import {target} at module level (tiers, layers.toml)"
                    yield Finding(path, node.lineno, text)


def check() -> Iterator[Finding]:
    table = load_table()
    yield from check_rows(table)
    yield from check_cpp(table)
    yield from check_python(table)
    yield from check_tiers(table)
