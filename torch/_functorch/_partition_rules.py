"""What the partitioners know of a node: how much memory its value takes, and whether computing it a
second time in the backward pass is cheap."""

from __future__ import annotations

import functools
import operator

import torch
from torch import fx
from torch._functorch import config
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import CheckpointPolicy

__all__ = [
    "bytes_of",
    "is_cheap",
    "is_heavy",
    "is_random",
    "is_sym",
    "is_view",
    "must_recompute",
    "must_save",
    "runtime_of",
]

aten = torch.ops.aten

# Cheap although no tag says so: they move or make elements without arithmetic, or are pointwise in
# all but the schema.
_CHEAP = frozenset(
    """
    _to_copy alias arange as_strided broadcast_tensors cat clone constant_pad_nd copy detach
    diagonal empty empty_like empty_strided expand eye fill flip full full_like gather index
    index_select lift_fresh_copy masked_fill movedim native_dropout_backward new_empty new_full
    new_ones new_zeros ones ones_like permute repeat reshape roll scalar_tensor select
    select_backward slice slice_backward slice_scatter select_scatter split split_with_sizes squeeze
    stack sum_to_size t transpose tril triu unbind unfold unsqueeze view view_copy _unsafe_view
    where zeros zeros_like _softmax_backward_data _log_softmax_backward_data convert_element_type
    iota broadcast_in_dim native_layer_norm native_group_norm _softmax _log_softmax addcmul addcdiv
    gelu_backward silu_backward tanh_backward sigmoid_backward threshold_backward
    """.split()
)
_REDUCTIONS = frozenset(
    """
    sum mean amax amin max min prod var std var_mean std_mean all any argmax argmin logsumexp norm
    linalg_vector_norm native_layer_norm native_group_norm aminmax count_nonzero
    """.split()
)
_PRODUCTS = frozenset(
    """
    mm addmm bmm baddbmm mv addmv dot convolution convolution_backward _convolution
    _scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention
    _scaled_dot_product_flash_attention_for_cpu _flash_attention_forward _scaled_mm _int_mm
    """.split()
)


# Functions that cost a CPU several times what reading an element does.
_HEAVY = frozenset(
    """
    acos acosh asin asinh atan atan2 atanh cos cosh digamma elu erf erfc erfinv exp exp2 expm1 gelu
    lgamma log log10 log1p log2 log_sigmoid mish pow sigmoid silu sin sinh softplus tan tanh
    _log_softmax _softmax
    """.split()
)


def _name(node: fx.Node) -> str:
    packet = getattr(node.target, "overloadpacket", None)
    return "" if packet is None else packet.__name__


def is_sym(node: fx.Node) -> bool:
    """Whether the value is a symbolic number."""
    return isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool))


@functools.cache
def _tagged(target: object, tag: torch.Tag) -> bool:
    return isinstance(target, torch._ops.OpOverload) and tag in target.tags


def is_random(node: fx.Node) -> bool:
    """Whether the value changes from call to call."""
    return _tagged(node.target, torch.Tag.nondeterministic_seeded)


def is_view(node: fx.Node) -> bool:
    """Whether the value shares memory with an argument."""
    return isinstance(node.target, torch._ops.OpOverload) and bool(node.target.is_view)


def is_reduction(node: fx.Node) -> bool:
    """Whether many elements become few."""
    return _name(node) in _REDUCTIONS


def is_product(node: fx.Node) -> bool:
    """Whether the operator is bound by arithmetic and not by memory."""
    return _name(node) in _PRODUCTS


def is_cheap(node: fx.Node) -> bool:
    """Whether the value may be computed again: the operator reads and writes memory at most once
    per element, so that a compiler fuses it into what uses it."""
    if node.target is operator.getitem or is_sym(node):
        return True
    if is_random(node) or is_product(node) or node.op != "call_function":
        return False
    if is_reduction(node) and config.ban_recompute_reductions:
        return False
    if not config.ban_recompute_not_in_allowlist or config.aggressive_recomputation:
        return True
    return is_view(node) or _tagged(node.target, torch.Tag.pointwise) or _name(node) in _CHEAP


def is_heavy(node: fx.Node) -> bool:
    """Whether computing the value takes longer than reading it."""
    value = node.meta.get("val")
    on_cpu = isinstance(value, torch.Tensor) and value.device.type == "cpu"
    return on_cpu and _name(node) in _HEAVY and not config.aggressive_recomputation


def _policy(node: fx.Node) -> CheckpointPolicy | None:
    return node.meta.get("recompute")


def must_recompute(node: fx.Node) -> bool:
    """Whether a checkpoint asks for the value to be computed again."""
    return _policy(node) in (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)


def must_save(node: fx.Node) -> bool:
    """Whether a checkpoint asks for the value to be kept."""
    return _policy(node) == CheckpointPolicy.MUST_SAVE


def _hint(number: int | torch.SymInt) -> int:
    if isinstance(number, int):
        return number
    known = number.node.hint
    return 4096 if known is None else int(known)


def bytes_of(node: fx.Node) -> int:
    """The memory of a node's value; symbolic sizes count as their example."""
    total = 0
    for value in tree_leaves(node.meta.get("val", node.meta.get("tensor_meta"))):
        if isinstance(value, torch.Tensor):
            count = 1
            for length in value.shape:
                count *= _hint(length)
            total += count * value.dtype.itemsize
        elif isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            total += 8
    return total


def runtime_of(node: fx.Node) -> float:
    """An estimate of the time of an operator, in units of arithmetic."""
    estimator = config.activation_memory_budget_runtime_estimator
    if callable(estimator):
        return estimator(node)
    written = bytes_of(node)
    if not is_product(node):
        return float(written)
    # A product takes the inner length per element of its result.
    shapes = [
        a.meta["val"].shape for a in node.all_input_nodes if hasattr(a.meta.get("val"), "shape")
    ]
    inner = max((_hint(s[-1]) for s in shapes if len(s)), default=1)
    return float(written) * inner
