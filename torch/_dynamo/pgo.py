"""What was learned about sizes and numbers, kept between processes. A job has a name
(torch.compiler.config.job_id, TORCH_COMPILE_JOB_ID); the values seen under each source of a
function are written to a file of that job, so that in its next run what varied is a symbol from
the start."""

from __future__ import annotations

import json
import os
import types

from torch._dynamo import config
from torch.compiler import config as compiler_config

# {function: {source: number, list of sizes, or None for what varies}}
Profile = dict[str, dict[str, object]]


def _cache_dir() -> str:
    given = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if given:
        return given
    import getpass
    import tempfile

    return os.path.join(tempfile.gettempdir(), f"torchinductor_{getpass.getuser()}")


def _path() -> str | None:
    """The file of this job, or None where nothing is to be kept."""
    job = compiler_config.job_id
    if not job or not config.automatic_dynamic_local_pgo:
        return None
    import hashlib

    name = f"{job}\0{compiler_config.cache_key_tag}".encode()
    digest = hashlib.sha256(name).hexdigest()[:32]
    return os.path.join(_cache_dir(), "dynamo", f"code_state_{digest}.json")


def _key(code: types.CodeType) -> str:
    return f"{code.co_filename}:{code.co_firstlineno}:{code.co_name}"


def _read(path: str) -> Profile:
    try:
        with open(path) as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def load(code: types.CodeType) -> dict[str, object]:
    """What earlier runs of this job saw in a function."""
    path = _path()
    found = {} if path is None else _read(path).get(_key(code), {})
    return found if isinstance(found, dict) else {}


def _plain(value: object) -> bool:
    if isinstance(value, list):
        return all(_plain(item) for item in value)
    return value is None or type(value) in (int, float, bool)


def save(code: types.CodeType, state: dict[str, object]) -> None:
    """Keeps what was seen in a function. A folder that cannot be written to is no error."""
    path = _path()
    seen = {name: value for name, value in state.items() if _plain(value)}
    if path is None or not seen:
        return
    import tempfile

    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        profile = _read(path)
        profile[_key(code)] = seen
        with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(path), delete=False) as file:
            json.dump(profile, file)
        os.replace(file.name, path)
    except OSError:
        return
