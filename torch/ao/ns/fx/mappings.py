"""Which operators are forms of one another: a float layer, the one that is observed or trained, and
the one that computes on levels. Families are not listed but joined: from the tables that quantize
modules, from the backend's patterns, and from the few names below that no table connects."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable

import torch
from torch import nn
from torch.ao.nn import intrinsic, qat, quantized
from torch.ao.nn.intrinsic import qat as intrinsic_qat
from torch.ao.nn.intrinsic import quantized as intrinsic_quantized
from torch.ao.nn.quantized import dynamic
from torch.ao.ns.fx.ns_types import NSNodeTargetType
from torch.ao.quantization import quantization_mappings as tables
from torch.ao.quantization.backend_config import get_native_backend_config
from torch.nn import functional

Families = dict[str, set[NSNodeTargetType]]
_ops = torch.ops.quantized

# Methods that only move values, and questions about shapes: nothing to compare.
_MOVES = (
    "to dequantize reshape unsqueeze unsqueeze_ transpose squeeze squeeze_ size shape resize_ "
    "repeat_interleave repeat permute numel mean detach detach_ contiguous clamp chunk view"
)
_JOINED: tuple[tuple[NSNodeTargetType, ...], ...] = (
    (nn.Conv1d, functional.conv1d, _ops.conv1d, _ops.conv1d_relu, intrinsic.ConvReLU1d),
    (nn.Conv2d, functional.conv2d, _ops.conv2d, _ops.conv2d_relu, intrinsic.ConvReLU2d),
    (nn.Conv3d, functional.conv3d, _ops.conv3d, _ops.conv3d_relu, intrinsic.ConvReLU3d),
    (nn.Linear, functional.linear, _ops.linear, _ops.linear_relu, intrinsic.LinearReLU),
    (nn.Linear, _ops.linear_dynamic, _ops.linear_relu_dynamic, _ops.linear_dynamic_fp16),
    (nn.Linear, intrinsic.LinearLeakyReLU, intrinsic.LinearTanh, intrinsic.LinearBn1d),
    (nn.ReLU, functional.relu, torch.relu, "relu", "relu_", functional.relu_, torch.relu_),
    (nn.BatchNorm2d, _ops.batch_norm2d, _ops.batch_norm2d_relu, intrinsic.BNReLU2d),
    (nn.BatchNorm3d, _ops.batch_norm3d, _ops.batch_norm3d_relu, intrinsic.BNReLU3d),
    (torch.add, operator.add, "add", "add_", _ops.add, _ops.add_relu),
    (torch.mul, operator.mul, "mul", "mul_", _ops.mul, _ops.mul_relu),
    (torch.matmul, "matmul", _ops.matmul),
    (nn.Sigmoid, torch.sigmoid, functional.sigmoid, "sigmoid", "sigmoid_", quantized.Sigmoid),
    (nn.Tanh, torch.tanh, functional.tanh, "tanh", "tanh_"),
    (nn.Hardsigmoid, functional.hardsigmoid, "hardsigmoid", "hardsigmoid_"),
    (nn.Hardswish, functional.hardswish, _ops.hardswish),
    (nn.ELU, functional.elu, _ops.elu),
    (nn.LeakyReLU, functional.leaky_relu, _ops.leaky_relu),
    (nn.LayerNorm, functional.layer_norm, _ops.layer_norm),
    (nn.GroupNorm, functional.group_norm, _ops.group_norm),
    (functional.instance_norm, _ops.instance_norm),
    (nn.Dropout, functional.dropout, _ops.dropout),
    (nn.Softmax, functional.softmax),
    (nn.Embedding, functional.embedding),
    (nn.EmbeddingBag, functional.embedding_bag),
    *((getattr(nn, f"{kind}Pool{d}d"), getattr(functional, f"{name}_pool{d}d"))
      for kind, name in (("Max", "max"), ("Avg", "avg"), ("AdaptiveAvg", "adaptive_avg"))
      for d in (1, 2, 3)),
    (nn.Hardtanh, functional.hardtanh, functional.hardtanh_),
    (nn.ReLU6, functional.relu6),
    (nn.PixelShuffle, functional.pixel_shuffle),
    (nn.PixelUnshuffle, functional.pixel_unshuffle),
)  # fmt: skip
_CONV = ("ConvBn", "ConvBnReLU", "ConvReLU")


def _pairs_of_tables() -> Iterable[tuple[NSNodeTargetType, ...]]:
    for table in (
        tables.get_default_static_quant_module_mappings(),
        tables.get_default_static_quant_reference_module_mappings(),
        tables.get_default_dynamic_quant_module_mappings(),
        tables.get_embedding_qat_module_mappings(),
        tables.get_embedding_static_quant_module_mappings(),
        tables.get_default_float_to_quantized_operator_mappings(),
    ):
        yield from table.items()
    for d in (1, 2, 3):
        for name in _CONV:
            yield getattr(nn, f"Conv{d}d"), getattr(intrinsic, f"{name}{d}d")
            yield getattr(nn, f"Conv{d}d"), getattr(intrinsic_qat, f"{name}{d}d")
    yield nn.Linear, qat.dynamic.Linear, intrinsic_quantized.dynamic.LinearReLU, dynamic.Linear


def get_unmatchable_types_map() -> dict[str, set[NSNodeTargetType]]:
    """Operators that are passed over."""
    return {
        "funs_unmatchable": {torch.quantize_per_tensor, operator.getitem},
        "mods_unmatchable": {nn.Identity},
        "meths_unmatchable": set(_MOVES.split()),
    }


def _patterns() -> list[NSNodeTargetType]:
    """The single operators that the backend knows."""
    config = get_native_backend_config()
    return [p for p in config._pattern_complex_format_to_config if not isinstance(p, tuple)]


@functools.cache
def _joined() -> tuple[frozenset[NSNodeTargetType], ...]:
    passed = set().union(*get_unmatchable_types_map().values())
    family: dict[NSNodeTargetType, set[NSNodeTargetType]] = {}
    lists = [*_JOINED, *_pairs_of_tables(), *((p,) for p in _patterns() if p not in passed)]
    for related in lists:
        together: set[NSNodeTargetType] = set()
        for op in related:
            together |= family.get(op, {op})
        for op in together:
            family[op] = together
    return tuple({id(f): frozenset(f) for f in family.values()}.values())


def get_base_name_to_sets_of_related_ops() -> Families:
    """The families by name. The sets are the caller's own."""
    return {str(i): set(members) for i, members in enumerate(_joined())}


