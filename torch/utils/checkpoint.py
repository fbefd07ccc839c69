"""Checkpointing: the tensors that a part of the model saves for backward are not kept but computed
again when backward needs them.

There are two kinds. The re-entrant one runs the part without recording and, in backward, runs it
again and differentiates it by a nested backward pass. The other records as usual with hooks on
saved tensors: what is saved becomes a placeholder, and the first placeholder that backward opens
runs the part again to fill all of them.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import os
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch import _C
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]


class CheckpointError(RuntimeError):
    """The second run of a checkpointed part was not like the first."""


class DefaultDeviceType:
    """The device whose random state is kept where no tensor argument says which."""

    _default = "cuda"

    @staticmethod
    def set_device_type(device="cuda") -> None:
        """Sets it."""
        DefaultDeviceType._default = device

    @staticmethod
    def get_device_type() -> Any:
        """Its name."""
        return DefaultDeviceType._default


_early_stop = None
_debug = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable) -> Iterator[None]:
    """Whether a second run ends as soon as all that is needed has been computed."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled) -> Iterator[None]:
    """Overrides the debug argument of checkpoint inside the with statement."""
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before


# ---- state that both runs must share ----------------------------------------------------


def _tensors_in(value):
    """The tensors in nested lists, tuples and dicts, in no particular order."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, torch.Tensor):
            yield item
        elif isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, (list, tuple)):
            waiting.extend(item)


def get_device_states(*args) -> Any:
    """(device numbers, their random states) of the accelerators that the arguments live on."""
    indices = sorted(
        {t.get_device() for t in _tensors_in(args) if t.device.type not in ("cpu", "meta")}
    )
    return indices, [torch.cuda.get_rng_state(i) for i in indices]


def set_device_states(devices, states, *, device_type=None) -> None:
    """Puts the random states back."""
    for device, state in zip(devices, states, strict=False):
        torch.cuda.set_rng_state(state, device)


class _Surroundings:
    """What the first run found around it, in force again in the second: autocast and, where they
    are kept, the random states.
    """

    def __init__(self, keep_random, args) -> None:
        self.keep_random = keep_random
        if keep_random:
            self.cpu = torch.get_rng_state()
            self.devices, self.states = get_device_states(*args)
        self.autocast = _autocast_state()

    @contextlib.contextmanager
    def replay(self) -> Iterator[None]:
        with contextlib.ExitStack() as regions:
            for then, now in zip(self.autocast, _autocast_state(), strict=True):
                if then != now:
                    device_type, enabled, dtype = then
                    regions.enter_context(torch.autocast(device_type, dtype, enabled))
            if self.keep_random:
                regions.enter_context(self._random_states())
            yield

    @contextlib.contextmanager
    def _random_states(self) -> Iterator[None]:
        now = torch.get_rng_state()
        devices = [torch.cuda.get_rng_state(i) for i in self.devices]
        torch.set_rng_state(self.cpu)
        set_device_states(self.devices, self.states)
        try:
            yield
        finally:
            torch.set_rng_state(now)
            set_device_states(self.devices, devices)


def _autocast_state() -> list[tuple[str, bool, torch.dtype]]:
    return [
        (device_type, torch.is_autocast_enabled(device_type), torch.get_autocast_dtype(device_type))
        for device_type in ("cpu", "cuda")
    ]


def noop_context_fn() -> Any:
    """Contexts that do nothing, for both runs."""
    return contextlib.nullcontext(), contextlib.nullcontext()


# ---- the re-entrant kind ----------------------------------------------------------------


def detach_variable(inputs) -> tuple[object, ...]:
    """The inputs without their history; they require grad as before."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(
        t.detach().requires_grad_(t.requires_grad) if isinstance(t, torch.Tensor) else t
        for t in inputs
    )


def check_backward_validity(inputs) -> None:
    """Warns when no input requires grad: the re-entrant kind then gives no gradients at all."""
    if not any(isinstance(t, torch.Tensor) and t.requires_grad for t in inputs):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
        )


