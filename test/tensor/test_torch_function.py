"""__torch_function__: overriding by subclasses, by unrelated classes, by modes, and the
switches."""

import threading

import pytest

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode


class Like:
    """No tensor, but stands in for one."""

    def __init__(self, log):
        self.log = log

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        owner = next(a for a in flatten(args) if isinstance(a, Like))
        owner.log.append((func, types, args, kwargs))
        return "handled"


def flatten(values):
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from flatten(value)
        else:
            yield value


class Recording(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls.append(func)
        return func(*args, **(kwargs or {}))


# ---- tensor-likes --------------------------------------------------------------------------------


def test_function_receives_public_callable_types_and_arguments():
    log = []
    like, t = Like(log), torch.ones(2)
    assert torch.add(like, t, alpha=2) == "handled"
    func, types, args, kwargs = log[0]
    assert func is torch.add and types == (Like,) and args == (like, t) and kwargs == {"alpha": 2}


def test_kwargs_are_left_out_when_there_are_none():
    log = []
    torch.exp(Like(log))
    assert log[0][3] is None


def test_methods_and_operators_ask_other_operands():
    log = []
    like, t = Like(log), torch.ones(2)
    assert t.add(like) == "handled" and t + like == "handled" and like is not None
    assert all(entry[0] is torch.Tensor.add for entry in log)


def test_items_of_lists_are_asked():
    log = []
    assert torch.cat([torch.ones(2), Like(log)]) == "handled"
    assert log[0][0] is torch.cat


@pytest.mark.parametrize(
    ("call", "args", "kwargs"),
    [
        (lambda x: F.glu(x), 1, {"dim": -1}),
        (lambda x: F.threshold(x, 0.5, value=2.0), 3, {"inplace": False}),
        (
            lambda x: F.huber_loss(x, x, delta=2.0),
            2,
            {"reduction": "mean", "delta": 2.0, "weight": None},
        ),
    ],
)
def test_functional_passes_needed_arguments_by_position_and_others_by_name(call, args, kwargs):
    log = []
    assert call(Like(log)) == "handled"
    ((_, _, given, named),) = log
    assert len(given) == args
    assert named == kwargs


def test_not_implemented_by_all_is_a_type_error():
    class Refuses:
        @classmethod
        def __torch_function__(cls, *args, **kwargs):
            return NotImplemented

    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch.add'"):
        torch.add(Refuses(), torch.ones(2))
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+"):
        torch.ones(2) + Refuses()


def test_errors_in_handlers_pass_through():
    class Fails:
        @classmethod
        def __torch_function__(cls, *args, **kwargs):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        torch.exp(Fails())


# ---- subclasses ----------------------------------------------------------------------------------


class Logged(torch.Tensor):
    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            name = getattr(func, "__name__", str(func))
            Logged.calls.append((name, getattr(func, "__self__", None)))
        return super().__torch_function__(func, types, args, kwargs)


@pytest.fixture
def logged():
    t = torch.ones(2, 3).as_subclass(Logged)
    Logged.calls.clear()
    return t


def last_name():
    return Logged.calls[-1][0]


def test_results_keep_the_subclass(logged):
    assert type(logged + 1) is Logged and last_name() == "add"
    assert type(1 + logged) is Logged
    assert type(logged[0]) is Logged and last_name() == "__getitem__"
    assert type(torch.exp(logged)) is Logged and last_name() == "exp"
    assert type(logged.view(6)) is Logged


def test_attributes_and_plain_methods_are_asked(logged):
    assert logged.shape == (2, 3)
    assert Logged.calls[-1] == ("__get__", torch.Tensor.shape)
    logged.requires_grad = False
    assert Logged.calls[-1] == ("__set__", torch.Tensor.requires_grad)
    for name in ("size", "dim", "numel", "stride", "tolist", "is_contiguous", "element_size"):
        getattr(logged, name)()
        assert last_name() == name
    len(logged)
    assert last_name() == "__len__"
    bool(logged[0, 0])
    assert last_name() == "__bool__"


def test_subclass_of_a_subclass_is_asked_first():
    class Outer(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "outer", types

    class Inner(Outer):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "inner", types

    with torch._C.DisableTorchFunctionSubclass():
        a, b = torch.ones(2).as_subclass(Outer), torch.ones(2).as_subclass(Inner)
    assert torch.add(a, b) == ("inner", (Inner, Outer))
    assert torch.add(a, a) == ("outer", (Outer,))


def test_override_added_to_a_class_later_is_seen():
    class Late(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    t = torch.ones(2).as_subclass(Late)
    assert type(torch.exp(t)) is torch.Tensor
    Late.__torch_function__ = classmethod(lambda cls, *args, **kwargs: "late")
    assert torch.exp(t) == "late"


def test_parameter_is_plain():
    p = torch.nn.Parameter(torch.ones(2))
    assert not torch.overrides.has_torch_function((p,))
    assert type(p.detach() + 1) is torch.Tensor


# ---- modes ---------------------------------------------------------------------------------------


def test_mode_sees_functions_methods_and_factories():
    t = torch.ones(2)
    with Recording() as mode:
        torch.add(t, 1)
        t + 1
        torch.zeros(2)
    assert mode.calls == [torch.add, torch.Tensor.add, torch.zeros]


def test_modes_nest_innermost_first():
    order = []

    class Named(TorchFunctionMode):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            order.append(self.name)
            return func(*args, **(kwargs or {}))

    with Named("outer"), Named("inner"):
        torch.zeros(2)
    assert order == ["inner", "outer"]
    assert torch._C._len_torch_function_stack() == 0


def test_mode_is_left_after_an_error():
    class Fails(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise KeyError("mode")

    with pytest.raises(KeyError), Fails():
        torch.zeros(2)
    assert torch._C._len_torch_function_stack() == 0
    assert torch.zeros(2).shape == (2,)


def test_modes_belong_to_their_thread():
    seen = []
    with Recording() as mode:
        thread = threading.Thread(target=lambda: seen.append(torch._C._len_torch_function_stack()))
        thread.start()
        thread.join()
        assert seen == [0]
    assert mode.calls == []


def test_popping_an_empty_stack_raises():
    with pytest.raises(RuntimeError):
        torch._C._pop_torch_function_stack()
    with pytest.raises(IndexError):
        torch._C._get_function_stack_at(0)


# ---- switches ------------------------------------------------------------------------------------


def test_disabling_subclasses_leaves_modes(logged):
    with Recording() as mode, torch._C.DisableTorchFunctionSubclass():
        Logged.calls.clear()
        torch.exp(logged)
    assert Logged.calls == [] and mode.calls == [torch.exp]


def test_disabling_all(logged):
    with Recording() as mode, torch._C.DisableTorchFunction():
        torch.exp(logged)
    assert Logged.calls == [] and mode.calls == []


def test_state_is_restored():
    state = torch._C._get_torch_function_state()
    assert state == torch._C._TorchFunctionState.ENABLED
    with torch._C.DisableTorchFunctionSubclass():
        assert (
            torch._C._get_torch_function_state() == torch._C._TorchFunctionState.SUBCLASSES_DISABLED
        )
        assert not torch._C._is_torch_function_enabled()
    assert torch._C._is_torch_function_enabled()
    with pytest.raises(ValueError):
        torch._C._set_torch_function_state(7)
