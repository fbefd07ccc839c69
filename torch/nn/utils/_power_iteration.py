"""The largest singular value of a weight by power iteration, for both spectral_norm functions: the
hook of spectral_norm.py and the parametrization."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def check_count(n_power_iterations: int) -> None:
    """Raises unless there is at least one step."""
    if n_power_iterations <= 0:
        raise ValueError(
            "Expected n_power_iterations to be positive, but got "
            f"n_power_iterations={n_power_iterations}"
        )


def as_matrix(weight: torch.Tensor, dim: int) -> torch.Tensor:
    """The weight as a matrix whose rows are its slices along dim."""
    slices = weight.movedim(dim, 0)
    return slices.reshape(slices.size(0), -1)


def random_units(matrix: torch.Tensor, eps: float) -> list[torch.Tensor]:
    """Random vectors of length one, as long as the columns and as the rows of a matrix."""
    with torch.no_grad():
        return [
            F.normalize(matrix.new_empty(size).normal_(0, 1), dim=0, eps=eps)
            for size in matrix.shape
        ]


@torch.no_grad()
def iterate(
    matrix: torch.Tensor, left: torch.Tensor, right: torch.Tensor, steps: int, eps: float
) -> None:
    """Turns both vectors, in place, towards the singular vectors of the largest singular value.
    A step makes `right` from `left`, then `left` from `right`; called with the transposed matrix
    and the vectors exchanged it goes the other way round."""
    for _ in range(steps):
        for product, source, target in ((matrix.t(), left, right), (matrix, right, left)):
            target.copy_(F.normalize(torch.mv(product, source), dim=0, eps=eps))


def divided(
    weight: torch.Tensor, matrix: torch.Tensor, left: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    """The weight over left @ matrix @ right. The vectors are copied first: the next forward changes
    them while backward still needs these values."""
    return weight / torch.dot(left.clone(), torch.mv(matrix, right.clone()))
