"""torch.cuda.make_graphed_callables: a forward pass and its backward pass are recorded as
one graph each, and run as replays from then on. A replay reads and writes the memory of the
recording, so arguments are copied into the recorded ones and results are the recorded tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch.utils import _pytree as pytree

__all__ = ["make_graphed_callables"]


@dataclass
class _Recording:
    """One callable with the tensors that its graphs read and write."""

    function: Callable[..., object]
    arguments: tuple[object, ...]
    inputs: list[torch.Tensor]  # the tensors among the arguments
    parameters: list[torch.Tensor]  # of a module, that a gradient is computed for
    training: bool | None = None
    forward: torch.cuda.CUDAGraph = field(default_factory=torch.cuda.CUDAGraph)
    backward: torch.cuda.CUDAGraph | None = None
    outputs: list[torch.Tensor] = field(default_factory=list)
    spec: pytree.TreeSpec | None = None  # the shape of what the callable returns
    grad_outputs: list[torch.Tensor | None] = field(default_factory=list)
    grad_inputs: list[torch.Tensor | None] = field(default_factory=list)

    @property
    def leaves(self) -> list[torch.Tensor]:
        return [*self.inputs, *self.parameters]


def _check_module(module: torch.nn.Module) -> None:
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks)
    if any(hooks):
        raise RuntimeError(
            "Modules must not have hooks registered at the time they are passed. However, "
            "registering hooks on modules after passing them through make_graphed_callables is "
            "allowed."
        )
    if any(buffer.requires_grad for buffer in module.buffers()):
        raise RuntimeError(
            "In any module passed to make_graphed_callables(), only parameters may be trainable. "
            "All buffers must have ``requires_grad=False``."
        )


def _prepared(function: Callable[..., object], arguments: Sequence[object]) -> _Recording:
    inputs = pytree.tree_leaves(tuple(arguments))
    if not all(isinstance(leaf, torch.Tensor) for leaf in inputs):
        raise TypeError(
            "In the beta API, sample_args for each callable must contain only Tensors. Other types "
            "are not allowed."
        )
    parameters: list[torch.Tensor] = []
    training = None
    if isinstance(function, torch.nn.Module):
        _check_module(function)
        parameters = [p for p in function.parameters() if p.requires_grad]
        training = function.training
        function = function.forward
    return _Recording(function, tuple(arguments), inputs, parameters, training)


def _gradients(recording: _Recording, outputs, grad_outputs, allow_unused) -> list[object]:
    """Gradients of all leaves that want one; None for the others."""
    wanted = [leaf for leaf in recording.leaves if leaf.requires_grad]
    found = iter(
        torch.autograd.grad(
            [out for out in outputs if out.requires_grad],
            wanted,
            [grad for grad in grad_outputs if grad is not None],
            only_inputs=True,
            allow_unused=allow_unused,
        )
    )
    return [next(found) if leaf.requires_grad else None for leaf in recording.leaves]


def _empty_like_grads(outputs: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    return [torch.empty_like(out) if out.requires_grad else None for out in outputs]


def _differentiable(recording: _Recording, outputs: Sequence[torch.Tensor]) -> bool:
    return any(out.requires_grad for out in outputs) and any(
        leaf.requires_grad for leaf in recording.leaves
    )


def _warm_up(recordings, count, allow_unused) -> None:
    """Lets libraries choose their kernels and allocate what they keep, which a recording must not
    contain."""
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        for recording in recordings:
            for _ in range(count):
                outputs = pytree.tree_leaves(recording.function(*recording.arguments))
                if _differentiable(recording, outputs):
                    _gradients(recording, outputs, _empty_like_grads(outputs), allow_unused)
    torch.cuda.synchronize()


def _record(recordings, pool, allow_unused) -> None:
    """The forward passes in their order, the backward passes in the reverse one: memory that they
    share is then live as it is when they run."""
    for recording in recordings:
        with torch.cuda.graph(recording.forward, pool=pool):
            result = recording.function(*recording.arguments)
        recording.outputs, recording.spec = pytree.tree_flatten(result)
    for recording in reversed(recordings):
        if not _differentiable(recording, recording.outputs):
            continue
        recording.grad_outputs = _empty_like_grads(recording.outputs)
        recording.backward = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recording.backward, pool=pool):
            recording.grad_inputs = _gradients(
                recording, recording.outputs, recording.grad_outputs, allow_unused
            )


def _replaying(recording: _Recording) -> Callable[..., object]:
    count = len(recording.inputs)

    class Replay(torch.autograd.Function):
        """The two graphs as one step of a larger computation."""

        @staticmethod
        def forward(ctx, *leaves) -> tuple[torch.Tensor, ...]:
            for static, given in zip(recording.inputs, leaves[:count], strict=True):
                if static.data_ptr() != given.data_ptr():
                    static.copy_(given)
            recording.forward.replay()
            return tuple(out.detach() for out in recording.outputs)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, *grads) -> tuple[torch.Tensor | None, ...]:
            if recording.backward is None:
                return (None,) * (count + len(recording.parameters))
            for static, given in zip(recording.grad_outputs, grads, strict=True):
                if static is not None and static.data_ptr() != given.data_ptr():
                    static.copy_(given)
            recording.backward.replay()
            return tuple(g if g is None else g.detach() for g in recording.grad_inputs)

    def call(*arguments) -> object:
        inputs = pytree.tree_leaves(arguments)
        if len(inputs) != count:
            raise RuntimeError(
                f"a graphed callable was recorded with {count} tensors, but got {len(inputs)}"
            )
        outputs = Replay.apply(*inputs, *recording.parameters)
        return pytree.tree_unflatten(list(outputs), recording.spec)

    return call


def _installed(module: torch.nn.Module, recording: _Recording) -> torch.nn.Module:
    """The module with replays for its forward, as long as it is in the mode it was recorded in."""
    replay, original = _replaying(recording), recording.function

    def forward(*arguments, **keywords) -> object:
        if module.training == recording.training and not keywords:
            return replay(*arguments)
        return original(*arguments, **keywords)

    module.forward = forward
    return module


def make_graphed_callables(
    callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None
) -> object:
    """Replays in the place of callables; one for one, a tuple for a tuple."""
    if torch.is_autocast_enabled("cuda") and torch.is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables does not support the autocast caching. Please set "
            "`cache_enabled=False`."
        )
    single = not isinstance(callables, tuple)
    functions = (callables,) if single else callables
    samples = (sample_args,) if single else sample_args
    if len(functions) != len(samples):
        raise ValueError(
            f"make_graphed_callables: {len(functions)} callables but {len(samples)} sample_args"
        )
    recordings = [_prepared(f, a) for f, a in zip(functions, samples, strict=True)]
    _warm_up(recordings, num_warmup_iters, allow_unused_input)
    _record(
        recordings, torch.cuda.graph_pool_handle() if pool is None else pool, allow_unused_input
    )
    made = [
        _installed(f, r) if isinstance(f, torch.nn.Module) else _replaying(r)
        for f, r in zip(functions, recordings, strict=True)
    ]
    return made[0] if single else tuple(made)
