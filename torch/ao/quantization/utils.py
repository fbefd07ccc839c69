"""Questions about configurations, dtypes and graphs that several parts of quantization ask."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, Union

import torch
from torch import Tensor, nn
from torch.ao.quantization.quant_type import QuantType
from torch.fx import Node

__all__ = [
    "NodePattern",
    "Pattern",
    "MatchAllNode",
    "activation_dtype",
    "activation_is_dynamically_quantized",
    "activation_is_int32_quantized",
    "activation_is_int8_quantized",
    "activation_is_statically_quantized",
    "calculate_qmin_qmax",
    "check_min_max_valid",
    "check_node",
    "determine_qparams",
    "get_combined_dict",
    "get_fqn_to_example_inputs",
    "get_qconfig_dtypes",
    "get_qparam_dict",
    "get_quant_type",
    "get_swapped_custom_module_class",
    "getattr_from_fqn",
    "has_no_children_ignoring_parametrizations",
    "is_per_channel",
    "is_per_tensor",
    "op_is_int8_dynamically_quantized",
    "to_underlying_dtype",
    "validate_qmin_qmax",
    "weight_dtype",
    "weight_is_quantized",
    "weight_is_statically_quantized",
]

NodePattern = Union[tuple[Node, Node], tuple[Node, tuple[Node, Node]], Any]  # noqa: UP007
QuantizerCls = Any
Pattern = Union[  # noqa: UP007
    Callable, tuple[Callable, Callable], tuple[Callable, tuple[Callable, Callable]], Any
]

DEPRECATION_WARNING = (
    "torch.ao.quantization is deprecated and will be removed in 2.10. \n"
    "For migrations of users: \n"
    "1. Eager mode quantization (torch.ao.quantization.quantize, "
    "torch.ao.quantization.quantize_dynamic), please migrate to use torchao eager mode quantize_ "
    "API instead \n"
    "2. FX graph mode quantization (torch.ao.quantization.quantize_fx.prepare_fx,"
    "torch.ao.quantization.quantize_fx.convert_fx, please migrate to use torchao pt2e quantization "
    "API instead (prepare_pt2e, convert_pt2e) \n"
    "3. pt2e quantization has been migrated to torchao "
    "(https://github.com/pytorch/ao/tree/main/torchao/quantization/pt2e) \n"
    "see https://github.com/pytorch/ao/issues/2259 for more details"
)

_CHANNELS = (
    torch.per_channel_affine,
    torch.per_channel_affine_float_qparams,
    torch.per_channel_symmetric,
)
_PLAIN = {
    torch.quint8: torch.uint8,
    torch.qint8: torch.int8,
    torch.qint32: torch.int32,
    torch.quint4x2: torch.uint8,
    torch.quint2x4: torch.uint8,
    torch.uint8: torch.uint8,
    torch.int8: torch.int8,
    torch.uint16: torch.uint16,
    torch.int16: torch.int16,
    torch.int32: torch.int32,
    torch.float8_e5m2: torch.float8_e5m2,
    torch.float8_e4m3fn: torch.float8_e4m3fn,
}
_INT8 = (torch.quint8, torch.qint8, torch.uint8, torch.int8)
_STATIC = (
    *_INT8,
    torch.int16,
    torch.int32,
    torch.qint32,
    torch.float8_e5m2,
    torch.float8_e4m3fn,
)


class MatchAllNode:
    """Stands for any node in a pattern."""


module_type_list = {
    nn.ReLU,
    nn.ReLU6,
    nn.AdaptiveAvgPool1d,
    nn.AdaptiveAvgPool2d,
    nn.AdaptiveAvgPool3d,
    nn.AvgPool2d,
    nn.AvgPool3d,
    nn.MaxPool1d,
    nn.MaxPool2d,
    nn.MaxPool3d,
    nn.Identity,
    nn.Hardsigmoid,
    nn.Sigmoid,
    nn.Tanh,
}
func_list = {
    torch.nn.functional.adaptive_avg_pool1d,
    torch.nn.functional.adaptive_avg_pool2d,
    torch.nn.functional.adaptive_avg_pool3d,
    torch.nn.functional.max_pool1d,
    torch.nn.functional.max_pool2d,
    torch.nn.functional.max_pool3d,
    torch.nn.functional.relu,
    torch.nn.functional.hardtanh,
    torch.nn.functional.hardtanh_,
    torch.nn.functional.hardsigmoid,
    torch.nn.functional.sigmoid,
    torch.transpose,
    torch.repeat_interleave,
    torch.sigmoid,
    torch.squeeze,
    torch.stack,
    torch.sum,
    torch.tanh,
    torch.unsqueeze,
    torch.cat,
}
method_list = {
    torch.mean,
    "relu",
    "relu_",
    "contiguous",
    "detach",
    "detach_",
    "hardsigmoid",
    "hardsigmoid_",
    "permute",
    "repeat",
    "repeat_interleave",
    "reshape",
    "resize_",
    "shape",
    "sigmoid",
    "sigmoid_",
    "size",
    "squeeze",
    "squeeze_",
    "tanh",
    "tanh_",
    "transpose",
    "unsqueeze",
    "unsqueeze_",
    "view",
}


def check_node(node: Node, modules: dict[str, nn.Module]) -> tuple[bool, bool, bool]:
    """Whether a node is a function, method or module that moves values without changing them."""
    function = node.op == "call_function" and node.target in func_list
    method = node.op == "call_method" and node.target in method_list
    module = node.op == "call_module" and type(modules[str(node.target)]) in module_type_list
    return function, method, module


def get_combined_dict(default_dict: dict, additional_dict: dict) -> dict:
    """Both, the second winning."""
    return {**default_dict, **additional_dict}


def is_per_tensor(qscheme: torch.qscheme) -> bool:
    """Whether one grid serves the tensor."""
    return qscheme in (torch.per_tensor_affine, torch.per_tensor_symmetric)


def is_per_channel(qscheme: torch.qscheme) -> bool:
    """Whether each slice has a grid."""
    return qscheme in _CHANNELS


def getattr_from_fqn(obj: object, fqn: str) -> object:
    """obj.a.b.c for "a.b.c"."""
    return functools.reduce(getattr, fqn.split("."), obj)


def to_underlying_dtype(qdtype: torch.dtype) -> torch.dtype:
    """The plain dtype of the levels."""
    if qdtype not in _PLAIN:
        raise AssertionError(f"Unsupported dtype: {qdtype}")
    return _PLAIN[qdtype]


def get_qparam_dict(observer_or_fake_quant: nn.Module) -> dict[str, object]:
    """The grid that an observer proposes, as reference modules take it."""
    watcher = observer_or_fake_quant
    scheme = getattr(watcher, "qscheme", None)
    found: dict[str, object] = {"qscheme": scheme, "dtype": watcher.dtype}
    if scheme is None or isinstance(watcher, _placeholders()):
        return found
    simple = {
        torch.per_tensor_symmetric: torch.per_tensor_affine,
        torch.per_channel_symmetric: torch.per_channel_affine,
    }
    found["qscheme"] = simple.get(scheme, scheme)
    scale, zero_point = watcher.calculate_qparams()
    found["scale"], found["zero_point"] = scale, zero_point
    if is_per_channel(scheme):
        found["axis"] = watcher.ch_axis
    for name in ("quant_min", "quant_max"):
        if hasattr(watcher, name):
            found[name] = getattr(watcher, name)
    return found


def _placeholders() -> tuple[type[nn.Module], ...]:
    from torch.ao.quantization.observer import NoopObserver, PlaceholderObserver

    return (PlaceholderObserver, NoopObserver)


def get_swapped_custom_module_class(
    custom_module: nn.Module,
    custom_module_class_mapping: dict[QuantType, dict[type, type]],
    qconfig: object,
) -> type:
    """What replaces a module of the user's under a configuration."""
    quant_type = get_quant_type(qconfig)
    table = custom_module_class_mapping.get(quant_type, {})
    if type(custom_module) not in table:
        raise AssertionError(
            "did not find corresponding observed "
            f"module class for {type(custom_module)} in mapping: {table}"
        )
    return table[type(custom_module)]


