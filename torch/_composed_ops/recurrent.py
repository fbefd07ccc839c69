"""One step of a recurrent layer from the products that feed its gates, and its gradients.

An LSTM has the gates input, forget, cell, output, in this order; a GRU has reset, update, new. The
workspace of a forward operator holds what its gradient needs: the gates after their functions, and
for a GRU also the old state and the hidden part of the new gate."""

import torch
from torch import Tensor
from torch._composed_ops.registry import composed

_LSTM_GRADIENT = (
    "Tensor? grad_hy, Tensor? grad_cy, Tensor cx, Tensor cy, Tensor workspace, bool has_bias"
)
_BIASES = "Tensor? input_bias=None, Tensor? hidden_bias=None"

Pair = tuple[Tensor, Tensor]
Five = tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None, Tensor | None]


def _with_bias(gates: Tensor, bias: Tensor | None) -> Tensor:
    return gates if bias is None else gates + bias


def _lstm_gates(
    input_gates: Tensor,
    hidden_gates: Tensor,
    input_bias: Tensor | None,
    hidden_bias: Tensor | None,
) -> Tensor:
    total = _with_bias(input_gates, input_bias) + _with_bias(hidden_gates, hidden_bias)
    i, f, g, o = total.chunk(4, -1)
    return torch.cat([i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()], -1)


@composed(
    f"_thnn_fused_lstm_cell(Tensor input_gates, Tensor hidden_gates, Tensor cx, {_BIASES}) "
    "-> (Tensor, Tensor, Tensor)",
    out="out",
)
def _thnn_fused_lstm_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    cx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    gates = _lstm_gates(input_gates, hidden_gates, input_bias, hidden_bias)
    i, f, g, o = gates.chunk(4, -1)
    cy = f * cx + i * g
    return o * cy.tanh(), cy, gates


def _lstm_gradients(
    grad_hy: Tensor | None, grad_cy: Tensor | None, cx: Tensor, cy: Tensor, gates: Tensor
) -> Pair:
    """The gradients of the sums that enter the gates, and of the old cell."""
    i, f, g, o = gates.chunk(4, -1)
    shown = cy.tanh()
    to_cell = torch.zeros_like(cy) if grad_cy is None else grad_cy
    to_out = torch.zeros_like(o)
    if grad_hy is not None:
        to_cell = to_cell + grad_hy * o * (1 - shown.square())
        to_out = grad_hy * shown * o * (1 - o)
    parts = [
        to_cell * g * i * (1 - i),
        to_cell * cx * f * (1 - f),
        to_cell * i * (1 - g.square()),
        to_out,
    ]
    return torch.cat(parts, -1), to_cell * f


@composed(
    f"_thnn_fused_lstm_cell_backward_impl({_LSTM_GRADIENT}) -> (Tensor, Tensor, Tensor)",
    out="out",
)
def _thnn_fused_lstm_cell_backward_impl(
    grad_hy: Tensor | None,
    grad_cy: Tensor | None,
    cx: Tensor,
    cy: Tensor,
    workspace: Tensor,
    has_bias: bool,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    if grad_hy is None and grad_cy is None:
        return None, None, None
    to_gates, to_cx = _lstm_gradients(grad_hy, grad_cy, cx, cy, workspace)
    return to_gates, to_cx, to_gates.sum(0) if has_bias else None


@composed(
    f"_thnn_fused_lstm_cell_backward({_LSTM_GRADIENT}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)"
)
def _thnn_fused_lstm_cell_backward(
    grad_hy: Tensor | None,
    grad_cy: Tensor | None,
    cx: Tensor,
    cy: Tensor,
    workspace: Tensor,
    has_bias: bool,
) -> Five:
    """Both products and both biases enter the same sum: their gradients are the same."""
    to_gates, to_cx, to_bias = _thnn_fused_lstm_cell_backward_impl(
        grad_hy, grad_cy, cx, cy, workspace, has_bias
    )
    return to_gates, to_gates, to_cx, to_bias, to_bias


@composed(
    "_thnn_differentiable_lstm_cell_backward(Tensor? grad_hy, Tensor? grad_cy, "
    "Tensor input_gates, Tensor hidden_gates, Tensor? input_bias, Tensor? hidden_bias, "
    "Tensor cx, Tensor cy) -> (Tensor, Tensor, Tensor, Tensor, Tensor)"
)
def _thnn_differentiable_lstm_cell_backward(
    grad_hy: Tensor | None,
    grad_cy: Tensor | None,
    input_gates: Tensor,
    hidden_gates: Tensor,
    input_bias: Tensor | None,
    hidden_bias: Tensor | None,
    cx: Tensor,
    cy: Tensor,
) -> Five:
    gates = _lstm_gates(input_gates, hidden_gates, input_bias, hidden_bias)
    return _thnn_fused_lstm_cell_backward(grad_hy, grad_cy, cx, cy, gates, input_bias is not None)


def _gru_gates(
    input_gates: Tensor,
    hidden_gates: Tensor,
    input_bias: Tensor | None,
    hidden_bias: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Reset, update and new gate, and the hidden part of the new one."""
    given = _with_bias(input_gates, input_bias).chunk(3, -1)
    held = _with_bias(hidden_gates, hidden_bias).chunk(3, -1)
    r, z = (given[0] + held[0]).sigmoid(), (given[1] + held[1]).sigmoid()
    return r, z, (given[2] + r * held[2]).tanh(), held[2]


@composed(
    f"_thnn_fused_gru_cell(Tensor input_gates, Tensor hidden_gates, Tensor hx, {_BIASES}) "
    "-> (Tensor, Tensor)",
    out="out",
)
def _thnn_fused_gru_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    hx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> Pair:
    r, z, n, held = _gru_gates(input_gates, hidden_gates, input_bias, hidden_bias)
    return (1 - z) * n + z * hx, torch.cat([r, z, n, hx, held], -1)


def _gru_gradients(
    grad_hy: Tensor, r: Tensor, z: Tensor, n: Tensor, hx: Tensor, held: Tensor, has_bias: bool
) -> Five:
    to_n = grad_hy * (1 - z) * (1 - n.square())
    to_z = grad_hy * (hx - n) * z * (1 - z)
    to_r = to_n * held * r * (1 - r)
    to_input = torch.cat([to_r, to_z, to_n], -1)
    to_hidden = torch.cat([to_r, to_z, to_n * r], -1)
    biases = (to_input.sum(0), to_hidden.sum(0)) if has_bias else (None, None)
    return to_input, to_hidden, grad_hy * z, *biases


@composed(
    "_thnn_fused_gru_cell_backward(Tensor grad_hy, Tensor workspace, bool has_bias) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    out="out",
)
def _thnn_fused_gru_cell_backward(grad_hy: Tensor, workspace: Tensor, has_bias: bool) -> Five:
    return _gru_gradients(grad_hy, *workspace.chunk(5, -1), has_bias)


@composed(
    "_thnn_differentiable_gru_cell_backward(Tensor grad_hy, Tensor input_gates, "
    "Tensor hidden_gates, Tensor hx, Tensor? input_bias, Tensor? hidden_bias) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor)"
)
def _thnn_differentiable_gru_cell_backward(
    grad_hy: Tensor,
    input_gates: Tensor,
    hidden_gates: Tensor,
    hx: Tensor,
    input_bias: Tensor | None,
    hidden_bias: Tensor | None,
) -> Five:
    r, z, n, held = _gru_gates(input_gates, hidden_gates, input_bias, hidden_bias)
    return _gru_gradients(grad_hy, r, z, n, hx, held, input_bias is not None)
