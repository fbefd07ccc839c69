"""Link generated Python-side files (stubs, the operator table) into the source tree's torch/.

Usage: link_generated.py GENERATED_TORCH SOURCE_TORCH. The build runs it after torchgen, so that the
tree can be imported and an editor finds the stubs; git ignores the links. A link whose target is
gone is removed, a file that is not a link is never touched.
"""

from __future__ import annotations

import pathlib
import sys

SUFFIXES = {".pyi", ".json", ".py"}


def drop_dead_links(folder: pathlib.Path) -> None:
    for path in folder.iterdir() if folder.is_dir() else []:
        if path.is_symlink() and not path.exists():
            path.unlink()


def link(generated: pathlib.Path, source: pathlib.Path) -> None:
    drop_dead_links(source)
    for path in sorted(generated.rglob("*")):
        if path.suffix not in SUFFIXES:
            continue
        place = source / path.relative_to(generated)
        drop_dead_links(place.parent)
        if place.exists() and not place.is_symlink():
            raise SystemExit(f"link_generated: {place} is in the way of a generated file")
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists() or not place.samefile(path):
            place.unlink(missing_ok=True)
            place.symlink_to(path)


if __name__ == "__main__":
    link(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve())
