"""How runs of modules become one: batch normalisation is folded into the layer before it, and an
activation becomes part of it."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn
from torch.ao.nn import intrinsic as fused
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = [
    "fuse_conv_bn",
    "fuse_conv_bn_relu",
    "fuse_convtranspose_bn",
    "fuse_linear_bn",
    "get_fuser_method",
    "get_fuser_method_new",
]

Fuser = Callable[..., nn.Module]
_CONV = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_BN = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def _named(kind: str, layer: nn.Module) -> type[nn.Module]:
    """The fused class for a convolution of its number of dimensions."""
    dims = next((i for i, c in enumerate(_CONV, 1) if isinstance(layer, c)), None)
    if dims is None:
        raise NotImplementedError(f"Cannot fuse modules: {type(layer)}")
    return getattr(fused, f"{kind}{dims}d")


def _check_modes(*modules: nn.Module) -> None:
    if len({module.training for module in modules}) > 1:
        raise AssertionError("Conv and BN both must be in the same mode (train or eval).")


def _check_training(is_qat: bool, layer: nn.Module, bn: nn.Module, channels: int) -> None:
    if is_qat:
        if bn.num_features != channels:
            raise AssertionError("Output channel of the layer must match num_features of BatchNorm")
        if not bn.affine:
            raise AssertionError("Only support fusing BatchNorm with affine set to True")
        if not bn.track_running_stats:
            raise AssertionError(
                "Only support fusing BatchNorm with tracking_running_stats set to True"
            )


def fuse_conv_bn(is_qat: bool, conv: nn.Module, bn: nn.Module) -> nn.Module:
    """A convolution with a normalisation folded into it; while training, both in a row."""
    _check_modes(conv, bn)
    _check_training(is_qat, conv, bn, conv.out_channels)
    return _named("ConvBn", conv)(conv, bn) if is_qat else fuse_conv_bn_eval(conv, bn)


def fuse_conv_bn_relu(is_qat: bool, conv: nn.Module, bn: nn.Module, relu: nn.Module) -> nn.Module:
    """The same with an activation."""
    _check_modes(conv, bn, relu)
    _check_training(is_qat, conv, bn, conv.out_channels)
    if is_qat:
        return _named("ConvBnReLU", conv)(conv, bn, relu)
    return _named("ConvReLU", conv)(fuse_conv_bn_eval(conv, bn), relu)


def fuse_linear_bn(is_qat: bool, linear: nn.Module, bn: nn.Module) -> nn.Module:
    """A linear layer with a normalisation folded into it."""
    _check_modes(linear, bn)
    _check_training(is_qat, linear, bn, linear.out_features)
    return fused.LinearBn1d(linear, bn) if is_qat else fuse_linear_bn_eval(linear, bn)


def fuse_convtranspose_bn(is_qat: bool, convt: nn.Module, bn: nn.Module) -> nn.Module:
    """A transposed convolution with a normalisation folded into it; in evaluation alone."""
    _check_modes(convt, bn)
    if is_qat:
        raise Exception("Fusing ConvTranspose+BatchNorm not yet supported in QAT.")
    return fuse_conv_bn_eval(convt, bn, transpose=True)


def _sequential_wrapper2(sequential: type[nn.Module]) -> Fuser:
    """A fuser that puts two modules into a class."""

    def fuser_method(is_qat: bool, m1: nn.Module, m2: nn.Module) -> nn.Module:
        return sequential(m1, m2)

    return fuser_method


def _default_table() -> dict[tuple[type[nn.Module], ...], Fuser]:
    table: dict[tuple[type[nn.Module], ...], Fuser] = {}
    for dims, (conv, bn, back) in enumerate(zip(_CONV, _BN, _TRANSPOSED, strict=True), 1):
        table[conv, bn] = fuse_conv_bn
        table[conv, bn, nn.ReLU] = fuse_conv_bn_relu
        table[conv, nn.ReLU] = _sequential_wrapper2(getattr(fused, f"ConvReLU{dims}d"))
        table[back, bn] = fuse_convtranspose_bn
    table[nn.Linear, nn.ReLU] = _sequential_wrapper2(fused.LinearReLU)
    table[nn.Linear, nn.BatchNorm1d] = fuse_linear_bn
    table[nn.BatchNorm2d, nn.ReLU] = _sequential_wrapper2(fused.BNReLU2d)
    table[nn.BatchNorm3d, nn.ReLU] = _sequential_wrapper2(fused.BNReLU3d)
    return table


_DEFAULT_OP_LIST_TO_FUSER_METHOD = _default_table()


def get_fuser_method(
    op_list: tuple[type, ...] | list[type],
    additional_fuser_method_mapping: dict[tuple[type, ...], Fuser] | None = None,
) -> Fuser:
    """What fuses modules of these kinds."""
    table = {**_DEFAULT_OP_LIST_TO_FUSER_METHOD, **(additional_fuser_method_mapping or {})}
    fuser = table.get(tuple(op_list))
    if fuser is None:
        raise NotImplementedError(f"did not find fuser method for: {op_list} ")
    return fuser


def _variants(pattern: object) -> list[object]:
    """A pattern, and the same with any node in place of its parts that are no classes."""
    from torch.ao.quantization.utils import MatchAllNode

    if not isinstance(pattern, tuple):
        return [pattern, MatchAllNode]
    parts = [_variants(part) for part in pattern]
    found: list[list[object]] = [[]]
    for options in parts:
        found = [[*head, option] for head in found for option in options]
    return [tuple(option) for option in found]


def get_fuser_method_new(op_pattern: object, fuser_method_mapping: dict[object, Fuser]) -> Fuser:
    """What fuses modules that match a pattern."""
    for pattern in _variants(op_pattern):
        fuser = fuser_method_mapping.get(pattern)
        if fuser is not None:
            return fuser
    raise AssertionError(f"did not find fuser method for: {op_pattern} ")
