"""torch._dynamo.explain: one run of a function under a backend that keeps the graphs, and a table
of what was found."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch._dynamo import config, utils
from torch._dynamo.backends.debugging import ExplainOutput
from torch._dynamo.eval_frame import innermost_fn
from torch._dynamo.guard_filters import GuardFilterEntry


def explain(f: Callable, *extra_args: object, **extra_kwargs: object) -> object:
    """A function that runs f and returns an ExplainOutput."""

    def inner(*args: object, **kwargs: object) -> ExplainOutput:
        torch._dynamo.reset()
        graphs: list[torch.fx.GraphModule] = []
        found: list[GuardFilterEntry] = []

        def keep(gm: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable:
            graphs.append(gm)
            return gm.forward

        target = f if isinstance(f, torch.nn.Module) else innermost_fn(f)
        with config.patch(suppress_errors=False):
            compiled = torch._dynamo.optimize(keep, guard_export_fn=found.extend)(target)
            compiled(*args, **kwargs)
        output = _table(graphs, found)
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


def _table(graphs: list[torch.fx.GraphModule], guards: list[GuardFilterEntry]) -> ExplainOutput:
    ops = [[n.target for n in gm.graph.nodes if n.op.startswith("call_")] for gm in graphs]
    reasons = list(utils.graph_break_reasons)
    return ExplainOutput(
        graphs,
        len(graphs),
        # Breaks between graphs: some stand in rows, without an operator between them.
        max(len(graphs) - 1, 0),
        reasons,
        sum(map(len, ops)),
        ops,
        guards,
        str(utils.compile_times(repr="str", aggregate=True)),
    )
