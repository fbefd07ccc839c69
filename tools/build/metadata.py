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
import shutil
import sys

try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def version() -> str:
    return project()["version"]


def configuration() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def project() -> dict:
    return configuration()["project"]


def licence_files() -> list[str]:
    """What the wheel carries in dist-info/licenses, relative to the root of the tree."""
    return configuration()["tool"]["scikit-build"]["wheel"]["license-files"]


def metadata() -> str:
    fields = project()
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {fields['name']}",
        f"Version: {fields['version']}",
        f"Summary: {fields['description']}",
        f"License: {fields['license']['text']}",
        *(f"License-File: {name}" for name in licence_files()),
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
            shutil.rmtree(old)
    files = {
        "METADATA": metadata(),
        "INSTALLER": "cresset\n",
        "top_level.txt": "torch\nfunctorch\n",
        **{f"licenses/{name}": (ROOT / name).read_text() for name in licence_files()},
    }
    # Only the record itself: an uninstall must never reach into the tree.
    files["RECORD"] = "".join(f"{place.name}/{name},,\n" for name in (*files, "RECORD"))
    for name, text in files.items():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
    return place


if __name__ == "__main__":
    if sys.argv[1] == "--dependencies":
        print("\n".join(project()["dependencies"]))
    else:
        write(pathlib.Path(sys.argv[1]))
