"""Where compiled things are kept between processes."""

from __future__ import annotations

import contextlib
import os
import re

__all__ = ["cache_dir", "default_cache_dir"]


def default_cache_dir() -> str:
    """A folder of the user in the folder for temporary files."""
    import getpass
    import tempfile

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        user = str(os.getuid())
    name = re.sub(r'[\\/:*?"<>|]', "_", user)
    return os.path.join(tempfile.gettempdir(), f"torchinductor_{name}")


def cache_dir() -> str:
    """TORCHINDUCTOR_CACHE_DIR, or the default folder, which is then noted there. The folder is
    made if it can be."""
    path = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if path is None:
        path = os.environ["TORCHINDUCTOR_CACHE_DIR"] = default_cache_dir()
    with contextlib.suppress(OSError):  # caches do without
        os.makedirs(path, mode=0o700, exist_ok=True)
    return path
