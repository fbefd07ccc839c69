"""Comparison of a float model with its quantized form, module by module: weights by the names in
the state, outputs by loggers that stand behind modules, and outputs for the same inputs by running
a float module in the shadow of each quantized one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.ao.nn import quantized as nnq
from torch.ao.nn.intrinsic import _FusedModule
from torch.ao.nn.quantized import dynamic as nnqd
from torch.ao.quantization.quantization_mappings import get_default_compare_output_module_list

__all__ = [
    "Logger",
    "OutputLogger",
    "Shadow",
    "ShadowLogger",
    "compare_model_outputs",
    "compare_model_stub",
    "compare_weights",
    "get_logger_dict",
    "get_matching_activations",
    "prepare_model_outputs",
    "prepare_model_with_stubs",
]

# Modules with children that a logger may stand behind.
NON_LEAF_MODULE_TO_ADD_OBSERVER_ALLOW_LIST = {nnqd.Linear, nnq.Linear, nnqd.LSTM, nn.LSTM}
_LOGGER = "activation_post_process"

Pairs = dict[str, dict[str, Any]]


# ---- weights -------------------------------------------------------------------------------------
def _levels_of(value: Any) -> torch.Tensor | None:
    """The weight among what a quantized layer keeps: itself, the first of (weight, bias), or the
    first one that a packed object of a recurrent layer unpacks to."""
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, (tuple, list)) and value and isinstance(value[0], torch.Tensor):
        return value[0]
    if hasattr(value, "__getstate__"):
        parts: list[Any] = [value.__getstate__()]
        while parts:
            part = parts.pop(0)
            if isinstance(part, torch.Tensor) and part.is_quantized:
                return part
            if isinstance(part, (tuple, list)):
                parts.extend(part)
            elif hasattr(part, "unpack"):
                parts.extend(part.unpack())
    return None


def compare_weights(float_dict: dict[str, Any], quantized_dict: dict[str, Any]) -> Pairs:
    """The weights of two states by the name in the quantized one: {"float": ..., "quantized": ...}.
    A linear layer keeps its weight packed, a recurrent one the weights of each layer."""
    found: Pairs = {}
    for key, value in quantized_dict.items():
        owner, _, last = key.rpartition(".")
        if key in float_dict and last == "weight":
            found[key] = {"float": float_dict[key], "quantized": value}
            continue
        if key.endswith("._packed_params._packed_params"):
            source = key.removesuffix("._packed_params._packed_params") + ".weight"
        elif "._all_weight_values." in key and last == "param":
            layer = owner.rpartition(".")[2]
            source = f"{key.partition('._all_weight_values.')[0]}.weight_ih_l{layer}"
        else:
            continue
        levels = _levels_of(value)
        if source in float_dict and levels is not None:
            found[key] = {"float": float_dict[source], "quantized": levels}
    return found


# ---- loggers -------------------------------------------------------------------------------------
def _detached(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return [_detached(part) for part in x]
    return x.detach()


def _dequantized(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return type(x)(_dequantized(part) for part in x)
    return x.dequantize() if isinstance(x, torch.Tensor) and x.is_quantized else x


class Logger(nn.Module):
    """Keeps what it is given in `stats`; a subclass says how."""

    def __init__(self) -> None:
        super().__init__()
        self.stats: dict[str, Any] = {}
        self.dtype = torch.quint8

    def forward(self, x: Any) -> Any:
        """Nothing is kept by this class."""
        return None


class ShadowLogger(Logger):
    """Keeps the results of a quantized module and of its shadow, of the first sample where there
    are several."""

    def __init__(self) -> None:
        super().__init__()
        self.stats = {"float": [], "quantized": []}

    def forward(self, x: Any, y: Any) -> None:  # type: ignore[override]
        """x is of the quantized module, y of the float one."""
        for kind, value in (("quantized", x), ("float", y)):
            self.stats[kind].append(_detached(value[0] if len(value) > 1 else value))


class OutputLogger(Logger):
    """Keeps the outputs of a module."""

    def __init__(self) -> None:
        super().__init__()
        self.stats = {"tensor_val": []}

    def forward(self, x: Any) -> Any:
        """Passes x on."""
        self.stats["tensor_val"].append(_detached(x))
        return x


def get_logger_dict(mod: nn.Module, prefix: str = "") -> dict[str, dict]:
    """What the loggers of a model hold, by the name of their module and ".stats"."""
    found: dict[str, dict] = {}
    for name, child in mod.named_modules(prefix=prefix):
        if isinstance(child, Logger):
            found[name.rpartition(".")[0] + ".stats"] = child.stats
    return found


# ---- shadows -------------------------------------------------------------------------------------
class Shadow(nn.Module):
    """A quantized module that runs its float counterpart on the same inputs and logs both."""

    def __init__(
        self, q_module: nn.Module, float_module: nn.Module, logger_cls: Callable[[], Logger]
    ) -> None:
        super().__init__()
        self.orig_module = q_module
        self.shadow_module = float_module
        self.dequant = nnq.DeQuantize()
        self.logger = logger_cls()

    def _both(self, name: str, tensors: Any, *rest: Any) -> Any:
        """A method of both modules; `tensors` are dequantized for the shadow."""
        output = getattr(self.orig_module, name)(*tensors, *rest)
        shadow = getattr(self.shadow_module, name)(*_dequantized(tensors), *rest)
        self.logger(output, shadow)
        return output

    def forward(self, *x: Any) -> Any:
        return self._both("__call__", x)

    def add(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self._both("add", (x, y))

    def add_scalar(self, x: torch.Tensor, y: float) -> torch.Tensor:
        return self._both("add_scalar", (x,), y)

    def mul(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self._both("mul", (x, y))

    def mul_scalar(self, x: torch.Tensor, y: float) -> torch.Tensor:
        return self._both("mul_scalar", (x,), y)

    def cat(self, x: list[torch.Tensor], dim: int = 0) -> torch.Tensor:
        return self._both("cat", (x,), dim)

    def add_relu(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self._both("add_relu", (x, y))


def prepare_model_with_stubs(
    float_module: nn.Module, q_module: nn.Module, module_swap_list: set[type], logger_cls: Callable
) -> None:
    """Replaces the modules of q_module whose float counterparts are of the listed types by shadows,
    in place."""
    children = dict(float_module.named_children())
    for name, child in list(q_module.named_children()):
        counterpart = children.get(name)
        if counterpart is None:
            continue
        if type(counterpart) in module_swap_list and type(counterpart) is not type(child):
            q_module._modules[name] = Shadow(child, counterpart, logger_cls)
        else:
            prepare_model_with_stubs(counterpart, child, module_swap_list, logger_cls)


def compare_model_stub(
    float_model: nn.Module,
    q_model: nn.Module,
    module_swap_list: set[type],
    *data: Any,
    logger_cls: Callable = ShadowLogger,
) -> dict[str, dict]:
    """Runs q_model on data with shadows in it and returns what they logged."""
    prepare_model_with_stubs(float_model, q_model, module_swap_list, logger_cls)
    q_model(*data)
    return get_logger_dict(q_model)


# ---- outputs -------------------------------------------------------------------------------------
def _attach(model: nn.Module, logger_cls: Callable, allow_list: set) -> None:
    for child in list(model.modules()):
        leaf = not any(name != _LOGGER for name in child._modules)
        whole = (*NON_LEAF_MODULE_TO_ADD_OBSERVER_ALLOW_LIST, _FusedModule)
        wanted = leaf or isinstance(child, whole)
        if isinstance(child, (nnq.FloatFunctional, nnq.QFunctional)):
            child.activation_post_process = logger_cls()
        elif wanted and type(child) in allow_list and not isinstance(child, nnq.DeQuantize):
            child.add_module(_LOGGER, logger_cls())
            child.register_forward_hook(lambda m, _, output: m.activation_post_process(output))


def prepare_model_outputs(
    float_module: nn.Module,
    q_module: nn.Module,
    logger_cls: Callable = OutputLogger,
    allow_list: set | None = None,
) -> None:
    """Puts loggers behind the modules of both models whose types are in allow_list, in place."""
    listed = get_default_compare_output_module_list() if allow_list is None else allow_list
    for model in (float_module, q_module):
        _attach(model, logger_cls, listed)


def get_matching_activations(float_module: nn.Module, q_module: nn.Module) -> Pairs:
    """The outputs that loggers of both models hold under the same name."""
    plain, quantized = get_logger_dict(float_module), get_logger_dict(q_module)
    return {
        name: {"float": plain[name]["tensor_val"], "quantized": stats["tensor_val"]}
        for name, stats in quantized.items()
        if name in plain and stats["tensor_val"]
    }


def compare_model_outputs(
    float_model: nn.Module,
    q_model: nn.Module,
    *data: Any,
    logger_cls: Callable = OutputLogger,
    allow_list: set | None = None,
) -> Pairs:
    """Runs both models on data and returns the outputs of modules of the same name."""
    prepare_model_outputs(float_model, q_model, logger_cls, allow_list)
    float_model(*data)
    q_model(*data)
    return get_matching_activations(float_model, q_model)
