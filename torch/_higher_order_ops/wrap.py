"""Calls of functions that a trace keeps whole: wrap runs one as it is, tag_activation_checkpoint
marks one whose intermediate results shall be computed again in the backward pass,
wrap_with_set_grad_enabled and wrap_with_autocast run one under a switch."""

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch._higher_order_ops import utils
from torch._ops import HigherOrderOperator, OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Node
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode
from torch.fx.node import map_arg
from torch.utils.checkpoint import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    checkpoint,
    policy_of,
)

__all__ = [
    "TagActivationCheckpoint",
    "Wrap",
    "WrapWithAutocast",
    "WrapWithSetGradEnabled",
    "tag_activation_checkpoint",
    "wrap",
    "wrap_with_autocast",
    "wrap_with_set_grad_enabled",
]


class Wrap(HigherOrderOperator):
    """wrap(function, *args, **kwargs)"""

    def __init__(self) -> None:
        super().__init__("wrap")

    def __call__(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)


wrap = Wrap()


class WrapWithSetGradEnabled(HigherOrderOperator):
    """wrap_with_set_grad_enabled(enabled, function, *args): the function, with the recording of
    gradients on or off. A trace records what the function does."""

    def __init__(self) -> None:
        super().__init__("wrap_with_set_grad_enabled")

    def __call__(
        self, enable_grad: bool, wrapped_func: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        with torch.set_grad_enabled(enable_grad):
            return wrapped_func(*args, **kwargs)


wrap_with_set_grad_enabled = WrapWithSetGradEnabled()


class WrapWithAutocast(HigherOrderOperator):
    """wrap_with_autocast(device, dtype, enabled, cache_enabled, function, *args): the function
    under autocast. A trace records what the function does."""

    def __init__(self) -> None:
        super().__init__("wrap_with_autocast")

    def __call__(
        self,
        device_type: str,
        dtype: torch.dtype | None,
        enabled: bool,
        cache_enabled: bool | None,
        wrapped_func: Callable[..., Any],
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        with torch.autocast(device_type, dtype, enabled, cache_enabled):
            return wrapped_func(*args, **kwargs)


wrap_with_autocast = WrapWithAutocast()


class TagActivationCheckpoint(HigherOrderOperator):
    """tag_activation_checkpoint(graph, *args, use_reentrant=..., preserve_rng_state=...): eagerly a
    checkpoint; in a trace the graph's own operators, whose nodes have `recompute` in their meta.
    """

    _settings = ("use_reentrant", "preserve_rng_state", "determinism_check", "debug", "context_fn")

    def __init__(self) -> None:
        super().__init__("tag_activation_checkpoint")

    @classmethod
    def divide_kwargs(cls, kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The settings of torch.utils.checkpoint.checkpoint, and the function's own arguments."""
        settings = {k: v for k, v in kwargs.items() if k in cls._settings}
        return settings, {k: v for k, v in kwargs.items() if k not in cls._settings}

    def __call__(self, gmod: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return super().__call__(gmod, *args, **kwargs)


tag_activation_checkpoint = TagActivationCheckpoint()


@tag_activation_checkpoint.py_impl(utils.COMPOSITE)
def _run(gmod, *args, **kwargs) -> Any:
    settings, own = TagActivationCheckpoint.divide_kwargs(kwargs)
    settings["use_reentrant"] = False
    return checkpoint(gmod, *args, **settings, **own)


@tag_activation_checkpoint.py_impl(FakeTensorMode)
def _without_data(mode, gmod, *args, **kwargs) -> Any:
    with mode:
        return gmod(*args, **TagActivationCheckpoint.divide_kwargs(kwargs)[1])


@tag_activation_checkpoint.py_impl(ProxyTorchDispatchMode)
def _trace(mode, gmod, *args, **kwargs) -> Any:
    settings, own = TagActivationCheckpoint.divide_kwargs(kwargs)
    nodes = mode.tracer.graph.nodes
    before = len(nodes)
    with mode:
        result = gmod(*args, **own)
    policy = _policy(settings.get("context_fn"))
    # Parts of one call are computed again together, apart from those of other calls.
    number = mode.tracer.__dict__.get("_checkpointed_calls", 0)
    mode.tracer._checkpointed_calls = number + 1
    for node in itertools.islice(nodes, before, None):
        if node.op == "call_function" and "recompute" not in node.meta:
            node.meta["recompute"] = policy(node)
            node.meta["ac_graph_id"] = number
    return result


def _policy(context_fn: Callable[[], tuple] | None) -> Callable[[Node], CheckpointPolicy]:
    """What is said of a node: by the policy of create_selective_checkpoint_contexts, else that it
    is computed again."""
    if context_fn is None:
        return lambda node: CheckpointPolicy.PREFER_RECOMPUTE
    first, _ = context_fn()
    policy_fn = getattr(first, "policy_fn", None)
    if policy_fn is None:
        raise RuntimeError(
            "In a trace, context_fn of a checkpoint must return what "
            "create_selective_checkpoint_contexts returns, got "
            f"{type(first).__name__}"
        )
    context = SelectiveCheckpointContext(is_recompute=False)

    def of(node: Node) -> CheckpointPolicy:
        if not isinstance(node.target, OpOverload):
            return CheckpointPolicy.PREFER_RECOMPUTE
        given = map_arg(node.args, lambda n: n.meta.get("val"))
        named = map_arg(node.kwargs, lambda n: n.meta.get("val"))
        return policy_of(policy_fn, context, node.target, given, named)

    return of
