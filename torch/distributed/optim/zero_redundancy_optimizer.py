"""ZeroRedundancyOptimizer: each rank keeps the optimizer's state of its share of the parameters,
updates these, and sends them to the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch.optim import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]

Tensor = torch.Tensor


def _check_alike(given: list[Any]) -> None:
    """Parameters travel together, so they must be dense and of one dtype."""
    every: list[Tensor] = []
    for one in given:
        own = one["params"] if isinstance(one, dict) else one
        every += [own] if isinstance(own, Tensor) else list(own)
    for parameter in every:
        if parameter.is_sparse:
            raise ValueError("ZeroRedundancyOptimizer requires all parameters to be dense")
        if parameter.dtype != every[0].dtype:
            raise ValueError(
                "ZeroRedundancyOptimizer requires all parameters to have one dtype, got "
                f"{every[0].dtype} and {parameter.dtype}"
            )


class ZeroRedundancyOptimizer(Optimizer):
    """An optimizer whose state is divided among ranks. Parameters go to the rank that has the
    least, the largest first; all ranks come to the same division."""

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: type[Optimizer],
        process_group: dist.ProcessGroup | None = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError(
                "ZeroRedundancyOptimizer(overlap_with_ddp=True) is not implemented in this version"
            )
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {type(params)}"
            )
        given = list(params)
        if not given:
            raise ValueError("params argument given to the optimizer is an empty list")
        for one in given:
            if not isinstance(one, (Tensor, dict)):
                raise TypeError(
                    "params argument given to the optimizer should be an iterable of Tensors or "
                    f"dicts, but got {type(one)}"
                )
        _check_alike(given)
        self.process_group = process_group if process_group is not None else dist.group.WORLD
        self.rank, self.world_size = (
            dist.get_rank(self.process_group),
            dist.get_world_size(self.process_group),
        )
        self._optim_constructor, self._optim_defaults = optimizer_class, defaults
        self._all_states: list[dict[str, Any]] = []
        self._is_made = False
        super().__init__(given, defaults)
        self._is_made = True
        self._divide()

    def _divide(self) -> None:
        """Gives each parameter an owner, and makes this rank's own optimizer."""
        held = [0] * self.world_size
        self._owner: dict[Tensor, int] = {}
        every = [p for group in self.param_groups for p in group["params"]]
        for parameter in sorted(every, key=lambda p: -p.numel()):
            rank = min(range(self.world_size), key=lambda r: held[r])
            held[rank] += parameter.numel()
            self._owner[parameter] = rank
        groups = self._groups_of(self.rank)
        self.optim = self._optim_constructor(groups, **self._optim_defaults)

    def _groups_of(self, rank: int) -> list[dict[str, Any]]:
        return [
            {**group, "params": [p for p in group["params"] if self._owner[p] == rank]}
            for group in self.param_groups
        ]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters, and divides all of them again."""
        super().add_param_group(param_group)
        if self._is_made:
            before = dict(self.optim.state)
            self._divide()
            for parameter, state in before.items():
                if self._owner[parameter] == self.rank:
                    self.optim.state[parameter] = state

    def _settings_to(self, to: list[dict[str, Any]], source: list[dict[str, Any]]) -> None:
        for new, old in zip(to, source, strict=True):
            new.update({key: value for key, value in old.items() if key != "params"})

    def step(self, closure: Callable[[], float] | None = None, **kwargs: Any) -> float | None:
        """Updates this rank's parameters and gets the others from their owners."""
        self._settings_to(self.optim.param_groups, self.param_groups)
        loss = (
            self.optim.step(closure, **kwargs) if closure is not None else self.optim.step(**kwargs)
        )
        self._settings_to(self.param_groups, self.optim.param_groups)
        works = [
            dist.broadcast(parameter.data, group_src=owner, group=self.process_group, async_op=True)
            for parameter, owner in self._owner.items()
        ]
        for work in works:
            work.wait()
        return loss

    # ---- state
    def consolidate_state_dict(self, to: int = 0) -> None:
        """Brings the state of all ranks to one, whose state_dict() then has all of it."""
        self._settings_to(self.optim.param_groups, self.param_groups)
        every: list[Any] = [None] * self.world_size
        mine = self.optim.state_dict()["state"]
        dist.all_gather_object(every, mine, group=self.process_group)
        self._all_states = every if dist.get_rank() == to else []

    def state_dict(self) -> dict[str, Any]:
        """The state of all parameters, on the rank that consolidate_state_dict was told."""
        if not self._all_states:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                "`consolidate_state_dict(to=...)` on all ranks beforehand if you meant to save the "
                "global state."
            )
        whole = super().state_dict()
        number = {p: i for i, p in enumerate(self._in_order())}
        for rank, state in enumerate(self._all_states):
            own = [p for group in self._groups_of(rank) for p in group["params"]]
            whole["state"].update({number[own[int(i)]]: value for i, value in state.items()})
        whole["state"] = dict(sorted(whole["state"].items()))
        return whole

    def _in_order(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes this rank's share of a whole state."""
        every = self._in_order()
        own = [p for group in self.optim.param_groups for p in group["params"]]
        place = {p: i for i, p in enumerate(own)}
        shared = {
            place[every[int(i)]]: value
            for i, value in state_dict["state"].items()
            if every[int(i)] in place
        }
        self._settings_to(self.param_groups, state_dict["param_groups"])
        groups = self.optim.state_dict()["param_groups"]
        self._settings_to(groups, state_dict["param_groups"])
        self.optim.load_state_dict({"state": shared, "param_groups": groups})