def get_base_name_for_op(
    base_name_to_sets_of_related_ops: Families, op: NSNodeTargetType
) -> str | None:
    """The name of the family of an operator."""
    for name, members in base_name_to_sets_of_related_ops.items():
        if op in members:
            return name
    return None


def add_op_to_sets_of_related_ops(
    base_name_to_sets_of_related_ops: Families,
    op: NSNodeTargetType,
    related_op: NSNodeTargetType | None,
) -> None:
    """Adds an operator to the family of another one, or as a family of its own."""
    if related_op is None:
        number = len(base_name_to_sets_of_related_ops)
        base_name_to_sets_of_related_ops[str(number)] = {op}
        return
    name = get_base_name_for_op(base_name_to_sets_of_related_ops, related_op)
    if name is None:
        raise AssertionError(f"{related_op} was not found among the related operators")
    base_name_to_sets_of_related_ops[name].add(op)


def _is_module(op: NSNodeTargetType) -> bool:
    return isinstance(op, type) and issubclass(op, nn.Module)


def get_node_type_to_io_type_map() -> dict[str, set[NSNodeTargetType]]:
    """What operators take and give: real values, levels, or either. Binary operators and
    concatenation are left out: a shadow has one input."""
    # The reals are the keys of the tables; what only moves or bounds values takes both.
    static = tables.get_default_static_quant_module_mappings()
    found = tables.get_default_dynamic_quant_module_mappings()
    functions = tables.get_default_float_to_quantized_operator_mappings()
    skipped = {nn.Embedding, nn.EmbeddingBag}
    levels = {op for op in static.values() if op not in (quantized.Embedding,)}
    levels -= {quantized.Quantize, quantized.DeQuantize, quantized.QFunctional}
    levels -= {quantized.EmbeddingBag}
    reals = ({*static, *found, *found.values()} - levels - skipped) | set(
        tables.get_default_qat_module_mappings().values()
    )
    reals |= {op for op in _joined_with(nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)
              if _is_module(op) and "quantized" not in op.__module__}  # fmt: skip
    products = {functional.conv1d, functional.conv2d, functional.conv3d, functional.linear}
    level_ops = {getattr(_ops, f"conv{d}d{r}") for d in (1, 2, 3) for r in ("", "_relu")}
    level_ops |= {_ops.linear, _ops.linear_relu, *functions.values()}
    either = {op for op in _patterns() if op not in reals and not isinstance(op, tuple)}
    either -= {*products, *functions, *levels, *skipped, nn.LSTM, nn.GRU, nn.GRUCell, nn.LSTMCell}
    binary = _joined_with(torch.add, torch.mul, torch.matmul)
    either_functions = {op for op in either if callable(op) and not _is_module(op)} | {torch.cat}
    return {
        "funs_io_type_fp32": products | set(functions) | {_ops.linear_dynamic},
        "funs_io_type_fp16": set(),
        "funs_io_type_int8": level_ops,
        "funs_io_type_fp32_or_int8": either_functions - binary,
        "mods_io_type_fp32": reals,
        "mods_io_type_int8": levels,
        "mods_io_type_fp32_or_int8": {op for op in either if _is_module(op)},
        "meths_io_type_fp32_or_int8": {op for op in either if isinstance(op, str)} - binary,
    }


def _joined_with(*ops: NSNodeTargetType) -> set[NSNodeTargetType]:
    return set().union(*(f for f in _joined() for op in ops if op in f))
