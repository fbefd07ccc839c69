"""From an observed weight to a quantized one, and what modules with packed weights share."""

from __future__ import annotations

import abc
from collections.abc import Callable

import torch
from torch import Tensor, nn

__all__ = ["WeightedQuantizedModule"]

_PER_CHANNEL = (
    torch.per_channel_affine,
    torch.per_channel_symmetric,
    torch.per_channel_affine_float_qparams,
)


def _quantize_weight(float_wt: Tensor, observer: nn.Module) -> Tensor:
    """The weight on the grid that its observer, or fake quantizer, proposes."""
    scale, zero_point = observer.calculate_qparams()
    values = float_wt.detach().float()
    if observer.qscheme in _PER_CHANNEL:
        real = observer.qscheme is torch.per_channel_affine_float_qparams
        shape = [1] * values.dim()
        shape[observer.ch_axis] = -1
        values = _within(values, scale.reshape(shape), zero_point.reshape(shape), observer)
        return torch.quantize_per_channel(
            values,
            scale.float() if real else scale.double(),
            zero_point.float() if real else zero_point.long(),
            observer.ch_axis,
            observer.dtype,
        )
    values = _within(values, scale, zero_point, observer)
    return torch.quantize_per_tensor(values, float(scale), int(zero_point), observer.dtype)


def _within(values: Tensor, scale: Tensor, zero_point: Tensor, observer: nn.Module) -> Tensor:
    """Values cut to what the observer's levels can say, which may be fewer than the dtype's."""
    low, high = getattr(observer, "quant_min", None), getattr(observer, "quant_max", None)
    if low is None or high is None or observer.dtype not in (torch.qint8, torch.quint8):
        return values
    ends = [((end - zero_point) * scale).float() for end in (low, high)]
    return torch.minimum(torch.maximum(values, ends[0]), ends[1])


def inner_layer(mod: nn.Module) -> nn.Module:
    """The layer with the weight: the module itself, or the first part of a fused one."""
    return mod if hasattr(mod, "weight") else mod[0]


def observed_weight(
    mod: nn.Module,
    layer: nn.Module,
    dtypes: tuple[torch.dtype, ...] = (torch.qint8,),
    precomputed: bool = False,
) -> Tensor:
    """The quantized weight of a layer: by the fake quantizer it trained with, or by a new observer
    of its configuration."""
    watcher = getattr(layer, "weight_fake_quant", None)
    if watcher is None:
        qconfig = getattr(mod, "qconfig", None) or getattr(layer, "qconfig", None)
        watcher = default_weight_watcher() if qconfig is None else qconfig.weight()
        watcher(layer.weight.detach())
    elif not precomputed and watcher.observer_enabled[0] == 1:
        watcher.activation_post_process(layer.weight.detach())
    if watcher.dtype not in dtypes:
        names = " or ".join(str(dtype) for dtype in dtypes)
        raise AssertionError(f"Weight observer must have a dtype of {names}, got {watcher.dtype}")
    return _quantize_weight(layer.weight, watcher)


def default_weight_watcher() -> nn.Module:
    from torch.ao.quantization.observer import default_weight_observer

    return default_weight_observer()


def output_grid(mod: nn.Module) -> tuple[float, int]:
    """Scale and zero point that the observer of a module's outputs proposes."""
    scale, zero_point = mod.activation_post_process.calculate_qparams()
    return float(scale), int(zero_point)


def _ntuple_from_first(n: int) -> Callable[[object], object]:
    """A function that repeats the first element of a tuple."""

    def repeat(x: object) -> object:
        values = tuple(x) if isinstance(x, tuple | list) else (x,)
        return (values[0],) * n

    return repeat


_pair_from_first = _ntuple_from_first(2)


def _hide_packed_params_repr(self: nn.Module, params: type | tuple[type, ...]) -> str:
    """The text of a module without its packed weight, which is no part a reader looks for."""
    lines = [line for line in self.extra_repr().split("\n") if line]
    parts = []
    for name, module in self._modules.items():
        if isinstance(module, params):
            continue
        text = repr(module).replace("\n", "\n  ")
        parts.append(f"({name}): {text}")
    if not parts:
        return f"{self._get_name()}({'; '.join(lines)})"
    return f"{self._get_name()}(\n  " + "\n  ".join([*lines, *parts]) + "\n)"


class Stateful(nn.Module):
    """A module with values in its state dictionary that are neither parameters nor buffers: a class
    lists them in `entries` and takes them back, by name, in `take`."""

    def entries(self) -> dict[str, object]:
        """What the state dictionary holds besides parameters and buffers."""
        raise NotImplementedError(f"{type(self).__name__}.entries")

    def take(self, name: str, value: object) -> None:
        """Restores one of them."""
        raise NotImplementedError(f"{type(self).__name__}.take")

    def _save_to_state_dict(self, destination: dict[str, object], *rest: object) -> None:
        super()._save_to_state_dict(destination, *rest)
        prefix = rest[0]
        destination.update({f"{prefix}{name}": value for name, value in self.entries().items()})

    def _load_from_state_dict(
        self, state_dict: dict[str, object], prefix: str, *rest: object
    ) -> None:
        for name in self.entries():
            if prefix + name in state_dict:
                self.take(name, state_dict.pop(prefix + name))
            elif name.startswith("_packed"):
                rest[2].append(prefix + name)
        super()._load_from_state_dict(state_dict, prefix, *rest)


class WeightedQuantizedModule(nn.Module, metaclass=abc.ABCMeta):
    """A quantized module with a weight; it can be made of a reference module."""

    @classmethod
    @abc.abstractmethod
    def from_reference(
        cls, ref_module: nn.Module, output_scale: float, output_zero_point: int
    ) -> nn.Module:
        """The module that computes on levels what a reference module says."""


class OnGrid(Stateful):
    """A module whose results lie on a grid of its own."""

    scale = 1.0
    zero_point = 0

    def entries(self) -> dict[str, object]:
        return {name: torch.tensor(getattr(self, name)) for name in ("scale", "zero_point")}

    def take(self, name: str, value: object) -> None:
        setattr(self, name, value.item())
