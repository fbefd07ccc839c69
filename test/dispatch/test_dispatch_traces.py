"""What handlers of __torch_dispatch__ see: slices, lists, linear layers, wrapper tensors."""

import copy
import io
import pickle

import pytest
from tensor_support import OperatorLog

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten


class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append((func, args[1:]))
        return func(*args, **(kwargs or {}))


LAST = 2**63 - 1


@pytest.mark.parametrize(
    ("key", "calls"),
    [
        ((slice(None), slice(None, 2)), [(1, 0, 2)]),
        (slice(1, None), [(0, 1, LAST)]),
        (slice(None), [(0, 0, LAST)]),
        (slice(None, None, 2), [(0, 0, LAST, 2)]),
        ((slice(0, 3), slice(1, 3)), [(1, 1, 3)]),
    ],
)
def test_slices_are_dispatched_with_numbers_and_whole_ones_not_at_all(key, calls):
    x = torch.arange(12).reshape(3, 4)
    with Log() as log:
        result = x[key]
    assert log.calls == [(torch.ops.aten.slice.Tensor, args) for args in calls]
    assert torch.equal(result, torch.from_numpy(x.numpy()[key]))


def test_a_key_of_whole_slices_gives_a_view():
    x = torch.arange(12).reshape(3, 4)
    view = x[:, :]
    assert view is not x and view.data_ptr() == x.data_ptr()
    x[:, :] = 0
    assert view.eq(0).all()


def test_lists_are_made_under_a_mode():
    with Log() as log:
        assert torch.arange(3).tolist() == [0, 1, 2]
    assert [func for func, _ in log.calls] == [torch.ops.aten.arange.default]


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        wrapper = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        wrapper.inner = inner
        return wrapper

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args = [arg.inner if isinstance(arg, Wrapper) else arg for arg in args]
        return cls(func(*args, **(kwargs or {})))


def test_wrapper_subclasses_are_pickled_with_what_they_hold():
    wrapper = Wrapper(torch.arange(3.0))
    file = io.BytesIO()
    torch.save(wrapper, file)
    file.seek(0)
    for again in (
        pickle.loads(pickle.dumps(wrapper)),
        copy.deepcopy(wrapper),
        torch.load(file, weights_only=False),
    ):
        assert type(again) is Wrapper and again.shape == (3,) and again.dtype == torch.float32
        assert again.inner.tolist() == [0.0, 1.0, 2.0]
        assert again.inner.data_ptr() != wrapper.inner.data_ptr()
    assert type(wrapper.data) is Wrapper
    assert wrapper.data.inner.data_ptr() == wrapper.inner.data_ptr()
    with pytest.raises(RuntimeError, match=r"tolist\(\) is not supported for tensor subclasses"):
        wrapper.tolist()


class Pair(torch.Tensor):
    """Two tensors; every operator acts on both."""

    @staticmethod
    def __new__(cls, a, b):
        return torch.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype, strides=a.stride())

    def __init__(self, a, b):
        self.a, self.b = a, b

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        first = func(*tree_map_only(Pair, lambda p: p.a, args),
                     **tree_map_only(Pair, lambda p: p.a, kwargs))  # fmt: skip
        second = func(*tree_map_only(Pair, lambda p: p.b, args),
                      **tree_map_only(Pair, lambda p: p.b, kwargs))  # fmt: skip
        left, spec = tree_flatten(first)
        right, _ = tree_flatten(second)
        made = [Pair(x, y) if torch.is_tensor(x) else x for x, y in zip(left, right, strict=True)]
        return tree_unflatten(made, spec)


@pytest.mark.parametrize("function", [torch.relu, torch.exp, torch.sigmoid, torch.tanh])
def test_saved_outputs_of_wrapper_tensors_keep_their_class(function):
    a = torch.linspace(-1, 1, 6).reshape(2, 3)
    x = Pair(a.clone(), a * 2).requires_grad_()
    function(x).pow(2).sum().backward()
    for part, values in (("a", a), ("b", a * 2)):
        plain = values.clone().requires_grad_()
        function(plain).pow(2).sum().backward()
        torch.testing.assert_close(getattr(x.grad, part), plain.grad)


def test_wrapper_tensor_as_parameter_trains():
    torch.manual_seed(0)
    layer = nn.Linear(3, 2)
    start = layer.weight.detach().clone()
    layer.weight = nn.Parameter(Pair(start.clone(), start * 2))
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    F.relu(layer(torch.ones(4, 3))).sum().backward()
    optimizer.step()
    assert isinstance(layer.weight, Pair)
    for part, scale in (("a", 1), ("b", 2)):
        plain = nn.Linear(3, 2)
        plain.load_state_dict({"weight": start * scale, "bias": torch.zeros(2)})
        assert getattr(layer.weight, part).shape == plain.weight.shape


@pytest.mark.parametrize(
    "shape, bias, expected",
    [
        ((2, 3), True, ["t.default", "addmm.default"]),
        ((2, 3), False, ["t.default", "mm.default"]),
        ((4, 2, 3), True, ["view.default", "t.default", "addmm.default", "view.default"]),
        ((3,), True, ["view.default", "t.default", "addmm.default", "view.default"]),
        ((0, 3), True, ["t.default", "addmm.default"]),
        ((4, 2, 3), False, ["t.default", "view.default", "mm.default", "_unsafe_view.default"]),
    ],
)
@pytest.mark.parametrize("needs_grad", [False, True])
def test_linear_reaches_handlers_as_its_parts(shape, bias, expected, needs_grad):
    x = torch.randn(shape, requires_grad=needs_grad)
    weight, b = torch.randn(5, 3), torch.randn(5) if bias else None
    with OperatorLog() as log:
        y = F.linear(x, weight, b)
    order = (lambda names: sorted(names)) if len(shape) != 2 else list
    assert order(log.names) == order([f"aten.{name}" for name in expected])
    torch.testing.assert_close(y, F.linear(x, weight, b))
    assert y.requires_grad == needs_grad


def test_linear_of_strided_input_under_a_mode_agrees():
    x = torch.randn(3, 2, 4).permute(2, 1, 0)
    weight, bias = torch.randn(5, 3), torch.randn(5)
    with OperatorLog():
        y = F.linear(x, weight, bias)
    torch.testing.assert_close(y, F.linear(x, weight, bias))


def test_as_subclass_leaves_the_subclass_without_asking_it():
    asked = []

    class Asked(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

        def clone(self):
            return self.as_subclass(torch.Tensor).clone().as_subclass(type(self))

    x = torch.ones(2).as_subclass(Asked)
    assert type(x.as_subclass(torch.Tensor)) is torch.Tensor
    assert type(x.clone()) is Asked and asked == []
    assert torch.Tensor.as_subclass in torch.overrides.get_ignored_functions()
