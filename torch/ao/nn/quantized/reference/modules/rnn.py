"""Recurrent layers and cells whose weights lie on grids."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.nn.quantized.reference.modules.utils import (
    note_grid,
    quantized_weight,
    rounded_weight,
)

__all__ = [
    "GRU",
    "LSTM",
    "GRUCell",
    "LSTMCell",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
    "get_quantized_weight",
]

Grids = dict[str, object]
_SIZES = (
    "input_size",
    "hidden_size",
    "num_layers",
    "bias",
    "batch_first",
    "dropout",
    "bidirectional",
)


def get_quantized_weight(module: nn.Module, wn: str) -> Tensor | None:
    """The weight of a name as a quantized tensor; None where it has no grid."""
    if not hasattr(module, wn) or not hasattr(module, f"{wn}_qscheme"):
        return None
    return quantized_weight(module, wn)


def _note_all(module: nn.Module, names: tuple[str, ...], grids: Grids | None) -> None:
    grids = dict(grids or {})
    for name in names:
        note_grid(module, name, grids.get(name))
    module.is_decomposed = bool(grids.get("is_decomposed", False))


class RNNCellBase(nn.RNNCellBase):
    """A cell with grids for both weights."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: object = None,
        dtype: torch.dtype | None = None,
        weight_qparams_dict: Grids | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks, device=device, dtype=dtype)
        _note_all(self, ("weight_ih", "weight_hh"), weight_qparams_dict)

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}(Reference)"

    def get_quantized_weight_ih(self) -> Tensor:
        """The weight of the input as a quantized tensor."""
        return quantized_weight(self, "weight_ih")

    def get_quantized_weight_hh(self) -> Tensor:
        """The weight of the state as a quantized tensor."""
        return quantized_weight(self, "weight_hh")

    def get_weight_ih(self) -> Tensor:
        """The weight of the input, rounded."""
        return rounded_weight(self, "weight_ih")

    def get_weight_hh(self) -> Tensor:
        """The weight of the state, rounded."""
        return rounded_weight(self, "weight_hh")

    def _run(self, name: str, input: Tensor, hx: Tensor | tuple[Tensor, Tensor]) -> object:
        weights = self.get_weight_ih(), self.get_weight_hh()
        return getattr(torch, name)(input, hx, *weights, self.bias_ih, self.bias_hh)

    def _zero_state(self, input: Tensor) -> Tensor:
        return input.new_zeros(*input.shape[:-1], self.hidden_size)

    @classmethod
    def _filled(cls, made: nn.Module, mod: nn.Module) -> nn.Module:
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            setattr(made, name, getattr(mod, name))
        return made


class RNNCell(RNNCellBase):
    """nn.RNNCell with rounded weights."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: object = None,
        dtype: torch.dtype | None = None,
        weight_qparams_dict: Grids | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype, weight_qparams_dict)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        state = self._zero_state(input) if hx is None else hx
        return self._run(f"rnn_{self.nonlinearity}_cell", input, state)

    @classmethod
    def from_float(cls, mod: nn.Module, weight_qparams_dict: Grids) -> nn.Module:
        """With the parameters of a float cell."""
        made = cls(
            mod.input_size,
            mod.hidden_size,
            mod.bias,
            mod.nonlinearity,
            weight_qparams_dict=weight_qparams_dict,
        )
        return cls._filled(made, mod)


class LSTMCell(RNNCellBase):
    """nn.LSTMCell with rounded weights."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: object = None,
        dtype: torch.dtype | None = None,
        weight_qparams_dict: Grids | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype, weight_qparams_dict)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        state = (self._zero_state(input), self._zero_state(input)) if hx is None else hx
        return self._run("lstm_cell", input, state)

    @classmethod
    def from_float(
        cls, mod: nn.Module, weight_qparams_dict: Grids, use_precomputed_fake_quant: bool = False
    ) -> nn.Module:
        """With the parameters of a float cell."""
        grids = weight_qparams_dict
        made = cls(mod.input_size, mod.hidden_size, mod.bias, weight_qparams_dict=grids)
        return cls._filled(made, mod)


class GRUCell(RNNCellBase):
    """nn.GRUCell with rounded weights."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: object = None,
        dtype: torch.dtype | None = None,
        weight_qparams_dict: Grids | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype, weight_qparams_dict)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._run("gru_cell", input, self._zero_state(input) if hx is None else hx)

    @classmethod
    def from_float(cls, mod: nn.Module, weight_qparams_dict: Grids) -> nn.Module:
        """With the parameters of a float cell."""
        grids = weight_qparams_dict
        made = cls(mod.input_size, mod.hidden_size, mod.bias, weight_qparams_dict=grids)
        return cls._filled(made, mod)


class RNNBase(nn.RNNBase):
    """A layer with a grid for each weight."""

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: object = None,
        dtype: torch.dtype | None = None,
        weight_qparams_dict: Grids | None = None,
    ) -> None:
        nn.RNNBase.__init__(
            self,
            mode,
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device,
            dtype,
        )
        names = tuple(n for n, _ in self.named_parameters() if n.startswith("weight"))
        _note_all(self, names, weight_qparams_dict)

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}(Reference)"

    def flatten_parameters(self) -> None:
        """Does nothing: the weights are computed at each call."""

    def get_quantized_weight_bias_dict(self) -> dict[str, Tensor]:
        """Quantized weights and float biases by name."""
        return {
            name: quantized_weight(self, name) if name.startswith("weight") else value.detach()
            for name, value in self.named_parameters()
        }

    def get_flat_weights(self) -> list[Tensor]:
        """The weights, rounded, and the biases in the order of the operator."""
        return [
            rounded_weight(self, name) if name.startswith("weight") else getattr(self, name)
            for name in self._flat_weights_names
        ]

    @property
    def _flat_weights(self) -> list[Tensor]:
        return self.get_flat_weights()

    @classmethod
    def from_float(cls, mod: nn.Module, weight_qparams_dict: Grids) -> nn.Module:
        """With the parameters of a float layer."""
        sizes = {name: getattr(mod, name) for name in _SIZES}
        made = cls(**sizes, weight_qparams_dict=weight_qparams_dict)
        for name, value in mod.named_parameters():
            setattr(made, name, value)
        return made


class LSTM(RNNBase, nn.LSTM):
    """nn.LSTM with rounded weights."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        RNNBase.__init__(self, "LSTM", *args, **kwargs)


class GRU(RNNBase, nn.GRU):
    """nn.GRU with rounded weights."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        RNNBase.__init__(self, "GRU", *args, **kwargs)
