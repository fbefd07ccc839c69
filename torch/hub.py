"""Models from folders with a hubconf.py, and files from the network. A download is checked against
the hash in its name and put in place only when it is complete. Repositories on GitHub are fetched
as archives only when the caller says that it trusts them."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from urllib.request import Request, urlopen

import torch

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
READ_DATA_CHUNK = 128 * 1024
MODULE_HUBCONF = "hubconf.py"
VAR_DEPENDENCY = "dependencies"
_TRUSTED = ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")
_hub_dir = None


# ---- where things are kept


def _get_torch_home() -> str:
    """The folder for everything that is kept: $TORCH_HOME, or torch in the cache folder."""
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder for repositories and weights: set_dir's, or hub in the folder of torch."""
    if os.getenv("TORCH_HUB"):
        warnings.warn("TORCH_HUB is deprecated, please use env TORCH_HOME instead", stacklevel=2)
    return os.path.join(_get_torch_home(), "hub") if _hub_dir is None else _hub_dir


def set_dir(d) -> None:
    """Keeps repositories and weights in this folder."""
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


# ---- local folders


@contextlib.contextmanager
def _on_path(folder) -> Iterator[None]:
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)


def _hubconf(folder):
    """The module hubconf.py of a folder, loaded anew."""
    path = os.path.join(folder, MODULE_HUBCONF)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"there is no {MODULE_HUBCONF} in {folder}")
    spec = importlib.util.spec_from_file_location(MODULE_HUBCONF, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _check_dependencies(module) -> None:
    missing = [
        name
        for name in getattr(module, VAR_DEPENDENCY, None) or ()
        if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")


def _entry(module, name):
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    _check_dependencies(module)
    function = getattr(module, name, None)
    if function is None or not callable(function):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return function


def _folder_of(repo, source, force_reload, trust_repo, skip_validation, verbose):
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "local":
        return repo
    return _fetch_repository(repo, force_reload, trust_repo, verbose)


def load(
    repo_or_dir,
    model,
    *args,
    source="github",
    trust_repo="check",
    force_reload=False,
    verbose=True,
    skip_validation=False,
    **kwargs,
) -> Any:
    """Calls the function `model` of hubconf.py, in a folder (source="local") or in a repository
    "owner/name[:ref]" on GitHub."""
    folder = _folder_of(repo_or_dir, source, force_reload, trust_repo, skip_validation, verbose)
    with _on_path(folder):
        return _entry(_hubconf(folder), model)(*args, **kwargs)


def list(
    github,
    force_reload=False,
    skip_validation=False,
    trust_repo="check",
    verbose=True,
    *,
    source=None,
) -> list[str]:
    """The names of the functions that hubconf.py offers. A folder that exists is read as it is."""
    source = source or ("local" if os.path.isdir(github) else "github")
    folder = _folder_of(github, source, force_reload, trust_repo, skip_validation, verbose)
    with _on_path(folder):
        module = _hubconf(folder)
    return [
        name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")
    ]


def help(
    github,
    model,
    force_reload=False,
    skip_validation=False,
    trust_repo="check",
    *,
    source=None,
) -> Any:
    """The documentation of a function of hubconf.py."""
    source = source or ("local" if os.path.isdir(github) else "github")
    folder = _folder_of(github, source, force_reload, trust_repo, skip_validation, True)
    with _on_path(folder):
        return _entry(_hubconf(folder), model).__doc__


# ---- repositories


def _parse_repository(text) -> tuple[str, str, str]:
    name, _, ref = text.partition(":")
    owner, _, repo = name.partition("/")
    if not owner or not repo or "/" in repo:
        raise ValueError(f"expected 'owner/name[:ref]', got {text!r}")
    return owner, repo, ref or "main"


def _check_trust(owner, repo, trust_repo) -> None:
    if trust_repo is True or owner in _TRUSTED:
        return
    raise RuntimeError(
        f"The repository {owner}/{repo} is not trusted: its code would run here. Pass "
        "trust_repo=True to load it."
    )


def _fetch_repository(text, force_reload, trust_repo, verbose):
    owner, repo, ref = _parse_repository(text)
    target = os.path.join(get_dir(), f"{owner}_{repo}_{ref.replace('/', '_')}")
    _check_trust(owner, repo, trust_repo)
    if os.path.exists(target) and not force_reload:
        if verbose:
            sys.stderr.write(f"Using cache found in {target}\n")
        return target
    os.makedirs(get_dir(), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=get_dir()) as work:
        archive = os.path.join(work, "archive.zip")
        url = f"https://github.com/{owner}/{repo}/zipball/{ref}"
        if verbose:
            sys.stderr.write(f'Downloading: "{url}" to {target}\n')
        download_url_to_file(url, archive, progress=False)
        unpacked = os.path.join(work, "unpacked")
        _unpack(archive, unpacked)
        (root,) = os.listdir(unpacked)
        shutil.rmtree(target, ignore_errors=True)
        shutil.move(os.path.join(unpacked, root), target)
    return target


def _unpack(archive, folder) -> None:
    """Unpacks a zip file; entries that would land outside of the folder are refused."""
    base = os.path.realpath(folder)
    with zipfile.ZipFile(archive) as file:
        for name in file.namelist():
            place = os.path.realpath(os.path.join(base, name))
            if place != base and not place.startswith(base + os.sep):
                raise RuntimeError(f"the archive holds {name!r}, which is outside of its folder")
        file.extractall(base)


# ---- files


def _open_url(url):
    return urlopen(Request(url, headers={"User-Agent": "torch.hub"}))


def download_url_to_file(url, dst, hash_prefix=None, progress=True) -> None:
    """Fetches a file. It is written beside its place, checked against the first digits of its
    SHA-256, and only then moved there: an interrupted download leaves nothing behind."""
    dst = os.path.expanduser(dst)
    handle, temporary = tempfile.mkstemp(
        prefix=os.path.basename(dst) + ".", suffix=".partial", dir=os.path.dirname(dst) or "."
    )
    try:
        digest = hashlib.sha256()
        with os.fdopen(handle, "wb") as file, _open_url(url) as source:
            total = source.headers.get("Content-Length")
            done = 0
            while chunk := source.read(READ_DATA_CHUNK):
                file.write(chunk)
                digest.update(chunk)
                done += len(chunk)
                if progress:
                    _show(done, total)
            if progress:
                sys.stderr.write("\n")
            if total is not None and done != int(total):
                raise RuntimeError(f"{url}: got {done} of {total} bytes")
            file.flush()
            os.fsync(file.fileno())
        found = digest.hexdigest()
        if hash_prefix is not None and not found.startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}")')
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, dst)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


