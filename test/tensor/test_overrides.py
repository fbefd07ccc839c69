"""__torch_function__, modes, the default device and __torch_dispatch__ as Python code sees them."""

import pytest
from tensor_support import OperatorLog

import torch
from torch.overrides import (
    TorchFunctionMode,
    get_overridable_functions,
    handle_torch_function,
    has_torch_function,
    is_tensor_like,
    resolve_name,
)


class Log(TorchFunctionMode):
    def __init__(self):
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


def test_subclass_survives_operators_and_python_functions():
    class Mine(torch.Tensor):
        pass

    x = torch.arange(4.0).as_subclass(Mine)
    assert type(x + 1) is Mine and type(torch.split(x, 2)[0]) is Mine
    assert type(x.max(dim=0)[0]) is Mine
    assert type(x.as_subclass(torch.Tensor)) is torch.Tensor


def test_objects_that_override_get_the_call():
    class Stand:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, args

    s = Stand()
    assert torch.add(s, 1) == (torch.add, (s, 1))
    assert torch.split(s, 2)[0] is torch.split
    assert is_tensor_like(s) and not is_tensor_like(1)
    assert has_torch_function((s,)) and not has_torch_function((torch.ones(1),))


def test_override_that_declines_everything_raises():
    class Never:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="returned NotImplemented"):
        torch.add(Never(), 1)
    with pytest.raises(TypeError, match="no implementation found"):
        handle_torch_function(torch.split, (Never(),), Never(), 1)


def test_mode_sees_functions_methods_and_indexing():
    with Log() as log:
        x = torch.ones(4)
        x.add(1)
        x[0]
        torch.split(x, 2)
        torch.tensor(1)
    assert log.names == ["ones", "add", "__getitem__", "split", "tensor"]


def test_modes_nest_and_leave():
    outer, inner = Log(), Log()
    with outer:
        with inner:
            torch.ones(1)
        torch.zeros(1)
    torch.ones(1)
    assert inner.names == ["ones"] and outer.names == ["ones", "zeros"]


def test_device_as_context_is_the_default_device():
    with torch.device("meta"):
        assert torch.ones(2).is_meta and torch.tensor([1]).is_meta
        assert torch.ones(2, device="cpu").device.type == "cpu"
        assert torch.get_default_device() == torch.device("meta")
    assert torch.ones(2).device.type == "cpu"


def test_default_device_can_be_set_and_reset():
    torch.set_default_device("meta")
    try:
        assert torch.zeros(2).is_meta
    finally:
        torch.set_default_device(None)
    assert torch.zeros(2).device.type == "cpu"


def test_dispatch_mode_sees_operators():
    with OperatorLog() as mode:
        torch.ones(2)[0]
    assert mode.names[-1] == "aten.select.int"


def test_overridable_functions_have_names():
    functions = get_overridable_functions()
    assert torch.add in functions[torch]
    assert resolve_name(torch.add) == "torch.add"
    assert resolve_name(torch.Tensor.add) == "torch.Tensor.add"
    assert resolve_name(print) is None


def test_missing_names_are_said_to_be_missing():
    assert not hasattr(torch, "no_such_name")
    with pytest.raises(AttributeError, match="module 'torch' has no attribute 'no_such_name'"):
        _ = torch.no_such_name
