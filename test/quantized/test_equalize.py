"""Cross-layer equalization keeps what a model computes and evens out its weights."""

import copy

import pytest

import torch
from torch import nn
from torch.ao.quantization import _equalize
from torch.ao.quantization.fuse_modules import fuse_modules


def test_equalized_chain_computes_the_same_with_even_ranges() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 5), nn.Linear(5, 6))
    with torch.no_grad():
        model[0].weight.mul_(torch.tensor([[100.0], [1.0], [0.01], [3.0]]))
    before, x = copy.deepcopy(model), torch.randn(7, 3)
    _equalize.equalize(model, [["0", "1"], ["1", "2"]], 1e-6)
    assert torch.allclose(model(x), before(x), rtol=1e-4, atol=1e-4)
    for a, b in ((0, 1), (1, 2)):
        ranges = (
            _equalize.channel_range(model[a].weight, 0),
            _equalize.channel_range(model[b].weight, 1),
        )
        assert torch.allclose(*ranges, rtol=1e-4)


def test_fused_convolutions_are_equalized_by_their_layers() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 3, 1), nn.ReLU(), nn.Conv2d(3, 2, 1), nn.ReLU()).train()
    model = fuse_modules(model.eval(), [["0", "1"], ["2", "3"]])
    before, x = copy.deepcopy(model), torch.randn(2, 2, 3, 3)
    _equalize.equalize(model, [["0", "2"]], 1e-6)
    assert torch.allclose(model(x), before(x), atol=1e-5)


def test_channel_of_zeros_stays_as_it_is() -> None:
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    with torch.no_grad():
        first.weight[1] = 0.0
    _equalize.cross_layer_equalization(first, second)
    assert torch.isfinite(first.weight).all() and torch.isfinite(second.weight).all()


def test_layers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(TypeError, match="output channels"):
        _equalize.cross_layer_equalization(nn.Linear(2, 3), nn.Linear(4, 2))
    with pytest.raises(ValueError, match="cannot be equalized"):
        _equalize.cross_layer_equalization(nn.ReLU(), nn.Linear(4, 2))


def test_iinfo_of_quantized_dtypes_tells_their_levels() -> None:
    for dtype, least, greatest in (
        (torch.qint8, -128, 127),
        (torch.quint8, 0, 255),
        (torch.qint32, -(2**31), 2**31 - 1),
    ):
        info = torch.iinfo(dtype)
        assert (info.min, info.max) == (least, greatest)
    with pytest.raises(NotImplementedError):
        torch.iinfo(torch.quint4x2)
