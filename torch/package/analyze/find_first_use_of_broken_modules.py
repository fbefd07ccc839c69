"""The way from what was saved to each module that cannot be packaged."""

from __future__ import annotations

from torch.package.package_exporter import PackagingError


def find_first_use_of_broken_modules(exc: PackagingError) -> dict[str, list[str]]:
    """One chain of modules, from the first to the broken one, for each broken module."""
    if not isinstance(exc, PackagingError):
        raise AssertionError("exception must be a PackagingError")
    graph = exc.dependency_graph
    return {
        str(name): [str(n) for n in graph.first_path(name)]
        for name, attributes in graph.nodes.items()
        if "error" in attributes
    }
