"""Write the package metadata of torch, so that pip and importlib.metadata find the tree installed.

Usage: metadata.py FOLDER, or --dependencies to print what the package requires. Other projects ask
for the version of the distribution `torch` and list it as a requirement; without this record pip
would fetch another torch over ours. The folder is one on the import path: the root of the tree,
which serves both .venv and PYTHONPATH, or the site-packages of an environment that links to the
tree. Everything is read from pyproject.toml, the same place the wheel takes it from, and nothing is
written when it is already there.
"""

from __future__ import annotations

import pathlib
import sys

try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def version() -> str:
    return project()["version"]


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def metadata() -> str:
    fields = project()
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {fields['name']}",
        f"Version: {fields['version']}",
        f"Summary: {fields['description']}",
        f"License: {fields['license']['text']}",
        f"Requires-Python: {fields['requires-python']}",
        *(f"Requires-Dist: {requirement}" for requirement in fields["dependencies"]),
    ]
    for extra, requirements in fields.get("optional-dependencies", {}).items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {one}; extra == "{extra}"' for one in requirements]
    return "\n".join(lines) + "\n"


def write(folder: pathlib.Path) -> pathlib.Path:
    """The dist-info in `folder`; one of another version of this project is removed first."""
    place = folder / f"torch-{version()}.dist-info"
    for old in folder.glob("torch-*+cresset*.dist-info"):
        if old != place:
            for file in old.iterdir():
                file.unlink()
            old.rmdir()
    files = {
        "METADATA": metadata(),
        "INSTALLER": "cresset\n",
        "top_level.txt": "torch\nfunctorch\n",
        # Only the record itself: an uninstall must never reach into the tree.
        "RECORD": "".join(
            f"{place.name}/{name},,\n"
            for name in ("METADATA", "INSTALLER", "top_level.txt", "RECORD")
        ),
    }
    place.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        file = place / name
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
    return place


if __name__ == "__main__":
    if sys.argv[1] == "--dependencies":
        print("\n".join(project()["dependencies"]))
    else:
        write(pathlib.Path(sys.argv[1]))
