"""From an observed weight to a quantized one."""

from __future__ import annotations

import torch
from torch import Tensor, nn

_PER_CHANNEL = (
    torch.per_channel_affine,
    torch.per_channel_symmetric,
    torch.per_channel_affine_float_qparams,
)


def quantized_weight(weight: Tensor, watcher: nn.Module) -> Tensor:
    """The weight on the grid that its observer, or fake quantizer, proposes."""
    scale, zero_point = watcher.calculate_qparams()
    values = weight.detach().float()
    if watcher.qscheme in _PER_CHANNEL:
        real = watcher.qscheme is torch.per_channel_affine_float_qparams
        return torch.quantize_per_channel(
            values,
            scale.float() if real else scale.double(),
            zero_point.float() if real else zero_point.long(),
            watcher.ch_axis,
            watcher.dtype,
        )
    return torch.quantize_per_tensor(values, float(scale), int(zero_point), watcher.dtype)


def observed_weight(mod: nn.Module, layer: nn.Module) -> Tensor:
    """The quantized weight of a layer: by the fake quantizer it trained with, or by a new observer
    of its configuration."""
    watcher = getattr(layer, "weight_fake_quant", None)
    if watcher is None:
        qconfig = getattr(mod, "qconfig", None) or getattr(layer, "qconfig", None)
        watcher = default_weight_watcher() if qconfig is None else qconfig.weight()
        watcher(layer.weight)
    elif watcher.observer_enabled[0] == 1:
        watcher.activation_post_process(layer.weight.detach())
    if watcher.dtype is not torch.qint8:
        raise AssertionError("Weight observer must have a dtype of torch.qint8")
    return quantized_weight(layer.weight, watcher)


def default_weight_watcher() -> nn.Module:
    from torch.ao.quantization.observer import default_weight_observer

    return default_weight_observer()


def output_grid(mod: nn.Module) -> tuple[float, int]:
    """Scale and zero point that the observer of a module's outputs proposes."""
    scale, zero_point = mod.activation_post_process.calculate_qparams()
    return float(scale), int(zero_point)


class Stateful(nn.Module):
    """A module with values in its state dictionary that are neither parameters nor buffers: a class
    lists them in `entries` and takes them back, by name, in `take`."""

    def entries(self) -> dict[str, object]:
        """What the state dictionary holds besides parameters and buffers."""
        raise NotImplementedError

    def take(self, name: str, value: object) -> None:
        """Restores one of them."""
        raise NotImplementedError

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
            elif name == "_packed_params":
                rest[2].append(prefix + name)
        super()._load_from_state_dict(state_dict, prefix, *rest)


class OnGrid(Stateful):
    """A module whose results lie on a grid of its own."""

    scale = 1.0
    zero_point = 0

    def entries(self) -> dict[str, object]:
        return {name: torch.tensor(getattr(self, name)) for name in ("scale", "zero_point")}

    def take(self, name: str, value: object) -> None:
        setattr(self, name, value.item())
