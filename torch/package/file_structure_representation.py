"""The files of a package as a tree that prints itself."""

from __future__ import annotations

from torch.package.glob_group import GlobGroup, GlobPattern

__all__ = ["Directory"]


class Directory:
    """A file, or a folder with its files and folders."""

    def __init__(self, name: str, is_dir: bool) -> None:
        self.name = name
        self.is_dir = is_dir
        self.children: dict[str, Directory] = {}

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


def _create_directory_from_file_list(
    filename: str, file_list: list[str], include: GlobPattern = "**", exclude: GlobPattern = ()
) -> Directory:
    """The tree of the files that the patterns choose."""
    chosen = GlobGroup(include, exclude=exclude, separator="/")
    top = Directory(filename, True)
    for path in file_list:
        if chosen.matches(path):
            top._add_file(path)
    return top
