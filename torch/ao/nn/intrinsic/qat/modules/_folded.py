"""Training with a normalisation that will be folded into the layer before it.

Evaluation will multiply the weight by gamma / sigma of the running statistics and round that
product. Training rounds the same product, divides the result by the factor again, and normalises
with the statistics of the batch: the layer meets the rounding that it will meet, and the
statistics stay those of the plain layer."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.nn.qat.modules._rounded import Rounded
from torch.nn.utils.fusion import fuse_conv_bn_weights, fuse_linear_bn_weights


class Folded(Rounded):
    """A layer with `bn` and a switch that freezes its statistics."""

    _HAS_RELU = False
    freeze_bn: bool

    def attach_bn(self, bn: nn.Module, freeze_bn: bool) -> None:
        """Takes over a normalisation; a frozen one never learns statistics."""
        self.freeze_bn = freeze_bn if self.training else True
        self.bn = bn
        if self.training and freeze_bn:
            self.freeze_bn_stats()

    def reset_running_stats(self) -> None:
        """Forgets the statistics."""
        self.bn.reset_running_stats()

    def reset_bn_parameters(self) -> None:
        """Sets the normalisation back, scales to random numbers."""
        self.bn.reset_running_stats()
        nn.init.uniform_(self.bn.weight)
        nn.init.zeros_(self.bn.bias)

    def update_bn_stats(self) -> Folded:
        """Statistics follow the batches again."""
        self.freeze_bn = False
        self.bn.training = True
        return self

    def freeze_bn_stats(self) -> Folded:
        """Statistics stay as they are."""
        self.freeze_bn = True
        self.bn.training = False
        return self

    def train(self, mode: bool = True) -> Folded:
        """Switches the mode; frozen statistics stay frozen."""
        self.training = mode
        if not self.freeze_bn:
            for module in self.children():
                module.train(mode)
        return self

    def _run(self, input: Tensor, weight: Tensor) -> Tensor:
        """The layer without its bias."""
        raise NotImplementedError(f"{type(self).__name__}._run")

    def forward(self, input: Tensor) -> Tensor:
        bn = self.bn
        if bn.running_var is None:
            raise AssertionError(f"{type(self).__name__}: the normalisation needs running_var")
        factor = bn.weight / torch.sqrt(bn.running_var + bn.eps)
        rows = [-1] + [1] * (self.weight.dim() - 1)
        rounded = self.weight_fake_quant(self.weight * factor.reshape(rows))
        raw = self._run(input, rounded)
        channels = [1, -1] + [1] * (raw.dim() - 2)
        values = raw / factor.reshape(channels)
        if self.bias is not None:
            values = values + self.bias.reshape(channels)
        result = bn(values)
        return nn.functional.relu(result) if self._HAS_RELU else result

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        """The layer that trains in place of a layer and its normalisation."""
        cls.check_source(mod)
        layer, bn = mod[0], mod[1]
        made = cls.__new__(cls)
        nn.Module.__init__(made)
        made.freeze_bn = False
        Folded._adopt(made, layer)
        made.watch(mod.qconfig)
        made.training = mod.training
        made.attach_bn(bn, False)
        return made

    @staticmethod
    def _adopt(made: nn.Module, layer: nn.Module) -> None:
        from torch.ao.nn.qat.modules._rounded import same_settings, share_parameters

        same_settings(made, layer)
        share_parameters(made, layer)

    def folded(self) -> tuple[Tensor, Tensor | None]:
        """Weight and bias with the normalisation multiplied in."""
        bn = self.bn
        fold = fuse_linear_bn_weights if self.weight.dim() == 2 else fuse_conv_bn_weights
        bias = self.bias
        return fold(self.weight, bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)

    def _plain_kind(self) -> type[nn.Module]:
        kinds = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)
        return next(kind for kind in type(self).__mro__ if kind in kinds)

    def to_float(self) -> nn.Module:
        """The plain layer with the normalisation folded into it, and its activation."""
        made = self.plain(self._plain_kind())
        made.__dict__.pop("freeze_bn", None)
        weight, bias = self.folded()
        made.weight, made.bias = nn.Parameter(weight.detach()), nn.Parameter(bias.detach())
        wrap = getattr(self, "_FUSED_FLOAT_MODULE", None)
        return wrap(made, nn.ReLU()) if wrap is not None and self._HAS_RELU else made
