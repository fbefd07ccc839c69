"""Module: registration, walking, state_dict, hooks, copying; and the first layers."""

import copy
import pickle

import pytest

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.block = nn.Sequential(nn.ReLU(), nn.Linear(4, 2))
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("scratch", torch.ones(1), persistent=False)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return self.block(self.first(x)) * self.scale + self.mean


def test_attributes_register_parameters_buffers_and_modules():
    net = Net()
    names = [name for name, _ in net.named_parameters()]
    assert names == ["scale", "first.weight", "first.bias", "block.1.weight", "block.1.bias"]
    assert [name for name, _ in net.named_buffers()] == ["mean", "scratch"]
    assert [name for name, _ in net.named_children()] == ["first", "block"]
    assert [name for name, _ in net.named_modules()] == ["", "first", "block", "block.0", "block.1"]
    assert net.get_parameter("block.1.bias") is net.block[1].bias
    assert net.get_submodule("block.0") is net.block[0]


def test_shared_modules_are_walked_once():
    layer = nn.Linear(2, 2)
    net = nn.Sequential(layer, layer)
    assert len(list(net.parameters())) == 2
    assert len(list(net.state_dict())) == 4


def test_assigning_the_wrong_kind_raises():
    net = Net()
    with pytest.raises(TypeError, match=r"cannot assign 'torch.FloatTensor' as parameter 'scale'"):
        net.scale = torch.ones(())
    with pytest.raises(TypeError, match="as child module 'first'"):
        net.first = 3
    with pytest.raises(KeyError, match="already exists"):
        net.register_buffer("first", torch.ones(1))
    with pytest.raises(AttributeError, match=r"before Module.__init__"):

        class Early(nn.Module):
            def __init__(self):
                self.layer = nn.Linear(1, 1)

        Early()
    with pytest.raises(AttributeError, match=r"'Net' object has no attribute 'missing'"):
        _ = net.missing


def test_state_dict_round_trip_and_report():
    net, other = Net(), Net()
    state = net.state_dict()
    assert list(state) == [
        "scale",
        "mean",
        "first.weight",
        "first.bias",
        "block.1.weight",
        "block.1.bias",
    ]
    assert not state["scale"].requires_grad
    assert str(other.load_state_dict(state)) == "<All keys matched successfully>"
    x = torch.ones(2, 3)
    assert torch.equal(net(x), other(x))
    with pytest.raises(
        RuntimeError, match=r"(?s)Missing key.*Unexpected key.*remove that prefix"
    ) as info:
        other.load_state_dict({"module." + key: value for key, value in state.items()})
    assert "Error(s) in loading state_dict for Net" in str(info.value)
    result = other.load_state_dict(
        {"scale": torch.tensor(3.0), "extra": torch.ones(1)}, strict=False
    )
    assert result.unexpected_keys == ["extra"] and "mean" in result.missing_keys
    with pytest.raises(RuntimeError, match=r"size mismatch for first.bias: .*torch.Size\(\[5\]\)"):
        other.load_state_dict({**state, "first.bias": torch.ones(5)})


def test_assign_takes_the_tensors_over():
    net = nn.Linear(2, 2)
    weight = torch.ones(2, 2)
    net.load_state_dict({"weight": weight, "bias": torch.zeros(2)}, assign=True)
    assert net.weight.data_ptr() == weight.data_ptr() and isinstance(net.weight, nn.Parameter)


def test_conversion_keeps_identity_and_integer_buffers():
    net = Net()
    net.register_buffer("count", torch.zeros(1, dtype=torch.int64))
    before = net.scale
    net.double()
    assert net.scale is before and net.scale.dtype == torch.float64
    assert net.count.dtype == torch.int64
    net.to(torch.float16)
    assert net.first.weight.dtype == torch.float16
    with pytest.raises(TypeError, match="only accepts floating point or complex dtypes"):
        net.to(torch.int32)


def test_train_and_eval_reach_every_module():
    net = Net().eval()
    assert not any(module.training for module in net.modules())
    assert all(module.training for module in net.train().modules())


def test_forward_hooks_run_in_order_and_can_replace():
    net, calls = nn.Linear(2, 2), []
    net.register_forward_pre_hook(lambda m, args: calls.append("pre") or (args[0] * 0,))
    handle = net.register_forward_hook(lambda m, args, out: calls.append("post") or out + 1)
    first = net(torch.ones(1, 2))
    assert calls == ["pre", "post"]
    assert torch.allclose(first, net.bias + 1)
    handle.remove()
    net(torch.ones(1, 2))
    assert calls == ["pre", "post", "pre"]


def test_deepcopy_and_pickle_give_independent_equals():
    net = Net()
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        x = torch.ones(1, 3)
        assert torch.equal(twin(x), net(x))
        with torch.no_grad():
            twin.scale.add_(1)
        assert not torch.equal(twin(x), net(x))


def test_containers_behave_like_their_python_models():
    layers = nn.ModuleList([nn.Linear(1, 1) for _ in range(3)])
    assert len(layers) == 3 and layers[-1] is layers[2]
    del layers[0]
    assert [name for name, _ in layers.named_children()] == ["0", "1"]
    table = nn.ModuleDict({"a": nn.ReLU()})
    table["b"] = nn.GELU()
    assert list(table) == ["a", "b"] and "a" in table
    seq = nn.Sequential(nn.ReLU(), nn.GELU())
    assert isinstance(seq[0:1], nn.Sequential) and len(seq + seq) == 4
    params = nn.ParameterList([torch.ones(1), torch.ones(2)])
    assert len(list(params.parameters())) == 2
    with pytest.raises(IndexError):
        layers[5]


