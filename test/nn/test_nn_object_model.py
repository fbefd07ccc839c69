"""nn.Module and Python's object model: mixins, __getattr__, __new__, copies, signatures."""

import copy
import importlib
import inspect
import pickle
import sys

import pytest

import torch
import torch.nn.functional as F
from torch import nn


class _Wrapper(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self._inner = inner

    def __getattr__(self, name):
        if name == "_inner":
            return super().__getattr__("_inner")
        return getattr(super().__getattr__("_inner"), name)


def test_module_getattr_can_be_called():
    wrapper = _Wrapper(nn.Linear(2, 3))
    assert wrapper.in_features == 2
    assert wrapper.weight is nn.Module.__getattr__(wrapper, "_inner").weight
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'absent'"):
        nn.Module.__getattr__(nn.Linear(2, 2), "absent")
    with pytest.raises(AttributeError, match="absent"):
        wrapper.absent  # noqa: B018


def test_getattr_given_to_a_module_class_later():
    class Plain(nn.Module):
        pass

    module = Plain()
    assert not hasattr(module, "anything")
    Plain.__getattr__ = lambda self, name: f"made {name}"
    assert module.anything == "made anything"
    del Plain.__getattr__
    module.layer = nn.Linear(1, 1)
    assert module.layer.in_features == 1
    assert not hasattr(module, "anything")


@pytest.mark.parametrize("first", [True, False])
def test_init_subclass_of_a_mixin_runs(first):
    class Mixin:
        def __init_subclass__(cls, tag=None, **kwargs):
            super().__init_subclass__(**kwargs)
            cls.tag = tag

    bases = (Mixin, nn.Module) if first else (nn.Module, Mixin)
    made = type(nn.Module)("Made", bases, {}, tag=7)
    assert made.tag == 7
    made().register_buffer("x", torch.zeros(1))


def test_signatures_of_modules():
    class Called(nn.Module):
        def __call__(self, x, y=3):
            return x

    assert str(inspect.signature(nn.Linear(2, 2))) == "(*args, **kwargs)"
    assert str(inspect.signature(Called())) == "(x, y=3)"
    assert list(inspect.signature(nn.Linear).parameters)[:3] == [
        "in_features",
        "out_features",
        "bias",
    ]


def test_reparametrize_module_is_undone():
    from torch.nn.utils.stateless import _reparametrize_module

    layer = nn.Linear(2, 2)
    before = layer.weight
    with _reparametrize_module(layer, {"weight": torch.zeros(2, 2)}):
        assert (F.relu(layer(torch.ones(1, 2))) == F.relu(layer.bias)).all()
    assert layer.weight is before


def test_new_of_a_mixin_after_module():
    class Mixin:
        def __new__(cls, *args, **kwargs):
            made = super().__new__(cls)
            made.given = args
            return made

    class Made(nn.Module, Mixin):
        def __new__(cls, *args, **kwargs):
            return super().__new__(cls, *args, **kwargs)

        def __init__(self, width):
            super().__init__()
            self.layer = nn.Linear(width, width)

    assert Made(3).given == (3,)
    assert Made(2).layer.in_features == 2
    with pytest.raises(TypeError):
        nn.Module(1)


def test_module_behind_another_base_can_be_copied():
    class Named:
        """A class of Python's that comes first, so that it gives the layout of the instances."""

    class Both(Named, torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))

    both = Both()
    for again in (copy.deepcopy(both), Both.__new__(Both)):
        assert type(again) is Both
    assert pickle.loads(pickle.dumps(Pair())).weight.tolist() == [1.0]


class Plain:
    pass


class Pair(Plain, torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))


def test_modules_raise_only_attribute_error_for_unknown_names():
    # pickle looks a function without a module up in every module there is.
    for name in ("torch._VF", "torch.distributed", "torch.fx", "torch.onnx", "torch.cuda.nccl"):
        importlib.import_module(name)
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in ("torch", "functorch"):
            # Anything but AttributeError comes through here.
            getattr(module, "<no such name>", None)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(lambda: 1)


def test_a_mixin_behind_module_makes_the_instance():
    class Mixin:
        def __new__(cls, *args, **kwargs):
            instance = super().__new__(cls)
            instance.__dict__["made_with"] = args
            return instance

    class Both(torch.nn.Module, Mixin):
        def __new__(cls, *args, **kwargs):
            return super().__new__(cls, *args, **kwargs)

        def __init__(self, size):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(size))

    both = Both(3)
    assert both.made_with == (3,) and both.weight.shape == (3,)
    assert torch.nn.Module.__new__(Both).__class__ is Both
    with pytest.raises(TypeError):
        torch.nn.Linear.__new__(int)


def test_old_backward_hooks_see_the_node_of_the_first_result():
    seen = []

    class Named(nn.Module):
        def forward(self, x):
            return {"out": (x * 3).sum()}

    module = Named()
    module.register_backward_hook(lambda m, grad_in, grad_out: seen.append((m, len(grad_in))))
    module(torch.ones(2, requires_grad=True))["out"].backward()
    assert seen == [(module, 1)]
