"""The modules that source text imports."""

from __future__ import annotations

import ast


class _Imports(ast.NodeVisitor):
    """Collects (module, name or None) of all imports, those by `__import__` of constants too."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.found: dict[tuple[str, str | None], None] = {}

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.found[(alias.name, None)] = None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = self._absolute(node.module or "", node.level)
        for alias in node.names:
            self.found[(module, alias.name)] = None

    def _absolute(self, name: str, level: int) -> str:
        if level == 0:
            return name
        parts = self.package.rsplit(".", level - 1) if self.package else []
        if len(parts) < level:
            raise ValueError("attempted relative import beyond top-level package")
        return f"{parts[0]}.{name}" if name else parts[0]

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.func.id != "__import__" or not node.args:
            return
        given = dict(
            zip(("name", "globals", "locals", "fromlist", "level"), node.args, strict=False)
        )
        given |= {k.arg: k.value for k in node.keywords if k.arg}
        try:
            name = ast.literal_eval(given["name"])
            names = ast.literal_eval(given["fromlist"]) if "fromlist" in given else []
            level = ast.literal_eval(given["level"]) if "level" in given else 0
        except ValueError:
            return  # known only at run time
        if not isinstance(name, str) or not isinstance(level, int):
            return
        module = self._absolute(name, level)
        for attribute in names or [None]:
            self.found[(module, attribute)] = None


def find_files_source_depends_on(src: str, package: str) -> list[tuple[str, str | None]]:
    """What the text of a module of `package` imports: (module, None) or (module, name)."""
    visitor = _Imports(package)
    visitor.visit(ast.parse(src))
    return list(visitor.found)
