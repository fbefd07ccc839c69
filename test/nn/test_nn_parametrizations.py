"""Orthogonal parametrization against its definition, and weights of unusual layouts."""

import pytest

import torch
from torch import nn
from torch.nn.utils import parametrizations


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 4)])
@pytest.mark.parametrize("how", ["matrix_exp", "cayley", "householder", None])
@pytest.mark.parametrize("base", [True, False])
def test_orthogonal_weight_is_orthogonal_after_training(shape, how, base):
    torch.manual_seed(0)
    layer = nn.Module()
    layer.weight = nn.Parameter(torch.randn(shape, dtype=torch.float64))
    parametrizations.orthogonal(layer, orthogonal_map=how, use_trivialization=base)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    target = torch.randn(shape, dtype=torch.float64)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = (layer.weight - target).square().sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    tall = layer.weight.detach()
    tall = tall.mT if shape[-2] < shape[-1] else tall
    unit = torch.eye(min(shape[-2:]), dtype=torch.float64).expand(*shape[:-2], -1, -1)
    torch.testing.assert_close(tall.mT @ tall, unit)


def test_orthogonal_keeps_an_orthogonal_weight_and_takes_assignments():
    layer = nn.Linear(4, 4, bias=False)
    start = nn.init.orthogonal_(torch.empty(4, 4))
    layer.weight = nn.Parameter(start.clone())
    parametrizations.orthogonal(layer)
    torch.testing.assert_close(layer.weight, start)
    assert list(layer.state_dict()) == [
        "parametrizations.weight.original",
        "parametrizations.weight.0.base",
    ]
    other = nn.init.orthogonal_(torch.empty(4, 4))
    layer.weight = other
    torch.testing.assert_close(layer.weight, other)
    with pytest.raises(ValueError, match="Expected a matrix or batch of matrices of shape"):
        layer.weight = torch.ones(2, 2)


def test_orthogonal_refuses_what_it_cannot_do():
    fixed = parametrizations.orthogonal(
        nn.Linear(3, 3), orthogonal_map="cayley", use_trivialization=False
    )
    with pytest.raises(NotImplementedError, match="not possible to assign"):
        fixed.weight = torch.eye(3)
    with pytest.raises(ValueError, match="orthogonal_map has to be one of"):
        parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="qr")
    layer = nn.Module()
    layer.weight = nn.Parameter(torch.randn(3, 3, dtype=torch.complex64))
    with pytest.raises(ValueError, match="does not support complex"):
        parametrizations.orthogonal(layer, orthogonal_map="householder")


def test_convolution_weights_change_their_memory_format():
    model = nn.Sequential(nn.Conv2d(2, 3, 2), nn.Linear(2, 2))
    nn.utils.convert_conv2d_weight_memory_format(model, torch.channels_last)
    assert model[0].weight.is_contiguous(memory_format=torch.channels_last)
    deep = nn.Conv3d(2, 3, 2)
    nn.utils.convert_conv3d_weight_memory_format(deep, torch.channels_last_3d)
    assert deep.weight.is_contiguous(memory_format=torch.channels_last_3d)
