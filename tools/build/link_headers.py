"""Lay out the headers of a built source tree as a wheel has them.

Usage: link_headers.py SOURCE BUILD. Fills SOURCE/torch/include with links to the headers of c10,
ATen and torch/csrc and to the generated ones, and SOURCE/torch/share/cmake/Torch with the CMake
package, so that extensions and CMake projects build against the tree as against an installation.
Links whose target is gone are removed; git ignores both folders.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import sys

SUFFIXES = {".h", ".hpp", ".inc", ".cuh"}
# Folder of the source tree (or, with "build:", of the build) -> folder below torch/include.
PLACES = {
    "c10": "c10",
    "aten/src/ATen": "ATen",
    "torch/csrc": "torch/csrc",
    "torch/headeronly": "torch/headeronly",
    "torch/csrc/api/include/torch": "torch",
    "build:gen/ATen": "ATen",
    "build:gen/torch": "torch",
    # What programs see instead of the library's own view comes last.
    "build:gen/public": ".",
}


def wanted_links(source: pathlib.Path, build: pathlib.Path) -> dict[pathlib.Path, pathlib.Path]:
    """Path below torch/include -> header."""
    links: dict[pathlib.Path, pathlib.Path] = {}
    for name, place in PLACES.items():
        folder = build / name.removeprefix("build:") if name.startswith("build:") else source / name
        for parent, _, files in os.walk(folder):
            for file in files:
                if os.path.splitext(file)[1] in SUFFIXES:
                    path = pathlib.Path(parent, file)
                    links[pathlib.Path(place) / path.relative_to(folder)] = path
    for path in sorted((source / "torch").glob("*.h")):
        links[pathlib.Path("torch", path.name)] = path
    return links


def link_headers(source: pathlib.Path, build: pathlib.Path) -> None:
    include = source / "torch" / "include"
    links = wanted_links(source, build)
    for parent, _, files in os.walk(include):
        for file in files:
            path = pathlib.Path(parent, file)
            if path.relative_to(include) not in links or not path.exists():
                path.unlink()
    for place, header in links.items():
        link = include / place
        if not os.path.lexists(link) or os.readlink(link) != str(header):
            link.unlink(missing_ok=True)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(header)
    package = source / "torch" / "share" / "cmake" / "Torch"
    package.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / "cmake" / "TorchConfig.cmake", package / "TorchConfig.cmake")
    version = build / "TorchConfigVersion.cmake"
    shutil.copyfile(version, package / version.name)


if __name__ == "__main__":
    link_headers(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve())
