"""Normalisation of each channel of each sample over its positions."""

from __future__ import annotations

import warnings

import torch
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    """Takes (N, C, *) or, without a batch dimension, (C, *)."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum=0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device=None,
        dtype: torch.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _get_no_batch_dim(self) -> int:
        return self._ranks[0]

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        self._check_input_dim(input)
        lone = input.dim() == self._get_no_batch_dim()
        self._check_channels(input.shape, 0 if lone else 1)
        result = F.instance_norm(
            input.unsqueeze(0) if lone else input,
            *(self.running_mean, self.running_var, self.weight, self.bias),
            use_input_stats=self.training or not self.track_running_stats,
            momentum=self.momentum or 0.0,
            eps=self.eps,
        )
        return result.squeeze(0) if lone else result

    def _check_channels(self, shape, dim) -> None:
        """The wrong number matters where there is a scale for each channel."""
        if shape[dim] == self.num_features:
            return
        if self.affine:
            raise ValueError(
                f"expected input's size at dim={dim} to match num_features "
                f"({self.num_features}), but got: {shape[dim]}."
            )
        warnings.warn(
            f"input's size at dim={dim} does not match num_features. You can silence "
            "this warning by not passing in num_features, which is not used because "
            "affine=False",
            stacklevel=3,
        )


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of (N, C, L) or (C, L)."""

    _ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of (N, C, H, W) or (C, H, W)."""

    _ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of (N, C, D, H, W) or (C, D, H, W)."""

    _ranks = (4, 5)


class _LazyInstanceNorm(_LazyNormBase, _InstanceNorm):
    def initialize_parameters(self, input) -> None:
        """The number of channels, wherever the rank puts them."""
        if self.has_uninitialized_params():
            batched = input if input.dim() == self._ranks[1] else input.unsqueeze(0)
            super().initialize_parameters(batched)


class LazyInstanceNorm1d(_LazyInstanceNorm):
    """InstanceNorm1d that finds num_features at its first call."""

    _ranks = (2, 3)
    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyInstanceNorm):
    """InstanceNorm2d that finds num_features at its first call."""

    _ranks = (3, 4)
    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyInstanceNorm):
    """InstanceNorm3d that finds num_features at its first call."""

    _ranks = (4, 5)
    cls_to_become = InstanceNorm3d
