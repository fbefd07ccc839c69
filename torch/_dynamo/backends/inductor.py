"""The backend that torch.compile uses when none is named."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch._dynamo.backends.registry import register_backend


@register_backend
def inductor(
    gm: torch.fx.GraphModule,
    example_inputs: list[object],
    options: dict[str, object] | None = None,
) -> Callable:
    """Compiles the captured graph, and its derivative when that is first needed."""
    from torch._inductor import compile, list_mode_options

    settings = dict(options or {})
    mode = settings.pop("mode", None)
    compiled = compile(
        gm, example_inputs, {**(list_mode_options(mode) if mode else {}), **settings}
    )
    return torch._dynamo.disable(compiled, reason="do not trace AOT-compiled graph")
