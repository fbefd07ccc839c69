"""The dispatcher from Python: keys, guards, operators as objects, __torch_dispatch__ and its
modes."""

import numpy as np
import pytest

import torch
from torch._C import DispatchKey, DispatchKeySet
from torch.utils._python_dispatch import TorchDispatchMode


class Trace(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append((str(func), types, args, kwargs))
        return func(*args, **(kwargs or {}))

    def names(self):
        return [call[0] for call in self.calls]


# ---- keys and guards -----------------------------------------------------------------------------


def test_keys_and_sets():
    keys = DispatchKeySet(DispatchKey.CPU) | DispatchKeySet(DispatchKey.AutogradCPU)
    assert keys.has(DispatchKey.CPU) and DispatchKey.AutogradCPU in keys and not keys.has("Meta")
    assert keys.highestPriorityTypeId() == DispatchKey.AutogradCPU
    assert keys.remove("CPU") == DispatchKeySet(DispatchKey.AutogradCPU)
    assert repr(DispatchKeySet("CPU")) == "DispatchKeySet(CPU)"
    assert DispatchKeySet.from_raw_repr(keys.raw_repr()) == keys
    assert str(DispatchKey.CPU) == "DispatchKey.CPU" and DispatchKey.CPU.name == "CPU"
    with pytest.raises(RuntimeError, match="could not parse dispatch key: Nope"):
        DispatchKeySet("Nope")
    with pytest.raises(TypeError):
        DispatchKeySet(3)


def test_guards_put_back_what_was_there():
    before = torch._C._dispatch_tls_local_exclude_set()
    with torch._C._ExcludeDispatchKeyGuard(DispatchKeySet("Python")):
        assert torch._C._dispatch_tls_is_dispatch_key_excluded("Python")
        with torch._C._AutoDispatchBelowAutograd():
            assert torch._C._dispatch_tls_is_dispatch_key_excluded("AutogradCPU")
        assert not torch._C._dispatch_tls_is_dispatch_key_excluded("AutogradCPU")
    assert torch._C._dispatch_tls_local_exclude_set() == before


def test_keys_of_a_tensor():
    assert torch._C._dispatch_keys(torch.ones(2)).has("CPU")
    assert torch._C._dispatch_keys(torch.ones(2, device="meta")).has("Meta")


# ---- operators -----------------------------------------------------------------------------------


def test_operator_is_called_by_schema():
    t = torch.ones(2)
    add = torch.ops.aten.add.Tensor
    assert add(t, t, alpha=2).tolist() == [3.0, 3.0]
    assert add(self=t, other=t).tolist() == [2.0, 2.0]
    assert add(t, 1).tolist() == [2.0, 2.0]
    assert torch.ops.aten.add_.Tensor(t, 1) is t
    out = torch.empty(2)
    assert torch.ops.aten.add.out(t, t, out=out) is out


@pytest.mark.parametrize(
    ("args", "kwargs", "phrase"),
    [
        (
            ("a",),
            {},
            "Expected a value of type 'Tensor' for argument 'self' but instead found type 'str'",
        ),
        ((), {}, "is missing value for argument 'self'"),
        ((1, 2, 3), {}, "takes 2 positional argument"),
        ((1, 2), {"foo": 1}, "Unknown keyword argument 'foo'"),
        ((1,), {"self": 1}, "multiple values for argument 'self'"),
    ],
)
def test_operator_refuses_what_the_schema_does_not_take(args, kwargs, phrase):
    with pytest.raises(RuntimeError) as caught:
        torch.ops.aten.add.Tensor(*args, **kwargs)
    assert phrase in str(caught.value)


def test_packet_picks_an_overload():
    t = torch.ones(2)
    assert torch.ops.aten.add(t, t).tolist() == [2.0, 2.0]
    assert torch.ops.aten.add(t, 2).tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="failed to match any schema"):
        torch.ops.aten.add(t, "a")


def test_schema_can_be_read():
    schema = torch.ops.aten.add.Tensor._schema
    assert str(schema) == "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    assert schema.name == "aten::add" and schema.overload_name == "Tensor" and not schema.is_mutable
    alpha = schema.arguments[2]
    assert (
        alpha.name == "alpha"
        and alpha.kwarg_only
        and alpha.has_default_value()
        and alpha.default_value == 1
    )
    assert str(schema.arguments[0].type) == "Tensor" and schema.arguments[0].alias_info is None
    in_place = torch.ops.aten.add_.Tensor._schema
    assert in_place.is_mutable and in_place.arguments[0].alias_info.is_write
    assert torch._C.parse_schema("ns::f(int[2] x, str? y=None) -> ()").arguments[0].N == 2
    with pytest.raises(RuntimeError):
        torch._C.parse_schema("nonsense(")


def test_unknown_operators():
    with pytest.raises(RuntimeError, match="No such operator aten::nope"):
        torch._C._get_operation("aten::nope")
    assert torch._C._get_overload_names("aten::nope") == []
    assert not torch._C._dispatch_has_kernel("aten::nope")
    assert torch._C._dispatch_has_computed_kernel_for_dispatch_key("aten::add.Tensor", "CPU")


def test_redispatch_to_a_backend():
    t = torch.ones(2)
    op = torch._C._get_operation("aten::add", "Tensor")
    assert op.redispatch_boxed(DispatchKeySet("CPU"), t, t).tolist() == [2.0, 2.0]
    with pytest.raises(TypeError):
        op.redispatch_boxed()


# ---- modes ---------------------------------------------------------------------------------------


def test_mode_sees_operators():
    with Trace() as mode:
        a = torch.ones(2, 2)
        b = a + 1
        c = a[0]
    assert mode.names() == ["aten.ones.default", "aten.add.Tensor", "aten.select.int"]
    assert mode.calls[1][2][1] == 1 and mode.calls[1][3] == {}
    assert b.tolist() == [[2.0] * 2] * 2 and c.tolist() == [1.0, 1.0]


