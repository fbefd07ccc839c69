"""Networks of convolutions on CUDA, compiled: they are computed with the channels innermost, and
nothing of that shows in shapes, strides or gradients."""

import pytest
from cuda_support import cuda

import torch
from torch import nn
from torch._inductor import config
from torch._inductor.fx_passes import conv_layout


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield
    torch._dynamo.reset()


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.rest = nn.ModuleList(nn.Conv2d(4, 4, 3, padding=1) for _ in range(3))
        self.head = nn.Linear(4 * 4 * 4, 5)

    def forward(self, x):
        x = nn.functional.relu(self.norm(self.first(x)), inplace=True)
        for layer in self.rest:
            x = x + layer(x).relu()
        pooled = nn.functional.max_pool2d(x, 2)
        # A view of rows, which only the usual order has, and a write in place.
        pooled[:, 0] = 0.5
        return self.head(pooled.view(x.shape[0], -1)), x


def run(model, x):
    for p in model.parameters():
        p.grad = None
    out, maps = model(x)
    (out.square().sum() + maps.sum()).backward()
    return out, maps, [p.grad for p in model.parameters()]


def rearranged(monkeypatch):
    seen = []
    real = conv_layout.channels_last_convolutions

    def noted(gm):
        seen.append(real(gm))
        return seen[-1]

    monkeypatch.setattr("torch._inductor.fx_passes.pre_grad.channels_last_convolutions", noted)
    return seen


def test_a_network_gives_the_results_and_strides_of_eager(monkeypatch):
    seen = rearranged(monkeypatch)
    torch.manual_seed(0)
    model, x = Network().to(cuda), torch.randn(2, 3, 8, 8, device=cuda)
    with config.patch({"fx_graph_cache": False}):
        found = run(torch.compile(model), x)
    model.norm.reset_running_stats()
    wanted = run(model, x)
    assert seen == [True]
    for got, want in zip((*found[:2], *found[2]), (*wanted[:2], *wanted[2]), strict=True):
        assert got.stride() == want.stride()
        torch.testing.assert_close(got.cpu(), want.cpu(), rtol=1e-3, atol=1e-3)


def test_few_or_grouped_convolutions_stay_as_they_are(monkeypatch):
    seen = rearranged(monkeypatch)
    x = torch.randn(1, 4, 4, 4, device=cuda)
    few = nn.Sequential(nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 1)).to(cuda)
    grouped = nn.Sequential(*(nn.Conv2d(4, 4, 1, groups=4) for _ in range(4))).to(cuda)
    with torch.no_grad(), config.patch({"fx_graph_cache": False}):
        for model in (few, grouped):
            torch.testing.assert_close(torch.compile(model)(x).cpu(), model(x).cpu())
    assert seen and not any(seen)
