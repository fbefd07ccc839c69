"""The function that runs compiled graphs: one autograd node around the forward and backward graphs,
writes to inputs after the forward graph, outputs made again from what they share memory with."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch._functorch._aot_autograd.alias import alias_of
from torch._functorch._aot_autograd.schemas import (
    OutputType,
    ViewAndMutationMeta,
)
from torch._functorch._aot_autograd.subclasses import Layout

__all__ = ["CompiledBackward", "assembled", "boxed", "make_boxed_func", "runtime_function"]

_TWICE = "torch.compile with aot_autograd does not currently support double backward"


def make_boxed_func(f: Callable) -> Callable[[list[object]], object]:
    """A function of a list of arguments. The list may be emptied by the callee, so that arguments
    are freed when they are used for the last time."""

    def g(args: list[object]) -> object:
        return f(*args)

    g._boxed_call = True
    return g


def boxed(f: Callable) -> Callable[[list[object]], object]:
    """The same; a function that is boxed stays as it is."""
    return f if getattr(f, "_boxed_call", False) else make_boxed_func(f)


def _as_list(values: object) -> list[object]:
    if isinstance(values, (list, tuple)):
        return list(values)
    return [values]


# ---- after the forward graph ----------------------------------------------------------------


def _write_inputs(
    args: Sequence[object], updated: Sequence[Tensor], meta: ViewAndMutationMeta
) -> None:
    """Gives inputs the values and shapes that the function gave them."""
    for index, value in zip(meta.written, updated, strict=True):
        info, target = meta.input_info[index], args[index]
        if info.mutates_storage_metadata:
            with torch.no_grad():
                target.set_(value)
            continue
        if info.mutates_metadata:
            target.as_strided_(value.size(), value.stride(), value.storage_offset())
        if not info.mutates_data:
            continue
        if info.seen_by_autograd or not target.requires_grad:
            target.copy_(value)
        elif info.mutations_hidden_from_autograd:
            target.detach().copy_(value)
        else:
            with torch.no_grad():
                target.copy_(value)


def _made_outputs(
    args: Sequence[object], values: Sequence[object], meta: ViewAndMutationMeta
) -> list[object]:
    """The outputs, those that share memory with others made from them."""
    count = len(meta.output_info)
    outputs, bases = list(values[:count]), values[count:]
    for i, info in enumerate(meta.output_info):
        kind = info.output_type
        if kind is OutputType.is_input:
            outputs[i] = args[info.base_idx]
        elif kind is OutputType.alias_of_input:
            outputs[i] = alias_of(args[info.base_idx], info, values[i])
        elif kind is OutputType.alias_of_intermediate_base_is_user_output:
            outputs[i] = alias_of(values[info.base_idx], info, values[i])
        elif info.is_alias:
            outputs[i] = alias_of(bases[info.base_idx], info, values[i])
    return outputs


def runtime_function(
    call: Callable[[list[object]], Sequence[object]],
    meta: ViewAndMutationMeta,
) -> Callable[[list[object]], list[object]]:
    """A boxed function of the flat arguments: runs the graph, writes inputs, makes outputs."""
    written = meta.written
    in_graph = meta.written_in_graph
    plain = not written and not any(o.is_alias for o in meta.output_info)
    needed = {o.base_idx for o in meta.output_info if o.output_type in _FROM_INPUTS}
    needed |= {*written, *in_graph}
    count = len(meta.output_info)

    def run_plain(args: list[object]) -> list[object]:
        values = call(args)
        return values if type(values) is list and len(values) == count else list(values[:count])

    def run(args: list[object]) -> list[object]:
        kept = {i: args[i] for i in needed}
        values = call(args)
        if in_graph and meta.is_train:
            for i in in_graph:
                torch.autograd.graph.increment_version(kept[i])
        if plain:
            return list(values[:count])
        if written:
            _write_inputs(kept, values[: len(written)], meta)
        return _made_outputs(kept, values[len(written) :], meta)

    chosen = run if needed or not plain else run_plain
    if chosen is run_plain and isinstance(call, _IN_CPP):
        chosen = call  # its list has these outputs and nothing else
    if meta.grad_enabled_mutation is not None:
        chosen = _leaving_grad_mode(chosen, meta.grad_enabled_mutation)
    if chosen is not call:
        chosen._boxed_call = True
    return chosen


def _leaving_grad_mode(call: Callable, mode: bool) -> Callable[[list[object]], list[object]]:
    """A function after which the gradient mode is the one that the program set."""

    def run(args: list[object]) -> list[object]:
        found = call(args)
        torch._C._set_grad_enabled(mode)
        return found

    return run


_IN_CPP = (torch._C._aot.TrainedFunction, torch._C._aot.UntrainedFunction)
_FROM_INPUTS = (OutputType.is_input, OutputType.alias_of_input)


# ---- the autograd node ----------------------------------------------------------------------


class CompiledBackward:
    """A backward graph: compiled when it is first needed."""

    def __init__(self, compile: Callable[[], Callable]) -> None:
        self._compile = compile
        self._compiled: Callable[[list[object]], Sequence[object]] | None = None

    def __call__(self, args: list[object]) -> list[object]:
        if self._compiled is None:
            self._compiled = boxed(self._compile())
        return _as_list(self._compiled(args))


def _no_view(value: Tensor) -> Tensor:
    """A value that may be a view inside of the graph, as memory of its own."""
    return torch._unsafe_view(value, value.size()) if value._is_view() else value


class _Tangents:
    """Brings tangents into the form that was traced: operators of the graph rely on strides."""

    def __init__(self, meta: ViewAndMutationMeta) -> None:
        self.layout = meta.tangent_layout
        self.strides = [form.strides for form in meta.tangent_forms]
        self.contiguous = [form.contiguous for form in meta.tangent_forms]

    def __call__(self, tangents: Sequence[Tensor]) -> list[Tensor]:
        if not self.layout.plain or any(type(t) is not Tensor for t in tangents):
            self.layout.check(tangents, "tangent")
            tangents = self.layout.flatten(tangents)
        return [
            t if t.layout is torch.strided and t.stride() == wanted else self._laid_out(i, t)
            for i, (t, wanted) in enumerate(zip(tangents, self.strides, strict=True))
        ]

    def _laid_out(self, place: int, tangent: Tensor) -> Tensor:
        wanted = self.strides[place]
        if tangent.layout is not torch.strided:
            return tangent
        if wanted is None:
            return tangent.contiguous() if self.contiguous[place] else tangent
        shape, dtype, device = tangent.shape, tangent.dtype, tangent.device
        return torch.empty_strided(shape, wanted, dtype=dtype, device=device).copy_(tangent)


def autograd_function(
    forward: Callable[[list[object]], Sequence[object]],
    backward: CompiledBackward,
    meta: ViewAndMutationMeta,
    num_syms: int,
) -> Callable[[list[object]], Sequence[object]]:
    """A boxed function that runs the forward graph as one differentiable operator."""
    differentiable = meta.differentiable
    laid_out = _Tangents(meta)
    gradients = _restored(meta.gradient_layout)
    returned = _restored(meta.return_layout)
    unwraps = None if meta.input_layout.plain else meta.input_layout.flatten
    dense_returns = sum(1 if w is None else w.count() for w in meta.return_layout.wrappers)

    class CompiledFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, hidden: list[object], args: list[object], *tensors: Tensor):
            values = forward(args)
            if not isinstance(values, (list, tuple)):
                values = [values]
            saved = values[dense_returns:]
            values = returned(values[:dense_returns])
            if num_syms:
                ctx.numbers = saved[len(saved) - num_syms :]
                saved = saved[: len(saved) - num_syms]
            ctx.save_for_backward(*[t.detach() if t._is_view() else t for t in saved])
            hidden.extend(values)
            return tuple(_no_view(values[place]) for place in differentiable)

        @staticmethod
        def backward(ctx, *tangents: Tensor):
            if torch._C._are_functorch_transforms_active():
                raise RuntimeError(
                    "It looks like you're trying to call a compiled backward function within "
                    "vmap/grad/vjp, which isn't supported. Try wrapping vmap inside torch.compile, "
                    "or skip compiling the backward function."
                )
            args: list[object] = list(ctx.numbers) if num_syms else []
            args.extend(ctx.saved_tensors)
            ctx.maybe_clear_saved_tensors()
            args.extend(laid_out(tangents))
            if not torch.is_grad_enabled():
                return (None, None, *gradients(backward(args)))
            with torch.no_grad():
                grads = gradients(backward(args))
            return (None, None, *_not_twice(grads))

    def call(args: list[object]) -> list[object]:
        hidden: list[object] = []
        tensors = list(args)
        if unwraps is not None:
            args[:] = unwraps(args)
        if torch.is_grad_enabled():
            found = CompiledFunction.apply(hidden, args, *tensors)
        else:
            with torch.enable_grad():
                found = CompiledFunction.apply(hidden, args, *tensors)
        for place, value in zip(differentiable, found, strict=True):
            hidden[place] = value
        return hidden

    call._boxed_call = True
    layouts = (meta.input_layout, meta.return_layout, meta.tangent_layout, meta.gradient_layout)
    if not all(layout.plain for layout in layouts):
        return call
    forms = list(zip(laid_out.strides, laid_out.contiguous, strict=True))
    return torch._C._aot.TrainedFunction(
        forward, backward, call, laid_out, _not_twice, dense_returns, num_syms, differentiable,
        forms,
    )  # fmt: skip


def _restored(layout: Layout) -> Callable[[Sequence[object]], Sequence[object]]:
    """What puts wrappers together again; values without wrappers stay as they are."""
    return (lambda values: values) if layout.plain else layout.restore


def _not_twice(grads: Sequence[object]) -> list[object]:
    """Gradients with a history that says why there is none."""
    anchor = torch.empty(0, requires_grad=True)
    tensors = [i for i, g in enumerate(grads) if isinstance(g, Tensor)]
    anchored = _Anchored.apply(anchor, *(grads[i] for i in tensors))
    found = list(grads)
    for i, value in zip(tensors, anchored, strict=True):
        found[i] = value
    return found


class _Anchored(torch.autograd.Function):
    """Values that seem to come from a tensor that needs a gradient."""

    @staticmethod
    def forward(ctx: object, anchor: Tensor, *values: Tensor) -> tuple[Tensor, ...]:
        return tuple(v.detach() for v in values)

    @staticmethod
    def backward(ctx: object, *grads: Tensor) -> None:
        raise RuntimeError(_TWICE)


# ---- both together --------------------------------------------------------------------------


def assembled(
    meta: ViewAndMutationMeta, forward: Callable, backward: CompiledBackward | None = None
) -> Callable[[list[object]], list[object]]:
    """The runtime around compiled graphs: a boxed function of the flat arguments."""
    if backward is None:
        return runtime_function(_untrained(forward, meta), meta)
    call = autograd_function(forward, backward, meta, meta.num_symints_saved_for_bw)
    return runtime_function(call, meta)


def _untrained(
    call: Callable, meta: ViewAndMutationMeta
) -> Callable[[list[object]], Sequence[object]]:
    """A graph without a derivative, on wrappers as on plain tensors."""
    inputs, returned = meta.input_layout, meta.return_layout
    # A compiled graph may call operators that would be recorded.
    recorded = any(info.requires_grad for info in meta.input_info)
    plain = inputs.plain and returned.plain
    count = meta.num_forward_returns if plain else -1
    run = torch._C._aot.UntrainedFunction(call, count, recorded)

    def run_wrapped(args: list[object]) -> Sequence[object]:
        with torch.no_grad() if recorded else contextlib.nullcontext():
            args[:] = inputs.flatten(args)
            return returned.restore(run(args))

    return run if plain else run_wrapped
