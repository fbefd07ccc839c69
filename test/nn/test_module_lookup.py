"""How attributes of a module are found: what it owns goes through Module.__getattr__, so that a
subclass with a __getattr__ of its own is asked first; and what may happen to a module's class."""

import pytest

import torch
from torch import nn


class Counting(nn.Linear):
    """Sees every lookup that the ordinary way does not answer."""

    def __getattr__(self, name):
        self.__dict__.setdefault("seen", []).append(name)
        return super().__getattr__(name)


class Doubling(nn.Linear):
    """Gives another value for a parameter than the one registered."""

    def __getattr__(self, name):
        found = super().__getattr__(name)
        return found * 2 if name == "weight" else found


def test_getattr_of_a_subclass_is_asked_for_parameters_buffers_and_modules():
    module = Counting(2, 3)
    module.register_buffer("count", torch.zeros(1))
    module.child = nn.ReLU()
    module.seen = []
    assert isinstance(module.weight, nn.Parameter)
    assert module.count.item() == 0 and isinstance(module.child, nn.ReLU)
    assert module.seen == ["weight", "count", "child"]
    assert module.in_features == 2 and module.seen == ["weight", "count", "child"]


def test_value_of_a_getattr_of_a_subclass_is_what_forward_computes_with():
    torch.manual_seed(0)
    module = Doubling(4, 3, bias=False)
    x = torch.randn(5, 4)
    registered = dict(module.named_parameters())["weight"]
    torch.nn.init.normal_(registered)  # reset_parameters filled what __getattr__ gave it
    expected = x.detach().numpy() @ (2 * registered.detach().numpy()).T
    assert torch.allclose(module(x), torch.from_numpy(expected), atol=1e-6)


def test_getattr_of_a_mixin_before_the_module_is_asked():
    class Mixin:
        def __getattr__(self, name):
            if name == "extra":
                return "mixed"
            return super().__getattr__(name)

    class Both(Mixin, nn.Linear):
        pass

    module = Both(2, 2)
    assert module.extra == "mixed" and isinstance(module.bias, nn.Parameter)
    with pytest.raises(AttributeError, match="'Both' object has no attribute 'absent'"):
        module.absent  # noqa: B018


def test_getattr_assigned_to_a_class_later_is_asked_and_deleted_again_is_not():
    class Late(nn.Linear):
        pass

    module = Late(2, 2)
    assert isinstance(module.weight, nn.Parameter)
    Late.__getattr__ = lambda self, name: "late"
    assert module.weight == "late"
    del Late.__getattr__
    assert isinstance(module.weight, nn.Parameter)


def test_getattribute_of_a_subclass_sees_every_lookup():
    names = []

    class Watching(nn.Linear):
        def __getattribute__(self, name):
            names.append(name)
            return super().__getattribute__(name)

    module = Watching(2, 2)
    names.clear()
    assert isinstance(module.weight, nn.Parameter) and names[0] == "weight"


@pytest.mark.parametrize("base", [nn.Module, nn.Linear])
def test_class_of_a_module_can_become_one_with_a_mixin_and_back(base):
    class Mixin:
        def greeting(self):
            return "hello"

    module = base() if base is nn.Module else base(2, 2)
    plain = type(module)
    module.__class__ = type("Mixed", (Mixin, plain), {})
    assert module.greeting() == "hello" and isinstance(module, plain)
    if base is nn.Linear:
        assert module(torch.zeros(1, 2)).shape == (1, 2)
    module.__class__ = plain
    assert not hasattr(module, "greeting")
    module.__class__ = type("After", (plain, Mixin), {})
    assert module.greeting() == "hello"


def test_module_list_names_positions_as_strings():
    modules = nn.ModuleList([nn.ReLU(), nn.Tanh(), nn.Sigmoid()])
    assert modules._get_abs_string_index(0) == "0"
    assert modules._get_abs_string_index(-1) == "2"
    with pytest.raises(IndexError, match="index 3 is out of range"):
        modules._get_abs_string_index(3)