class CheckpointFunction(torch.autograd.Function):
    """The re-entrant checkpoint as an operator."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.surroundings = _Surroundings(preserve_rng_state, args)
        ctx.inputs = [None if isinstance(a, torch.Tensor) else a for a in args]
        ctx.tensor_indices = [i for i, a in enumerate(args) if isinstance(a, torch.Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.tensor_indices))
        with torch.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx, *grads) -> tuple[torch.Tensor | None, ...]:
        inputs = list(ctx.inputs)
        for i, tensor in zip(ctx.tensor_indices, ctx.saved_tensors, strict=False):
            inputs[i] = tensor
        detached = detach_variable(tuple(inputs))
        with ctx.surroundings.replay(), torch.enable_grad():
            outputs = ctx.run_function(*detached)
        if isinstance(outputs, torch.Tensor):
            outputs = (outputs,)
        pairs = [
            (o, g)
            for o, g in zip(outputs, grads, strict=False)
            if isinstance(o, torch.Tensor) and o.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(t.grad if isinstance(t, torch.Tensor) else None for t in detached))


# ---- the other kind ---------------------------------------------------------------------


class _Placeholder:
    """Stands for a saved tensor until backward opens it. `values` holds what second runs found,
    one for each backward pass."""

    def __init__(self) -> None:
        self.values = {}


class _StopRecomputation(Exception):
    """All that is needed has been computed."""


def _metadata(tensor):
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


class _Held:
    """A nested tensor among the arguments: a custom function takes plain ones only, and what such a
    tensor has in the graph is its values."""

    def __init__(self, tensor) -> None:
        self.tensor = tensor


class _SaveInputs(torch.autograd.Function):
    """Keeps the arguments as saved tensors, so that checkpoints around this one do not keep them
    either."""

    @staticmethod
    def forward(*tensors) -> torch.Tensor:
        return torch.empty((0,))

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:
        ctx.positions = [i for i, a in enumerate(inputs) if isinstance(a, torch.Tensor)]
        ctx.others = [None if isinstance(a, torch.Tensor) else a for a in inputs]
        ctx.save_for_backward(*(inputs[i] for i in ctx.positions))

    @staticmethod
    def backward(ctx, *grads) -> Any:
        raise AssertionError("nothing flows through the saved inputs of a checkpoint")


def _saved_inputs(ctx) -> list[Any]:
    """What _SaveInputs keeps. No method of the context: that would keep the context alive."""
    values = list(ctx.others)
    for i, tensor in zip(ctx.positions, ctx.saved_tensors, strict=False):
        values[i] = tensor
    return [v.tensor if isinstance(v, _Held) else v for v in values[1:]]


class _Part:
    """One call of a checkpointed function."""

    def __init__(self, function, early_stop, metadata_of, debug) -> None:
        self.function = function
        self.early_stop = early_stop
        self.metadata_of = metadata_of
        self.debug = debug
        self.placeholders = []  # weak: a node that is gone needs nothing
        self.metadata = []
        self.anchor = None
        self.args = ()  # where nothing is recorded, instead of the anchor
        self.complete = False  # whether the first run has ended
        self.done = set()  # backward passes for which the second run has been made

    # -- the first run
    def pack(self, tensor) -> _Placeholder:
        placeholder = _Placeholder()
        self.placeholders.append(weakref.ref(placeholder))
        self.metadata.append(self.metadata_of(tensor))
        return placeholder

    def unpack(self, placeholder) -> torch.Tensor:
        task = _C._current_graph_task_id()
        if task == -1:
            # Opened by hand, outside of a backward pass: good for this once.
            task = int.from_bytes(os.urandom(16), "big")
        if task not in self.done:
            self.recompute(task)
        if task not in placeholder.values:
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already "
                "unpacked once. If you are calling ctx.saved_tensors in backward, make sure to do "
                "so only once."
            )
        return placeholder.values.pop(task)

    # -- the second run
    def recompute(self, task) -> None:
        self.done.add(task)
        position = 0

        def pack(tensor):
            nonlocal position
            index, position = position, position + 1
            if index >= len(self.placeholders):
                if not self.early_stop:
                    return tensor.detach()
                raise _StopRecomputation
            placeholder = self.placeholders[index]()
            if placeholder is not None:
                self.check_metadata(index, tensor)
                placeholder.values[task] = tensor.detach() if tensor.requires_grad else tensor
            if self.early_stop and position == len(self.placeholders):
                raise _StopRecomputation
            return tensor.detach()

        def unpack(tensor):
            return tensor

        args = _saved_inputs(self.anchor.grad_fn) if self.anchor is not None else self.args
        try:
            with torch.autograd.graph.saved_tensors_hooks(pack, unpack), torch.enable_grad():
                self.function(*args)
        except _StopRecomputation:
            pass
        # A pass inside of the first run needs only what has been saved so far.
        short = position < len(self.placeholders)
        if short or (self.complete and position != len(self.placeholders)):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\nNumber of tensors saved during forward: "
                f"{len(self.placeholders)}\nNumber of tensors saved during recomputation: "
                f"{position}.{self.hint()}"
            )

    def check_metadata(self, index, tensor) -> None:
        expected, got = self.metadata[index], self.metadata_of(tensor)
        if expected == got:
            return
        raise CheckpointError(
            "torch.utils.checkpoint: Recomputed values for the following tensors have different "
            f"metadata than during the forward pass.\ntensor at position {index}:\nsaved metadata: "
            f"{expected}\nrecomputed metadata: {got}{self.hint()}"
        )

    def hint(self) -> str:
        if not self.debug:
            return (
                "\nTip: to see a more detailed error message, either pass `debug=True` to "
                "`torch.utils.checkpoint.checkpoint(...)` or wrap the code block with "
                "`with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):`"
            )
        import platform

        return f"\nThe checkpointed function was {self.function!r} on {platform.platform()}."


_DETERMINISM = {"default": _metadata, "none": lambda _: None}


def _without_reentrant(
    function, args, kwargs, *, preserve, context_fn, early_stop, determinism_check, debug
):
    if determinism_check not in _DETERMINISM:
        raise ValueError(
            f"determinism_check should be one of {list(_DETERMINISM)}, but got {determinism_check}"
        )
    forward_context, second_context = context_fn()
    surroundings = _Surroundings(preserve, args)
    names = tuple(kwargs)

    def second_run(*flat) -> None:
        plain, named = flat[: len(args)], dict(zip(names, flat[len(args) :], strict=False))
        with surroundings.replay(), second_context:
            function(*plain, **named)

    part = _Part(
        second_run,
        early_stop if _early_stop is None else _early_stop,
        _DETERMINISM[determinism_check],
        debug if _debug is None else _debug,
    )
    flat = (*args, *kwargs.values())
    dummy = torch.empty((0,), requires_grad=True)
    held = (_Held(a) if isinstance(a, torch.Tensor) and a.is_nested else a for a in flat)
    part.anchor = _SaveInputs.apply(dummy, *held)
    # Without recording there is nothing to save.
    if part.anchor.grad_fn is None:
        part.anchor = None
        part.args = flat
    with torch.autograd.graph.saved_tensors_hooks(part.pack, part.unpack), forward_context:
        result = function(*args, **kwargs)
    part.complete = True
    return result


def checkpoint(
    function,
    *args,
    use_reentrant=None,
    context_fn=noop_context_fn,
    determinism_check="default",
    debug=False,
    early_stop=True,
    **kwargs,
) -> Any:
    """Runs function(*args, **kwargs) without keeping what it saves for backward; backward runs it
    again.

    `preserve_rng_state=False` spares the bookkeeping of random states where the function draws
    none.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. "
            "Starting in PyTorch 2.9, calling checkpoint without use_reentrant will raise an "
            "exception. use_reentrant=False is recommended, but if you need to preserve the "
            "current default behavior, you can pass use_reentrant=True. Refer to docs for more "
            "details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if not use_reentrant:
        checks = {"determinism_check": determinism_check, "debug": debug}
        ways = {"preserve": preserve, "context_fn": context_fn, "early_stop": early_stop}
        return _without_reentrant(function, args, kwargs, **ways, **checks)
    _refuse_keywords(kwargs)
    if context_fn is not noop_context_fn or debug is not False:
        raise ValueError(
            "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
        )
    return CheckpointFunction.apply(function, preserve, *args)


