"""Normalisations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.distributed.tensor._rules import rule
from torch.distributed.tensor._signature import Dims, Letters, Signature

if TYPE_CHECKING:
    from torch.distributed.tensor._dispatch import Call, LocalCall


def _letters(call: Call) -> tuple[Letters, Dims, Dims, Dims]:
    """Letters of the input: all, those of the batch (with ones for the rest), and those that are
    normalised over, which stay whole."""
    letters = Letters()
    own = letters.dims(call.shape("input"))
    count = len(call.arguments["normalized_shape"])
    batch, inner = own[: len(own) - count], own[len(own) - count :]
    return letters, own, (*batch, *(((),) * count)), inner


def _each(call: Call, names: dict[str, Dims]) -> dict[int, Dims]:
    """Dimensions by position, of the arguments that are given."""
    found = {call.at(name): dims for name, dims in names.items() if call.at(name) >= 0}
    return dict(sorted(found.items()))


@rule("native_layer_norm _fused_rms_norm")
def layer_norm(call: Call) -> Signature:
    """Rows are independent."""
    letters, own, rows, inner = _letters(call)
    inputs = _each(call, {"input": own, "weight": inner, "bias": inner})
    outputs = {0: own, **dict.fromkeys(range(1, len(call.results)), rows)}
    return Signature(inputs, outputs, letters.sizes, frozen={dim[0] for dim in inner})


@rule("native_layer_norm_backward _fused_rms_norm_backward")
def layer_norm_backward(call: Call) -> Signature:
    """Gradients of weight and bias sum over rows."""
    letters, own, rows, inner = _letters(call)
    names = {"grad_out": own, "input": own, "mean": rows, "rstd": rows}
    inputs = _each(call, {**names, "weight": inner, "bias": inner})
    mask = call.arguments["output_mask"]
    wanted = [dims for dims, use in zip((own, inner, inner), mask, strict=False) if use]
    frozen = {dim[0] for dim in inner}
    sums = {letter: "sum" for letter in letters.sizes if letter not in frozen}
    return Signature(inputs, dict(enumerate(wanted)), letters.sizes, reduces=sums, frozen=frozen)


@rule("native_group_norm native_batch_norm _native_batch_norm_legit")
def whole_norm(call: Call) -> Signature:
    """Group norm: samples are independent. Batch norm needs the batch whole: all is frozen."""
    letters = Letters()
    grouped = "group" in call.op._schema.name
    own = letters.dims(call.tensors[0].shape)
    frozen = {dim[0] for dim in own[grouped:]}
    inputs, outputs = {0: own}, {0: own}
    for i, spec in enumerate(call.tensors[1:], 1):
        inputs[i] = letters.dims(spec.shape)
        frozen.update(dim[0] for dim in inputs[i])
    for o, meta in enumerate(call.results[1:], 1):
        dims = letters.dims(meta.shape)
        if grouped and meta.shape:
            dims = (own[0], *dims[1:])
        frozen.update(dim[0] for dim in dims[grouped:])
        outputs[o] = dims
    made = Signature(inputs, outputs, letters.sizes, frozen=frozen)
    if grouped:
        made.local = _with_own_samples
    return made


@rule("native_group_norm_backward")
def group_norm_backward(call: Call) -> Signature:
    """Samples are independent; gradients of weight and bias sum over them."""
    letters = Letters()
    own = letters.dims(call.shape("input"))
    samples, channels = own[0], own[1]
    groups = (samples, letters.dims(call.shape("mean"))[1])
    names = {"grad_out": own, "input": own, "mean": groups, "rstd": groups, "weight": (channels,)}
    mask = call.arguments["output_mask"]
    every = (own, (channels,), (channels,))
    wanted = [dims for dims, use in zip(every, mask, strict=True) if use]
    return Signature(
        _each(call, names),
        dict(enumerate(wanted)),
        letters.sizes,
        reduces={samples[0]: "sum"},
        frozen={letter for letter in letters.sizes if letter != samples[0]},
        local=_with_own_samples,
    )


def _with_own_samples(local: LocalCall) -> tuple:
    """Group norm is told the number of samples, which on a part is that of the part."""
    args = list(local.args)
    args[[a.name for a in local.op._schema.arguments].index("N")] = args[0].shape[0]
    return local.op(*args, **local.kwargs)
