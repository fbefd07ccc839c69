"""Scripted, traced and frozen modules, and their archives."""

import copy
import io
import random
import zipfile

import pytest

import torch
import torch.fx
from torch import nn


class Net(nn.Module):
    scale: float

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.act = nn.ReLU()
        self.scale = 0.5
        self.register_buffer("steps", torch.zeros(1))

    def forward(self, x, times: int = 1, shift: torch.Tensor | None = None):
        self.steps = self.steps + 1
        for layer in self.layers:
            x = self.act(layer(x)) * self.scale
        for _ in range(times):
            x = x + self.bump(x)
        if shift is not None:
            x = x + shift
        return x, self.steps

    def bump(self, x):
        return x.mean() * 0.1

    @torch.jit.export
    def sizes(self, x) -> list[int]:
        return [x.size(i) for i in range(x.dim())]


def saved(module) -> io.BytesIO:
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    buffer.seek(0)
    return buffer


def test_scripted_module_computes_what_the_module_does():
    net, x = Net(), torch.randn(2, 4)
    scripted = torch.jit.script(copy.deepcopy(net))
    for call in ((x,), (x, 3), (x, 2, torch.ones(4))):
        got, want = scripted(*call), net(*call)
        assert torch.equal(got[0], want[0]) and torch.equal(got[1], want[1])
    assert scripted.steps.tolist() == [3.0] and scripted.sizes(x) == [2, 4]
    assert list(scripted.state_dict()) == list(net.state_dict())
    assert not scripted.eval().training and not scripted.layers[0].training


def test_parameters_of_a_scripted_module_train():
    torch.manual_seed(0)
    scripted = torch.jit.script(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(scripted.parameters(), 0.1)
    x, y = torch.randn(16, 3), torch.randn(16, 1)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = (scripted(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_archive_gives_back_the_same_program():
    scripted, x = torch.jit.script(Net()), torch.randn(2, 4)
    again = torch.jit.load(saved(scripted))
    assert torch.equal(again(x, 2)[0], scripted(x, 2)[0])
    assert again.sizes(x) == [2, 4] and again.scale == 0.5
    assert [n for n, _ in again.named_parameters()] == [n for n, _ in scripted.named_parameters()]
    third = torch.jit.load(saved(again))
    assert torch.equal(third(x)[0], again(x)[0])


def test_scripted_function_is_saved_as_a_module():
    @torch.jit.script
    def f(x, n: int = 2):
        return x * n

    again = torch.jit.load(saved(f))
    assert again(torch.ones(2)).tolist() == [2.0, 2.0]
    assert again(torch.ones(2), 5).tolist() == [5.0, 5.0]


def test_trace_records_what_ran_and_shares_parameters():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU()).eval()
    x, other = torch.randn(1, 1, 5, 5), torch.randn(1, 1, 5, 5)
    traced = torch.jit.trace(net, x)
    assert torch.allclose(traced(other), net(other))
    traced(other).sum().backward()
    assert net[0].weight.grad is not None
    assert torch.allclose(torch.jit.load(saved(traced))(other), net(other))


def test_trace_of_nested_inputs_and_outputs_keeps_their_form():
    def f(pair: tuple[torch.Tensor, torch.Tensor], scale):
        return {"sum": (pair[0] + pair[1]) * scale}, [pair[0], pair[1] * 2]

    given = ((torch.ones(2), torch.full((2,), 3.0)), torch.tensor(2.0))
    traced = torch.jit.trace(f, given, strict=False)
    named, listed = traced((torch.zeros(2), torch.ones(2)), torch.tensor(4.0))
    assert named["sum"].tolist() == [4.0, 4.0] and listed[1].tolist() == [2.0, 2.0]


def test_number_from_a_tensor_in_a_trace_warns():
    with pytest.warns(torch.jit.TracerWarning):
        torch.jit.trace(lambda x: x * int(x.sum()), torch.ones(2))


def test_freeze_turns_attributes_into_constants():
    scripted, x = torch.jit.script(Net().eval()), torch.randn(2, 4)
    want = scripted(x)[0]
    frozen = torch.jit.freeze(scripted)
    assert torch.allclose(frozen(x)[0], want)
    assert not list(frozen.parameters())
    with pytest.raises(RuntimeError, match="eval mode"):
        torch.jit.freeze(torch.jit.script(Net()))


def test_interface_calls_find_the_method_of_the_object():
    @torch.jit.interface
    class Op(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            pass

    class User(nn.Module):
        op: Op

        def __init__(self, op) -> None:
            super().__init__()
            self.op = op

        def forward(self, x):
            return self.op.forward(x)

    user = torch.jit.script(User(nn.ReLU()))
    assert user(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]


def test_damaged_archive_raises_and_runs_nothing():
    data = saved(torch.jit.script(Net())).getvalue()
    draw = random.Random(0)
    for _ in range(200):
        broken = bytearray(data)
        for _ in range(draw.randint(1, 8)):
            broken[draw.randrange(len(broken))] = draw.randrange(256)
        try:
            module = torch.jit.load(io.BytesIO(bytes(broken)))
            module(torch.ones(1, 4))
        except (RuntimeError, ValueError, NotImplementedError, IndexError, TypeError):
            pass


def test_code_of_an_archive_cannot_reach_python():
    data = saved(torch.jit.script(nn.ReLU()))
    source = zipfile.ZipFile(data)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as target:
        for name in source.namelist():
            content = source.read(name)
            if name.endswith(".py") and "/modules/activation" in name:
                content = content.replace(b"return ", b"__import__('os').abort()\n    return ")
            target.writestr(name, content)
    out.seek(0)
    with pytest.raises(RuntimeError):
        torch.jit.load(out)


def test_traced_fx_module_is_scripted_from_its_generated_code():
    class Part(nn.Module):
        def forward(self, x):
            torch._assert(x.shape[-1] == 4, "four columns")
            return torch.tensordot(x[..., 1:3], torch.ones(2, 2), ([1], [0]))

    scripted = torch.jit.script(torch.fx.symbolic_trace(Part()))
    x = torch.arange(8.0).reshape(2, 4)
    assert scripted(x).tolist() == [[3.0, 3.0], [11.0, 11.0]]
    with pytest.raises(RuntimeError, match="four columns"):
        scripted(torch.ones(2, 3))


def test_trace_of_layers_works_for_other_batch_sizes():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(18, 3)).eval()
    traced = torch.jit.trace(net, torch.randn(2, 1, 5, 5))
    x = torch.randn(7, 1, 5, 5)
    assert torch.allclose(traced(x), net(x))


def test_loop_over_the_items_of_a_module_dict_is_unrolled():
    class Table(nn.ModuleDict):
        def forward(self, x):
            for name, layer in self.items():
                x = layer(x) + len(name)
            return x

    scripted = torch.jit.script(Table({"a": nn.ReLU(), "bcd": nn.Identity()}))
    assert scripted(torch.tensor([-1.0, 2.0])).tolist() == [4.0, 6.0]
