"""torch._dynamo.explain: one run of a function under a backend that keeps the graphs, and a table
of what was found."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch._dynamo import config, utils
from torch._dynamo.backends.debugging import ExplainOutput
from torch._dynamo.eval_frame import innermost_fn


def explain(f: Callable, *extra_args: object, **extra_kwargs: object) -> object:
    """A function that runs f and returns an ExplainOutput."""

    def inner(*args: object, **kwargs: object) -> ExplainOutput:
        torch._dynamo.reset()
        graphs: list[torch.fx.GraphModule] = []

        def keep(gm: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable:
            graphs.append(gm)
            return gm.forward

        target = f if isinstance(f, torch.nn.Module) else innermost_fn(f)
        with config.patch(suppress_errors=False):
            torch._dynamo.optimize(keep)(target)(*args, **kwargs)
        output = _table(graphs)
        torch._dynamo.reset()
        return output

    if extra_args or extra_kwargs:
        warnings.warn(
            "explain(f, *args, **kwargs) is deprecated, use explain(f)(*args, **kwargs) instead.  "
            "If you don't migrate, we may break your explain call in the future if your user "
            "defined kwargs conflict with future kwargs added to explain(f).",
            FutureWarning,
            stacklevel=3,
        )
        return inner(*extra_args, **extra_kwargs)
    return inner


def _table(graphs: list[torch.fx.GraphModule]) -> ExplainOutput:
    ops = [[n.target for n in gm.graph.nodes if n.op.startswith("call_")] for gm in graphs]
    reasons = list(utils.graph_break_reasons)
    return ExplainOutput(
        graphs,
        len(graphs),
        len(reasons),
        reasons,
        sum(map(len, ops)),
        ops,
        [],
        str(utils.compile_times(repr="str", aggregate=True)),
    )
