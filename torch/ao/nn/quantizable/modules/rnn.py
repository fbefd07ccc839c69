"""LSTM as modules: every product, sum and function of a gate is a part of its own, so that each can
have an observer and become a quantized operator."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["LSTM", "LSTMCell"]

Hidden = tuple[Tensor, Tensor]
_NAMES = ("input", "forget", "cell", "output")


def _functional() -> nn.Module:
    from torch.ao.nn.quantized.modules.functional_modules import FloatFunctional

    return FloatFunctional()


class LSTMCell(nn.Module):
    """One step. `split_gates`: a linear layer for each gate, with a grid of its own."""

    _FLOAT_MODULE = nn.LSTMCell

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int,
        bias: bool = True,
        device: object = None,
        dtype: torch.dtype | None = None,
        *,
        split_gates: bool = False,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_dim, hidden_dim, bias
        self.split_gates = split_gates
        options = {"device": device, "dtype": dtype}
        if split_gates:
            self.igates = nn.ModuleDict(
                {n: nn.Linear(input_dim, hidden_dim, bias, **options) for n in _NAMES}
            )
            self.hgates = nn.ModuleDict(
                {n: nn.Linear(hidden_dim, hidden_dim, bias, **options) for n in _NAMES}
            )
            self.gates = nn.ModuleDict({n: _functional() for n in _NAMES})
        else:
            self.igates = nn.Linear(input_dim, 4 * hidden_dim, bias, **options)
            self.hgates = nn.Linear(hidden_dim, 4 * hidden_dim, bias, **options)
            self.gates = _functional()
        self.input_gate, self.forget_gate = nn.Sigmoid(), nn.Sigmoid()
        self.cell_gate, self.output_gate = nn.Tanh(), nn.Sigmoid()
        self.fgate_cx, self.igate_cgate = _functional(), _functional()
        self.fgate_cx_igate_cgate, self.ogate_cy = _functional(), _functional()
        self.initial_hidden_state_qparams: tuple[float, int] = (1.0, 0)
        self.initial_cell_state_qparams: tuple[float, int] = (1.0, 0)
        self.hidden_state_dtype: torch.dtype = torch.quint8
        self.cell_state_dtype: torch.dtype = torch.quint8

    def _get_name(self) -> str:
        return "QuantizableLSTMCell"

    def _sums(self, x: Tensor, hx: Tensor) -> tuple[Tensor, ...]:
        """The sums that enter the four gates."""
        if self.split_gates:
            return tuple(self.gates[n].add(self.igates[n](x), self.hgates[n](hx)) for n in _NAMES)
        whole = self.gates.add(self.igates(x), self.hgates(hx))
        return torch.split(whole, whole.size(1) // 4, dim=1)

    def forward(self, x: Tensor, hidden: Hidden | None = None) -> Hidden:
        if hidden is None or hidden[0] is None or hidden[1] is None:
            hidden = self.initialize_hidden(x.shape[0], x.is_quantized)
        hx, cx = hidden
        let_in, forget, update, let_out = self._sums(x, hx)
        let_in, forget = self.input_gate(let_in), self.forget_gate(forget)
        update, let_out = self.cell_gate(update), self.output_gate(let_out)
        kept = self.fgate_cx.mul(forget, cx)
        new = self.igate_cgate.mul(let_in, update)
        cy = self.fgate_cx_igate_cgate.add(kept, new)
        # tanh of the new cell is part of the product that follows, and has its grid.
        return self.ogate_cy.mul(let_out, torch.tanh(cy)), cy

    def initialize_hidden(self, batch_size: int, is_quantized: bool = False) -> Hidden:
        """Zeros, on the grids of the state where inputs are quantized."""
        h, c = (torch.zeros(batch_size, self.hidden_size) for _ in range(2))
        if is_quantized:
            h = torch.quantize_per_tensor(
                h, *self.initial_hidden_state_qparams, self.hidden_state_dtype
            )
            c = torch.quantize_per_tensor(
                c, *self.initial_cell_state_qparams, self.cell_state_dtype
            )
        return h, c

    @classmethod
    def from_params(
        cls,
        wi: Tensor,
        wh: Tensor,
        bi: Tensor | None = None,
        bh: Tensor | None = None,
        split_gates: bool = False,
    ) -> nn.Module:
        """A cell with given weights; a bias may be missing on both sides alone."""
        if (bi is None) != (bh is None):
            raise AssertionError("LSTMCell.from_params: bi and bh must both be given, or neither")
        made = cls(wi.shape[1], wh.shape[1], bi is not None, split_gates=split_gates)
        for part, weight, bias in ((made.igates, wi, bi), (made.hgates, wh, bh)):
            layers = list(part.values()) if split_gates else [part]
            weights = torch.chunk(weight, len(layers))
            biases = [None] * len(layers) if bias is None else torch.chunk(bias, len(layers))
            for layer, w, b in zip(layers, weights, biases, strict=True):
                layer.weight = nn.Parameter(w)
                layer.bias = None if b is None else nn.Parameter(b)
        return made

    @classmethod
    def from_float(
        cls, other: nn.Module, use_precomputed_fake_quant: bool = False, split_gates: bool = False
    ) -> nn.Module:
        """The same cell as nn.LSTMCell."""
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"expected {cls._FLOAT_MODULE}, got {type(other)}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        made = cls.from_params(
            other.weight_ih, other.weight_hh, other.bias_ih, other.bias_hh, split_gates=split_gates
        )
        made.qconfig = other.qconfig
        for part in (made.igates, made.hgates):
            for layer in part.values() if split_gates else [part]:
                layer.qconfig = other.qconfig
        return made


class _LSTMSingleLayer(nn.Module):
    """A cell over all steps."""

    def __init__(self, cell: LSTMCell) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor, hidden: Hidden | None = None) -> tuple[Tensor, Hidden]:
        results = []
        for step in range(x.shape[0]):
            hidden = self.cell(x[step], hidden)
            results.append(hidden[0])
        return torch.stack(results, 0), hidden


class _LSTMLayer(nn.Module):
    """One level, in one or both directions."""

    def __init__(self, forward_cell: LSTMCell, backward_cell: LSTMCell | None) -> None:
        super().__init__()
        self.bidirectional = backward_cell is not None
        self.layer_fw = _LSTMSingleLayer(forward_cell)
        if self.bidirectional:
            self.layer_bw = _LSTMSingleLayer(backward_cell)

    def forward(self, x: Tensor, states: list[Hidden | None]) -> tuple[Tensor, list[Hidden]]:
        ahead, state = self.layer_fw(x, states[0])
        if not self.bidirectional:
            return ahead, [state]
        behind, state_behind = self.layer_bw(x.flip(0), states[1])
        return torch.cat([ahead, behind.flip(0)], ahead.dim() - 1), [state, state_behind]


class LSTM(nn.Module):
    """nn.LSTM out of quantizable cells."""

    _FLOAT_MODULE = nn.LSTM

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: object = None,
        dtype: torch.dtype | None = None,
        *,
        split_gates: bool = False,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first = bias, batch_first
        self.dropout, self.bidirectional = float(dropout), bidirectional
        self.training = False
        _check_dropout(self.dropout, num_layers)
        directions = 2 if bidirectional else 1
        layers = []
        for level in range(num_layers):
            width = input_size if level == 0 else hidden_size * directions
            cells = [
                LSTMCell(width, hidden_size, bias, device, dtype, split_gates=split_gates)
                for _ in range(directions)
            ]
            layers.append(_LSTMLayer(cells[0], cells[1] if bidirectional else None))
        self.layers = nn.ModuleList(layers)

    def _get_name(self) -> str:
        return "QuantizableLSTM"

    def forward(self, x: Tensor, hidden: Hidden | None = None) -> tuple[Tensor, Hidden]:
        if self.batch_first:
            x = x.transpose(0, 1)
        directions = 2 if self.bidirectional else 1
        states = self._states(hidden, self.num_layers * directions, x)
        finals: list[Hidden] = []
        for level, layer in enumerate(self.layers):
            x, new = layer(x, states[level * directions : (level + 1) * directions])
            finals += new
        result = x.transpose(0, 1) if self.batch_first else x
        return result, (
            torch.stack([h for h, _ in finals]),
            torch.stack([c for _, c in finals]),
        )

    def _states(self, hidden: Hidden | None, count: int, x: Tensor) -> list[Hidden | None]:
        if hidden is None:
            return [None] * count
        parts = []
        for part in hidden:
            rows = part.resize_(count, x.shape[1], self.hidden_size) if part.dim() == 2 else part
            parts.append([rows[i] for i in range(count)])
        return list(zip(*parts, strict=True))

    @classmethod
    def from_float(
        cls, other: nn.Module, qconfig: object = None, split_gates: bool = False
    ) -> nn.Module:
        """The same layer as nn.LSTM, in the mode that its configuration is for."""
        from torch.ao.quantization.quantize import prepare, prepare_qat

        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError(f"expected {cls._FLOAT_MODULE}, got {type(other)}")
        if not hasattr(other, "qconfig") and not qconfig:
            raise AssertionError("LSTM.from_float needs a module with 'qconfig', or one given")
        made = cls(
            other.input_size,
            other.hidden_size,
            other.num_layers,
            other.bias,
            other.batch_first,
            other.dropout,
            other.bidirectional,
            split_gates=split_gates,
        )
        made.qconfig = getattr(other, "qconfig", qconfig)
        made._fill(other, split_gates)
        made.train(other.training)
        if other.training:
            made.training = True
            return prepare_qat(made, inplace=True)
        return prepare(made, inplace=True)

    def _fill(self, other: nn.Module, split_gates: bool) -> None:
        for level, layer in enumerate(self.layers):
            parts = [("layer_fw", "")] + ([("layer_bw", "_reverse")] if self.bidirectional else [])
            for part, suffix in parts:
                kinds = ["weight_ih", "weight_hh"] + (["bias_ih", "bias_hh"] if self.bias else [])
                values = [getattr(other, f"{kind}_l{level}{suffix}") for kind in kinds]
                cell = LSTMCell.from_params(*values, split_gates=split_gates)
                getattr(layer, part).cell = cell

    @classmethod
    def from_observed(cls, other: nn.Module) -> nn.Module:
        raise NotImplementedError(
            "It looks like you are trying to convert a non-quantizable LSTM module. Please, see "
            "the examples on quantizable LSTMs."
        )


def _check_dropout(dropout: float, num_layers: int) -> None:
    import warnings

    if not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element "
            "being zeroed"
        )
    if dropout > 0:
        warnings.warn("dropout option for quantizable LSTM is ignored", stacklevel=3)
        if num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={num_layers}",
                stacklevel=3,
            )
