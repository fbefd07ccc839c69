"""A GPT to plan with, and how it is divided: stages of a pipeline, tensor parallel blocks, and
fully_shard over the rest. Plans run this code on tensors without memory; the tests run it on
processes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh

__all__ = ["GPT", "GPTConfig", "config_for", "parallelize"]


@dataclass(frozen=True)
class GPTConfig:
    """The sizes of a GPT."""

    layers: int
    hidden: int
    heads: int
    vocabulary: int = 32000
    length: int = 2048

    @property
    def parameters(self) -> int:
        """How many numbers it has."""
        h = self.hidden
        block = 12 * h * h + 13 * h
        return self.layers * block + (2 * self.vocabulary + self.length) * h + 2 * h


def config_for(parameters: float, multiple: int = 128, **sizes: int) -> GPTConfig:
    """A GPT of about so many parameters, about a hundred times as wide as it is deep."""
    if parameters <= 0:
        raise ValueError(f"a model of {parameters:g} parameters is not possible")
    head = 128 if parameters > 1e9 else 64
    step = max(multiple, head)
    hidden = max(step, round((parameters * 100 / 12) ** (1 / 3) / step) * step)
    best = None
    for width in (hidden - step, hidden, hidden + step):
        if width <= 0:
            continue
        for layers in range(1, 400):
            made = GPTConfig(layers, width, width // head, **sizes)
            distance = abs(made.parameters - parameters)
            if best is None or distance < best[0]:
                best = (distance, made)
    return best[1]


class Block(nn.Module):
    """Attention and a perceptron, each behind a norm."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.head = hidden // heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.query, self.key = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.value, self.out = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Adds what it finds to its input."""
        y = self.norm1(x)
        parts = []
        for project in (self.query, self.key, self.value):
            one = project(y)
            # How many heads there are follows from the width: a rank may have a part of them.
            parts.append(one.unflatten(-1, (-1, self.head)).transpose(1, 2))
        seen = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """The layers `first` to `last` of a GPT; the first stage has the embedding, the last the
    output."""

    def __init__(self, config: GPTConfig, first: int = 0, last: int | None = None) -> None:
        super().__init__()
        last = config.layers if last is None else last
        self.config = config
        self.is_first, self.is_last = first == 0, last == config.layers
        if self.is_first:
            self.tokens = nn.Embedding(config.vocabulary, config.hidden)
            self.places = nn.Embedding(config.length, config.hidden)
        self.blocks = nn.ModuleList(Block(config.hidden, config.heads) for _ in range(first, last))
        if self.is_last:
            self.norm = nn.LayerNorm(config.hidden)
            self.output = nn.Linear(config.hidden, config.vocabulary, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Tokens, or what the stage before gave, to the next stage's input or to logits."""
        if self.is_first:
            place = torch.arange(x.shape[1], device=x.device)
            x = self.tokens(x) + self.places(place)
        for block in self.blocks:
            x = block(x)
        return self.output(self.norm(x)) if self.is_last else x


def parallelize(stage: GPT, mesh: DeviceMesh, recompute: bool = False) -> GPT:
    """Divides a stage over the dimensions "tp" and "dp" of a mesh, where it has them."""
    from torch.distributed._composable import checkpoint
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    names = mesh.mesh_dim_names
    if "tp" in names and mesh["tp"].size() > 1:
        columns = dict.fromkeys(("query", "key", "value", "up"))
        plan = {name: ColwiseParallel() for name in columns}
        plan |= {"out": RowwiseParallel(), "down": RowwiseParallel()}
        for block in stage.blocks:
            parallelize_module(block, mesh["tp"], plan)
    if recompute:
        for block in stage.blocks:
            checkpoint(block)
    if "dp" in names and mesh["dp"].size() > 1:
        for block in stage.blocks:
            fully_shard(block, mesh=mesh["dp"])
        fully_shard(stage, mesh=mesh["dp"])
    return stage
