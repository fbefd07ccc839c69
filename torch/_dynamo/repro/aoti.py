"""Failures of models compiled into files: checks that a smaller graph is still one that can be
exported. The launcher belongs to AOTInductor, which does not exist here yet."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import fx
from torch._dynamo.debug_utils import NNModuleToString

__all__ = ["AOTIMinifierError", "export_for_aoti_minifier", "get_module_string"]


class AOTIMinifierError(Exception):
    """A graph on the way to a smaller one cannot be exported."""

    def __init__(self, original_exception: Exception) -> None:
        super().__init__(
            "This error is caused by a bug in the AOTI minifier, please report a bug to PyTorch: "
            f"{original_exception}"
        )
        self.original_exception = original_exception


def get_module_string(gm: fx.GraphModule) -> str:
    """The module as a comment of a written program."""
    return "".join(
        f"# {line}\n" if line.strip() else "\n"
        for line in NNModuleToString.convert(gm).splitlines()
    )


def export_for_aoti_minifier(
    gm: torch.nn.Module,
    tuple_inputs: Sequence[object],
    strict: bool = False,
    skip_export_error: bool = True,
) -> torch.nn.Module | None:
    """The exported graph, or None where the graph returns something else than tensors or cannot be
    exported."""
    from torch.export import export

    if isinstance(gm, fx.GraphModule):
        returned = gm.graph.output_node().args[0]
        many = returned if isinstance(returned, (list, tuple)) else [returned]
        for value in many:
            if not isinstance(value, fx.Node) or value.op == "get_attr":
                return None
    try:
        return export(gm, tuple(tuple_inputs), strict=strict).module()
    except Exception as error:
        if skip_export_error:
            return None
        raise AOTIMinifierError(error) from error
