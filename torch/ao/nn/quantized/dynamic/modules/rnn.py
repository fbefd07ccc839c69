"""Recurrent layers and cells with quantized weights on float tensors.

A layer keeps one packed object for each direction of each of its levels (torch.classes.rnn), under
the names that PyTorch's state dictionaries have. A layer is run here, step by step; the product
with the inputs of all steps is one call."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch._quantized_ops.recurrent import gru_step, lstm_step
from torch.ao.nn.quantized.modules.utils import _quantize_weight
from torch.nn.utils.rnn import PackedSequence

__all__ = [
    "GRU",
    "LSTM",
    "GRUCell",
    "LSTMCell",
    "PackedParameter",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
    "apply_permutation",
    "pack_weight_bias",
]

State = Tensor | tuple[Tensor, Tensor]
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """The slices along a dimension in another order."""
    return tensor.index_select(dim, permutation)


def pack_weight_bias(qweight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> object:
    """A packed weight of 8 bits or of float16."""
    if dtype is torch.qint8:
        return torch.ops.quantized.linear_prepack(qweight, bias)
    return torch.ops.quantized.linear_prepack_fp16(qweight.float(), bias)


class PackedParameter(nn.Module):
    """One packed object as a module, so that state dictionaries hold it."""

    def __init__(self, param: object) -> None:
        super().__init__()
        self.param = param

    def _save_to_state_dict(
        self, destination: dict[str, object], prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "param"] = self.param

    def _load_from_state_dict(
        self, state_dict: dict[str, object], prefix: str, *rest: object
    ) -> None:
        self.param = state_dict.pop(prefix + "param", self.param)
        super()._load_from_state_dict(state_dict, prefix, *rest)


def _cell(w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, dtype: torch.dtype) -> object:
    packed = pack_weight_bias(w_ih, b_ih, dtype), pack_weight_bias(w_hh, b_hh, dtype)
    if dtype is torch.qint8:
        return torch.ops.quantized.make_quantized_cell_params_dynamic(*packed, b_ih, b_hh, True)
    return torch.ops.quantized.make_quantized_cell_params_fp16(*packed)


def _cell_state(cell: object) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """((weight, bias) of the input, the same of the state)."""
    packed = cell.__getstate__()
    linears = [part for part in _flat(packed) if hasattr(part, "unpack")]
    return linears[0].unpack(), linears[1].unpack()


def _flat(value: object) -> list[object]:
    if isinstance(value, tuple | list):
        return [leaf for part in value for leaf in _flat(part)]
    return [value]


class RNNBase(nn.Module):
    """What LSTM and GRU share."""

    _FLOAT_MODULE: type[nn.Module] = nn.RNNBase
    _version = 2

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
        dtype: torch.dtype = torch.qint8,
    ) -> None:
        super().__init__()
        if not isinstance(dropout, int | float) or not 0 <= dropout <= 1:
            raise ValueError("dropout should be a number in range [0, 1]")
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={num_layers}",
                stacklevel=2,
            )
        self.mode, self.dtype, self.version, self.training = mode, dtype, self._version, False
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first = bias, batch_first
        self.dropout, self.bidirectional = float(dropout), bidirectional
        directions = 2 if bidirectional else 1
        made = []
        for layer in range(num_layers):
            width = input_size if layer == 0 else hidden_size * directions
            made += [PackedParameter(self._random_cell(width)) for _ in range(directions)]
        self._all_weight_values = nn.ModuleList(made)

    def _random_cell(self, width: int) -> object:
        rows = _GATES[self.mode] * self.hidden_size
        weights = [torch.randn(rows, width), torch.randn(rows, self.hidden_size)]
        if self.dtype is torch.qint8:
            weights = [torch.quantize_per_tensor(w, 0.1, 0, torch.qint8) for w in weights]
        return _cell(*weights, torch.randn(rows), torch.randn(rows), self.dtype)

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        plain = {
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0.0,
            "bidirectional": False,
        }
        for name, usual in plain.items():
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text

    # ---- checks of arguments
    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Refuses inputs of a wrong size."""
        rank = 3 if batch_sizes is None else 2
        if input.dim() != rank:
            raise RuntimeError(f"input must have {rank} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {input.size(-1)}"
            )

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The size that a state must have."""
        packed = batch_sizes is not None
        batch = int(batch_sizes[0]) if packed else input.size(0 if self.batch_first else 1)
        return len(self._all_weight_values), batch, self.hidden_size

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Refuses a state of a wrong size."""
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: State, batch_sizes: Tensor | None) -> None:
        """Checks inputs and state."""
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(hidden, expected, msg="Expected hidden size {}, got {}")

    def permute_hidden(self, hx: State, permutation: Tensor | None) -> State:
        """The state with its sequences in another order."""
        return hx if permutation is None else apply_permutation(hx, permutation)

    # ---- running
    def _walk(
        self, input: Tensor, cell: object, state: State, reverse: bool
    ) -> tuple[Tensor, State]:
        """One direction of one level over inputs of (time, batch, features)."""
        products = cell.linear_ih(input.reshape(-1, input.size(-1)))
        products = products.reshape(input.size(0), input.size(1), -1)
        steps = range(input.size(0) - 1, -1, -1) if reverse else range(input.size(0))
        results: list[Tensor] = []
        for step in steps:
            state = self._step(products[step], cell, state)
            results.append(state[0] if isinstance(state, tuple) else state)
        if reverse:
            results.reverse()
        return torch.stack(results), state

    def _step(self, product: Tensor, cell: object, state: State) -> State:
        raise NotImplementedError(f"{type(self).__name__}._step")

    def _walk_packed(
        self, data: Tensor, sizes: list[int], cell: object, state: State, reverse: bool
    ) -> tuple[Tensor, State]:
        """The same over sequences of falling lengths, laid out step after step."""
        product = cell.linear_ih(data)
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        order = range(len(sizes) - 1, -1, -1) if reverse else range(len(sizes))
        results: list[Tensor] = [data] * len(sizes)
        whole = state if isinstance(state, tuple) else (state,)
        current = [part.clone() for part in whole]
        for step in order:
            rows = slice(starts[step], starts[step] + sizes[step])
            head = tuple(part[: sizes[step]] for part in current)
            new = self._step(product[rows], cell, head if len(head) > 1 else head[0])
            new = new if isinstance(new, tuple) else (new,)
            for part, value in zip(current, new, strict=True):
                part[: sizes[step]] = value
            results[step] = new[0]
        final = tuple(current) if len(current) > 1 else current[0]
        return torch.cat(results), final

    def _levels(
        self, input: Tensor, states: list[State], walk: Callable[..., tuple[Tensor, State]]
    ) -> tuple[Tensor, list[State]]:
        directions = 2 if self.bidirectional else 1
        cells = [part.param for part in self._all_weight_values]
        finals: list[State] = []
        for level in range(self.num_layers):
            outputs = []
            for direction in range(directions):
                index = level * directions + direction
                result, final = walk(input, cells[index], states[index], direction == 1)
                outputs.append(result)
                finals.append(final)
            input = torch.cat(outputs, -1) if directions == 2 else outputs[0]
            if self.dropout and self.training and level + 1 < self.num_layers:
                input = nn.functional.dropout(input, self.dropout)
        return input, finals

    def _run(
        self, input: Tensor, states: list[State], batch_sizes: Tensor | None
    ) -> tuple[Tensor, list[State]]:
        if batch_sizes is not None:
            sizes = batch_sizes.tolist()
            return self._levels(
                input, states, lambda x, c, s, r: self._walk_packed(x, sizes, c, s, r)
            )
        turned = input.transpose(0, 1) if self.batch_first else input
        result, finals = self._levels(turned, states, self._walk)
        return (result.transpose(0, 1) if self.batch_first else result), finals

    def _zeros(self, input: Tensor, batch: int) -> Tensor:
        count = self.num_layers * (2 if self.bidirectional else 1)
        return torch.zeros(count, batch, self.hidden_size, dtype=input.dtype, device=input.device)

    def forward_packed(
        self, input: PackedSequence, hx: State | None = None
    ) -> tuple[PackedSequence, State]:
        """Over a packed sequence."""
        data, sizes, sorted_indices, unsorted_indices = input
        result, state = self.forward_impl(data, hx, sizes, int(sizes[0]), sorted_indices)
        made = PackedSequence(result, sizes, sorted_indices, unsorted_indices)
        return made, self.permute_hidden(state, unsorted_indices)

    def forward_tensor(self, input: Tensor, hx: State | None = None) -> tuple[Tensor, State]:
        """Over a tensor."""
        batch = input.size(0) if self.batch_first else input.size(1)
        return self.forward_impl(input, hx, None, batch, None)

    def forward(
        self, input: Tensor | PackedSequence, hx: State | None = None
    ) -> tuple[Tensor | PackedSequence, State]:
        if isinstance(input, PackedSequence):
            return self.forward_packed(input, hx)
        return self.forward_tensor(input, hx)

    # ---- weights
    def _places(self) -> list[tuple[str, int]]:
        names = []
        for layer in range(self.num_layers):
            for suffix in ("", "_reverse") if self.bidirectional else ("",):
                names.append((f"l{layer}{suffix}", len(names)))
        return names

    def set_weight_bias(self, weight_bias_dict: dict[str, Tensor]) -> None:
        """Packs weights and biases that are given by the names of a float layer."""
        made = []
        for name, _ in self._places():
            parts = [f"{kind}_{name}" for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
            values = [weight_bias_dict.get(part) for part in parts]
            made.append(PackedParameter(_cell(*values, self.dtype)))
        self._all_weight_values = nn.ModuleList(made)

    def _collect(self, which: int, kind: str) -> dict[str, dict[str, Tensor]]:
        found: dict[str, dict[str, Tensor]] = {kind: {}}
        for name, index in self._places():
            pairs = _cell_state(self._all_weight_values[index].param)
            for part, pair in zip(("ih", "hh"), pairs, strict=True):
                found[kind][f"{kind}_{part}_{name}"] = pair[which]
        return found

    def get_weight(self) -> dict[str, dict[str, Tensor]]:
        """The weights by the names of a float layer."""
        return self._collect(0, "weight")

    def get_bias(self) -> dict[str, dict[str, Tensor]]:
        """The biases by the names of a float layer."""
        return self._collect(1, "bias")

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        """The dynamic form of a float layer with a configuration."""
        if type(mod) not in (nn.LSTM, nn.GRU):
            raise AssertionError(
                "nn.quantized.dynamic.RNNBase.from_float only works for nn.LSTM and nn.GRU"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        watcher = _watcher_of(mod)
        made = cls._like(mod, watcher.dtype)
        weights = {name: value.detach().float() for name, value in mod.named_parameters()}
        if not mod.bias:
            for name, _ in made._places():
                rows = weights[f"weight_ih_{name}"].size(0)
                weights[f"bias_ih_{name}"] = torch.zeros(rows)
                weights[f"bias_hh_{name}"] = torch.zeros(rows)
        for name, value in weights.items():
            if name.startswith("weight"):
                weights[name] = _on_grid(value, mod, watcher.dtype)
        made.set_weight_bias(weights)
        return made

    @classmethod
    def _like(cls, mod: nn.Module, dtype: torch.dtype) -> nn.Module:
        return cls(
            mod.input_size,
            mod.hidden_size,
            mod.num_layers,
            mod.bias,
            mod.batch_first,
            mod.dropout,
            mod.bidirectional,
            dtype=dtype,
        )

    @classmethod
    def from_reference(cls, ref_mod: nn.Module) -> nn.Module:
        """With the weights of a reference layer."""
        made = cls._like(ref_mod, ref_mod.weight_ih_l0_dtype)
        made.set_weight_bias(ref_mod.get_quantized_weight_bias_dict())
        return made


def _watcher_of(mod: nn.Module) -> nn.Module:
    from torch.ao.quantization.qconfig import default_dynamic_qconfig

    made = mod.qconfig.weight if mod.qconfig and mod.qconfig.weight else default_dynamic_qconfig[1]
    watcher = made()
    if watcher.dtype not in (torch.qint8, torch.float16):
        raise RuntimeError("Unsupported dtype for dynamic RNN quantization")
    return watcher


def _on_grid(weight: Tensor, mod: nn.Module, dtype: torch.dtype) -> Tensor:
    if dtype is torch.float16:
        return weight
    watcher = _watcher_of(mod)
    watcher(weight)
    return _quantize_weight(weight, watcher)


class LSTM(RNNBase):
    """nn.LSTM with weights of 8 bits, or of float16."""

    _FLOAT_MODULE = nn.LSTM

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def _step(self, product: Tensor, cell: object, state: State) -> State:
        return lstm_step(product, cell.linear_hh(state[0]), state[1])

    def forward_impl(
        self,
        input: Tensor,
        hx: tuple[Tensor, Tensor] | None,
        batch_sizes: Tensor | None,
        max_batch_size: int,
        sorted_indices: Tensor | None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Checks, then runs."""
        if hx is None:
            hx = self._zeros(input, max_batch_size), self._zeros(input, max_batch_size)
        else:
            hx = self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(input, hx, batch_sizes)
        result, finals = self._run(input, list(zip(*hx, strict=True)), batch_sizes)
        return result, (torch.stack([f[0] for f in finals]), torch.stack([f[1] for f in finals]))

    def permute_hidden(
        self, hx: tuple[Tensor, Tensor], permutation: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        if permutation is None:
            return hx
        return apply_permutation(hx[0], permutation), apply_permutation(hx[1], permutation)

    def check_forward_args(
        self, input: Tensor, hidden: tuple[Tensor, Tensor], batch_sizes: Tensor | None
    ) -> None:
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes)
        for part, what in zip(hidden, ("hidden[0]", "hidden[1]"), strict=True):
            self.check_hidden_size(part, expected, f"Expected {what} size {{}}, got {{}}")


class GRU(RNNBase):
    """nn.GRU with weights of 8 bits, or of float16."""

    _FLOAT_MODULE = nn.GRU

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__("GRU", *args, **kwargs)

    def _step(self, product: Tensor, cell: object, state: State) -> State:
        return gru_step(product, cell.linear_hh(state), state)

    def forward_impl(
        self,
        input: Tensor,
        hx: Tensor | None,
        batch_sizes: Tensor | None,
        max_batch_size: int,
        sorted_indices: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Checks, then runs."""
        if hx is None:
            hx = self._zeros(input, max_batch_size)
        else:
            hx = self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(input, hx, batch_sizes)
        result, finals = self._run(input, list(hx), batch_sizes)
        return result, torch.stack(finals)


class RNNCellBase(nn.Module):
    """What the cells share: two packed weights."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        num_chunks: int = 4,
        dtype: torch.dtype = torch.qint8,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        self.weight_dtype = dtype
        rows = num_chunks * hidden_size
        self.bias_ih = torch.randn(rows) if bias else None
        self.bias_hh = torch.randn(rows) if bias else None
        weights = [torch.randn(rows, input_size), torch.randn(rows, hidden_size)]
        if dtype is torch.qint8:
            weights = [torch.quantize_per_tensor(w, 1.0, 0, torch.qint8) for w in weights]
        self._packed_weight_ih = pack_weight_bias(weights[0], self.bias_ih, dtype)
        self._packed_weight_hh = pack_weight_bias(weights[1], self.bias_hh, dtype)

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if not self.bias:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def check_forward_input(self, input: Tensor) -> None:
        """Refuses an input of another width."""
        if input.size(1) != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.size(1)}, expected "
                f"{self.input_size}"
            )

    def check_forward_hidden(self, input: Tensor, hx: Tensor, hidden_label: str = "") -> None:
        """Refuses a state of another size."""
        if input.size(0) != hx.size(0):
            raise RuntimeError(
                f"Input batch size {input.size(0)} doesn't match hidden{hidden_label} batch size "
                f"{hx.size(0)}"
            )
        if hx.size(1) != self.hidden_size:
            raise RuntimeError(
                f"hidden{hidden_label} has inconsistent hidden_size: got {hx.size(1)}, expected "
                f"{self.hidden_size}"
            )

    def _state(self, input: Tensor, hx: Tensor | None, label: str = "") -> Tensor:
        self.check_forward_input(input)
        if hx is None:
            hx = input.new_zeros(input.size(0), self.hidden_size)
        self.check_forward_hidden(input, hx, label)
        return hx

    def _call(self, name: str, input: Tensor, hx: object) -> object:
        return getattr(torch.ops.quantized, name)(
            input,
            hx,
            self._packed_weight_ih,
            self._packed_weight_hh,
            self.bias_ih,
            self.bias_hh,
        )

    @classmethod
    def _like(cls, mod: nn.Module, dtype: torch.dtype) -> nn.Module:
        extra = {"nonlinearity": mod.nonlinearity} if isinstance(mod, nn.RNNCell) else {}
        return cls(mod.input_size, mod.hidden_size, bias=mod.bias, dtype=dtype, **extra)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        """The dynamic form of a float cell with a configuration."""
        if type(mod) not in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
            raise AssertionError(
                "nn.quantized.dynamic.RNNCellBase.from_float only works for nn.LSTMCell, "
                "nn.GRUCell and nn.RNNCell"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        dtype = _watcher_of(mod).dtype
        made = cls._like(mod, dtype)
        weights = {
            name: _on_grid(getattr(mod, name).detach().float(), mod, dtype)
            for name in ("weight_ih", "weight_hh")
        }
        made.set_weight_bias({**weights, "bias_ih": mod.bias_ih, "bias_hh": mod.bias_hh})
        return made

    @classmethod
    def from_reference(cls, ref_mod: nn.Module) -> nn.Module:
        """With the weights of a reference cell."""
        made = cls._like(ref_mod, ref_mod.weight_ih_dtype)
        made.set_weight_bias(
            {
                "weight_ih": ref_mod.get_quantized_weight_ih(),
                "weight_hh": ref_mod.get_quantized_weight_hh(),
                "bias_ih": ref_mod.bias_ih,
                "bias_hh": ref_mod.bias_hh,
            }
        )
        return made

    def get_weight(self) -> dict[str, Tensor]:
        """Both weights."""
        unpack = torch.ops.quantized.linear_unpack
        return {
            "weight_ih": unpack(self._packed_weight_ih)[0],
            "weight_hh": unpack(self._packed_weight_hh)[0],
        }

    def get_bias(self) -> dict[str, Tensor]:
        """Both biases."""
        return {"bias_ih": self.bias_ih, "bias_hh": self.bias_hh}

    def set_weight_bias(self, weight_bias_dict: dict[str, Tensor]) -> None:
        """Packs other weights."""
        given = weight_bias_dict
        biases = [given[name] for name in ("bias_ih", "bias_hh")]
        self.bias_ih, self.bias_hh = (None if b is None else b.detach() for b in biases)
        dtype = self.weight_dtype
        self._packed_weight_ih = pack_weight_bias(given["weight_ih"], self.bias_ih, dtype)
        self._packed_weight_hh = pack_weight_bias(given["weight_hh"], self.bias_hh, dtype)

    def _save_to_state_dict(
        self, destination: dict[str, object], prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name in ("_packed_weight_ih", "_packed_weight_hh"):
            destination[prefix + name] = getattr(self, name)

    def _load_from_state_dict(
        self, state_dict: dict[str, object], prefix: str, *rest: object
    ) -> None:
        for name in ("_packed_weight_ih", "_packed_weight_hh"):
            if prefix + name in state_dict:
                packed = state_dict.pop(prefix + name)
                setattr(self, name, packed)
                bias = torch.ops.quantized.linear_unpack(packed)[1]
                setattr(self, name.replace("_packed_weight", "bias"), bias)
        super()._load_from_state_dict(state_dict, prefix, *rest)


class RNNCell(RNNCellBase):
    """nn.RNNCell with weights of 8 bits, or of float16."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        dtype: torch.dtype = torch.qint8,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        name = f"quantized_rnn_{self.nonlinearity}_cell_dynamic"
        return self._call(name, input, self._state(input, hx))

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        return super().from_float(mod, use_precomputed_fake_quant)


class LSTMCell(RNNCellBase):
    """nn.LSTMCell with weights of 8 bits, or of float16."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        dtype: torch.dtype = torch.qint8,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        given = (None, None) if hx is None else hx
        state = [self._state(input, part, f"[{i}]") for i, part in enumerate(given)]
        return self._call("quantized_lstm_cell_dynamic", input, state)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        return super().from_float(mod, use_precomputed_fake_quant)


class GRUCell(RNNCellBase):
    """nn.GRUCell with weights of 8 bits, or of float16."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        dtype: torch.dtype = torch.qint8,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._call("quantized_gru_cell_dynamic", input, self._state(input, hx))

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        return super().from_float(mod, use_precomputed_fake_quant)
