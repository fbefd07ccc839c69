"""Recurrent networks: RNN, LSTM and GRU over whole sequences, and their single steps.

Parameters are named as checkpoints expect them: weight_ih_l{layer}{_reverse} and so on, gates
stacked along the first dimension. The networks are single operators (torch.lstm, torch.gru, ...).
"""

from __future__ import annotations

import numbers
import warnings

import torch
from torch import _VF
from torch.nn.modules._parameters import declare, uniform_within
from torch.nn.modules.module import Module
from torch.nn.parameter import is_lazy
from torch.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
_NONLINEARITIES = {"tanh": "RNN_TANH", "relu": "RNN_RELU"}


def _check_settings(
    module_name, mode, input_size, hidden_size, num_layers, dropout, proj_size
) -> None:
    is_number = isinstance(dropout, numbers.Number) and not isinstance(dropout, bool)
    if not is_number or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element "
            "being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout "
            f"expects num_layers greater than 1, but got dropout={dropout} and "
            f"num_layers={num_layers}",
            stacklevel=4,
        )
    for name, value in (("input_size", input_size), ("hidden_size", hidden_size)):
        if not isinstance(value, int):
            raise TypeError(f"{name} should be of type int, got: {type(value).__name__}")
    if hidden_size <= 0:
        raise ValueError("hidden_size must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


def _refuse_projection(options) -> None:
    if "proj_size" in options:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNNBase(Module):
    """What the recurrent networks share: parameters, checks and the call of the operator."""

    __constants__ = ["mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first",
                     "dropout", "bidirectional", "proj_size"]  # fmt: skip
    __jit_unused_properties__ = ["all_weights"]

    def __init__(
        self,
        mode,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device=None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        name = type(self).__name__
        _check_settings(name, mode, input_size, hidden_size, num_layers, dropout, proj_size)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse") if bidirectional else ("",):
                self._add_cell(layer, suffix, {"device": device, "dtype": dtype})
        self.reset_parameters()

    def _add_cell(self, layer, suffix, options) -> None:
        """The parameters of one direction of one layer."""
        gates = _GATES[self.mode] * self.hidden_size
        state = self.proj_size or self.hidden_size
        below = state * (2 if self.bidirectional else 1) if layer else self.input_size
        shapes = {"weight_ih": (gates, below), "weight_hh": (gates, state)}
        if self.bias:
            shapes["bias_ih"] = shapes["bias_hh"] = (gates,)
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        named = {f"{kind}_l{layer}{suffix}": shape for kind, shape in shapes.items()}
        declare(self, named, **options)
        self._all_weights.append(list(named))

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[torch.Tensor]:
        return [getattr(self, name) for names in self._all_weights for name in names]

    @property
    def all_weights(self) -> list[list[torch.Tensor]]:
        """The parameters, one list for each direction of each layer."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Makes every weight dense in memory, so that no call has to copy it first."""
        for weight in self._flat_weights:
            if isinstance(weight, torch.Tensor) and not is_lazy(weight):
                if not weight.is_contiguous():
                    weight.data = weight.data.contiguous()

    def reset_parameters(self) -> None:
        """Fills all parameters uniformly within 1 / sqrt(hidden_size)."""
        uniform_within(self.parameters(), self.hidden_size)

    def check_input(self, input, batch_sizes) -> None:
        """Raises when the input does not fit the parameters."""
        if not torch.is_autocast_enabled():
            weight = self._flat_weights[0]
            if input.dtype != weight.dtype:
                raise ValueError(
                    f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype})."
                    f" Convert input: input.to({weight.dtype}), or convert model: "
                    f"model.to({input.dtype})"
                )
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {input.size(-1)}"
            )

    def _state_size(self, input, batch_sizes, units) -> tuple[int, int, int]:
        packed = batch_sizes is not None
        batch = int(batch_sizes[0]) if packed else input.size(0 if self.batch_first else 1)
        return (len(self._all_weights), batch, units)

    def get_expected_hidden_size(self, input, batch_sizes) -> tuple[int, int, int]:
        """The shape of the hidden state."""
        return self._state_size(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(
        self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"
    ) -> None:
        """Raises when a state has another shape."""
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input, hidden, batch_sizes) -> None:
        """Raises when input or state do not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation) -> torch.Tensor:
        """The state with its sequences in another order."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def _zeros(self, input, size) -> torch.Tensor:
        return torch.zeros(size, dtype=input.dtype, device=input.device)

    def _prepared(self, input, hx):
        """Data, batch sizes, state (None for zeros) and whether the input had no batch."""
        if isinstance(input, PackedSequence):
            data, sizes, order, _ = input
            return data, sizes, None if hx is None else self._permuted(hx, order), False
        if input.dim() not in (2, 3):
            raise ValueError(
                f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D"
                f"{' tensor' if self.mode.startswith('RNN') else ''} instead"
            )
        lone = input.dim() == 2
        if input.size(1 if self.batch_first and not lone else 0) == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        if hx is not None:
            hx = self._batched_state(hx, lone)
        return input.unsqueeze(0 if self.batch_first else 1) if lone else input, None, hx, lone

    def _permuted(self, hx, order):
        return self.permute_hidden(hx, order)

    def _batched_state(self, hx, lone) -> torch.Tensor:
        rank = 2 if lone else 3
        if hx.dim() != rank:
            kind = "unbatched 2-D" if lone else "batched 3-D"
            raise RuntimeError(
                f"For {kind} input, hx should also be {rank}-D but got {hx.dim()}-D tensor"
            )
        return hx.unsqueeze(1) if lone else hx

    def _run(self, operator, data, sizes, hx) -> tuple[torch.Tensor, ...]:
        """The operator's results for padded or packed data."""
        settings = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
                    self.bidirectional)  # fmt: skip
        if sizes is None:
            return operator(data, hx, *settings, self.batch_first)
        return operator(data, sizes, hx, *settings)

    def _finished(self, output, source, lone) -> torch.Tensor | PackedSequence:
        if isinstance(source, PackedSequence):
            return PackedSequence(output, *source[1:])
        return output.squeeze(0 if self.batch_first else 1) if lone else output

    def forward(
        self, input: torch.Tensor, hx=None
    ) -> tuple[torch.Tensor | PackedSequence, torch.Tensor]:
        """The outputs of the last layer for every step, and the last state of every layer."""
        data, sizes, hx, lone = self._prepared(input, hx)
        if hx is None:
            hx = self._zeros(data, self.get_expected_hidden_size(data, sizes))
        self.check_forward_args(data, hx, sizes)
        operator = {"GRU": _VF.gru, "RNN_TANH": _VF.rnn_tanh, "RNN_RELU": _VF.rnn_relu}[self.mode]
        output, hidden = self._run(operator, data, sizes, hx)
        if isinstance(input, PackedSequence):
            hidden = self.permute_hidden(hidden, input.unsorted_indices)
        return self._finished(output, input, lone), hidden.squeeze(1) if lone else hidden

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        defaults = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False,
                    "dropout": 0, "bidirectional": False}  # fmt: skip
        for name, default in defaults.items():
            if getattr(self, name) != default:
                parts.append(f"{name}={getattr(self, name)}")
        return ", ".join(parts)

    def __getstate__(self) -> dict[str, object]:
        # PyTorch's classes keep these lists, and its loader asks for them.
        lists = {
            "_flat_weights_names": self._flat_weights_names,
            "_flat_weights": self._flat_weights,
        }
        return {**self.__dict__, **lists}

    def __setstate__(self, d) -> None:
        # Objects saved by other versions carry lists of the weights, which are properties here.
        d = {k: v for k, v in d.items() if not k.startswith("_flat_weight")}
        d.setdefault("proj_size", 0)
        super().__setstate__(d)


