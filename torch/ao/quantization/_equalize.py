"""Cross-layer equalization: where one layer feeds another, the weights of each channel between them
are scaled so that both use the same range, which leaves what the two compute as it was."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

__all__ = ["channel_range", "converged", "cross_layer_equalization", "equalize"]

_LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


def _layer(module: nn.Module) -> nn.Module:
    """The layer with the weight: the module, or the first part of a fused one."""
    fused = isinstance(module, nn.Sequential) and not hasattr(module, "weight")
    inner = module[0] if fused else module
    if not isinstance(inner, _LAYERS):
        raise ValueError(f"{type(module).__name__} cannot be equalized: it has no layer")
    return inner


def channel_range(input: Tensor, axis: int = 0) -> Tensor:
    """The greatest less the least value of each place along an axis."""
    flat = input.detach().movedim(axis, 0).flatten(1)
    return flat.amax(1) - flat.amin(1)


def cross_layer_equalization(
    module1: nn.Module, module2: nn.Module, output_axis: int = 0, input_axis: int = 1
) -> None:
    """Scales the outputs of the first layer and, inversely, the inputs of the second one, so that
    each channel has the same range in both weights."""
    first, second = _layer(module1), _layer(module2)
    if first.weight.size(output_axis) != second.weight.size(input_axis):
        raise TypeError(
            f"the first layer has {first.weight.size(output_axis)} output channels, the second "
            f"takes {second.weight.size(input_axis)}"
        )
    ranges = (channel_range(first.weight, output_axis), channel_range(second.weight, input_axis))
    scale = torch.sqrt(ranges[0] / ranges[1])
    # A channel without a range on either side has nothing to share.
    scale = torch.where(torch.isfinite(scale) & (scale > 0), scale, torch.ones_like(scale))

    def along(weight: Tensor, axis: int) -> Tensor:
        return scale.view([-1 if i == axis else 1 for i in range(weight.dim())])

    with torch.no_grad():
        first.weight.div_(along(first.weight, output_axis))
        if first.bias is not None:
            first.bias.div_(scale)
        second.weight.mul_(along(second.weight, input_axis))


def converged(
    curr_modules: dict[str, nn.Module], prev_modules: dict[str, nn.Module], threshold: float = 1e-4
) -> bool:
    """Whether the weights of two sets of modules differ by less than the threshold in sum."""
    if curr_modules.keys() != prev_modules.keys():
        raise ValueError("both mappings must have the same names of modules")
    pairs = [(_layer(curr_modules[n]).weight, _layer(prev_modules[n]).weight) for n in curr_modules]
    return sum(float((a - b).detach().norm()) for a, b in pairs) < threshold


def equalize(
    model: nn.Module,
    paired_modules_list: Sequence[Sequence[str]],
    threshold: float = 1e-4,
    inplace: bool = True,
) -> nn.Module:
    """Equalizes pairs of layers, given by their names, until no weight changes any more."""
    model = model if inplace else copy.deepcopy(model)
    names = dict.fromkeys(name for pair in paired_modules_list for name in pair)
    modules = {name: model.get_submodule(name) for name in names}
    while True:
        before = copy.deepcopy(modules)
        for first, second in paired_modules_list:
            cross_layer_equalization(modules[first], modules[second])
        if converged(modules, before, threshold):
            return model
