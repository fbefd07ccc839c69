"""Helpers for backends."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

import torch
from torch.utils._python_dispatch import _disable_current_modes


class AotAutograd:
    """A backend made of compilers of forward and backward graphs."""

    def __init__(self, **kwargs: object) -> None:
        self.__name__ = "compiler_fn"
        self.kwargs = kwargs

    def __call__(
        self, gm: torch.fx.GraphModule, example_inputs: Iterable[object], **kwargs: object
    ) -> Callable:
        from torch._dynamo.utils import counters
        from torch._functorch.aot_autograd import aot_module_simplified

        if kwargs:
            raise TypeError(f"aot_autograd: unexpected arguments {sorted(kwargs)}")
        counters["aot_autograd"]["total"] += 1
        settings = dict(self.kwargs)
        if callable(settings.get("decompositions")):
            settings["decompositions"] = settings["decompositions"]()
        settings.setdefault("bw_compiler", settings.get("fw_compiler"))
        settings.setdefault("inference_compiler", settings.get("fw_compiler"))
        try:
            compiled = aot_module_simplified(gm, example_inputs, **settings)
        except Exception:
            counters["aot_autograd"]["not_ok"] += 1
            raise
        counters["aot_autograd"]["ok"] += 1
        return torch._dynamo.disable(compiled, reason="do not trace AOT-compiled graph")


def aot_autograd(**kwargs: object) -> AotAutograd:
    """A backend that traces forward and backward ahead of time and hands each graph to its
    compiler: fw_compiler, bw_compiler, inference_compiler, partition_fn, decompositions."""
    return AotAutograd(**kwargs)


def mem_efficient_fusion_kwargs(use_decomps: bool) -> dict[str, object]:
    """Arguments of aot_autograd for the fuser that saves little for backward."""
    from torch._functorch.compilers import default_decompositions, ts_compile
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    kwargs = {
        "fw_compiler": ts_compile,
        "bw_compiler": ts_compile,
        "partition_fn": min_cut_rematerialization_partition,
    }
    if use_decomps:
        kwargs["decompositions"] = default_decompositions
    return kwargs


def fake_tensor_unsupported(fn: Callable) -> Callable:
    """For backends that need real example inputs: fakes are replaced by zeros."""

    @functools.wraps(fn)
    def wrapper(model: Callable, inputs: Iterable[object], **kwargs: object) -> Callable:
        with _disable_current_modes():
            real = [_real(x) for x in inputs]
            return fn(model, real, **kwargs)

    return wrapper


def _real(x: object) -> object:
    from torch._subclasses.fake_tensor import FakeTensor

    if isinstance(x, FakeTensor):
        return torch.zeros(x.shape, dtype=x.dtype, device=x.device, requires_grad=x.requires_grad)
    return x


def _first_tensor(example_inputs: Iterable[object]) -> torch.Tensor | None:
    return next((x for x in example_inputs if isinstance(x, torch.Tensor)), None)


def device_from_inputs(example_inputs: Iterable[object]) -> torch.device:
    """The device of the first tensor."""
    found = _first_tensor(example_inputs)
    return torch.device("cpu") if found is None else found.device


def dtype_from_inputs(example_inputs: Iterable[object]) -> torch.dtype:
    """The dtype of the first tensor."""
    found = _first_tensor(example_inputs)
    return torch.float32 if found is None else found.dtype