class RNN(RNNBase):
    """Layers of h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or with relu."""

    def __init__(self, *args, **kwargs) -> None:
        _refuse_projection(kwargs)
        # The fourth argument; RNNBase, whose arguments these otherwise are, has another there.
        sizes, given, rest = args[:3], args[3:4], args[4:]
        (chosen,) = given or (kwargs.pop("nonlinearity", "tanh"),)
        mode = _NONLINEARITIES.get(chosen)
        if mode is None:
            raise ValueError(f"Unknown nonlinearity '{chosen}'. Select from 'tanh' or 'relu'.")
        super().__init__(mode, *sizes, *rest, **kwargs)
        self.nonlinearity = chosen


class GRU(RNNBase):
    """Layers of gated recurrent units."""

    def __init__(self, *args, **kwargs) -> None:
        _refuse_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """Layers of long short-term memory cells; proj_size projects the hidden state."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input, batch_sizes) -> tuple[int, int, int]:
        """The shape of the cell state."""
        return self._state_size(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input, hidden, batch_sizes) -> None:
        """Raises when input or states do not fit."""
        self.check_input(input, batch_sizes)
        for i, size in enumerate((self.get_expected_hidden_size, self.get_expected_cell_size)):
            message = f"Expected hidden[{i}] size {{}}, got {{}}"
            self.check_hidden_size(hidden[i], size(input, batch_sizes), message)

    def permute_hidden(self, hx, permutation) -> tuple[torch.Tensor, ...]:
        """Both states with their sequences in another order."""
        if permutation is None:
            return hx
        return tuple(super(LSTM, self).permute_hidden(state, permutation) for state in hx)

    def _batched_state(self, hx, lone) -> tuple[torch.Tensor, torch.Tensor]:
        rank = 2 if lone else 3
        if hx[0].dim() != rank or hx[1].dim() != rank:
            kind = "unbatched 2-D" if lone else "batched 3-D"
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {rank}-D but got "
                f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )
        return (hx[0].unsqueeze(1), hx[1].unsqueeze(1)) if lone else hx

    def forward(self, input: torch.Tensor, hx=None):
        """The outputs of the last layer for every step, and the last states of every layer."""
        data, sizes, hx, lone = self._prepared(input, hx)
        if hx is None:
            hx = (
                self._zeros(data, self.get_expected_hidden_size(data, sizes)),
                self._zeros(data, self.get_expected_cell_size(data, sizes)),
            )
        self.check_forward_args(data, hx, sizes)
        output, *hidden = self._run(_VF.lstm, data, sizes, hx)
        if isinstance(input, PackedSequence):
            hidden = self.permute_hidden(hidden, input.unsorted_indices)
        if lone:
            hidden = [state.squeeze(1) for state in hidden]
        return self._finished(output, input, lone), tuple(hidden)


class RNNCellBase(Module):
    """What the single steps share."""

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias,
        num_chunks,
        device=None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        shapes = {"weight_ih": (rows, input_size), "weight_hh": (rows, hidden_size)}
        shapes |= dict.fromkeys(("bias_ih", "bias_hh"), (rows,) if bias else None)
        declare(self, shapes, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fills all parameters uniformly within 1 / sqrt(hidden_size)."""
        uniform_within(self.parameters(), self.hidden_size)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def _check(self, input, states) -> None:
        """Raises when input or states do not fit. The names are those of the messages."""
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for label, state in states:
            if state.dim() not in (1, 2):
                raise ValueError(
                    f"{name}: Expected {label} to be 1D or 2D, got {state.dim()}D instead"
                )
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.size(-1)} expected "
                f"{self.input_size}"
            )
        for i, (_, state) in enumerate(states):
            if input.dim() == 2 and state.dim() == 2 and input.size(0) != state.size(0):
                raise RuntimeError(
                    f"Input batch size {input.size(0)} doesn't match hidden{i} batch size "
                    f"{state.size(0)}"
                )
            if state.size(-1) != self.hidden_size:
                raise RuntimeError(
                    f"hidden{i} has inconsistent hidden_size: got {state.size(-1)}, expected "
                    f"{self.hidden_size}"
                )

    def _weights(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _batch(self, t) -> torch.Tensor:
        return t if t.dim() == 2 else t.unsqueeze(0)

    def _zeros(self, input) -> torch.Tensor:
        return torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)

    def _one_state(self, operator, input, hx) -> torch.Tensor:
        self._check(input, [] if hx is None else [("hidden", hx)])
        batch = self._batch(input)
        hx = self._zeros(batch) if hx is None else self._batch(hx)
        result = operator(batch, hx, *self._weights())
        return result if input.dim() == 2 else result.squeeze(0)


class RNNCell(RNNCellBase):
    """One step of h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or with relu."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device=None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: torch.Tensor, hx=None) -> torch.Tensor:
        """The next state."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        operator = _VF.rnn_tanh_cell if self.nonlinearity == "tanh" else _VF.rnn_relu_cell
        return self._one_state(operator, input, hx)


class GRUCell(RNNCellBase):
    """One step of gated recurrent units."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device=None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: torch.Tensor, hx=None) -> torch.Tensor:
        """The next state."""
        return self._one_state(_VF.gru_cell, input, hx)


class LSTMCell(RNNCellBase):
    """One step of long short-term memory cells."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device=None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: torch.Tensor, hx=None) -> tuple[torch.Tensor, torch.Tensor]:
        """The next hidden and cell states."""
        states = [] if hx is None else [("hx[0]", hx[0]), ("hx[1]", hx[1])]
        self._check(input, states)
        batch = self._batch(input)
        if hx is None:
            zeros = self._zeros(batch)
            hx = (zeros, zeros)
        result = _VF.lstm_cell(batch, [self._batch(state) for state in hx], *self._weights())
        return tuple(result) if input.dim() == 2 else tuple(s.squeeze(0) for s in result)
