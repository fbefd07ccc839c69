"""PowerSGD: gradients of matrices travel as products of two thin ones (Vogels, Karimireddy, Jaggi:
PowerSGD, NeurIPS 2019). What the product misses is kept and added to the next gradient."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.futures import Future

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

Tensor = torch.Tensor


@dataclass
class PowerSGDState:
    """Settings, and what is kept between steps: errors of the approximation and the right factors,
    which begin the next iteration."""

    process_group: dist.ProcessGroup | None
    matrix_approximation_rank: int = 1
    start_powerSGD_iter: int = 1_000
    min_compression_rate: float = 2
    use_error_feedback: bool = True
    warm_start: bool = True
    orthogonalization_epsilon: float = 0
    random_seed: int = 0
    compression_stats_logging_frequency: int = 10_000
    batch_tensors_with_same_shape: bool = False
    iter: int = 0
    total_numel_before_compression: int = 0
    total_numel_after_compression: int = 0
    error_dict: dict[int, Tensor] = field(default_factory=dict)
    q_memory_dict: dict[int, list[Tensor]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.start_powerSGD_iter <= 1 and (self.use_error_feedback or self.warm_start):
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is "
                "enabled, because PowerSGD can only be applied after the first two iterations in "
                "DDP."
            )
        self._random = torch.Generator().manual_seed(self.random_seed)

    @property
    def _group(self) -> dist.ProcessGroup:
        return dist.group.WORLD if self.process_group is None else self.process_group

    def compression_stats(self) -> tuple[float, int, int]:
        """(rate, numbers before, numbers sent)."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0.0), before, after

    def _fresh(self, rows: int, rank: int, like: Tensor) -> Tensor:
        """A random factor, the same on all ranks."""
        drawn = torch.randn(rows, rank, generator=self._random)
        return drawn.to(like.device, like.dtype)

    def __getstate__(self) -> dict[str, Any]:
        kept = {key: value for key, value in self.__dict__.items() if key != "_random"}
        return {**kept, "process_group": None, "random_state": self._random.get_state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        random = state.pop("random_state")
        self.__dict__.update(state)
        self._random = torch.Generator()
        self._random.set_state(random)


def _orthonormal(matrix: Tensor, epsilon: float) -> Tensor:
    """A basis of the columns' span. `epsilon` keeps columns without length from dividing by
    zero."""
    wide = matrix.float() if matrix.dtype in (torch.float16, torch.bfloat16) else matrix
    if not epsilon:
        return torch.linalg.qr(wide)[0].to(matrix.dtype)
    basis = torch.empty_like(wide)
    for i in range(wide.size(1)):
        column = wide[:, i]
        for j in range(i):
            column = column - (basis[:, j] @ column) * basis[:, j]
        basis[:, i] = column / (column.norm() + epsilon)
    return basis.to(matrix.dtype)


def _is_worth_it(rows: int, columns: int, state: PowerSGDState) -> bool:
    rank = min(rows, columns, state.matrix_approximation_rank)
    return (rows + columns) * rank * state.min_compression_rate < rows * columns


def _mean(group: dist.ProcessGroup, tensor: Tensor) -> Tensor:
    group.allreduce([tensor]).wait()
    return tensor.div_(group.size())


def _approximate(state: PowerSGDState, matrices: list[Tensor], key: int) -> None:
    """Replaces matrices by the mean over ranks of their approximations: one power iteration."""
    known = state.q_memory_dict.get(key) if state.warm_start else None
    rank = state.matrix_approximation_rank
    if known is None:
        known = [state._fresh(m.size(1), min(*m.shape, rank), m) for m in matrices]
    epsilon = state.orthogonalization_epsilon
    right = [_orthonormal(q, epsilon) for q in known]
    left = _exchanged(state, [m @ q for m, q in zip(matrices, right, strict=True)])
    left = [_orthonormal(p, epsilon) for p in left]
    right = _exchanged(state, [m.t() @ p for m, p in zip(matrices, left, strict=True)])
    for matrix, p, q in zip(matrices, left, right, strict=True):
        torch.matmul(p, q.t(), out=matrix)
    if state.warm_start:
        state.q_memory_dict[key] = right
    state.total_numel_after_compression += sum(t.numel() for t in (*left, *right))


def _exchanged(state: PowerSGDState, factors: list[Tensor]) -> list[Tensor]:
    """The mean over ranks of several matrices, sent as one message."""
    flat = _mean(state._group, torch.cat([f.reshape(-1) for f in factors]))
    parts = flat.split([f.numel() for f in factors])
    return [part.view(f.shape) for part, f in zip(parts, factors, strict=True)]


def _with_error(state: PowerSGDState, bucket: Any) -> tuple[Tensor, Tensor | None]:
    """The bucket's numbers, what the last approximation missed added, and a copy of them."""
    numbers, key = bucket.buffer(), bucket.index()
    if not state.use_error_feedback:
        return numbers, None
    missed = state.error_dict.get(key)
    if missed is not None:
        numbers.add_(missed)
    return numbers, numbers.clone()


def _finished(state: PowerSGDState, bucket: Any, numbers: Tensor, wanted: Tensor | None) -> Future:
    if wanted is not None:
        state.error_dict[bucket.index()] = wanted.sub_(numbers)
    if bucket.is_last():
        state.iter += 1
    future: Future = Future()
    future.set_result(numbers)
    return future


def _too_early(state: PowerSGDState, bucket: Any) -> bool:
    if state.iter >= state.start_powerSGD_iter:
        return False
    if bucket.is_last():
        state.iter += 1
    return True


def powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future:
    """Sends each gradient of a matrix as a product of two thin ones, all others as they are."""
    if _too_early(state, bucket):
        return allreduce_hook(state.process_group, bucket)
    numbers, wanted = _with_error(state, bucket)
    state.total_numel_before_compression += numbers.numel()
    plain, matrices = [], []
    at = 0
    for gradient in bucket.gradients():
        part = numbers[at : at + gradient.numel()].view(gradient.shape)
        at += gradient.numel()
        flat = part.reshape(part.size(0), -1) if part.ndim > 1 else None
        if flat is not None and _is_worth_it(*flat.shape, state):
            matrices.append(flat)
        else:
            plain.append(part)
    if plain:
        joined = _exchanged(state, plain)
        state.total_numel_after_compression += sum(t.numel() for t in plain)
        for part, mean in zip(plain, joined, strict=True):
            part.copy_(mean)
    if matrices:
        _approximate(state, matrices, bucket.index())
    return _finished(state, bucket, numbers, wanted)


def batched_powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future:
    """Sends a whole bucket, as one square matrix, as a product of two thin ones."""
    if _too_early(state, bucket):
        return allreduce_hook(state.process_group, bucket)
    numbers, wanted = _with_error(state, bucket)
    state.total_numel_before_compression += numbers.numel()
    side = math.isqrt(numbers.numel() - 1) + 1 if numbers.numel() else 0
    square = numbers.new_zeros(side * side)
    square[: numbers.numel()].copy_(numbers)
    if side:
        _approximate(state, [square.view(side, side)], bucket.index())
        numbers.copy_(square[: numbers.numel()])
    return _finished(state, bucket, numbers, wanted)
