"""Plans for more machines than there are at hand: memory of each rank, bytes of each collective and
the time of a step, for a GPT of some size on some mesh.

Nothing is run on real tensors. A stage of the model is made of tensors without memory, divided with
the same functions that divide a real one, and run forward and backward in a group of the fake
backend; what it keeps for the backward pass and what it asks of the group is counted. All layers
are alike, so that one and two of them tell the rest."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.distributed.plan.machines import MACHINES, Machine, collective_seconds, measure
from torch.distributed.plan.model import GPT, GPTConfig, config_for, parallelize
from torch.distributed.plan.timeline import Slot, draw, schedule
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

__all__ = [
    "MACHINES", "Counts", "GPTConfig", "Machine", "Plan", "config_for", "count_stage", "draw",
    "measure", "plan", "schedule",
]  # fmt: skip


@dataclass
class Counts:
    """What a stage costs on one rank, of one microbatch where that matters; in bytes."""

    parameters: float = 0
    elements: float = 0
    activations: float = 0
    gathered: float = 0  # the largest unit, whole
    flops: float = 0  # forward and backward
    # (operation, dimension of the mesh): (how many, bytes together)
    collectives: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)

    def line(self, other: Counts, layers: int) -> Counts:
        """The counts of so many layers, of those with one (self) and two (other)."""

        def at(one: float, two: float) -> float:
            return one + (two - one) * (layers - 1)

        none = (0.0, 0.0)
        keys = {**self.collectives, **other.collectives}
        return Counts(
            *(at(getattr(self, name), getattr(other, name))
              for name in ("parameters", "elements", "activations")),
            max(self.gathered, other.gathered),
            at(self.flops, other.flops),
            {
                key: tuple(
                    at(*pair)
                    for pair in zip(
                        self.collectives.get(key, none), other.collectives.get(key, none),
                        strict=True,
                    )
                )
                for key in keys
            },
        )  # fmt: skip


@contextlib.contextmanager
def _fake_group(size: int) -> Iterator[None]:
    """A default group of so many ranks, of which this process is the first."""
    import torch.distributed as dist
    from torch._C._distributed_c10d import HashStore

    if dist.is_initialized():
        raise RuntimeError("a plan needs a process without a process group; destroy it first")
    dist.init_process_group("fake", rank=0, world_size=size, store=HashStore())
    try:
        yield
    finally:
        dist.destroy_process_group()


def _local(tensor: torch.Tensor) -> torch.Tensor:
    return getattr(tensor, "_local_tensor", tensor)


class _Kept:
    """Counts the memory that the backward pass will need, without that of parameters."""

    def __init__(self, module: nn.Module) -> None:
        self.module, self.sizes = module, {}
        self._held: list = []

    def _storages(self) -> set[int]:
        found = set()
        for tensor in (*self.module.parameters(), *self.module.buffers()):
            found.add(_local(tensor.detach()).untyped_storage()._cdata)
        return found

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        """Takes a tensor that is kept."""
        storage = _local(tensor.detach()).untyped_storage()
        if storage._cdata not in self._storages():
            self.sizes[storage._cdata] = storage.nbytes()
            self._held.append(storage)  # so that no other gets its address
        return tensor


def _recorded(groups: dict[str, str]) -> dict[tuple[str, str], tuple[float, float]]:
    """The operations that the flight recorder saw, added up by kind and dimension."""
    from torch import _c10d

    found: dict[tuple[str, str], tuple[float, float]] = {}
    for entry in json.loads(_c10d._flight_json())["entries"]:
        name = entry["profiling_name"].rpartition(":")[2]
        nbytes = max(
            sum(math.prod(size) * _bytes_of(dtype) for size, dtype in
                zip(entry[f"{side}_sizes"], entry[f"{side}_dtypes"], strict=True))
            for side in ("input", "output")
        )  # fmt: skip
        key = (name, groups.get(entry["process_group"][0], "?"))
        count, total = found.get(key, (0.0, 0.0))
        found[key] = (count + 1, total + nbytes)
    return found


class _Functional(TorchDispatchMode):
    """Counts functional collectives, which on tensors without memory do not reach a backend."""

    def __init__(self, groups: dict[str, str]) -> None:
        super().__init__()
        self.groups = groups
        self.found: dict[tuple[str, str], tuple[float, float]] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        name = func.__name__.partition(".")[0].rstrip("_")
        if func.namespace == "_c10d_functional" and name != "wait_tensor":
            group = next((a for a in reversed(args) if isinstance(a, str)), "")
            sides = (tree_leaves(args), tree_leaves(out))
            nbytes = max(
                sum(t.numel() * t.element_size() for t in side if isinstance(t, torch.Tensor))
                for side in sides
            )
            key = (name, self.groups.get(group, "?"))
            count, total = self.found.get(key, (0.0, 0.0))
            self.found[key] = (count + 1, total + nbytes)
        return out


_BYTES = {"Double": 8, "Long": 8, "Float": 4, "Int": 4, "BFloat16": 2, "Half": 2, "Short": 2}


def _bytes_of(name: str) -> int:
    return _BYTES.get(name, 1)


def count_stage(
    config: GPTConfig,
    layers: int,
    dp: int = 1,
    tp: int = 1,
    batch: int = 1,
    first: bool = True,
    last: bool = True,
    dtype: torch.dtype = torch.float32,
    recompute: bool = False,
) -> Counts:
    """What a stage of so many layers costs a rank of a dp x tp mesh, for a microbatch of `batch`
    sequences."""
    if layers > 2:
        one, two = (
            count_stage(config, n, dp, tp, batch, first, last, dtype, recompute) for n in (1, 2)
        )
        return one.line(two, layers)
    with _fake_group(dp * tp):
        return _count(config, layers, (dp, tp), batch, first, last, dtype, recompute)


def _count(
    config: GPTConfig,
    layers: int,
    shape: tuple[int, int],
    batch: int,
    first: bool,
    last: bool,
    dtype: torch.dtype,
    recompute: bool,
) -> Counts:
    from torch import _c10d
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("dp", "tp"))
    groups = {mesh.get_group(name).group_name: name for name in ("dp", "tp")}
    # The sizes of the stage are those of the model; its place is told by what it has.
    whole = GPTConfig(layers, config.hidden, config.heads, config.vocabulary, config.length)
    with FakeTensorMode():
        stage = GPT(whole)
        if not first:
            del stage.tokens, stage.places
            stage.is_first = False
        if not last:
            del stage.norm, stage.output
            stage.is_last = False
        stage = parallelize(stage.to(dtype), mesh, recompute)
        local = [_local(p.detach()) for p in stage.parameters()]
        counts = Counts(
            parameters=sum(t.numel() * t.element_size() for t in local),
            elements=sum(t.numel() for t in local),
        )
        if shape[0] > 1:
            block = sum(_local(p.detach()).numel() for p in stage.blocks[0].parameters())
            counts.gathered = 2 * block * shape[0] * local[0].element_size()
        size = (batch, config.length)
        x = torch.zeros(size, dtype=torch.int64)
        if not first:
            x = torch.zeros(*size, config.hidden, dtype=dtype, requires_grad=True)
        kept = _Kept(stage)
        _c10d._flight_reset()
        with _Functional(groups) as functional:
            with torch.autograd.graph.saved_tensors_hooks(kept.pack, lambda t: t):
                out = stage(x)
            out.float().sum().backward()
        counts.activations = sum(kept.sizes.values())
        counts.collectives = {**_recorded(groups), **functional.found}
        counts.flops = _flops(whole, (batch, first, last), shape[1], recompute)
    return counts


def _flops(config: GPTConfig, what: tuple[int, bool, bool], tp: int, recompute: bool) -> float:
    """Of matrix products, forward and backward, on one of tp ranks: the layers are divided, the
    output is not."""
    batch, _, last = what
    tokens, h = batch * config.length, config.hidden
    # A causal product of attention is counted whole, as its kernels are credited elsewhere.
    layer = 2 * tokens * 12 * h * h + 4 * tokens * config.length * h
    output = 2 * tokens * h * config.vocabulary if last else 0
    return (4 if recompute else 3) * config.layers * layer / tp + 3 * output


@dataclass
class Plan:
    """A model on a mesh: what each rank of the stage that needs most has to hold and to do."""

    config: GPTConfig
    shape: tuple[int, int, int]  # pp, dp, tp
    machine: Machine
    batch: int
    microbatches: int
    stages: list[Counts]
    memory: dict[str, float]
    step_seconds: float
    exposed_seconds: float
    slots: list[Slot]

    @property
    def total_memory(self) -> float:
        """Bytes of the rank that needs most."""
        return sum(self.memory.values())

    def report(self, width: int = 96) -> str:
        """All of it as text."""
        pp, dp, tp = self.shape
        lines = [
            f"GPT with {self.config.parameters / 1e9:.2f} B parameters: {self.config.layers} "
            f"layers, hidden {self.config.hidden}, {self.config.heads} heads, length "
            f"{self.config.length}",
            f"mesh pp={pp} x dp={dp} x tp={tp} = {pp * dp * tp} ranks of {self.machine.name}; "
            f"{self.microbatches} microbatches of {self.batch} per step and dp rank",
            "", "memory of the rank that needs most",
        ]  # fmt: skip
        lines += [f"  {name:<28}{value / 1e9:>10.3f} GB" for name, value in self.memory.items()]
        lines.append(f"  {'together':<28}{self.total_memory / 1e9:>10.3f} GB")
        if self.machine.memory and self.total_memory > self.machine.memory:
            lines.append(f"  DOES NOT FIT into {self.machine.memory / 1e9:.0f} GB")
        lines += ["", "collectives of a rank in a step"]
        for (name, axis), (count, nbytes) in sorted(self.collectives().items()):
            lines.append(f"  {name:<28}{axis:>4}{count:>10.0f} x{nbytes / 1e9:>12.4f} GB together")
        tokens = self.batch * self.microbatches * dp * self.config.length
        lines += [
            "",
            f"step {self.step_seconds:.3f} s, of which {self.exposed_seconds:.3f} s wait for "
            f"communication; {tokens / self.step_seconds:,.0f} tokens/s",
            "", draw(self.slots, width),
        ]  # fmt: skip
        return "\n".join(lines)

    def collectives(self) -> dict[tuple[str, str], tuple[float, float]]:
        """Of the stage that moves most, in a whole step."""
        busiest = max(self.stages, key=lambda s: sum(b for _, b in s.collectives.values()))
        found = {
            key: (count * self.microbatches, nbytes * self.microbatches)
            for key, (count, nbytes) in busiest.collectives.items()
        }
        if self.shape[0] > 1:
            size = self.batch * self.config.length * self.config.hidden * 2
            sent = 2 * self.microbatches
            found["send and recv", "pp"] = (sent, sent * size)
        return found


def _stage_layers(layers: int, pp: int) -> list[int]:
    return [layers // pp + (1 if i < layers % pp else 0) for i in range(pp)]


def _seconds(counts: Counts, machine: Machine, shape: tuple[int, int, int]) -> tuple[float, float]:
    """Of one microbatch: all, and what communication adds. Gathering and scattering of parameters
    runs beside computing; exchanges within a layer do not."""
    _, dp, tp = shape
    compute = counts.flops / machine.flops
    beside = within = 0.0
    for (name, axis), (count, nbytes) in counts.collectives.items():
        ranks = tp if axis == "tp" else dp
        near = (axis == "tp" and tp <= machine.per_node) or dp * tp <= machine.per_node
        time = collective_seconds(machine, name, nbytes, ranks, near, count)
        if axis == "tp":
            within += time
        else:
            beside += time
    exposed = within + max(0.0, beside - compute)
    return compute + exposed, exposed


def plan(
    config: GPTConfig,
    pp: int = 1,
    dp: int = 1,
    tp: int = 1,
    *,
    batch: int = 1,
    microbatches: int | None = None,
    machine: Machine | str = "h100",
    dtype: torch.dtype = torch.bfloat16,
    recompute: bool = False,
) -> Plan:
    """A plan for a model on pp x dp x tp ranks, trained by Adam with numbers in float32."""
    if min(pp, dp, tp) < 1:
        raise ValueError(f"a mesh of {pp} x {dp} x {tp} has no ranks")
    if pp > config.layers:
        raise ValueError(f"{pp} stages for {config.layers} layers")
    if config.heads % tp:
        raise ValueError(f"{config.heads} heads cannot be divided among {tp} ranks")
    machine = MACHINES[machine] if isinstance(machine, str) else machine
    microbatches = 4 * pp if microbatches is None else microbatches
    cache: dict[tuple, Counts] = {}
    stages = []
    for i, layers in enumerate(_stage_layers(config.layers, pp)):
        key = (layers, i == 0, i == pp - 1)
        if key not in cache:
            cache[key] = count_stage(
                config, layers, dp, tp, batch, key[1], key[2], dtype, recompute
            )
        stages.append(cache[key])
    memories = [_memory(s, min(microbatches, pp - i), dtype) for i, s in enumerate(stages)]
    worst = max(memories, key=lambda memory: sum(memory.values()))
    times = [_seconds(stage, machine, (pp, dp, tp)) for stage in stages]
    slowest, exposed = max(times)
    width = batch * config.length * config.hidden * torch._utils._element_size(dtype)
    transfer = collective_seconds(machine, "send", width, 2, False) if pp > 1 else 0.0
    slots = schedule(pp, microbatches, slowest / 3, slowest * 2 / 3, transfer)
    step = max(slot.end for slot in slots)
    return Plan(
        config, (pp, dp, tp), machine, batch, microbatches, stages, worst, step,
        exposed * microbatches, slots,
    )  # fmt: skip


def _memory(counts: Counts, in_flight: int, dtype: torch.dtype) -> dict[str, float]:
    """By purpose. Numbers narrower than float32 have a copy in float32 for the optimizer."""
    wide = dtype in (torch.float32, torch.float64)
    return {
        "parameters": counts.parameters,
        "gradients": counts.parameters,
        "optimizer": counts.elements * (8 if wide else 12),
        f"activations of {in_flight}": counts.activations * in_flight,
        "whole parameters of a layer": counts.gathered,
    }
