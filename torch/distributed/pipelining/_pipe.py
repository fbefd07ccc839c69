"""pipeline: cuts a model into stages where it says so. The model is exported to one flat graph; a
mark begins a stage. Whatever a later stage needs is handed on by all stages in between, so that
every stage talks to its neighbours only. Parameters keep their names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
import torch.distributed as dist
from torch import fx, nn
from torch.distributed.pipelining.stage import PipelineStage
from torch.utils._pytree import tree_leaves, tree_unflatten

__all__ = ["Pipe", "PipeInfo", "SplitPoint", "annotate_split_points", "build_stage", "pipe_split",
           "pipeline"]  # fmt: skip

_library = torch.library.Library("pippy", "FRAGMENT")
_library.define("_pipe_split() -> ()")
_library.impl("_pipe_split", lambda: None, "CompositeExplicitAutograd")


def pipe_split() -> None:
    """Marks the end of a stage inside of a model's forward; does nothing when it runs."""
    torch.ops.pippy._pipe_split()


class SplitPoint(Enum):
    """Where a stage begins: before a submodule, or after it."""

    BEGINNING = 1
    END = 2


@dataclass
class PipeInfo:
    """What a stage has to know of its pipe."""

    graph: fx.Graph
    num_stages: int
    has_loss_and_backward: bool = False


def annotate_split_points(mod: nn.Module, spec: dict[str, SplitPoint]) -> None:
    """Puts marks before or after submodules, by name."""
    for name, point in spec.items():
        if not isinstance(point, SplitPoint):
            raise ValueError(f"Unknown split point type: {point}")
        module = mod.get_submodule(name)
        forward = module.forward

        def marked(
            *args: Any, _forward: Callable = forward, _point: SplitPoint = point, **kwargs: Any
        ) -> Any:
            if _point is SplitPoint.BEGINNING:
                pipe_split()
            out = _forward(*args, **kwargs)
            if _point is SplitPoint.END:
                pipe_split()
            return out

        module.forward = marked