def test_repr_shows_the_tree():
    text = repr(nn.Sequential(nn.Linear(2, 3), nn.ModuleList([nn.ReLU()] * 2)))
    assert text == (
        "Sequential(\n"
        "  (0): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (1): ModuleList(\n"
        "    (0-1): 2 x ReLU()\n"
        "  )\n"
        ")"
    )


def test_initial_weights_are_those_of_the_seed():
    torch.manual_seed(0)
    layer = nn.Linear(4, 4)
    assert [round(v, 4) for v in layer.weight[0].tolist()] == [-0.0037, 0.2682, -0.4115, -0.3680]


def test_embedding_and_padding():
    layer = nn.Embedding(5, 3, padding_idx=1)
    assert layer.weight[1].tolist() == [0, 0, 0]
    assert torch.equal(layer(torch.tensor([[0, 4]]))[0, 1], layer.weight[4])
    with pytest.raises(IndexError):
        layer(torch.tensor([5]))


def test_missing_forward_says_so():
    class Empty(nn.Module):
        pass

    with pytest.raises(NotImplementedError, match='missing the required "forward" function'):
        Empty()(1)


# ---- arguments of Module.to, buffers as attributes


@pytest.mark.parametrize(
    "args", [("cpu", True), (None, True), ([],), ({},), ("cpu", torch.float32, 1), (True,)]
)
def test_module_to_with_wrong_arguments_raises(args):
    with pytest.raises(TypeError):
        nn.Linear(2, 2).to(*args)


def test_module_to_takes_each_form_of_arguments():
    for args in (("cpu", torch.float64), (torch.float64, True), (torch.ones(1).double(), True)):
        assert nn.Linear(2, 2).to(*args).weight.dtype is torch.float64


def test_module_to_complex_warns():
    with pytest.warns(UserWarning, match="Complex modules are a new feature"):
        nn.Linear(2, 2).to(torch.complex64)


def test_module_to_from_meta_names_to_empty():
    with pytest.raises(NotImplementedError, match=r"Please use torch.nn.Module.to_empty\(\)"):
        nn.Linear(2, 2, device="meta").to("cpu")


def test_buffer_assigned_over_a_plain_attribute_raises():
    module = nn.Module()
    module.name = 5
    with pytest.raises(KeyError, match="attribute 'name' already exists"):
        module.name = nn.Buffer(torch.ones(1))


def test_buffer_assigned_again_takes_its_persistence():
    module = nn.Module()
    module.state = nn.Buffer(torch.ones(1), persistent=False)
    assert list(module.state_dict()) == []
    module.state = nn.Buffer(torch.ones(1))
    assert list(module.state_dict()) == ["state"] and len(list(module.buffers())) == 1


def test_buffer_of_a_class_whose_register_buffer_takes_two_arguments():
    class Old(nn.Module):
        def register_buffer(self, name, tensor):
            super().register_buffer(name, tensor)

    module = Old()
    module.state = nn.Buffer(torch.ones(1))
    assert module.state.item() == 1.0


def test_parameter_of_a_tensor_subclass_shows_both_names():
    class Mine(torch.Tensor):
        pass

    x = torch.ones(1).as_subclass(Mine)
    assert repr(x) == "Mine([1.])"
    assert repr(nn.Parameter(x)) == "Parameter(Mine([1.], requires_grad=True))"
    assert repr(nn.Parameter(torch.ones(1))).startswith("Parameter containing:\ntensor(")


def test_loading_shows_each_child_its_own_entries_only():
    seen = {}

    def note(module, state_dict, prefix, *rest):
        seen[prefix] = sorted(state_dict)

    model = torch.nn.Sequential(
        torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False))
    )
    for module in model.modules():
        module.register_load_state_dict_pre_hook(note)
    model.load_state_dict(model.state_dict())
    assert seen[""] == ["0.bias", "0.weight", "1.0.weight"]
    assert seen["0."] == ["0.bias", "0.weight"]
    assert seen["1."] == seen["1.0."] == ["1.0.weight"]


def test_unexpected_and_missing_entries_are_found_at_every_depth():
    model = torch.nn.Sequential(torch.nn.Sequential(torch.nn.Linear(2, 2)))
    state = model.state_dict()
    del state["0.0.bias"]
    state["0.0.extra"] = state["0.1.weight"] = state["top"] = torch.zeros(1)
    found = model.load_state_dict(state, strict=False)
    assert found.missing_keys == ["0.0.bias"]
    assert sorted(found.unexpected_keys) == ["0.0.extra", "0.1.weight", "top"]


def test_always_called_hook_that_raises_after_forward_raised_warns():
    class Broken(torch.nn.Module):
        def forward(self, x):
            raise ValueError("forward")

    def hook(*args):
        raise KeyError("hook")

    module = Broken()
    module.register_forward_hook(hook, always_call=True)
    with (
        pytest.warns(UserWarning, match="silenced as another error was raised in forward"),
        pytest.raises(ValueError, match="forward"),
    ):
        module(torch.ones(1))


def test_old_backward_hooks_warn_where_they_miss_gradients():
    class Two(torch.nn.Module):
        def forward(self, a, b):
            return a.clone(), b.clone()

    a, b = torch.rand(2, requires_grad=True), torch.rand(2, requires_grad=True)
    module = Two()
    module.register_backward_hook(lambda *args: None)
    with pytest.warns(FutureWarning, match="outputs are generated by different autograd Nodes"):
        module(a, b)
