"""Modules that keep what flows through them. They can be scripted: what a logger knows about its
place are plain attributes, and tensors and results of recurrent layers have lists of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Dict, List, Optional, Tuple  # noqa: UP035

import torch
from torch import nn
from torch.ao.ns.fx.ns_types import NSSingleResultType
from torch.ao.ns.fx.utils import compute_sqnr


class OutputLogger(nn.Module):
    """Keeps tensors, or (output, (hidden, cell)) of a recurrent layer, and hands them on."""

    stats: List[torch.Tensor]  # noqa: UP006
    stats_rnn: List[Tuple[torch.Tensor, Tuple[torch.Tensor, torch.Tensor]]]  # noqa: UP006
    fqn: Optional[str]  # noqa: UP045
    qconfig_str: Optional[str]  # noqa: UP045
    _is_impure = True  # a graph keeps its calls, though nothing reads their results

    def __init__(
        self,
        ref_node_name: str,
        prev_node_name: str,
        model_name: str,
        ref_name: str,
        prev_node_target_type: str,
        ref_node_target_type: str,
        results_type: str,
        index_within_arg: int,
        index_of_arg: int,
        fqn: str | None,
        qconfig_str: str | None = "",
    ) -> None:
        super().__init__()
        self.stats, self.stats_rnn = [], []
        self.ref_node_name, self.prev_node_name = ref_node_name, prev_node_name
        self.model_name, self.ref_name = model_name, ref_name
        self.prev_node_target_type = prev_node_target_type
        self.ref_node_target_type = ref_node_target_type
        self.results_type = results_type
        self.index_within_arg, self.index_of_arg = index_within_arg, index_of_arg
        self.fqn = fqn
        self.enabled = True
        self.qconfig_str = qconfig_str
        self.save_activations = True

    def forward(self, x):  # a tensor where it is scripted
        if self.save_activations and self.enabled:
            self.keep(x)
        return x

    def keep(self, x):
        """Appends a value to the list of its kind."""
        if isinstance(x, torch.Tensor):
            self.stats.append(x.detach())
        elif len(x) == 2:
            result, (hidden, cell) = x
            self.stats_rnn.append((result.detach(), (hidden.detach(), cell.detach())))

    def __repr__(self) -> str:
        shown = {k: v for k, v in vars(self).items() if k != "training" and not k.startswith("_")}
        return f"{type(self).__name__}({shown})"


class OutputComparisonLogger(OutputLogger):
    """Also measures the distance of each tensor from a reference."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.comparison_fn: Callable = compute_sqnr
        self.comparison_fn_name = "sqnr"
        self.comparisons: list[torch.Tensor] = []

    def forward(self, x, x_ref):
        """The tensor, whose distance from the second one is kept."""
        if self.enabled:
            distance = self.comparison_fn(x, x_ref)
            self.comparisons.append(distance.detach())
        return super().forward(x)


def is_logger(module: nn.Module, logger_cls: Callable) -> bool:
    """Whether a module is a logger of the class, scripted or not."""
    if isinstance(module, torch.jit.RecursiveScriptModule):
        return module.original_name == logger_cls.__name__
    return isinstance(module, logger_cls)


_KEPT = (
    "ref_node_name ref_node_target_type prev_node_name prev_node_target_type index_within_arg "
    "index_of_arg fqn qconfig_str"
).split()


def record_of(logger: nn.Module) -> NSSingleResultType:
    """What a logger has kept, as a record."""
    values = logger.stats_rnn if len(logger.stats_rnn) > 0 else logger.stats
    named: Dict[str, object] = {name: getattr(logger, name) for name in _KEPT}  # noqa: UP006
    return {
        "type": logger.results_type,
        "values": values,
        **named,
        "comparisons": getattr(logger, "comparisons", []),
        "comparison_fn_name": getattr(logger, "comparison_fn_name", ""),
    }