class _Faketqdm:
    """What programs that take `tqdm` from here get where that package is not installed."""

    def __init__(
        self, total=None, disable=False, unit=None, unit_scale=None, unit_divisor=None, **kwargs
    ) -> None:
        self.total, self.disable, self.n = total, disable, 0

    def update(self, n) -> None:
        """Shows the progress on one line of stderr."""
        if not self.disable:
            self.n += n
            share = f"{self.n:.1f} bytes" if self.total is None else f"{self.n / self.total:.1%}"
            print("\r" + share, end="", file=sys.stderr, flush=True)

    def set_description(self, *args, **kwargs) -> None:
        """Descriptions are not shown."""

    def close(self) -> None:
        """Ends the line."""
        if not self.disable:
            sys.stderr.write("\n")

    def __enter__(self) -> _Faketqdm:
        return self

    def __exit__(self, *exc) -> None:
        self.close()


def __getattr__(name) -> Any:
    if name != "tqdm":
        raise AttributeError(f"module 'torch.hub' has no attribute {name!r}")
    try:
        from tqdm import tqdm
    except ImportError:
        return _Faketqdm
    return tqdm


def _show(done, total) -> None:
    share = f" ({100 * done / int(total):.0f}%)" if total and int(total) else ""
    sys.stderr.write(f"\r{done / 2**20:.1f} MB{share}")


def load_state_dict_from_url(
    url,
    model_dir=None,
    map_location=None,
    progress=True,
    check_hash=False,
    file_name=None,
    weights_only=False,
) -> Any:
    """torch.load of a file that is downloaded once and kept. With check_hash, the name holds the
    first digits of its SHA-256: resnet18-f37072fd.pth."""
    model_dir = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    try:
        os.makedirs(model_dir, exist_ok=True)
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise
    name = file_name or os.path.basename(urlparse(url).path)
    cached = os.path.join(model_dir, name)
    if not os.path.exists(cached):
        sys.stderr.write(f'Downloading: "{url}" to {cached}\n')
        match = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, cached, match.group(1) if match else None, progress=progress)
    if zipfile.is_zipfile(cached) and _is_old_archive(cached):
        with tempfile.TemporaryDirectory() as work:
            _unpack(cached, work)
            (only,) = os.listdir(work)
            return torch.load(
                Path(work, only), map_location=map_location, weights_only=weights_only
            )
    return torch.load(cached, map_location=map_location, weights_only=weights_only)


def _is_old_archive(path):
    """Whether a zip file holds one saved file rather than being one."""
    with zipfile.ZipFile(path) as file:
        names = file.infolist()
        return len(names) == 1 and not names[0].filename.endswith("data.pkl")