class _Stage(nn.Module):
    """A part of the graph. The first gets the model's arguments, the last makes its result; between
    stages travel flat lists of tensors."""

    def __init__(self, module: fx.GraphModule, is_first: bool, spec: Any) -> None:
        super().__init__()
        # Its parameters are this module's own: names stay those of the model.
        self.__dict__["_graph_module"] = module
        self._modules, self._parameters = module._modules, module._parameters
        self._buffers = module._buffers
        self._is_first, self._spec = is_first, spec

    @property
    def graph(self) -> fx.Graph:
        """The part."""
        return self._graph_module.graph

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the part."""
        flat = tree_leaves((args, kwargs)) if self._is_first else args
        out = self._graph_module(*flat)
        if self._spec is not None:
            return tree_unflatten(list(out), self._spec)
        return out[0] if len(out) == 1 else tuple(out)


def _is_mark(node: fx.Node) -> bool:
    return node.op == "call_function" and node.target is torch.ops.pippy._pipe_split.default


def _stages_of(graph: fx.Graph) -> tuple[dict[fx.Node, int], int]:
    """The stage of each node, and how many stages there are."""
    places: dict[fx.Node, int] = {}
    stage = 0
    for node in graph.nodes:
        if _is_mark(node):
            stage += 1
        # Arguments come in at the first stage.
        places[node] = 0 if node.op == "placeholder" else stage
    return places, stage + 1


def _last_uses(places: dict[fx.Node, int]) -> dict[fx.Node, int]:
    return {
        node: max((places[user] for user in node.users), default=-1)
        for node in places
        if node.op not in ("get_attr", "output")
    }


def _cut(module: fx.GraphModule) -> list[fx.GraphModule]:
    """The graph in parts."""
    places, count = _stages_of(module.graph)
    uses = _last_uses(places)
    parts = []
    for stage in range(count):
        graph = fx.Graph()
        copies: dict[fx.Node, fx.Node] = {}
        arriving = [n for n in uses if places[n] < stage <= uses[n]]
        if stage == 0:
            arriving = [n for n in places if n.op == "placeholder"]
        for node in arriving:
            copies[node] = graph.placeholder(node.name)
        for node in places:
            needed = node.op == "get_attr" and any(places[user] == stage for user in node.users)
            inside = places[node] == stage and node.op not in ("get_attr", "placeholder", "output")
            if (needed or inside) and not _is_mark(node):
                copies[node] = graph.node_copy(node, lambda n, known=copies: known[n])
        if stage == count - 1:
            (output,) = (n for n in places if n.op == "output")
            result = tree_leaves(output.args[0])
            graph.output(tuple(copies[n] if isinstance(n, fx.Node) else n for n in result))
        else:
            leaving = [n for n in uses if places[n] <= stage < uses[n]]
            graph.output(tuple(copies[n] for n in leaving))
        parts.append(fx.GraphModule(module, graph))
    return parts


class Pipe(nn.Module):
    """A model in stages: `split_gm.submod_0`, `split_gm.submod_1`, ..."""

    def __init__(self, split_gm: nn.Module, num_stages: int, graph: fx.Graph) -> None:
        super().__init__()
        self.split_gm, self.num_stages = split_gm, num_stages
        self.has_loss_and_backward = False
        self._graph = graph

    def get_stage_module(self, stage_idx: int) -> nn.Module:
        """The module of a stage."""
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}!")
        return getattr(self.split_gm, f"submod_{stage_idx}")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs all stages here, one after the other: the outputs of the model, as a tuple."""
        out = self.get_stage_module(0)(*args, **kwargs)
        for stage in range(1, self.num_stages):
            out = self.get_stage_module(stage)(*(out if isinstance(out, tuple) else (out,)))
        return tuple(tree_leaves(out))

    def info(self) -> PipeInfo:
        """What stages have to know."""
        return PipeInfo(self._graph, self.num_stages, self.has_loss_and_backward)

    def build_stage(
        self, stage_index: int, device: torch.device, group: dist.ProcessGroup | None = None
    ) -> PipelineStage:
        """A stage that this process runs."""
        module = self.get_stage_module(stage_index)
        return build_stage(module, stage_index, self.info(), device, group)

    def print_readable(self) -> None:
        """Prints the stages."""
        for stage in range(self.num_stages):
            print(f"stage {stage}\n{self.get_stage_module(stage).graph}")

    @staticmethod
    def from_tracing(
        mod: nn.Module,
        example_args: tuple[Any, ...],
        example_kwargs: dict[str, Any] | None = None,
        split_policy: Callable[[fx.GraphModule], fx.GraphModule] | None = None,
    ) -> Pipe:
        """The stages of a model with marks."""
        program = torch.export.export(mod, example_args, example_kwargs or {}, strict=False)
        module = program.module()
        if split_policy is not None:
            module = split_policy(module)
        if not any(_is_mark(node) for node in module.graph.nodes):
            raise ValueError("the model has no mark: call pipe_split() in it or give a split_spec")
        parts = _cut(module)
        split = nn.Module()
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            spec = program.call_spec.out_spec if last else None
            split.add_module(f"submod_{number}", _Stage(part, number == 0, spec))
        return Pipe(split, len(parts), module.graph)


def pipeline(
    module: nn.Module,
    mb_args: tuple[Any, ...],
    mb_kwargs: dict[str, Any] | None = None,
    split_spec: dict[str, SplitPoint] | None = None,
    split_policy: Callable[[fx.GraphModule], fx.GraphModule] | None = None,
) -> Pipe:
    """Cuts a model by its own marks, those of `split_spec` (submodules by name) or a function that
    puts marks into the graph. The arguments are those of a microbatch."""
    if split_spec is not None and split_policy is not None:
        raise ValueError(
            "Cannot specify both `split_spec` and `split_policy`. Please use only one of them."
        )
    if split_spec is None:
        return Pipe.from_tracing(module, mb_args, mb_kwargs, split_policy)
    before = {name: module.get_submodule(name).__dict__.get("forward") for name in split_spec}
    annotate_split_points(module, split_spec)
    try:
        return Pipe.from_tracing(module, mb_args, mb_kwargs)
    finally:
        for name, forward in before.items():
            owner = module.get_submodule(name)
            if forward is None:
                del owner.forward
            else:
                owner.forward = forward


def build_stage(
    stage_module: nn.Module,
    stage_index: int,
    pipe_info: PipeInfo,
    device: torch.device,
    group: dist.ProcessGroup | None = None,
) -> PipelineStage:
    """A stage that this process runs, of a module that a pipe made."""
    moved = stage_module.to(device)
    return PipelineStage(moved, stage_index, pipe_info.num_stages, device, group=group)