def test_composites_are_taken_apart():
    with Trace() as mode:
        torch.ones(2, 2).t().reshape(4)
    assert "aten.reshape.default" not in mode.names()


def test_modes_nest_and_unwind():
    outer, inner = Trace(), Trace()
    with outer, inner:
        torch.zeros(2)
    assert inner.names() == outer.names() == ["aten.zeros.default"]
    assert torch._C._len_torch_dispatch_stack() == 0
    with pytest.raises(RuntimeError):
        torch._C._pop_torch_dispatch_stack()


def test_mode_result_is_checked():
    class Wrong(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return "no tensor"

    with pytest.raises(RuntimeError, match="Expected a value of type 'Tensor'"), Wrong():
        torch.zeros(2)
    assert torch.zeros(2).shape == (2,)


def test_errors_in_mode_handlers_pass_through():
    class Fails(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise KeyError("mode")

    with pytest.raises(KeyError, match="mode"), Fails():
        torch.zeros(2)
    assert torch._C._len_torch_dispatch_stack() == 0


def test_disable_torch_dispatch_guard():
    with Trace() as mode, torch._C._DisableTorchDispatch():
        torch.zeros(2)
    assert mode.calls == []


# ---- subclasses ----------------------------------------------------------------------------------


class Wrapper(torch.Tensor):
    """Holds a plain tensor and unwraps it for every operator."""

    calls = []

    @staticmethod
    def __new__(cls, elem):
        made = torch.Tensor._make_wrapper_subclass(
            cls, elem.shape, dtype=elem.dtype, device=elem.device
        )
        made.elem = elem
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.calls.append((str(func), types))
        inner = [a.elem if isinstance(a, Wrapper) else a for a in args]
        result = func(*inner, **(kwargs or {}))
        return Wrapper(result) if isinstance(result, torch.Tensor) else result


def test_wrapper_subclass_gets_operators():
    Wrapper.calls.clear()
    w = Wrapper(torch.ones(2, 2))
    assert w.shape == (2, 2) and w.dtype is torch.float32 and w.stride() == (2, 1)
    r = (w + 1) * 2
    assert type(r) is Wrapper and r.elem.tolist() == [[4.0] * 2] * 2
    assert Wrapper.calls == [("aten.add.Tensor", (Wrapper,)), ("aten.mul.Tensor", (Wrapper,))]


def test_wrapper_subclass_in_lists_and_views():
    w = Wrapper(torch.ones(2))
    assert type(torch.exp(w)) is Wrapper
    assert type(w.view(2, 1)) is Wrapper and type(w[0]) is Wrapper


def test_torch_function_is_off_for_dispatch_classes():
    assert Wrapper.__torch_function__ is torch._C._disabled_torch_function_impl


def test_class_without_torch_dispatch_cannot_wrap():
    class Plain(torch.Tensor):
        pass

    with pytest.raises(TypeError, match="Plain must define __torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(Plain, (2,))
    with pytest.raises(RuntimeError, match="negative dimension"):
        torch.Tensor._make_wrapper_subclass(Wrapper, (-2,))
    with pytest.raises(TypeError):
        torch.Tensor._make_wrapper_subclass(Wrapper, "a")


def test_all_handlers_refusing_is_a_type_error():
    class Refuses(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    w = torch.Tensor._make_wrapper_subclass(Refuses, (2,))
    with pytest.raises(TypeError, match=r"dispatch failed for 'torch._ops.aten.exp.default'"):
        torch.exp(w)


def test_memory_of_a_wrapper_is_not_touched():
    w = Wrapper(torch.ones(2))
    assert w.data_ptr() == 0
    storage = w.untyped_storage()
    assert storage.nbytes() == 8
    with pytest.raises(RuntimeError, match="invalid python storage"):
        storage.data_ptr()
    with pytest.raises(RuntimeError):
        w.tolist()


class Replaced(TorchDispatchMode):
    """The results of one operator as `change` makes them."""

    def __init__(self, name, change):
        super().__init__()
        self.name, self.change = name, change

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        return self.change(out) if func.name() == self.name else out


def test_frames_without_dimensions_are_refused_by_istft():
    spectrum = torch.rand(9, 7, dtype=torch.complex64)
    replaced = Replaced("aten::_fft_c2r", lambda out: torch.zeros(()))
    with replaced, pytest.raises(RuntimeError, match="frames of at least 2 dimensions"):
        torch.istft(spectrum, 16, window=torch.ones(16))


def test_integer_in_place_of_a_first_result_leaves_the_gradients_of_the_second_alone():
    a = torch.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    replaced = Replaced("aten::_linalg_slogdet", lambda out: (out[0].to(torch.int8), *out[1:]))
    with replaced:
        sign, logarithm = torch.linalg.slogdet(a)
        logarithm.backward()
    assert sign.dtype == torch.int8 and not sign.requires_grad
    expected = np.linalg.inv(np.array([[2.0, 1.0], [1.0, 3.0]])).T
    np.testing.assert_allclose(a.grad.numpy(), expected, rtol=1e-5)


def test_operator_is_found_by_its_name_with_its_overloads() -> None:
    add, overloads = torch._C._jit_get_operation("aten::add")
    assert {"Tensor", "Scalar", "out"} <= set(overloads)
    out = torch.empty(2)
    assert add(torch.ones(2), torch.ones(2), out=out) is out and out.tolist() == [2.0, 2.0]
    assert torch._C._jit_get_operation("aten::no_such_operator") == (None, None)
    assert torch._C._jit_get_operation("no_namespace") == (None, None)
