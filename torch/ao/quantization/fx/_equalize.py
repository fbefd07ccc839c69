"""Input-weight equalization: the columns of a layer's input are scaled so that each uses as much of
the grid as the matching column of the weight, which takes the inverse scale. Here are the observers
of columns and the scales they lead to; graphs with such observers are not converted yet."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import torch
from torch import Tensor, nn
from torch.ao.quantization.observer import (
    ObserverBase,
    PerChannelMinMaxObserver,
    _with_args,
)
from torch.fx import GraphModule


def reshape_scale(scale: Tensor, axis: int, input: Tensor) -> Tensor:
    """A scale for each place along an axis, in a shape that multiplies the input."""
    sizes = [1] * input.dim()
    sizes[axis] = input.size(axis)
    return scale.view(sizes)


class _ColumnObserver(nn.Module):
    """The range of each place along dimension 1, of values or of a weight."""

    with_args = classmethod(_with_args)

    def __init__(
        self,
        dtype: torch.dtype,
        qscheme: torch.qscheme,
        quant_min: int | None,
        quant_max: int | None,
        factory_kwargs: dict[str, Any] | None,
    ) -> None:
        super().__init__()
        self.dtype = dtype
        self.qscheme = qscheme
        self._columns = PerChannelMinMaxObserver(
            ch_axis=1,
            dtype=dtype,
            qscheme=torch.per_channel_affine,
            quant_min=quant_min,
            quant_max=quant_max,
            factory_kwargs=factory_kwargs,
        )
        self.equalization_scale = torch.tensor(1)

    def get_columns(self) -> tuple[Tensor, Tensor]:
        """The least and the greatest value of each column."""
        return self._columns.min_val, self._columns.max_val

    def forward(self, x: Tensor) -> Tensor:
        if not 2 <= x.dim() <= 5:
            raise ValueError("equalization takes tensors of two to five dimensions")
        return self._columns(x)


class _InputEqualizationObserver(_ColumnObserver):
    """The ranges of the columns of a layer's input."""

    def __init__(
        self,
        dtype: torch.dtype = torch.quint8,
        qscheme: torch.qscheme = torch.per_tensor_affine,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None,
    ) -> None:
        if qscheme not in (torch.per_tensor_affine, torch.per_tensor_symmetric):
            raise TypeError("Input qscheme must be per-tensor")
        super().__init__(dtype, qscheme, quant_min, quant_max, factory_kwargs)

    def get_input_minmax(self) -> tuple[Tensor, Tensor]:
        """The least and the greatest value of each column."""
        return self.get_columns()

    def calculate_scaled_minmax(self) -> tuple[Tensor | None, Tensor | None]:
        """The range of the whole input once its columns are scaled."""
        if self.equalization_scale.nelement() == 1:
            return None, None
        least, greatest = self.get_columns()
        return (least * self.equalization_scale).min(), (greatest * self.equalization_scale).max()


class _WeightEqualizationObserver(_ColumnObserver):
    """The ranges of the columns of a layer's weight."""

    def __init__(
        self,
        dtype: torch.dtype = torch.qint8,
        qscheme: torch.qscheme = torch.per_tensor_affine,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(dtype, qscheme, quant_min, quant_max, factory_kwargs)

    def get_weight_col_minmax(self) -> tuple[Tensor, Tensor]:
        """The least and the greatest value of each column."""
        return self.get_columns()


def calculate_equalization_scale(
    input_obs: _InputEqualizationObserver, weight_obs: _WeightEqualizationObserver
) -> Tensor:
    """sqrt(range of the weight's column / range of the input's column) for each column; 1 where
    there is no such number."""
    inputs, weights = input_obs.get_input_minmax(), weight_obs.get_weight_col_minmax()
    if inputs[0].shape != weights[0].shape:
        raise ValueError(
            "Input and Weight must have the same column dimension. "
            f"Found {inputs[0].shape} and {weights[0].shape} shapes respectively."
        )
    scale = torch.sqrt((weights[1] - weights[0]) / (inputs[1] - inputs[0]))
    scale[scale == 0.0] = 1
    return torch.nan_to_num(scale, nan=1, posinf=1, neginf=1)


class EqualizationQConfig(namedtuple("EqualizationQConfig", ["input_activation", "weight"])):
    """Which observers look at the columns of inputs and weights: makers, not instances."""

    __slots__ = ()

    def __new__(
        cls, input_activation: Any = nn.Identity, weight: Any = nn.Identity
    ) -> EqualizationQConfig:
        if isinstance(input_activation, nn.Module) or isinstance(weight, nn.Module):
            raise ValueError(
                "EqualizationQConfig received observer instance, please pass observer class "
                "instead. Use MyObserver.with_args(x=1) to override arguments to constructor "
                "if needed"
            )
        return super().__new__(cls, input_activation, weight)


input_equalization_observer = _InputEqualizationObserver.with_args(
    dtype=torch.quint8, qscheme=torch.per_tensor_symmetric
)
weight_equalization_observer = _WeightEqualizationObserver.with_args(
    dtype=torch.qint8, qscheme=torch.per_channel_symmetric
)
default_equalization_qconfig = EqualizationQConfig(
    input_activation=input_equalization_observer, weight=weight_equalization_observer
)


def is_equalization_observer(observer: nn.Module) -> bool:
    """Whether a module looks at columns."""
    return isinstance(observer, (_InputEqualizationObserver, _WeightEqualizationObserver))


def _refuse(modules: dict[str, Any]) -> None:
    for name, module in modules.items():
        if isinstance(module, (nn.Module, ObserverBase)) and is_equalization_observer(module):
            raise NotImplementedError(f"equalization of a graph: {name} observes columns")


def update_obs_for_equalization(
    model: GraphModule, modules: dict[str, nn.Module]
) -> dict[str, _WeightEqualizationObserver]:
    """The weight observers of layers whose inputs are equalized: none, of a graph without such."""
    _refuse(modules)
    return {}


def convert_eq_obs(
    model: GraphModule,
    modules: dict[str, nn.Module],
    weight_eq_obs_dict: dict[str, _WeightEqualizationObserver],
) -> None:
    """Replaces observers of columns by scales; a graph without such stays as it is."""
    _refuse(weight_eq_obs_dict)
    _refuse(modules)
