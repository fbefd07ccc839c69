"""A unit: the parameters that one call of fully_shard manages together. They are gathered by one
collective before the module runs, and their gradients are reduced by one when the backward pass has
computed all of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.distributed import distributed_c10d as _core
from torch.distributed.fsdp._fully_shard._mesh import MeshInfo
from torch.distributed.fsdp._fully_shard._parameter import ShardedParameter
from torch.distributed.fsdp._fully_shard._policies import MixedPrecisionPolicy

Tensor = torch.Tensor


class Unit:
    """Parameters that are gathered and reduced together."""

    def __init__(
        self,
        parameters: list[ShardedParameter],
        info: MeshInfo,
        mp_policy: MixedPrecisionPolicy,
        device: torch.device,
    ) -> None:
        self.parameters, self.info, self.device = parameters, info, device
        self.mp_policy = mp_policy
        self.gathered = False
        self.reduce_grads = True  # over the processes that have the parts
        self.all_reduce_grads = True  # over those that have the same part
        self.divide_by: float | None = None
        self.comm_hook: tuple[Any, Any] | None = None  # function, state: instead of the reduction
        self._gathering: list[tuple] | None = None  # work, result, parameters, what was sent
        self._reducing: list[tuple] = []  # the same
        self._left = 0
        self._hooked: set[int] = set()
        self.on_complete: Any = None

    # ---- whole and cut
    def start_gather(self) -> None:
        """Starts to gather the parameters, if nobody has."""
        if self.gathered or self._gathering is not None:
            return
        by_dtype: dict[torch.dtype, list[ShardedParameter]] = {}
        for parameter in self.parameters:
            parameter.refresh()
            by_dtype.setdefault(parameter.param_dtype or parameter.dtype, []).append(parameter)
        started = []
        size = self.info.shard_size
        for members in by_dtype.values():
            mine = torch.cat([parameter.shard() for parameter in members])
            every = mine.new_empty((size, mine.numel()))
            work = None
            if size == 1:
                every.copy_(mine.view(1, -1))
            else:
                work = _core.all_gather_into_tensor(
                    every.view(-1), mine, group=self.info.shard_group, async_op=True
                )
            started.append((work, every, members, mine))
        self._gathering = started

    def gather(self) -> None:
        """Makes the parameters whole."""
        if self.gathered:
            return
        self.start_gather()
        started, self._gathering = self._gathering, None
        with torch.no_grad():
            for work, every, members, _ in started:
                if work is not None:
                    work.wait()
                at = 0
                for parameter in members:
                    count = parameter.part_numel
                    parameter.fill(every[:, at : at + count])
                    at += count
        self.gathered = True
        self._watch()

    def cut(self) -> None:
        """Gives the whole parameters back."""
        if self._gathering is not None:
            self.gather()
        if not self.gathered:
            return
        for parameter in self.parameters:
            parameter.drop()
        self.gathered = False

    # ---- gradients
    def _watch(self) -> None:
        """Hooks the whole parameters, once, to know when all have their gradients."""
        for parameter in self.parameters:
            whole = parameter.whole
            if whole.requires_grad and id(whole) not in self._hooked:
                self._hooked.add(id(whole))
                whole.register_post_accumulate_grad_hook(self._arrived)

    def expect_grads(self) -> None:
        """Called when a backward pass reaches the unit."""
        self._left = sum(p.requires_grads() for p in self.parameters)

    @property
    def has_frozen(self) -> bool:
        """Whether some parameter gets no gradient: nobody knows then when its last use is over."""
        return not all(p.requires_grads() for p in self.parameters)

    def _arrived(self, parameter: Tensor) -> None:
        self._left -= 1
        if self._left == 0 and self.on_complete is not None:
            self.on_complete(self)

    def reduce(self) -> None:
        """Starts to reduce the gradients that are there."""
        members = []
        with torch.no_grad():
            for parameter in self.parameters:
                parameter.take_grad()
                if parameter.grad is not None:
                    members.append(parameter)
            if not members or not self.reduce_grads:
                return
            by_dtype: dict[torch.dtype, list[ShardedParameter]] = {}
            for parameter in members:
                by_dtype.setdefault(parameter.grad.dtype, []).append(parameter)
            for some in by_dtype.values():
                self._start_reduce(some)

    def _start_reduce(self, members: list[ShardedParameter]) -> None:
        parts = torch.cat([parameter.grad_parts() for parameter in members], 1)
        for parameter in members:
            parameter.grad = None
        mine = parts.new_empty(parts.size(1))
        work = None
        if self.comm_hook is not None:
            self._reduce_by_hook(parts, mine)
            self._reducing.append((None, mine, members, parts))
            return
        # Half precision sums of many ranks overflow: divide before, where the range is small.
        factor = self.divide_by or float(self.info.ranks)
        parts.div_(factor)
        if self.info.shard_size == 1:
            mine.copy_(parts[0])
        else:
            work = _core.reduce_scatter_tensor(
                mine, parts.view(-1), group=self.info.shard_group, async_op=True
            )
        self._reducing.append((work, mine, members, parts))

    def _reduce_by_hook(self, parts: Tensor, mine: Tensor) -> None:
        """The program's own reduction: of the whole gradient into this rank's part, or of the whole
        in place where nothing is cut. It divides by itself."""
        hook, state = self.comm_hook
        if self.info.shard_size == 1:
            hook(state, parts.view(-1))
            mine.copy_(parts[0])
        else:
            hook(state, parts.view(-1), mine)

    def finish_reduce(self) -> None:
        """Waits for reductions and hands their results to the sharded parameters."""
        with torch.no_grad():
            for work, mine, members, _ in self._reducing:
                if work is not None:
                    work.wait()
                self._hand_out(mine, members)
        self._reducing = []

    def _hand_out(self, mine: Tensor, members: list[ShardedParameter]) -> None:
        at = 0
        pieces = []
        for parameter in members:
            piece = mine[at : at + parameter.part_numel]
            at += parameter.part_numel
            if parameter.partial is not None:
                piece.add_(parameter.partial)
                parameter.partial = None
            pieces.append(piece)
        group = self.info.replicate_group
        if group is not None and not self.all_reduce_grads:
            for parameter, piece in zip(members, pieces, strict=True):
                parameter.partial = piece
            return
        if group is not None:
            _core.all_reduce(mine, group=group)
        for parameter, piece in zip(members, pieces, strict=True):
            parameter.add_grad(piece)


def managed(module: nn.Module, ignored: set[nn.Parameter]) -> list[tuple[nn.Module, str]]:
    """The places of a module's parameters that no unit inside of it manages."""
    found: list[tuple[nn.Module, str]] = []
    seen: set[int] = set()

    def visit(one: nn.Module) -> None:
        if id(one) in seen:
            return
        seen.add(id(one))
        for name, parameter in one._parameters.items():
            if parameter is not None and parameter not in ignored:
                found.append((one, name))
        for child in one.children():
            if child.__dict__.get("_fsdp_state") is None:
                visit(child)

    visit(module)
    return found
