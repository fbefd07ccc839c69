"""Calls of functions that a trace keeps whole: wrap runs one as it is, tag_activation_checkpoint
marks one whose intermediate results shall be computed again in the backward pass."""

from collections.abc import Callable
from typing import Any

from torch._higher_order_ops import utils
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode

__all__ = ["TagActivationCheckpoint", "Wrap", "tag_activation_checkpoint", "wrap"]


class Wrap(HigherOrderOperator):
    """wrap(function, *args, **kwargs)"""

    def __init__(self) -> None:
        super().__init__("wrap")

    def __call__(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)


wrap = Wrap()


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
    from torch.utils.checkpoint import checkpoint

    settings, own = TagActivationCheckpoint.divide_kwargs(kwargs)
    settings["use_reentrant"] = False
    return checkpoint(gmod, *args, **settings, **own)


@tag_activation_checkpoint.py_impl(FakeTensorMode)
def _without_data(mode, gmod, *args, **kwargs) -> Any:
    with mode:
        return gmod(*args, **TagActivationCheckpoint.divide_kwargs(kwargs)[1])


@tag_activation_checkpoint.py_impl(ProxyTorchDispatchMode)
def _trace(mode, gmod, *args, **kwargs) -> Any:
    graph = mode.tracer.graph
    before = len(graph.nodes)
    with mode:
        result = gmod(*args, **TagActivationCheckpoint.divide_kwargs(kwargs)[1])
    for i, node in enumerate(graph.nodes):
        if i >= before and node.op == "call_function":
            node.meta.setdefault("recompute", 1)
    return result