def activation_dtype(qconfig: Any) -> torch.dtype:
    """The dtype of outputs."""
    return qconfig.activation().dtype


def weight_dtype(qconfig: Any) -> torch.dtype:
    """The dtype of weights."""
    return qconfig.weight().dtype


def activation_is_statically_quantized(qconfig: Any) -> bool:
    """Whether the grid of outputs is found beforehand."""
    return activation_dtype(qconfig) in _STATIC and not activation_is_dynamically_quantized(qconfig)


def activation_is_dynamically_quantized(qconfig: Any) -> bool:
    """Whether the grid of outputs is found at each call."""
    return get_qconfig_dtypes(qconfig)[2]


def activation_is_int8_quantized(qconfig: Any) -> bool:
    """Whether outputs have 8 bits."""
    return activation_dtype(qconfig) in _INT8


def activation_is_int32_quantized(qconfig: Any) -> bool:
    """Whether outputs have 32 bits."""
    return activation_dtype(qconfig) in (torch.qint32, torch.int32)


def weight_is_quantized(qconfig: Any) -> bool:
    """Whether weights become levels or float16."""
    return weight_dtype(qconfig) in (
        *_STATIC,
        torch.quint4x2,
        torch.float16,
    )


def weight_is_statically_quantized(qconfig: Any) -> bool:
    """Whether weights become levels of 8 bits."""
    return weight_dtype(qconfig) in (torch.quint8, torch.qint8, torch.uint8, torch.int8)


