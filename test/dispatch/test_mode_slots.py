"""The fixed places that infrastructure modes have below the modes of the user."""

import pytest

import torch
from torch import _C
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode_stack,
    _pop_mode_temporarily,
)

PROXY = _C._TorchDispatchModeKey.PROXY


class _Recorder(TorchDispatchMode):
    """Notes its name and the operators that it sees."""

    def __init__(self, name: str, seen: list[str], key: object = None) -> None:
        super().__init__()
        self.name, self.seen, self._mode_key = name, seen, key

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(f"{self.name}:{func}")
        return func(*args, **(kwargs or {}))


def test_mode_with_a_slot_entered_last_runs_below_user_modes():
    seen: list[str] = []
    with _Recorder("user", seen), _Recorder("proxy", seen, PROXY) as proxy:
        assert _C._get_dispatch_mode(PROXY) is proxy
        torch.neg(torch.ones(2))
    assert [s for s in seen if "neg" in s] == ["user:aten.neg.default", "proxy:aten.neg.default"]
    assert _C._get_dispatch_mode(PROXY) is None


def test_mode_with_a_slot_popped_for_a_block_returns_to_its_slot():
    proxy, user = _Recorder("proxy", [], PROXY), _Recorder("user", [])
    with proxy:
        with _pop_mode_temporarily() as popped:
            assert popped is proxy
            assert _get_current_dispatch_mode_stack() == []
        with user:
            assert _get_current_dispatch_mode_stack() == [proxy, user]
        assert _C._get_dispatch_mode(PROXY) is proxy


def test_mode_with_something_else_as_native_handler_is_refused():
    mode = _Recorder("proxy", [], PROXY)
    mode._native_handler = "a text"
    with pytest.raises(ValueError, match="PyCapsule"), mode:
        pass
    assert _get_current_dispatch_mode_stack() == []
