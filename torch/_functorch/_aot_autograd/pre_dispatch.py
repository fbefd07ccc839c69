"""A trace of the operators that a program calls, before autograd and before composite operators are
taken apart (`pre_dispatch`). Writes become values as in every exported graph; contexts that switch
gradients on or off stay calls of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor
from torch._functorch._aot_autograd.functional import note_writes
from torch._functorch._aot_autograd.schemas import (
    AOTConfig,
    InputAliasInfo,
    OutputAliasInfo,
    OutputType,
    ViewAndMutationMeta,
)
from torch._functorch._aot_autograd.trace import Traced
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

__all__ = ["trace_above_autograd"]


def _value(result: object) -> object:
    return result.from_functional() if isinstance(result, FunctionalTensor) else result


class _Functional:
    """The function on functional tensors. It returns the values of the inputs it has written to,
    then its results, and what is known of both is left in `meta`."""

    def __init__(self, fn: Callable[..., Sequence[object]], args: Sequence[object]) -> None:
        self.fn, self.args = fn, args
        self.meta: ViewAndMutationMeta | None = None
        self.outputs: list[object] = []

    def __call__(self, *given: object) -> tuple[object, ...]:
        with FunctionalTensorMode(pre_dispatch=True):
            inside = [
                FunctionalTensor.to_functional(g) if isinstance(g, Tensor) else g for g in given
            ]
            results = list(self.fn(*inside))
        written = self._describe(inside, results)
        self.outputs = [_value(r) for r in results]
        return (*(_value(inside[i]) for i in written), *self.outputs)

    def _describe(self, inside: Sequence[object], results: Sequence[object]) -> list[int]:
        inputs = []
        for real, seen in zip(self.args, inside, strict=True):
            tensor = isinstance(real, Tensor)
            info = InputAliasInfo(not tensor or real.is_leaf, tensor and real.requires_grad)
            if isinstance(seen, FunctionalTensor):
                note_writes(seen.elem, info)
            inputs.append(info)
        outputs = [
            OutputAliasInfo(
                OutputType.non_alias, Tensor, None, isinstance(r, Tensor) and r.requires_grad
            )
            for r in results
        ]
        self.meta = ViewAndMutationMeta(inputs, outputs, 0, is_train=False)
        self.meta.num_outputs = len(outputs)
        return self.meta.written


def trace_above_autograd(
    fn: Callable[..., Sequence[object]], args: Sequence[object], settings: AOTConfig
) -> Traced:
    """The graph of a function of flat arguments that returns a flat sequence."""
    from torch._functorch.aot_autograd import _fake, _fake_mode, _prepared

    mode = _fake_mode(args, settings.dynamic_shapes)
    with _prepared(mode):
        fakes = _fake(args, mode, settings)
        run = _Functional(fn, args)
        trace = make_fx(run, decomposition_table=settings.decompositions or None, pre_dispatch=True)
        with mode:
            module = trace(*fakes)
    return Traced(module, run.meta, fakes, run.outputs)
