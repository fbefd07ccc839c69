"""Operators that treat elements one by one, copies, and tensors made like another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.distributed.tensor._rules import base_name, rule
from torch.distributed.tensor._signature import Letters, Signature, Strategy, broadcast_dims
from torch.distributed.tensor.placement_types import Replicate

if TYPE_CHECKING:
    import torch
    from torch.distributed.tensor._dispatch import Call, LocalCall

_LINEAR = ("sum", "avg")
# How operators commute with sums: in all tensors at once, in each tensor alone, in the first alone.
COMMUTES = {
    **dict.fromkeys(("add", "sub", "rsub", "copy", "lerp", "where"), "all"),
    "mul": "each",
    **dict.fromkeys(
        ("div", "neg", "_to_copy", "positive", "mul_scalar", "real", "imag", "_conj", "conj"),
        "first",
    ),
}
_IDENTITIES = "clone detach alias contiguous lift_fresh lift"


def linear_in(name: str, tensors: list[int], numbers: bool) -> list[tuple[frozenset, tuple]]:
    """The sets of tensors in which an operator commutes with sums. `numbers` says that an operand
    is a plain number, which a sum would add once for each part."""
    kind = COMMUTES.get(name)
    if not tensors or kind is None:
        return []
    if kind == "all":
        if numbers and name != "copy":
            return [(frozenset(tensors), ("avg",))]
        return [(frozenset(tensors), _LINEAR)] if name != "where" else []
    if kind == "first" or len(tensors) == 1:
        return [(frozenset(tensors[:1]), _LINEAR)]
    return [(frozenset([i]), _LINEAR) for i in tensors]


@rule("_pointwise masked_fill fill zero copy _to_copy where lerp addcmul addcdiv")
def pointwise(call: Call) -> Signature:
    """Every dimension of the result may be cut; what is broadcast stays whole."""
    letters = Letters()
    result = letters.dims(call.results[0].shape)
    inputs = {i: broadcast_dims(letters, result, spec.shape) for i, spec in enumerate(call.tensors)}
    name = base_name(call.op)
    numbers = any(
        isinstance(value, (int, float, complex)) and key in ("other", "end", "value")
        for key, value in call.arguments.items()
    )
    if name == "div" and call.arguments.get("rounding_mode") is not None:
        name = ""
    return Signature(
        inputs,
        dict.fromkeys(range(len(call.results)), result),
        letters.sizes,
        linear=linear_in(name, list(inputs), numbers),
    )


@rule("log_sigmoid_forward log_sigmoid_backward")
def log_sigmoid(call: Call) -> Signature:
    """Elements one by one; the buffer for the backward pass may be empty."""
    letters = Letters()
    own = letters.dims(call.tensors[0].shape)
    empty = letters.dims((0,))

    def dims(meta: Any) -> tuple:
        return own if meta.shape == call.tensors[0].shape else empty

    inputs = {i: dims(spec) for i, spec in enumerate(call.tensors)}
    outputs = {o: dims(meta) for o, meta in enumerate(call.results)}
    whole = {(o, letter) for o in outputs for letter in letters.sizes if outputs[o] is empty}
    return Signature(inputs, outputs, letters.sizes, frozen={empty[0][0]}, whole=whole)


@rule(_IDENTITIES)
def identity(call: Call) -> Signature:
    """The result lies as the argument, whatever that is."""
    made = pointwise(call)
    kinds = {p for p in call.tensors[0].placements if p.is_partial()}
    made.linear, made.extra = [], [Strategy((p,), (p,)) for p in kinds]
    return made


@rule("empty_like zeros_like ones_like full_like")
def like(call: Call) -> Signature:
    """The argument gives its geometry only, so parts of a sum need no reduction."""
    made = pointwise(call)
    made.linear = []
    kinds = {p for p in call.tensors[0].placements if p.is_partial()}
    made.extra = [Strategy((p,), (Replicate(),)) for p in kinds]
    return made


@rule("new_empty new_zeros new_ones new_full new_empty_strided")
def new(call: Call) -> Signature:
    """A tensor of the same shape is placed in the same way, any other is whole."""
    letters = Letters()
    result = letters.dims(call.results[0].shape)
    same = tuple(call.results[0].shape) == call.shape("self")
    own = result if same else letters.dims(call.shape("self"))
    kinds = {p for p in call.tensors[0].placements if same is False or p.is_partial()}
    made = Signature({0: own}, {0: result}, letters.sizes, sizes={"size": 0})
    made.extra = [Strategy((p,), (Replicate(),)) for p in kinds]
    if call.op._schema.name.endswith("new_empty_strided"):
        made.local = _new_empty_strided
    return made


def _new_empty_strided(local: LocalCall) -> torch.Tensor:
    self, size = local.args[:2]
    rest = {key: value for key, value in local.kwargs.items() if key != "stride"}
    return self.new_empty(size, **rest)


@rule("native_dropout_backward")
def dropout_backward(call: Call) -> Signature:
    """A product."""
    made = pointwise(call)
    made.linear = [(frozenset([0]), _LINEAR)]
    return made
