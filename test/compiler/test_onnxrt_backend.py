"""The backend for ONNX Runtime: known where its packages are, results and gradients as in eager."""

import importlib.util
import subprocess
import sys

import pytest

import torch
from torch import nn

_NEEDED = ("onnx", "onnxscript", "onnxruntime")
installed = all(importlib.util.find_spec(name) is not None for name in _NEEDED)
needs_packages = pytest.mark.skipif(not installed, reason="onnxruntime is not installed")


def test_backend_is_listed_if_and_only_if_its_packages_are_installed():
    assert ("onnxrt" in torch._dynamo.list_backends()) == installed


def test_backend_is_not_listed_without_its_packages():
    code = (
        "import importlib.util\n"
        "found = importlib.util.find_spec\n"
        "def without(name, *rest):\n"
        "    return None if name == 'onnxruntime' else found(name, *rest)\n"
        "importlib.util.find_spec = without\n"
        "import torch\n"
        "assert 'onnxrt' not in torch._dynamo.list_backends()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@needs_packages
def test_results_are_those_of_eager_for_several_sizes():
    net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2)).eval()
    compiled = torch.compile(net, backend="onnxrt")
    for rows in (3, 5, 3):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(compiled(x), net(x))


@needs_packages
def test_gradients_are_those_of_eager():
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    x = torch.randn(3, 4, requires_grad=True)
    (wanted,) = torch.autograd.grad(net(x).square().sum(), x)
    compiled = torch.compile(net, backend="onnxrt")
    (found,) = torch.autograd.grad(compiled(x).square().sum(), x)
    torch.testing.assert_close(found, wanted)
    compiled(x).sum().backward()
    assert all(p.grad is not None for p in net.parameters())


@needs_packages
def test_several_results_and_written_buffers_keep_their_places():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x):
            self.calls.add_(1)
            return x + 1, x.sum(), self.calls * 2

    plain, traced = Counting(), Counting()
    compiled = torch.compile(traced, backend="onnxrt")
    x = torch.randn(3)
    for _ in range(2):
        for wanted, found in zip(plain(x), compiled(x), strict=True):
            torch.testing.assert_close(found, wanted)
    assert traced.calls.item() == 2
