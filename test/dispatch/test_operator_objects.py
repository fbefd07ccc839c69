"""The objects of torch.ops: what an overload and a packet say about themselves, how they are
called, copied and pickled, and what a handler receives for a call of each."""

import copy
import pickle
import weakref

import pytest

import torch


@pytest.fixture
def add():
    return torch.ops.aten.add.Tensor


def test_overload_attributes_name_the_operator(add):
    assert add.name() == "aten::add.Tensor" and add.namespace == "aten"
    assert str(add) == "aten.add.Tensor" and add.__name__ == "add.Tensor"
    assert repr(add) == "<OpOverload(op='aten.add', overload='Tensor')>"
    assert add.__qualname__ == "aten::add.Tensor" and add.__module__ == "torch._ops.aten"
    assert add._overloadname == "Tensor" and add._overloadpacket is torch.ops.aten.add
    assert add._schema.name == "aten::add" and not add.is_view


def test_overload_is_an_instance_of_both_base_classes(add):
    assert isinstance(add, torch._ops.OpOverload) and isinstance(add, torch._ops.OperatorBase)
    assert not isinstance(add, torch._ops.TorchBindOpOverload)
    assert issubclass(torch._ops.TorchBindOpOverload, torch._ops.OpOverload)


def test_overload_survives_pickle_and_deepcopy_as_the_same_object(add):
    assert pickle.loads(pickle.dumps(add)) is add and copy.deepcopy(add) is add
    packet = torch.ops.aten.add
    assert pickle.loads(pickle.dumps(packet)) is packet and copy.deepcopy(packet) is packet


def test_overload_takes_attributes_and_weak_references(add):
    add.note_of_test = 3
    assert add.note_of_test == 3 and weakref.ref(add)() is add
    del add.note_of_test
    assert {add: 1}[torch.ops.aten.add.Tensor] == 1


def test_overload_call_takes_positions_keywords_and_numbers(add):
    x = torch.tensor([1.0, 2.0])
    assert add(x, x).tolist() == [2.0, 4.0]
    assert add(x, other=x, alpha=3).tolist() == [4.0, 8.0]
    assert add(x, 2).tolist() == [3.0, 4.0]
    assert add.__call__(x, x).tolist() == [2.0, 4.0]
    assert torch.ops.aten.sum.dim_IntList(torch.ones(2, 3), [1]).tolist() == [3.0, 3.0]


def test_overload_call_with_wrong_arguments_raises_naming_the_operator(add):
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match=r"aten::add\(\) is missing value for argument 'other'"):
        add(x)
    with pytest.raises(RuntimeError, match=r"Unknown keyword argument 'beta'"):
        add(x, x, beta=2)
    with pytest.raises(RuntimeError, match=r"takes 2 positional argument\(s\) but 3"):
        add(x, x, 2)
    with pytest.raises(RuntimeError, match=r"(?s)size of tensor a.*in aten::add.Tensor\(self:"):
        add(x, torch.ones(3))


def test_overload_class_can_be_derived_with_a_call_of_its_own(add):
    class Doubled(torch._ops.OpOverload):
        def __call__(self, *args, **kwargs):
            return 2 * super().__call__(*args, **kwargs)

    doubled = Doubled(torch.ops.aten.add, add._op, "Tensor")
    assert doubled(torch.ones(1), torch.ones(1)).tolist() == [4.0]


def test_packet_call_runs_the_first_overload_that_fits():
    x = torch.tensor([[1.0, 5.0], [7.0, 3.0]])
    maximum = torch.ops.aten.max
    assert maximum(x).item() == 7.0
    values, places = maximum(x, 1)
    assert values.tolist() == [5.0, 7.0] and places.tolist() == [1, 0]
    assert maximum(x, torch.full((2, 2), 4.0)).tolist() == [[4.0, 5.0], [7.0, 4.0]]
    out = torch.empty(2, 2)
    assert torch.ops.aten.add(x, x, out=out) is out and out.tolist() == (2 * x).tolist()


def test_packet_call_that_fits_no_overload_raises_with_each_refusal():
    with pytest.raises(RuntimeError, match="failed to match any schema") as caught:
        torch.ops.aten.max("text")
    assert "aten::max() Expected a value of type 'Tensor'" in str(caught.value)


def test_packet_finds_overloads_defined_after_it_was_made():
    with torch.library._scoped_library("operator_objects", "FRAGMENT") as library:
        library.define("late(Tensor x) -> Tensor")
        library.impl("late", lambda x: x + 1, "CompositeExplicitAutograd")
        packet = torch.ops.operator_objects.late
        assert packet(torch.zeros(1)).item() == 1
        library.define("late.pair(Tensor x, Tensor y) -> Tensor")
        library.impl("late.pair", lambda x, y: x - y, "CompositeExplicitAutograd")
        assert packet(torch.zeros(1), torch.ones(1)).item() == -1


class Seen(torch.Tensor):
    functions = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.functions.append(func)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", ["relu", "add"])
def test_packet_call_reaches_torch_function_as_the_packet(name):
    Seen.functions.clear()
    x = torch.ones(2).as_subclass(Seen)
    packet = getattr(torch.ops.aten, name)
    packet(*([x] if name == "relu" else [x, x]))
    assert Seen.functions == [packet]


def test_overload_call_reaches_torch_function_as_the_overload():
    Seen.functions.clear()
    torch.ops.aten.relu.default(torch.ones(2).as_subclass(Seen))
    assert Seen.functions == [torch.ops.aten.relu.default]


def test_kernels_registered_from_python_are_kept_by_key_and_by_class():
    op = torch.ops.aten.add.out

    class Mode:
        pass

    @op.py_impl(Mode)
    def kernel(*args):
        return args

    try:
        assert op.python_key_table[Mode] is kernel
        with pytest.raises(RuntimeError, match="Trying to override a python impl"):
            op.py_impl(Mode)(kernel)
    finally:
        del op.python_key_table[Mode]


def test_decompose_runs_the_definition_or_returns_not_implemented():
    x = torch.ones(2, 3)
    assert torch.ops.aten.add.Tensor.decompose(x, x) is NotImplemented
    if torch.ops.aten.square.default._can_decompose():
        assert torch.ops.aten.square.default.decompose(2 * x).tolist() == (4 * x).tolist()
