"""A stage: the part of a model that one process runs, and its traffic with the stages before and
after it."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining._backward import (
    stage_backward,
    stage_backward_input,
    stage_backward_weight,
)
from torch.distributed.pipelining._gradients import GradientExchange

__all__ = ["PipelineStage"]

Tensor = torch.Tensor
# Messages of a microbatch by kind; a stage sends at most so many tensors.
_FORWARD, _BACKWARD = 0, 1
_MOST_TENSORS = 16
_MOST_MICROBATCHES = 1024


def _tuple(value: Any) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


class PipelineStage:
    """Runs microbatches through a module. What comes from the stage before is a leaf with a
    gradient of its own, which is sent back when it is known."""

    def __init__(
        self,
        submodule: nn.Module,
        stage_index: int,
        num_stages: int,
        device: torch.device,
        input_args: Tensor | tuple[Tensor, ...] | None = None,
        output_args: Tensor | tuple[Tensor, ...] | None = None,
        group: dist.ProcessGroup | None = None,
        dw_builder: Any = None,
    ) -> None:
        if not 0 <= stage_index < num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        self.submod, self.stage_index, self.num_stages = submodule, stage_index, num_stages
        self.device = torch.device(device)
        self.group = group if group is not None else dist.group.WORLD
        self.group_rank, self.group_size = (
            dist.get_rank(self.group),
            dist.get_world_size(self.group),
        )
        if self.group_size > num_stages:
            raise RuntimeError(
                f"Pipeline group size {self.group_size} cannot be larger than number of stages "
                f"{num_stages}"
            )
        self.has_backward = False
        # The rank of each stage: stages go round the ranks.
        self.stage_index_to_group_rank = {i: i % self.group_size for i in range(num_stages)}
        self._incoming: list[tuple[torch.Size, torch.dtype, bool]] | None = None
        self._outgoing_known = False
        if input_args is not None and not self.is_first:
            self._incoming = [(t.shape, t.dtype, t.is_floating_point()) for t in _tuple(input_args)]
            self._outgoing_known = output_args is not None
        self._exchange = GradientExchange(submodule)
        self.clear()

    @property
    def is_first(self) -> bool:
        """Whether the stage gets the step's arguments."""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Whether the stage makes the step's results."""
        return self.stage_index == self.num_stages - 1

    def begin(self, microbatches: int, backward: bool) -> None:
        """A step of so many microbatches begins, with or without backward passes."""
        self.clear()
        self.has_backward = backward
        if backward:
            self._exchange.begin(microbatches)

    def clear(self) -> None:
        """Forgets the microbatches of a step."""
        self._inputs: dict[int, tuple] = {}
        self._outputs: dict[int, tuple] = {}
        self._local: dict[tuple[int, int], tuple] = {}
        self._rest: dict[int, list[dict[str, Any]]] = {}
        self._sends: list[tuple[Any, Tensor]] = []
        self.results: dict[int, Any] = {}

    # ---- traffic
    def _tag(self, kind: int, stage: int, microbatch: int, number: int) -> int:
        place = (stage * 2 + kind) * _MOST_MICROBATCHES + microbatch
        return place * _MOST_TENSORS + number

    def _send(self, tensors: tuple, stage: int, kind: int, microbatch: int) -> None:
        """Sends to another stage; one of the same process takes the tensors as they are."""
        rank = self.stage_index_to_group_rank[stage]
        if rank == self.group_rank:
            self.neighbours[stage]._local[(kind, microbatch)] = tensors
            return
        for n, tensor in enumerate(tensors):
            sent = tensor.detach().contiguous()
            tag = self._tag(kind, stage, microbatch, n)
            work = dist.isend(sent, group_dst=rank, group=self.group, tag=tag)
            self._sends.append((work, sent))

    def _receive(
        self, metas: list[tuple[torch.Size, torch.dtype, bool]], stage: int, kind: int, mb: int
    ) -> tuple:
        if (kind, mb) in self._local:
            return self._local.pop((kind, mb))
        rank = self.stage_index_to_group_rank[stage]
        got = []
        for n, (shape, dtype, _) in enumerate(metas):
            tensor = torch.empty(shape, dtype=dtype, device=self.device)
            tag = self._tag(kind, self.stage_index, mb, n)
            dist.irecv(tensor, group_src=rank, group=self.group, tag=tag).wait()
            got.append(tensor)
        return tuple(got)

    def finish_sends(self) -> None:
        """Waits until all that was sent has left."""
        for work, _ in self._sends:
            work.wait()
        self._sends = []

    neighbours: dict[int, PipelineStage] = {}

    def _announce(self, outputs: tuple) -> None:
        """Tells the next stage, once, what it will get."""
        if self._outgoing_known or self.is_last:
            return
        self._outgoing_known = True
        nxt = self.stage_index + 1
        metas = [(t.shape, t.dtype, t.requires_grad) for t in outputs]
        rank = self.stage_index_to_group_rank[nxt]
        if rank == self.group_rank:
            self.neighbours[nxt]._incoming = metas
            return
        dist.send_object_list([metas], group_dst=rank, group=self.group)

    def _expected(self) -> list[tuple[torch.Size, torch.dtype, bool]]:
        if self._incoming is None:
            rank = self.stage_index_to_group_rank[self.stage_index - 1]
            box: list[Any] = [None]
            dist.recv_object_list(box, group_src=rank, group=self.group)
            self._incoming = box[0]
        return self._incoming

    # ---- work
    def forward_one_chunk(self, microbatch: int, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Runs a microbatch and sends the result on."""
        if not self.is_first:
            metas = self._expected()
            got = self._receive(metas, self.stage_index - 1, _FORWARD, microbatch)
            args = tuple(
                t.detach().requires_grad_(self.has_backward and needs and t.is_floating_point())
                for t, (_, _, needs) in zip(got, metas, strict=True)
            )
        with self._exchange.forward():
            result = self.submod(*args, **kwargs)
        outputs = _tuple(result)
        self._inputs[microbatch], self._outputs[microbatch] = args, outputs
        if self.is_last:
            self.results[microbatch] = result
        else:
            self._announce(outputs)
            self._send(outputs, self.stage_index + 1, _FORWARD, microbatch)
        return result

    def backward_one_chunk(self, microbatch: int, loss: Tensor | None = None) -> None:
        """Runs a microbatch backwards and sends the gradient of its input back."""
        inputs = self._inputs.pop(microbatch)
        results, grads = self._begin_backward(microbatch, loss)
        self._exchange.before_backward(results)
        stage_backward(results, grads, inputs)
        self._send_back(inputs, microbatch)

    def backward_input_one_chunk(self, microbatch: int, loss: Tensor | None = None) -> None:
        """The first part of it: the gradient of the input is sent back, weights get none yet."""
        inputs = self._inputs.pop(microbatch)
        results, grads = self._begin_backward(microbatch, loss)
        weights = self._exchange.whole_parameters()
        _, rest = stage_backward_input(results, grads, inputs, weights)
        self._rest[microbatch] = rest
        self._send_back(inputs, microbatch)

    def backward_weight_one_chunk(self, microbatch: int) -> None:
        """The second part: weights get their gradients."""
        stage_backward_weight(self._exchange.whole_parameters(), self._rest.pop(microbatch))
        self._exchange.after_weights()

    def _begin_backward(
        self, microbatch: int, loss: Tensor | None
    ) -> tuple[list[Tensor], list[Tensor] | None]:
        """What is differentiated, and its gradients from the next stage."""
        outputs = self._outputs.pop(microbatch)
        if self.is_last:
            return [loss], None
        wanted = [t for t in outputs if t.requires_grad]
        metas = [(t.shape, t.dtype, True) for t in wanted]
        return wanted, list(self._receive(metas, self.stage_index + 1, _BACKWARD, microbatch))

    def _send_back(self, inputs: tuple, microbatch: int) -> None:
        if self.is_first:
            return
        given = tuple(
            t.grad if t.grad is not None else torch.zeros_like(t)
            for t in inputs
            if isinstance(t, Tensor) and t.requires_grad
        )
        self._send(given, self.stage_index - 1, _BACKWARD, microbatch)

    def scale_grads(self, factor: int) -> None:
        """Divides gradients by the number of microbatches."""
        for parameter in self.submod.parameters():
            if parameter.grad is not None:
                parameter.grad.div_(factor)
