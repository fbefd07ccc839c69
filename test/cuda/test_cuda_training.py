"""Backward passes and whole trainings on CUDA: gradients across devices and streams, and the losses
of the CPU. Runs on a GPU, or on the emulator of test/cuda_emulator."""

import importlib
import pathlib
import sys

import pytest
from cuda_support import cuda

import torch
from torch import nn
from torch.nn import functional as F

needs_two = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two devices")
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "gpt"
SMALL = "--layers 1 --width 16 --heads 2 --context 8 --batch 2 --dropout 0".split()


# ---- backward passes


def test_gradient_returns_to_the_cpu():
    x = torch.ones(3, requires_grad=True)
    (x.cuda() * 2).sum().backward()
    assert x.grad.device.type == "cpu" and x.grad.tolist() == [2, 2, 2]
    w = torch.ones(3, device="cuda", requires_grad=True)
    (w.cpu() * 3).sum().backward()
    assert w.grad.is_cuda and w.grad.tolist() == [3, 3, 3]


@needs_two
def test_backward_across_devices():
    x = torch.arange(1.0, 4.0).to("cuda:0").requires_grad_()
    y = (x * x).to("cuda:1")
    w = torch.ones(3, device="cuda:1", requires_grad=True)
    (y * w).sum().backward()
    assert x.grad.device.index == 0 and x.grad.tolist() == [2, 4, 6]
    assert w.grad.device.index == 1 and w.grad.tolist() == [1, 4, 9]
    assert torch.cuda.current_device() == 0


def test_backward_runs_on_the_streams_of_the_forward_pass():
    s = torch.cuda.Stream()
    seen = []
    x = torch.ones(3, device="cuda", requires_grad=True)
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        y = x * 2
        y.register_hook(lambda grad: seen.append(torch.cuda.current_stream().cuda_stream))
    torch.cuda.current_stream().wait_stream(s)
    z = y * 3
    z.register_hook(lambda grad: seen.append(torch.cuda.current_stream().cuda_stream))
    z.sum().backward()
    assert seen == [0, s.cuda_stream] and torch.cuda.current_stream().cuda_stream == 0
    assert x.grad.tolist() == [6, 6, 6]


def test_error_in_backward_puts_the_stream_back():
    s = torch.cuda.Stream()
    x = torch.ones(3, device="cuda", requires_grad=True)
    with torch.cuda.stream(s):
        y = x * 2

    def fail(grad):
        raise KeyError("no")

    y.register_hook(fail)
    with pytest.raises(KeyError):
        y.sum().backward()
    assert torch.cuda.current_stream().cuda_stream == 0


# ---- trainings


def losses_of(device, optimizer, steps=6, **settings):
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))
    inputs, targets = torch.randn(12, 8), torch.randint(4, (12,))
    model, inputs, targets = model.to(device), inputs.to(device), targets.to(device)
    step = optimizer(model.parameters(), lr=0.02, **settings)
    losses = []
    for _ in range(steps):
        loss = F.cross_entropy(model(inputs), targets)
        step.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        step.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize(
    "optimizer, settings",
    [
        (torch.optim.SGD, {"momentum": 0.9}),
        (torch.optim.AdamW, {}),
        (torch.optim.AdamW, {"fused": True}),
    ],
)
def test_mlp_has_the_losses_of_the_cpu(optimizer, settings):
    found = losses_of(cuda, optimizer, **settings)
    settings.pop("fused", None)
    expected = losses_of("cpu", optimizer, **settings)
    assert found == pytest.approx(expected, rel=1e-4) and found[-1] < found[0]


@pytest.fixture
def gpt(monkeypatch):
    """The modules of the example."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    names = ("model", "plot", "text", "train")
    yield {name: importlib.import_module(name) for name in names}
    for name in names:
        sys.modules.pop(name, None)


def gpt_losses(gpt, device, *arguments, steps=3):
    options = gpt["train"].parse([*SMALL, "--device", device, *arguments])
    trainer = gpt["train"].Trainer(gpt["text"].Text.bundled(), options)
    return [trainer.train_step() for _ in range(steps)], trainer


def test_gpt_has_the_losses_of_the_cpu(gpt):
    found, trainer = gpt_losses(gpt, "cuda")
    assert all(p.is_cuda for p in trainer.model.parameters())
    assert found == pytest.approx(gpt_losses(gpt, "cpu")[0], rel=1e-4)


def test_gpt_in_bfloat16_is_close(gpt):
    found, _ = gpt_losses(gpt, "cuda", "--precision", "bfloat16")
    assert found == pytest.approx(gpt_losses(gpt, "cpu")[0], rel=2e-2)


def test_gpt_goes_on_from_a_checkpoint_on_either_device(gpt, tmp_path):
    _, trainer = gpt_losses(gpt, "cuda", steps=2)
    torch.save(trainer.state(), tmp_path / "state.pt")
    expected = trainer.train_step()
    for device, tolerance in (("cuda", 0), ("cpu", 1e-4)):
        _, other = gpt_losses(gpt, device, steps=0)
        other.restore(torch.load(tmp_path / "state.pt", map_location="cpu"))
        assert other.train_step() == pytest.approx(expected, rel=tolerance)


# ---- graphs


def test_graph_replays_with_new_inputs():
    x = torch.zeros(4, 4, device=cuda)
    weight = torch.eye(4, device=cuda) * 2
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        (x @ weight).relu()
    torch.cuda.current_stream().wait_stream(side)
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        assert torch.cuda.is_current_stream_capturing()
        result = (x @ weight).relu() + 1
    for value in (1.0, -1.0, 3.0):
        x.fill_(value)
        recorded.replay()
        torch.full((64,), 9.0, device=cuda)
        assert result.tolist() == [[max(0.0, 2 * value) + 1] * 4] * 4
    with (
        pytest.raises(RuntimeError, match="already owns a captured graph"),
        torch.cuda.stream(side),
    ):
        recorded.capture_begin()
    recorded.reset()


def test_random_numbers_of_a_graph_continue_the_sequence():
    def draw():
        return torch.rand(5, device=cuda), torch.randn(6, device=cuda)

    torch.manual_seed(3)
    expected = [torch.cat(draw()).tolist() for _ in range(3)]
    state = torch.cuda.get_rng_state()
    torch.manual_seed(3)
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        parts = draw()
    for numbers in expected:
        recorded.replay()
        assert torch.cat([p.clone() for p in parts]).tolist() == numbers
    assert torch.equal(torch.cuda.get_rng_state(), state)
    torch.manual_seed(3)
    recorded.replay()
    assert torch.cat([p.clone() for p in parts]).tolist() == expected[0]
    recorded.reset()
    assert torch.rand(3, device=cuda).shape == (3,)


def test_graph_of_dropout_and_a_generator_of_its_own():
    generator = torch.Generator(cuda).manual_seed(5)
    x = torch.ones(64, device=cuda)
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        dropped = F.dropout(x, 0.5)
        drawn = torch.rand(4, device=cuda, generator=generator)
    seen = set()
    for _ in range(3):
        recorded.replay()
        seen.add((tuple(dropped.tolist()), tuple(drawn.tolist())))
    assert len({a for a, _ in seen}) == len({b for _, b in seen}) == 3
    again = torch.Generator(cuda).manual_seed(5)
    first = torch.rand(4, device=cuda, generator=again)
    assert tuple(first.tolist()) in {b for _, b in seen}


def test_graphs_need_a_stream_of_their_own():
    with pytest.raises(RuntimeError, match="must be captured on a non-default stream"):
        torch.cuda.CUDAGraph().capture_begin()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        torch.cuda.CUDAGraph().replay()