def _refuse_keywords(kwargs) -> None:
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))


def _chain(functions):
    """One function that applies several in turn."""
    return lambda value: functools.reduce(lambda so_far, f: f(so_far), functions, value)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs) -> torch.Tensor:
    """Runs a chain of functions in `segments` checkpointed pieces; the last piece is kept as
    usual."""
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be "
            "passed explicitly. In version 2.9 we will raise an exception if use_reentrant is not "
            "passed. use_reentrant=False is recommended, but if you need to preserve the current "
            "default behavior, you can pass use_reentrant=True. Refer to docs for more details on "
            "the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    _refuse_keywords(kwargs)
    sequential = isinstance(functions, torch.nn.Sequential)
    functions = list(functions.children()) if sequential else functions
    options = {"use_reentrant": use_reentrant, "preserve_rng_state": preserve}
    size = len(functions) // segments
    starts = range(0, size * (segments - 1), size)
    for start in starts:
        input = checkpoint(_chain(functions[start : start + size]), input, **options)
    return _chain(functions[size * len(starts) :])(input)


# ---- choosing what is kept --------------------------------------------------------------


class CheckpointPolicy(enum.Enum):
    """What a policy function says of an operator's result in the first run."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4


class SelectiveCheckpointContext:
    """What the policy function is told besides the operator."""

    def __init__(self, *, is_recompute, op_output=None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


_SAVED = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


def policy_of(policy_fn, context, func, args, kwargs) -> CheckpointPolicy:
    """What a policy function says of a call."""
    policy = policy_fn(context, func, *args, **kwargs)
    if isinstance(policy, bool):
        return CheckpointPolicy.MUST_SAVE if policy else CheckpointPolicy.PREFER_RECOMPUTE
    return policy


def create_selective_checkpoint_contexts(
    policy_fn_or_list, allow_cache_entry_mutation=False
) -> Any:
    """A pair of contexts for checkpoint's context_fn: the results of operators that the policy (a
    function, or a list of operators) wants saved are kept and not computed again."""
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, torch._ops.OpOverload):
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type "
                    f"{type(op)}."
                )

        def policy_fn(context, op, *args, **kwargs) -> bool:
            return op in policy_fn_or_list
    elif callable(policy_fn_or_list):
        policy_fn = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept = {}
    return (
        _CachingTorchDispatchMode(policy_fn, kept, allow_cache_entry_mutation),
        _CachedTorchDispatchMode(policy_fn, kept, allow_cache_entry_mutation),
    )


class _Kept:
    """A value in the result of an operator, with the version of a tensor when it was kept."""

    def __init__(self, value, checked) -> None:
        is_tensor = isinstance(value, torch.Tensor)
        # Without its history, which would keep this entry alive for ever.
        self.val = value.detach() if is_tensor else value
        self.version = value._version if is_tensor and checked else None

    def read(self) -> Any:
        if self.version is not None and self.val._version != self.version:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated"
            )
        return self.val


class _SelectiveMode(TorchDispatchMode):
    """What the modes of both runs share: the policy, and the results by operator, in order."""

    def __init__(self, policy_fn, storage, allow_cache_entry_mutation) -> None:
        super().__init__()
        self.policy_fn = policy_fn
        self.storage = storage
        self.checked = not allow_cache_entry_mutation

    def is_saved(self, func, args, kwargs, is_recompute) -> bool:
        if func is torch.ops.aten.detach.default:
            return False  # both runs make views of their own, and a view costs nothing
        context = SelectiveCheckpointContext(is_recompute=is_recompute)
        return policy_of(self.policy_fn, context, func, args, kwargs) in _SAVED


class _CachingTorchDispatchMode(_SelectiveMode):
    """The first run: keeps results."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if self.is_saved(func, args, kwargs, False):
            entry = tree_map(lambda value: _Kept(value, self.checked), out)
            self.storage.setdefault(func, []).append(entry)
        return out


class _CachedTorchDispatchMode(_SelectiveMode):
    """The second run: takes the results that were kept."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not self.is_saved(func, args, kwargs, True):
            return func(*args, **kwargs)
        if not self.storage.get(func):
            raise RuntimeError(f"{func} encountered during backward, but not found in storage")
        return tree_map(lambda entry: entry.read(), self.storage[func].pop(0))
