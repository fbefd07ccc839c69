"""Cells of recurrent networks with packed weights and dynamic activations."""

import torch
from torch import Tensor
from torch._C import ScriptObject
from torch._quantized_ops.registry import defined

_LINEAR = "__torch__.torch.classes.quantized.LinearPackedParamsBase"
_CELL = (
    f"Tensor input, Tensor hx, {_LINEAR} w_ih, {_LINEAR} w_hh, Tensor b_ih, Tensor b_hh) -> Tensor"
)


def _gates(x: Tensor, weight: ScriptObject) -> Tensor:
    """The packed weight carries its bias, and is of levels or of float16."""
    if weight.unpack()[0].is_quantized:
        return torch.ops.quantized.linear_dynamic(x, weight, True)
    return torch.ops.quantized.linear_dynamic_fp16(x, weight)


def lstm_step(from_input: Tensor, from_state: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """The next state and cell, of the sums of the four gates."""
    let_in, forget, update, let_out = (from_input + from_state).chunk(4, 1)
    cell = forget.sigmoid() * cell + let_in.sigmoid() * update.tanh()
    return let_out.sigmoid() * cell.tanh(), cell


def gru_step(from_input: Tensor, from_state: Tensor, state: Tensor) -> Tensor:
    """The next state; the reset gate acts on the part of the state alone."""
    reset_in, update_in, new_in = from_input.chunk(3, 1)
    reset_state, update_state, new_state = from_state.chunk(3, 1)
    reset = (reset_in + reset_state).sigmoid()
    update = (update_in + update_state).sigmoid()
    new = (new_in + reset * new_state).tanh()
    return new + update * (state - new)


@defined(
    f"quantized_lstm_cell_dynamic(Tensor input, Tensor[] hx, {_LINEAR} w_ih, {_LINEAR} w_hh, "
    "Tensor bias_ih, Tensor bias_hh) -> (Tensor, Tensor)"
)
def _lstm_cell(
    input: Tensor,
    hx: list[Tensor],
    w_ih: ScriptObject,
    w_hh: ScriptObject,
    bias_ih: Tensor,
    bias_hh: Tensor,
) -> tuple[Tensor, Tensor]:
    return lstm_step(_gates(input, w_ih), _gates(hx[0], w_hh), hx[1])


@defined(f"quantized_gru_cell_dynamic({_CELL}")
def _gru_cell(
    input: Tensor, hx: Tensor, w_ih: ScriptObject, w_hh: ScriptObject, b_ih: Tensor, b_hh: Tensor
) -> Tensor:
    return gru_step(_gates(input, w_ih), _gates(hx, w_hh), hx)


@defined(f"quantized_rnn_relu_cell_dynamic({_CELL}")
def _relu_cell(
    input: Tensor, hx: Tensor, w_ih: ScriptObject, w_hh: ScriptObject, b_ih: Tensor, b_hh: Tensor
) -> Tensor:
    return (_gates(input, w_ih) + _gates(hx, w_hh)).relu()


@defined(f"quantized_rnn_tanh_cell_dynamic({_CELL}")
def _tanh_cell(
    input: Tensor, hx: Tensor, w_ih: ScriptObject, w_hh: ScriptObject, b_ih: Tensor, b_hh: Tensor
) -> Tensor:
    return (_gates(input, w_ih) + _gates(hx, w_hh)).tanh()
