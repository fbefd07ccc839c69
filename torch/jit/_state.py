"""State of the script compiler that programs look at: whether it is enabled (PYTORCH_JIT=0 turns it
off), and what was compiled."""

from __future__ import annotations

import os

from torch.jit._function import _scripted as _jit_caching_layer  # noqa: F401
from torch.jit._script import CompilationUnit


class EnabledProxy:
    """Whether scripting compiles."""

    def __init__(self) -> None:
        self.enabled = os.environ.get("PYTORCH_JIT", "1") not in ("0", "false", "False")

    def __bool__(self) -> bool:
        return self.enabled


_enabled = EnabledProxy()
_python_cu = CompilationUnit()


def disable() -> None:
    """torch.jit.script returns what it is given from now on."""
    _enabled.enabled = False


def enable() -> None:
    """torch.jit.script compiles from now on."""
    _enabled.enabled = True


def _clear_class_state() -> None:
    """Forgets which Python classes were compiled."""
    from torch.jit import _annotations

    _annotations._classes.clear()
