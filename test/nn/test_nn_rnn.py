"""Recurrent networks against loops in plain NumPy, packed against padded sequences, gradients by
gradcheck, checkpoints' names, and what bad arguments raise."""

import io

import numpy as np
import pytest

import torch
from torch import nn
from torch.autograd import gradcheck, gradgradcheck
from torch.nn.utils.rnn import (
    PackedSequence,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
)

NETWORKS = [nn.RNN, nn.GRU, nn.LSTM]
CELLS = [nn.RNNCell, nn.GRUCell, nn.LSTMCell]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(kind, x, h, c, w):
    """One step of one cell; w: weight_ih, weight_hh, bias_ih, bias_hh, projection or None."""
    gx, gh = x @ w[0].T + w[2], h @ w[1].T + w[3]
    if kind == "LSTM":
        i, f, g, o = np.split(gx + gh, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        return (h if w[4] is None else h @ w[4].T), c
    if kind == "GRU":
        (rx, zx, nx), (rh, zh, nh) = np.split(gx, 3, -1), np.split(gh, 3, -1)
        z, n = sigmoid(zx + zh), np.tanh(nx + sigmoid(rx + rh) * nh)
        return (1 - z) * n + z * h, c
    return (np.maximum(gx + gh, 0) if kind == "RELU" else np.tanh(gx + gh)), c


def plain(module, kind, x, h, c):
    """The network as loops over layers, directions and steps; x is [time, batch, features]."""
    layers, directions = module.num_layers, 2 if module.bidirectional else 1
    hs, cs = [], []
    for layer in range(layers):
        outputs = []
        for d in range(directions):
            suffix = f"_l{layer}" + ("_reverse" if d else "")

            def get(name, suffix=suffix):
                value = getattr(module, name + suffix, None)
                return 0.0 if value is None else value.detach().double().numpy()

            w = [get(n) for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
            w.append(get("weight_hr") if module.proj_size else None)
            cell = layer * directions + d
            hh, cc = h[cell], None if c is None else c[cell]
            out = [None] * len(x)
            for t in reversed(range(len(x))) if d else range(len(x)):
                hh, cc = step(kind, x[t], hh, cc, w)
                out[t] = hh
            outputs.append(np.stack(out))
            hs.append(hh)
            cs.append(cc)
        x = np.concatenate(outputs, -1)
    return x, np.stack(hs), None if c is None else np.stack(cs)


def make(cls, layers=1, bidirectional=False, **settings):
    torch.manual_seed(3)
    return cls(4, 5, layers, bidirectional=bidirectional, **settings).double()


def start(module, batch=3):
    cells = module.num_layers * (2 if module.bidirectional else 1)
    h = torch.randn(cells, batch, module.proj_size or 5, dtype=torch.float64)
    return (h, torch.randn(cells, batch, 5).double()) if module.mode == "LSTM" else h


@pytest.mark.parametrize("cls", NETWORKS)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_networks_match_plain_loops(cls, layers, bidirectional, bias):
    module = make(cls, layers, bidirectional, bias=bias)
    x, hx = torch.randn(6, 3, 4, dtype=torch.float64), start(module)
    h, c = hx if cls is nn.LSTM else (hx, None)
    output, hidden = module(x, hx)
    kind = {"RNN_TANH": "TANH"}.get(module.mode, module.mode)
    expected = plain(module, kind, x.numpy(), h.numpy(), None if c is None else c.numpy())
    hidden = hidden if cls is nn.LSTM else (hidden,)
    for got, wanted in zip((output, *hidden), expected, strict=False):
        np.testing.assert_allclose(got.detach(), wanted, rtol=1e-10, atol=1e-12)
    first = module(x.transpose(0, 1), hx)[0] if module.batch_first else None
    assert first is None


@pytest.mark.parametrize("settings", [{"proj_size": 2}, {"proj_size": 2, "bidirectional": True}])
def test_lstm_projection_matches_plain_loops(settings):
    module = make(nn.LSTM, 2, **settings)
    x, (h, c) = torch.randn(4, 3, 4, dtype=torch.float64), start(module)
    output, hidden = module(x, (h, c))
    for got, wanted in zip(
        (output, *hidden), plain(module, "LSTM", x.numpy(), h.numpy(), c.numpy()), strict=True
    ):
        np.testing.assert_allclose(got.detach(), wanted, rtol=1e-10)


def test_relu_network_batch_first_and_no_batch():
    module = make(nn.RNN, nonlinearity="relu", batch_first=True)
    x = torch.randn(3, 6, 4, dtype=torch.float64)
    zeros = np.zeros((1, 3, 5))
    expected, _, _ = plain(module, "RELU", x.transpose(0, 1).numpy(), zeros, None)
    np.testing.assert_allclose(module(x)[0].detach().transpose(0, 1), expected, rtol=1e-10)
    np.testing.assert_allclose(module(x[1])[0].detach(), expected[:, 1], rtol=1e-10)
    assert module(x[1])[1].shape == (1, 5)


@pytest.mark.parametrize("cls", NETWORKS)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("lengths", [[5, 3, 3, 1], [2, 5, 1, 4]])
def test_packed_sequences_equal_each_sequence_alone(cls, bidirectional, lengths):
    module = make(cls, 2, bidirectional)
    sequences = [torch.randn(n, 4, dtype=torch.float64) for n in lengths]
    packed = pack_sequence(sequences, enforce_sorted=False)
    output, hidden = module(packed)
    assert isinstance(output, PackedSequence)
    hidden = hidden if cls is nn.LSTM else (hidden,)
    for i, (sequence, out) in enumerate(zip(sequences, unpack_sequence(output), strict=True)):
        alone, last = module(sequence)
        torch.testing.assert_close(out, alone)
        last = last if cls is nn.LSTM else (last,)
        for got, wanted in zip(hidden, last, strict=True):
            torch.testing.assert_close(got[:, i], wanted)


@pytest.mark.parametrize("cls", NETWORKS)
@pytest.mark.parametrize("settings", [{}, {"bidirectional": True}])
def test_gradients_of_networks(cls, settings):
    module = make(cls, 1, **settings)
    x = torch.randn(3, 2, 4, dtype=torch.float64, requires_grad=True)
    hx = start(module, 2)
    hx = [t.requires_grad_() for t in (hx if cls is nn.LSTM else (hx,))]
    weights = tuple(module.parameters())

    def call(x, *rest):
        state = tuple(rest[: len(hx)])
        values = dict(zip((n for n, _ in module.named_parameters()), rest[len(hx) :], strict=True))
        out, hidden = torch.nn.utils.stateless.functional_call(
            module, values, (x, state if cls is nn.LSTM else state[0])
        )
        return (out, *hidden) if cls is nn.LSTM else (out, hidden)

    assert gradcheck(call, (x, *hx, *weights))
    small = make_small(cls)
    y = torch.randn(2, 2, 2, dtype=torch.float64, requires_grad=True)
    assert gradgradcheck(lambda t: small(t)[0], (y,))
    assert gradcheck(lambda t: small(t)[0], (y,), check_forward_ad=True)


def make_small(cls):
    torch.manual_seed(1)
    return cls(2, 2).double()


def test_gradients_of_packed_and_projected():
    module = make(nn.LSTM, 1, True, proj_size=2)
    x = torch.randn(4, 3, 4, dtype=torch.float64, requires_grad=True)

    def call(x):
        output, (h, c) = module(pack_padded_sequence(x, [4, 2, 1]))
        return output.data, h, c

    assert gradcheck(call, (x,)) and gradgradcheck(call, (x,))


@pytest.mark.parametrize("cls", CELLS)
def test_cells_equal_networks_of_one_step(cls):
    torch.manual_seed(0)
    cell = cls(4, 5)
    network = {nn.RNNCell: nn.RNN, nn.GRUCell: nn.GRU, nn.LSTMCell: nn.LSTM}[cls](4, 5)
    network.load_state_dict({k + "_l0": v for k, v in cell.state_dict().items()})
    x = torch.randn(3, 4)
    got = cell(x)
    expected = network(x.unsqueeze(0))[1]
    pairs = zip(got, expected, strict=True) if cls is nn.LSTMCell else [(got, expected)]
    for a, b in pairs:
        torch.testing.assert_close(a, b[0])
    lone = cell(x[0])
    torch.testing.assert_close((lone[0] if cls is nn.LSTMCell else lone),
                               (got[0] if cls is nn.LSTMCell else got)[0])  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_other_dtypes_are_near_float64(dtype):
    module = make(nn.LSTM, 2, True)
    x = torch.randn(5, 3, 4, dtype=torch.float64)
    expected = module(x)[0]
    got = module.to(dtype)(x.to(dtype))[0]
    assert got.dtype == dtype
    assert (got.double() - expected).abs().max() < 0.05


def test_dropout_acts_between_layers_in_training_only():
    module = make(nn.GRU, 2, dropout=1.0)
    x = torch.randn(4, 2, 4, dtype=torch.float64)
    module.eval()
    eager = module(x)[0]
    module.train()
    dropped = module(x)[0]
    assert not torch.equal(eager, dropped)
    # The second layer saw zeros only: every sequence looks the same.
    assert torch.equal(dropped[:, 0], dropped[:, 1])


def test_the_same_bits_on_any_number_of_threads():
    torch.manual_seed(0)
    module, x = nn.LSTM(32, 64, 2, bidirectional=True), torch.randn(9, 33, 32)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            module.zero_grad()
            out = module(x)[0]
            out.square().sum().backward()
            results.append([out.detach(), *(p.grad.clone() for p in module.parameters())])
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_state_dict_repr_and_pickle():
    module = nn.LSTM(3, 4, 2, batch_first=True, dropout=0.1, bidirectional=True, proj_size=2)
    names = list(module.state_dict())
    assert names[:5] == [f"{n}_l0" for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh",
                                             "weight_hr")]  # fmt: skip
    assert names[5] == "weight_ih_l0_reverse" and len(names) == 20
    assert module.weight_ih_l1.shape == (16, 4) and module.weight_hh_l1.shape == (16, 2)
    assert repr(module) == (
        "LSTM(3, 4, proj_size=2, num_layers=2, batch_first=True, dropout=0.1, bidirectional=True)"
    )
    assert repr(nn.RNNCell(3, 4, bias=False, nonlinearity="relu")) == (
        "RNNCell(3, 4, bias=False, nonlinearity=relu)"
    )
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    again = torch.load(file, weights_only=False).eval()
    x = torch.randn(2, 5, 3)
    torch.testing.assert_close(again(x)[0], module.eval()(x)[0])
    assert len(module.all_weights) == 4 and module.flatten_parameters() is None


def test_empty_and_meta():
    module = nn.GRU(3, 4)
    with pytest.raises(RuntimeError, match="Expected sequence length to be larger than 0 in RNN"):
        module(torch.randn(0, 2, 3))
    out, hidden = module(torch.randn(5, 0, 3))
    assert out.shape == (5, 0, 4) and hidden.shape == (1, 0, 4)
    meta = nn.LSTM(3, 4, bidirectional=True, device="meta")
    out, (h, c) = meta(torch.empty(5, 2, 3, device="meta"))
    assert out.shape == (5, 2, 8) and h.shape == c.shape == (2, 2, 4)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: nn.LSTM(3, 4)(torch.randn(5, 2, 4)), RuntimeError, r"input.size\(-1\) must be"),
        (lambda: nn.LSTM(3, 4)(torch.randn(5, 2, 3, 1)), ValueError, "2D or 3D, got 4D"),
        (
            lambda: nn.GRU(3, 4)(torch.randn(5, 2, 3), torch.zeros(1, 3, 4)),
            RuntimeError,
            "Expected hidden size",
        ),
        (
            lambda: nn.LSTM(3, 4)(torch.randn(5, 3), (torch.zeros(1, 1, 4),) * 2),
            RuntimeError,
            "unbatched 2-D",
        ),
        (lambda: nn.LSTM(3, 4)(torch.randn(5, 2, 3).double()), ValueError, "does not match weight"),
        (lambda: nn.LSTM(3, 4, dropout=2.0), ValueError, "dropout should be a number"),
        (lambda: nn.LSTM(3, 4, proj_size=4), ValueError, "smaller than hidden_size"),
        (lambda: nn.GRU(3, 4, proj_size=2), ValueError, "only supported for LSTM"),
        (lambda: nn.RNN(3, 4, nonlinearity="x"), ValueError, "Unknown nonlinearity"),
        (lambda: nn.LSTM(3, 4.0), TypeError, "should be of type int"),
        (lambda: nn.LSTMCell(3, 4)(torch.randn(2, 4)), RuntimeError, "inconsistent input_size"),
        (lambda: nn.GRUCell(3, 4)(torch.randn(2, 2, 3)), ValueError, "1D or 2D"),
        (
            lambda: torch.lstm(torch.randn(5, 2, 3), [torch.zeros(1, 2, 4)], [], True, 1, 0.0,
                               False, False, False),
            RuntimeError,
            "two hidden states",
        ),
        (
            lambda: torch.gru(torch.randn(5, 2, 3), torch.zeros(1, 2, 4), [torch.randn(12, 3)],
                              False, 1, 0.0, False, False, False),
            RuntimeError,
            "parameters",
        ),
        (
            lambda: torch.gru(torch.randn(7, 3), torch.tensor([4, 5]), torch.zeros(1, 4, 4),
                              [torch.randn(12, 3), torch.randn(12, 4)], False, 1, 0.0, False,
                              False),
            RuntimeError,
            "batch_sizes",
        ),
    ],
)  # fmt: skip
def test_errors(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_packing_round_trip_and_errors():
    sequences = [torch.randn(n, 2) for n in (4, 3, 1)]
    padded = pad_sequence(sequences)
    packed = pack_padded_sequence(padded, [4, 3, 1])
    assert packed.batch_sizes.tolist() == [3, 2, 2, 1]
    back, lengths = pad_packed_sequence(packed, batch_first=True, padding_value=7.0, total_length=6)
    assert lengths.tolist() == [4, 3, 1] and back.shape == (3, 6, 2)
    assert back[2, 1:].eq(7).all() and back[0, :4].equal(sequences[0])
    for a, b in zip(unpack_sequence(packed), sequences, strict=True):
        assert a.equal(b)
    with pytest.raises(RuntimeError, match="sorted in decreasing order"):
        pack_padded_sequence(padded, [1, 3, 4])
    with pytest.raises(RuntimeError, match="greater than 0"):
        pack_padded_sequence(padded, [4, 3, 0])
    with pytest.raises(RuntimeError, match="batch_size"):
        pack_padded_sequence(padded, [4, 3])
    x = padded.double().requires_grad_()
    assert gradcheck(lambda t: pack_padded_sequence(t, [4, 3, 1]).data, (x,))