def op_is_int8_dynamically_quantized(qconfig: Any) -> bool:
    """Whether an operator has weights of 8 bits and finds the grid of its input at each call."""
    activation, weight, dynamic = get_qconfig_dtypes(qconfig)
    return (
        activation in (torch.quint8, torch.uint8)
        and weight in (torch.qint8, torch.int8)
        and dynamic
    )


def get_qconfig_dtypes(qconfig: Any) -> tuple[torch.dtype, torch.dtype, bool]:
    """Dtypes of outputs and weights, and whether outputs are dynamic."""
    if qconfig is None:
        raise AssertionError("qconfig must not be None")
    activation, weight = qconfig.activation(), qconfig.weight()
    return activation.dtype, weight.dtype, getattr(activation, "is_dynamic", False)


def get_quant_type(qconfig: Any) -> QuantType:
    """The kind of quantization that a configuration asks for."""
    if qconfig is None:
        raise AssertionError("qconfig must not be None")
    activation, weight = qconfig.activation(), qconfig.weight()
    static = (*_STATIC, torch.quint4x2)
    if weight.dtype in static:
        if getattr(activation, "is_dynamic", False):
            return QuantType.DYNAMIC
        return QuantType.STATIC if activation.dtype in static else QuantType.WEIGHT_ONLY
    if weight.dtype is torch.float16:
        if getattr(activation, "is_dynamic", False):
            return QuantType.DYNAMIC
        if activation.dtype is torch.float16:
            return QuantType.STATIC
    raise AssertionError(
        f"Unrecognized dtype combination in get_quant_type: activation({activation.dtype}),"
        f"weight({weight.dtype})"
    )


_UNSEEN = "must run observer before calling calculate_qparams. Returning default values."


def check_min_max_valid(min_val: Tensor, max_val: Tensor) -> bool:
    """Whether a range was seen; raises where its ends are in the wrong order."""
    empty = 0 in (min_val.numel(), max_val.numel())
    single = min_val.dim() == 0 or max_val.dim() == 0
    if empty or (single and float(min_val) == -float(max_val) == float("inf")):
        warnings.warn(_UNSEEN, stacklevel=2)
        return False
    if bool(torch.any(min_val > max_val)):
        raise AssertionError(f"min {min_val} should be less than max {max_val}")
    return True


