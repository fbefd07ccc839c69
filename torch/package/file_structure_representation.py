"""The files of a package as a tree that prints itself."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Directory"]


class Directory:
    """A file, or a folder with its files and folders."""

    def __init__(self, name: str, is_dir: bool) -> None:
        self.name = name
        self.is_dir = is_dir
        self.children: dict[str, Directory] = {}

    @classmethod
    def of_files(cls, name: str, paths: Iterable[str]) -> Directory:
        """The tree of these files below a folder."""
        top = cls(name, True)
        for path in paths:
            top._add_file(path)
        return top

    def _add_file(self, path: str) -> None:
        *folders, name = path.split("/")
        here = self
        for folder in folders:
            here = here.children.setdefault(folder, Directory(folder, True))
        here.children[name] = Directory(name, False)

    def has_file(self, filename: str) -> bool:
        """Whether a file lies at this path."""
        here = self
        for part in filename.split("/"):
            if part not in here.children:
                return False
            here = here.children[part]
        return not here.is_dir

    def __str__(self) -> str:
        lines: list[str] = []
        self._draw(lines, "", "")
        return "".join(lines)

    def _draw(self, lines: list[str], front: str, below: str) -> None:
        lines.append(f"{front}{self.name}\n")
        order = sorted(self.children.values(), key=lambda c: (not c.is_dir, c.name))
        for k, child in enumerate(order):
            last = k == len(order) - 1
            child._draw(
                lines, below + ("└── " if last else "├── "), below + ("    " if last else "│   ")
            )
