"""Reductions, and operators along a dimension that has to be whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.distributed.tensor._rules import base_name, listed, rule
from torch.distributed.tensor._signature import Dims, Letters, Signature
from torch.distributed.tensor.placement_types import Partial, _NormPartial

if TYPE_CHECKING:
    from torch.distributed.tensor._dispatch import Call

# How the results of parts are joined; operators that are not here need the dimension whole.
_JOINS = {
    "sum": "sum",
    "nansum": "sum",
    "mean": "even:avg",
    "amax": "nonempty:max",
    "amin": "nonempty:min",
    "max": "nonempty:max",
    "min": "nonempty:min",
    "prod": "nonempty:product",
}


def reduced(own: Dims, dims: list[int], ndim_out: int) -> Dims:
    """The letters of a reduction's result, with or without the reduced dimensions."""
    if ndim_out == len(own):
        return tuple(() if i in dims else dim for i, dim in enumerate(own))
    return tuple(dim for i, dim in enumerate(own) if i not in dims)


@rule(
    "sum nansum mean amax amin max.default min.default prod var std var_mean std_mean any all "
    "max.dim min.dim argmax argmin logsumexp median nanmedian mode kthvalue count_nonzero "
    "aminmax linalg_vector_norm norm.ScalarOpt_dim norm.Scalar",
    reads_floats=True,
)
def reduction(call: Call) -> Signature:
    """Reduced dimensions may be cut where parts can be joined."""
    letters = Letters()
    own = letters.dims(call.tensors[0].shape)
    name = base_name(call.op)
    dims = listed(call.arguments.get("dim"), len(own))
    if not own:
        dims = []
    gone = {own[i][0] for i in dims}
    made = Signature({0: own}, {}, letters.sizes)
    for o, meta in enumerate(call.results):
        made.outputs[o] = reduced(own, dims, len(meta.shape))
    join: str | Partial | None = _JOINS.get(name) if len(call.results) == 1 else None
    if name in ("linalg_vector_norm", "norm"):
        order = call.arguments.get("ord", call.arguments.get("p"))
        join = _NormPartial.of(2.0 if order is None else float(order))
        if join.reduce_op != "sum":
            join = f"nonempty:{join.reduce_op}"
    if join is None:
        made.frozen = gone
        return made
    made.reduces = dict.fromkeys(gone, join)
    if name in ("sum", "mean"):
        made.linear = [(frozenset([0]), ("sum", "avg"))]
    elif name in ("amax", "amin", "max", "min"):
        made.linear = [(frozenset([0]), (name[-3:],))]
    return made


@rule(
    "_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data cumsum cumprod "
    "logcumsumexp cummax cummin sort topk flip roll glu glu_backward renorm unfold "
    "_safe_softmax cumsum_backward diff"
)
def along(call: Call) -> Signature:
    """The named dimensions are frozen, all others free; tensors have equal numbers of
    dimensions."""
    letters = Letters()
    own = letters.dims(call.tensors[0].shape)
    dims = call.arguments.get("dims", call.arguments.get("dim", call.arguments.get("dimension")))
    frozen = listed(dims, len(own)) if own else []
    made = Signature({}, {}, letters.sizes, frozen={own[i][0] for i in frozen})
    for i, spec in enumerate(call.tensors):
        made.inputs[i] = _matched(letters, own, spec.shape, frozen, made.frozen)
    for o, meta in enumerate(call.results):
        made.outputs[o] = _matched(letters, own, meta.shape, frozen, made.frozen)
    return made


def _matched(
    letters: Letters, own: Dims, shape: tuple[int, ...], frozen: list[int], blocked: set[int]
) -> Dims:
    """The letters of a tensor like the first one, but for the length of frozen dimensions."""
    dims = []
    for i, size in enumerate(shape):
        if i < len(own) and (i not in frozen or letters.sizes[own[i][0]] == size):
            dims.append(own[i])
        else:
            letter = letters.new(size)
            blocked.add(letter)
            dims.append((letter,))
    return tuple(dims)
