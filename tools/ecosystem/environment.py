"""The virtual environment of one project with one torch in it, and the project's unmodified tests.

Ours is either a wheel or links into the tree with package metadata beside them; the peer's comes
from the interpreter it is installed in. A constraint holds pip to the torch that is there, so that
no requirement can replace it in silence. What was installed is remembered in a stamp.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.parse
import urllib.request
from typing import Protocol

from pip._internal.models.index import PyPI
from project import HERE, Project

ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tools" / "build"))

import metadata  # noqa: E402


class Options(Protocol):
    """The options of the command that matter here."""

    peer: str
    wheel: str
    tree: pathlib.Path


HARNESS = ["pytest==9.2.0", "pytest-timeout==2.4.0", "pytest-xdist==3.8.0", "numpy"]


def run(command: list[object], **options: object) -> str:
    words = [str(word) for word in command]
    result = subprocess.run(words, capture_output=True, text=True, **options)
    if result.returncode:
        tail = "\n".join((result.stdout + result.stderr).strip().splitlines()[-15:])
        raise SystemExit(f"failed: {' '.join(words)}\n{tail}")
    return result.stdout


def clean_environment() -> dict[str, str]:
    """Without the variables through which another torch could get in."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in hidden}


def python_of(folder: pathlib.Path) -> pathlib.Path:
    return folder / "bin" / "python"


def site_of(python: pathlib.Path | str) -> pathlib.Path:
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return pathlib.Path(run([python, "-c", code], env=clean_environment(), cwd="/").strip())


def torch_version(python: pathlib.Path | str) -> str:
    code = "import importlib.metadata as m; print(m.version('torch'))"
    return run([python, "-c", code], env=clean_environment(), cwd="/").strip()


def put_ours(folder: pathlib.Path, wheel: str, tree: pathlib.Path) -> None:
    python = python_of(folder)
    if wheel:
        run([python, "-m", "pip", "install", "-q", wheel], env=clean_environment())
        return
    site = site_of(python)
    for package in ("torch", "functorch"):
        link = site / package
        link.unlink(missing_ok=True)
        link.symlink_to(tree / package)
    metadata.write(site)
    needed = metadata.project()["dependencies"]
    run([python, "-m", "pip", "install", "-q", *needed], env=clean_environment())


def side_of(project: Project, kind: str) -> tuple[list[str], list[str]]:
    """The requirements of one side, and all of it that come without their dependencies."""
    if kind == "ours":
        return project.ours_only, [*project.no_deps, *project.ours_no_deps]
    return project.peer_only, [*project.no_deps, *project.peer_no_deps]


def stamp(project: Project, kind: str, torch: str) -> str:
    side, bare = side_of(project, kind)
    parts = [torch, *HARNESS, *project.requires, "|", *bare, "|", *side]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def prepare(project: Project, kind: str, folder: pathlib.Path, options: Options) -> None:
    """Makes the environment of kind "ours" or "peer" in `folder`, unless it stands there."""
    peer = options.peer
    torch = (
        torch_version(peer)
        if kind == "peer"
        else f"{metadata.version()} {options.wheel or options.tree}"
    )
    wanted = stamp(project, kind, torch)
    mark = folder / ".stamp"
    if mark.exists() and mark.read_text() == wanted:
        return
    print(f"{project.name}: making the environment of {kind}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    if kind == "peer":
        run([peer, "-m", "venv", folder], env=clean_environment())
        # Not --system-site-packages: the peer may itself live in a virtual environment.
        (site_of(python_of(folder)) / "peer.pth").write_text(f"{site_of(peer)}\n")
    else:
        run([sys.executable, "-m", "venv", folder], env=clean_environment())
        put_ours(folder, options.wheel, options.tree)
    python = python_of(folder)
    held = torch_version(python)
    constraint = folder / "constraint.txt"
    constraint.write_text(f"torch=={held}\n")
    pip = [python, "-m", "pip", "install", "-q", "-c", constraint]
    side, bare = side_of(project, kind)
    if bare:
        run([*pip, "--no-deps", *bare], env=clean_environment())
    run([*pip, *HARNESS, *project.requires, *side], env=clean_environment())
    if torch_version(python) != held:
        raise SystemExit(f"{project.name}: pip replaced torch {held}")
    mark.write_text(wanted)


def index_url() -> str:
    """The package index that pip is set to use: source distributions come from where the packages
    come from, and no address of one stands in this tree."""
    if url := os.environ.get("PIP_INDEX_URL"):
        return url.rstrip("/")
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    said = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return (said or PyPI.simple_url).rstrip("/")


def fetch_sdist(requirement: str, cache: pathlib.Path) -> pathlib.Path:
    """The source distribution from the package index, by its listing: `pip download` would have to
    build the project first to read its metadata."""
    name, version = requirement.split("==")
    page = f"{index_url()}/{re.sub('[-_.]+', '-', name).lower()}/"
    stem = re.sub("[-_.]+", "[-_.]+", name)
    pattern = re.compile(rf"{stem}-{re.escape(version)}\.tar\.gz", re.IGNORECASE)
    cache.mkdir(parents=True, exist_ok=True)
    if found := [path for path in cache.iterdir() if pattern.fullmatch(path.name)]:
        return found[0]
    with urllib.request.urlopen(page, timeout=60) as answer:
        links = re.findall(r'href="([^"]+)"', answer.read().decode())
    for link in links:
        address, _, digest = urllib.parse.urljoin(page, link).partition("#sha256=")
        file = address.rsplit("/", 1)[-1]
        if not pattern.fullmatch(file):
            continue
        with urllib.request.urlopen(address, timeout=180) as answer:
            content = answer.read()
        if digest and hashlib.sha256(content).hexdigest() != digest:
            raise SystemExit(f"{file}: the download does not have the digest of the index")
        (cache / file).write_bytes(content)
        return cache / file
    raise SystemExit(f"{page} lists no source distribution of {requirement}")


def unpack(project: Project, folder: pathlib.Path, cache: pathlib.Path) -> None:
    """A fresh copy of the tests for each run: a suite may leave files behind."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if project.script:
        # All of them: a script may use another's helpers and its recorded numbers.
        shutil.copytree(HERE / "scripts", folder, dirs_exist_ok=True)
        (folder / "pytest.ini").write_text("[pytest]\n")
        return
    archive = fetch_sdist(project.sdist, cache)
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    (top,) = folder.iterdir()
    for path in top.iterdir():
        path.rename(folder / path.name)
    top.rmdir()
