"""Modules of settings that belong to parts not written yet: programs set them at import time. What
is set is kept and given back; `patch` sets for a while."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator


class SettingsModule(types.ModuleType):
    """A module whose unknown attributes are None until set."""

    def __getattr__(self, name) -> None:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


class Group:
    """Settings below a name, such as config.triton.cudagraphs."""

    def __init__(self, **values) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name) -> None:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


def patcher(module):
    """The `patch` of a settings module: patch("name", value), patch(name=value), patch({...})."""

    @contextlib.contextmanager
    def patch(arg1=None, arg2=None, **kwargs) -> Iterator[None]:
        changes = dict(arg1) if isinstance(arg1, dict) else {}
        if isinstance(arg1, str):
            changes[arg1] = arg2
        changes.update(kwargs)
        owners = {key: _owner(module, key) for key in changes}
        saved = {key: getattr(*owners[key]) for key in changes}
        for key, value in changes.items():
            setattr(*owners[key], value)
        try:
            yield
        finally:
            for key, value in saved.items():
                setattr(*owners[key], value)

    return patch


def _owner(module, key):
    *groups, name = key.split(".")
    for group in groups:
        module = getattr(module, group)
    return module, name