def calculate_qmin_qmax(
    quant_min: int,
    quant_max: int,
    has_customized_qrange: bool,
    dtype: torch.dtype,
    reduce_range: bool,
) -> tuple[int, int]:
    """The least and the greatest level."""
    from torch.ao.quantization.observer import _LEVELS

    if has_customized_qrange:
        low, high = (0, 2**32 - 1) if dtype in (torch.qint32, torch.int32) else (0, 255)
        if quant_min is not None and quant_max is not None:
            low, high = quant_min, quant_max
        count = high - low + 1
        limit = 2**32 if dtype in (torch.qint32, torch.int32) else 256
        if not 0 < count <= limit:
            raise AssertionError(
                "quantization range should be positive and not exceed the maximum bit range "
                f"(={limit})."
            )
        return (low // 2, high // 2) if reduce_range else (low, high)
    if dtype not in _LEVELS:
        return 0, 15
    return _LEVELS[dtype][reduce_range]


def has_no_children_ignoring_parametrizations(module: nn.Module) -> bool:
    """Whether a module has no parts but its parametrizations."""
    if len(module._modules) == 0:
        return True
    from torch.nn.utils.parametrize import is_parametrized

    return is_parametrized(module) and len(module._modules) == 1


def _parent_name(target: str) -> tuple[str, str]:
    """The path of the module that owns a name, and the last part of the name."""
    path, _, name = target.rpartition(".")
    return path, name


def _get_path_of_module(root: nn.Module, submodule: nn.Module) -> str | None:
    """The dotted name of a part."""
    return next((name for name, part in root.named_modules() if part is submodule), None)


def _get_signature_locals(f: Callable, loc: dict[str, object]) -> dict[str, object]:
    """The values of a function's parameters among local variables."""
    import inspect

    return {name: value for name, value in loc.items() if name in inspect.signature(f).parameters}


def _get_default_kwargs(f: Callable) -> dict[str, object]:
    """The defaults of a function; () and {} for variable parameters."""
    import inspect

    empty = {inspect.Parameter.VAR_POSITIONAL: (), inspect.Parameter.VAR_KEYWORD: {}}
    parameters = inspect.signature(f).parameters.values()
    optional = [p for p in parameters if p.kind in empty or p.default is not p.empty]
    return {p.name: empty.get(p.kind, p.default) for p in optional}


def _normalize_kwargs(func: Callable, loc: dict[str, object]) -> dict[str, object]:
    """All keyword arguments of a call, defaults included."""
    given = _get_signature_locals(func, loc)
    return {name: given.get(name, value) for name, value in _get_default_kwargs(func).items()}


def validate_qmin_qmax(quant_min: int, quant_max: int) -> None:
    """Refuses a range of levels without zero."""
    if not quant_min <= 0 <= quant_max:
        raise AssertionError("Used-specified quantization range must include 0.")
    if quant_min >= quant_max:
        raise AssertionError("qmin must be strictly less than qmax for user-specified range.")


def determine_qparams(
    min_val: Tensor,
    max_val: Tensor,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    eps: Tensor,
    has_customized_qrange: bool,
    qscheme: torch.qscheme = torch.per_tensor_affine,
) -> tuple[Tensor, Tensor]:
    """Scale and zero point of the grid that covers a range."""
    if not check_min_max_valid(min_val, max_val):
        device = min_val.device
        return torch.tensor([1.0], device=device), torch.tensor([0], device=device)
    from torch.ao.quantization.observer import UniformQuantizationObserverBase

    frame = _Frame()
    frame.quant_min, frame.quant_max, frame.dtype = quant_min, quant_max, dtype
    frame.eps, frame.qscheme, frame.has_customized_qrange = eps, qscheme, has_customized_qrange
    frame._middle = UniformQuantizationObserverBase._middle.__get__(frame)
    scale, zero = UniformQuantizationObserverBase._calculate_qparams(frame, min_val, max_val)
    if scale.dim() == 0:
        scale, zero = scale.reshape(1), zero.reshape(1)
    return scale.to(torch.double), zero.to(torch.int64)


class _Frame:
    """What the computation of a grid reads of an observer."""


def get_fqn_to_example_inputs(
    model: nn.Module, example_inputs: tuple[Any, ...]
) -> dict[str, tuple[Any, ...]]:
    """The inputs that each part of a model sees in one run, by the name of the part."""
    found: dict[str, tuple[Any, ...]] = {}
    handles = []
    for name, module in model.named_modules():

        def note(
            mod: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], name: str = name
        ) -> None:
            found[name] = (*args, *kwargs.values())

        handles.append(module.register_forward_pre_hook(note, with_kwargs=True))
    try:
        model(*example_inputs)
    finally:
        for handle in handles:
            handle.remove()
    return found
