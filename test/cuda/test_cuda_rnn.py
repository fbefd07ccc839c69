"""Recurrent layers on CUDA against plain loops over time in NumPy, gradients against the same layer
on the CPU, whose own are tested elsewhere by differences."""

import numpy as np
import pytest
from cuda_support import cuda

import torch
from torch import nn

KINDS = [(nn.LSTM, {}), (nn.GRU, {}), (nn.RNN, {}), (nn.RNN, {"nonlinearity": "relu"})]
TIME, BATCH, FEATURES, HIDDEN = 5, 3, 4, 6


def logistic(x):
    return 1 / (1 + np.exp(-x))


def layer_loop(kind, relu, x, weights, state, cell):
    """One direction of one layer by the formulas; x is time x batch x features."""
    w_ih, w_hh, b_ih, b_hh = weights
    outputs = []
    for frame in x:
        a, b = frame @ w_ih.T + b_ih, state @ w_hh.T + b_hh
        if kind is nn.LSTM:
            i, f, g, o = np.split(a + b, 4, axis=1)
            cell = logistic(f) * cell + logistic(i) * np.tanh(g)
            state = logistic(o) * np.tanh(cell)
        elif kind is nn.GRU:
            (ar, az, an), (br, bz, bn) = np.split(a, 3, axis=1), np.split(b, 3, axis=1)
            z = logistic(az + bz)
            state = (1 - z) * np.tanh(an + logistic(ar + br) * bn) + z * state
        else:
            state = np.maximum(a + b, 0) if relu else np.tanh(a + b)
        outputs.append(state)
    return np.stack(outputs), state


@pytest.mark.parametrize("kind, options", KINDS)
def test_outputs_follow_the_formulas(kind, options):
    torch.manual_seed(4)
    net = kind(FEATURES, HIDDEN, bidirectional=True, dtype=torch.float64, **options)
    x = torch.randn(TIME, BATCH, FEATURES, dtype=torch.float64)
    out, last = net.to(cuda)(x.to(cuda))
    last = last[0] if kind is nn.LSTM else last
    zeros, relu = np.zeros((BATCH, HIDDEN)), options != {}
    for direction, suffix in enumerate(("", "_reverse")):
        names = (f"{name}_l0{suffix}" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        weights = [getattr(net, name).detach().cpu().numpy() for name in names]
        frames = x.numpy()[::-1] if direction else x.numpy()
        want, state = layer_loop(kind, relu, frames, weights, zeros, zeros)
        part = out[..., direction * HIDDEN : (direction + 1) * HIDDEN].detach().cpu().numpy()
        np.testing.assert_allclose(part[::-1] if direction else part, want, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(last[direction].detach().cpu(), state, rtol=1e-10, atol=1e-12)


def same_gradients(net, x, run):
    """Runs `run(net, x)` to a number on both devices and compares all gradients."""
    results = []
    for device in ("cpu", cuda):
        copy, leaf = net.to(device), x.detach().to(device).requires_grad_()
        copy.zero_grad()
        run(copy, leaf).backward()
        results.append(
            [leaf.grad.cpu()] + [p.grad.detach().cpu().clone() for p in copy.parameters()]
        )
    for on_cpu, on_gpu in zip(*results, strict=True):
        np.testing.assert_allclose(on_gpu.numpy(), on_cpu.numpy(), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    "kind, options", [*KINDS, (nn.LSTM, {"proj_size": 2}), (nn.GRU, {"bias": False})]
)
def test_gradients_agree_with_the_cpu(kind, options):
    torch.manual_seed(5)
    net = kind(FEATURES, HIDDEN, num_layers=2, bidirectional=True, dtype=torch.float64, **options)
    x = torch.randn(TIME, BATCH, FEATURES, dtype=torch.float64)

    def run(net, x):
        out, last = net(x)
        states = last if isinstance(last, tuple) else (last,)
        return out.square().sum() + sum((s.sin().sum() for s in states), start=0)

    same_gradients(net, x, run)


def test_packed_sequences_of_different_lengths():
    torch.manual_seed(6)
    net = nn.LSTM(FEATURES, HIDDEN, bidirectional=True, dtype=torch.float64)
    x = torch.randn(TIME, BATCH, FEATURES, dtype=torch.float64)

    def run(net, x):
        packed = nn.utils.rnn.pack_padded_sequence(x, [5, 2, 4], enforce_sorted=False)
        out, (h, c) = net(packed)
        padded, lengths = nn.utils.rnn.pad_packed_sequence(out)
        assert lengths.tolist() == [5, 2, 4] and not padded[2:, 1].any()
        return padded.square().sum() + h.sum() + c.cos().sum()

    same_gradients(net, x, run)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_narrow_types_stay_close(dtype):
    torch.manual_seed(7)
    net = nn.GRU(8, 16)
    x = torch.randn(4, 2, 8)
    want = net.double()(x.double())[0].detach().numpy()
    got = net.to(cuda, dtype)(x.to(cuda, dtype))[0]
    assert got.dtype == dtype
    limit = {torch.float16: 5e-3, torch.bfloat16: 4e-2, torch.float32: 1e-5}[dtype]
    np.testing.assert_allclose(got.detach().cpu().double().numpy(), want, atol=limit)


def test_empty_batches_and_cells():
    net = nn.LSTM(4, 6).to(cuda)
    out, _ = net(torch.zeros(3, 0, 4, device=cuda))
    assert out.shape == (3, 0, 6)
    cell = nn.LSTMCell(4, 6).to(cuda)
    h, c = cell(torch.ones(2, 4, device=cuda))
    assert h.shape == c.shape == (2, 6)
