"""Normalisation of each channel over the batch, with running statistics for evaluation. The base
_NormBase is shared with instance normalisation."""

from __future__ import annotations

import torch
from torch.nn import functional as F
from torch.nn import init
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.modules.module import Module
from torch.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "BatchNorm1d",
    "LazyBatchNorm1d",
    "BatchNorm2d",
    "LazyBatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """Scale, shift and running statistics of num_features channels."""

    weight: torch.Tensor
    bias: torch.Tensor
    running_mean: torch.Tensor | None
    running_var: torch.Tensor | None

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]
    # The ranks of input a subclass takes.
    _ranks = ()

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum=0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device=None,
        dtype: torch.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = Parameter(torch.empty(num_features, **options))
        else:
            self.register_parameter("weight", None)
        if affine and bias:
            self.bias = Parameter(torch.empty(num_features, **options))
        else:
            self.register_parameter("bias", None)
        if track_running_stats:
            self.register_buffer("running_mean", torch.zeros(num_features, **options))
            self.register_buffer("running_var", torch.ones(num_features, **options))
            count = torch.tensor(0, dtype=torch.long, device=device)
            self.register_buffer("num_batches_tracked", count)
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Mean 0, variance 1, no batches seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Scale 1, shift 0, fresh running statistics."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input) -> None:
        if not self._ranks:
            raise NotImplementedError(f"{type(self).__name__} does not say which inputs it takes")
        if input.dim() not in self._ranks:
            listed = " or ".join(f"{rank}D" for rank in self._ranks)
            raise ValueError(f"expected {listed} input (got {input.dim()}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        # Version 1 did not count batches; what it saved has no such key.
        version = local_metadata.get("version", None)
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats:
            if key not in state_dict:
                count = self.num_batches_tracked
                known = count is not None and count.device != torch.device("meta")
                state_dict[key] = count if known else torch.tensor(0, dtype=torch.long)
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )


class _BatchNorm(_NormBase):
    """Each channel to mean 0 and variance 1 over the batch, then scaled and shifted."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        self._check_input_dim(input)
        average = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                average = 1.0 / float(self.num_batches_tracked)
        use_batch = self.training or (self.running_mean is None and self.running_var is None)
        keep_stats = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if keep_stats else None,
            self.running_var if keep_stats else None,
            self.weight,
            self.bias,
            use_batch,
            average,
            self.eps,
        )


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """A normalisation that finds num_features at its first call."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum=0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device=None,
        dtype: torch.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        options = {"device": device, "dtype": dtype}
        super().__init__(0, eps, momentum, False, False, **options)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**options)
            if bias:
                self.bias = UninitializedParameter(**options)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**options)
            self.running_var = UninitializedBuffer(**options)
            self.num_batches_tracked = torch.tensor(0, dtype=torch.long, device=device)

    def reset_parameters(self) -> None:
        """Initial values, once the shapes are known."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input) -> None:
        """The number of channels is the size of dimension 1."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        names = ("weight", "bias", "running_mean", "running_var")
        self._give_shapes(dict.fromkeys(names, (self.num_features,)))


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L)."""

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (N, C, H, W)."""

    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of (N, C, D, H, W)."""

    _ranks = (5,)


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """BatchNorm1d that finds num_features at its first call."""

    _ranks = (2, 3)
    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """BatchNorm2d that finds num_features at its first call."""

    _ranks = (4,)
    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """BatchNorm3d that finds num_features at its first call."""

    _ranks = (5,)
    cls_to_become = BatchNorm3d


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over the batches of all processes of a group; with one process, that of
    its own batch."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum=0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group=None,
        device=None,
        dtype: torch.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The normalised input."""
        group = self._group() if self.training else None
        return super().forward(input) if group is None else self._over_group(input, group)

    def _group(self):
        """The group whose batches count; None where this process is alone."""
        from torch import distributed

        if not distributed.is_initialized():
            return None
        group = self.process_group or distributed.group.WORLD
        return group if group.size() > 1 else None

    def _over_group(self, input: torch.Tensor, group) -> torch.Tensor:
        from torch.distributed.nn.functional import all_reduce

        self._check_input_dim(input)
        channels = input.transpose(0, 1).reshape(input.size(1), -1).float()
        count = channels.new_tensor([channels.size(1)])
        sums = all_reduce(torch.cat([channels.sum(1), count]), group=group)
        total = sums[-1].detach()
        mean = sums[:-1] / total
        # Deviations from the common mean, and not a difference of squares, which loses digits.
        spread = all_reduce((channels - mean[:, None]).square().sum(1), group=group)
        variance = spread / total
        if self.track_running_stats and self.running_mean is not None:
            self._update_statistics(mean.detach(), (spread / (total - 1)).detach())
        shape = [1, -1] + [1] * (input.dim() - 2)
        scale = torch.rsqrt(variance + self.eps)
        result = (input.float() - mean.view(shape)) * scale.view(shape)
        if self.weight is not None:
            result = result * self.weight.float().view(shape)
        if self.bias is not None:
            result = result + self.bias.float().view(shape)
        return result.to(input.dtype)

    def _update_statistics(self, mean: torch.Tensor, variance: torch.Tensor) -> None:
        with torch.no_grad():
            self.num_batches_tracked.add_(1)
            momentum = self.momentum
            if momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
            self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None) -> torch.nn.Module:
        """The module with every batch normalisation in it replaced by this one."""
        result = module
        if isinstance(module, _BatchNorm):
            result = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
            )
            for name in ("weight", "bias"):
                setattr(result, name, getattr(module, name))
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(result, name, getattr(module, name))
            result.training = module.training
            if hasattr(module, "qconfig"):
                result.qconfig = module.qconfig
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result
