"""Records of the rnn family: cells and layers against the recurrences written out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import torch

from .core import OpInfo, SampleInput, call, error

TOL = {torch.float32: (1e-4, 1e-5)}
_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def _sigmoid(x) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _affine(x, w, b) -> np.ndarray:
    return x @ w.T if b is None else x @ w.T + b


def _lstm(x, state, w_ih, w_hh, b_ih=None, b_hh=None) -> tuple[np.ndarray, np.ndarray]:
    h, c = state
    i, f, g, o = np.split(_affine(x, w_ih, b_ih) + _affine(h, w_hh, b_hh), 4, -1)
    c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(c), c


def _gru(x, h, w_ih, w_hh, b_ih=None, b_hh=None) -> np.ndarray:
    r, z, n = np.split(_affine(x, w_ih, b_ih), 3, -1)
    hr, hz, hn = np.split(_affine(h, w_hh, b_hh), 3, -1)
    r, z = _sigmoid(r + hr), _sigmoid(z + hz)
    n = np.tanh(n + r * hn)
    return (1 - z) * n + z * h


def _plain(function) -> Callable[..., object]:
    def step(x, h, w_ih, w_hh, b_ih=None, b_hh=None) -> np.ndarray:
        return function(_affine(x, w_ih, b_ih) + _affine(h, w_hh, b_hh))

    return step


CELLS = {
    "lstm": _lstm,
    "gru": _gru,
    "rnn_tanh": _plain(np.tanh),
    "rnn_relu": _plain(lambda x: np.maximum(x, 0)),
}


def _weights(t, kind, inputs=3, hidden=2) -> list[torch.Tensor]:
    n = _GATES[kind] * hidden
    return [t(n, inputs), t(n, hidden), t(n), t(n)]


def _cell_samples(kind) -> Callable[..., object]:
    def samples(t) -> list[SampleInput]:
        state = [t(2, 2), t(2, 2)] if kind == "lstm" else t(2, 2)
        return [call(t(2, 3), state, *_weights(t, kind))]

    return samples


def _cell(kind) -> OpInfo:
    return OpInfo(
        f"{kind}_cell",
        _cell_samples(kind),
        lambda x, state, *weights: CELLS[kind](x, state, *weights),
        "d",
        tolerances=TOL,
        inplace=None,
        big=lambda t: _big_cell(t, kind),
        errors=lambda t: [
            error((RuntimeError, TypeError), "", t(2, 3)),
            error(
                RuntimeError,
                "",
                t(2, 4),
                [t(2, 2), t(2, 2)] if kind == "lstm" else t(2, 2),
                *_weights(t, kind),
            ),
        ],
    )


def _big_cell(t, kind) -> SampleInput:
    state = [t(200, 64), t(200, 64)] if kind == "lstm" else t(200, 64)
    return call(t(200, 96), state, *_weights(t, kind, 96, 64))


def _run(
    kind, x, state, weights, reverse
) -> tuple[np.ndarray, np.ndarray | tuple[np.ndarray, np.ndarray]]:
    """One direction of one layer over time (the first dimension)."""
    order = range(len(x) - 1, -1, -1) if reverse else range(len(x))
    outputs = [None] * len(x)
    for k in order:
        state = CELLS[kind](x[k], state, *weights)
        outputs[k] = state[0] if kind == "lstm" else state
    return np.stack(outputs), state


def _layer(kind) -> Callable[..., object]:
    def ref(
        x, hx, params, biases, layers, dropout, train, bidirectional, batch_first
    ) -> tuple[np.ndarray, ...]:
        x = np.swapaxes(x, 0, 1) if batch_first else x
        states = list(zip(*hx, strict=True)) if kind == "lstm" else list(hx)
        last = []
        for layer in range(layers):
            parts = []
            for direction in range(2 if bidirectional else 1):
                number = layer * (2 if bidirectional else 1) + direction
                weights = params[4 * number : 4 * number + 4]
                y, state = _run(kind, x, states[number], weights, direction == 1)
                parts.append(y)
                last.append(state)
            x = np.concatenate(parts, -1)
        out = np.swapaxes(x, 0, 1) if batch_first else x
        if kind == "lstm":
            return out, np.stack([s[0] for s in last]), np.stack([s[1] for s in last])
        return out, np.stack(last)

    return ref


def _layer_samples(kind) -> Callable[..., object]:
    def samples(t) -> list[SampleInput]:
        calls = []
        for layers, both, batch_first in ((1, False, False), (2, False, True), (1, True, False)):
            directions = 2 if both else 1
            state = lambda n=layers * directions: t(n, 2, 2)
            hx = [state(), state()] if kind == "lstm" else state()
            params = []
            for layer in range(layers):
                for _ in range(directions):
                    params += _weights(t, kind, 3 if layer == 0 else 2 * directions)
            x = t(2, 4, 3) if batch_first else t(4, 2, 3)
            calls.append(call(x, hx, params, True, layers, 0.0, False, both, batch_first))
        return calls

    return samples


def _big_layer(t, kind) -> SampleInput:
    hx = [t(1, 30, 48), t(1, 30, 48)] if kind == "lstm" else t(1, 30, 48)
    weights = _weights(t, kind, 40, 48)
    return call(t(20, 30, 40), hx, weights, True, 1, 0.0, False, False, False)


def _layer_record(kind) -> OpInfo:
    return OpInfo(
        kind,
        _layer_samples(kind),
        _layer(kind),
        "d",
        tolerances=TOL,
        inplace=None,
        covers=("_rnn_layer",),
        big=lambda t: _big_layer(t, kind),
        grad_samples=lambda t: [
            call(
                t(2, 1, 2),
                [t(1, 1, 1), t(1, 1, 1)] if kind == "lstm" else t(1, 1, 1),
                _weights(t, kind, 2, 1),
                True,
                1,
                0.0,
                True,
                False,
                False,
            )
        ],
        errors=lambda t: [error((RuntimeError, TypeError), "", t(2, 3, 4), t(1, 2, 3))],
    )


def _pack(x, lengths, batch_first) -> tuple[np.ndarray, np.ndarray]:
    x = np.swapaxes(x, 0, 1) if batch_first else x
    rows, sizes = [], []
    for step in range(int(lengths[0])):
        alive = int((lengths > step).sum())
        rows.append(x[step, :alive])
        sizes.append(alive)
    return np.concatenate(rows), np.array(sizes)


def _long_batch(t) -> SampleInput:
    t.scale = 1
    return call(t(64, 32, 128), torch.arange(64, 32, -1, device=t.device), False)


RECORDS = [
    *[_layer_record(kind) for kind in CELLS],
    *[_cell(kind) for kind in CELLS],
    OpInfo(
        "_pack_padded_sequence",
        lambda t: [call(t(3, 2, 2), torch.tensor([3, 1]), False)],
        _pack,
        "d",
        covers=("_pad_packed_sequence",),
        big=_long_batch,
        skips={
            "expanded": "expanded lengths are not those of the data",
            "meta": "the size of the result depends on the lengths",
        },
        errors=lambda t: [error(RuntimeError, "", t(3, 2, 2), torch.tensor([1, 3]), False)],
    ),
]
