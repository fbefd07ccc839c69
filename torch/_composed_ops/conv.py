"""Convolutions under the names of the algorithms that once computed them. All run the one
convolution, which chooses its own."""

import torch
from torch import Tensor
from torch._composed_ops.registry import composed, define, define_out


def _sizes(dims: int) -> str:
    return f"SymInt[{dims}]"


def _forward(dims: int, groups_of_input: bool = False):
    """kernel_size only repeats what the weight says."""

    def run(
        self: Tensor,
        weight: Tensor,
        kernel_size: list[int],
        bias: Tensor | None = None,
        stride: list[int] | None = None,
        padding: list[int] | None = None,
        dilation: list[int] | None = None,
    ) -> Tensor:
        if list(weight.shape[2:]) != list(kernel_size):
            raise RuntimeError(
                f"expected a weight with windows of {list(kernel_size)}, but got one of size "
                f"{list(weight.shape)}"
            )
        return torch.convolution(
            self,
            weight,
            bias,
            stride or [1] * dims,
            padding or [0] * dims,
            dilation or [1] * dims,
            False,
            [0] * dims,
            self.size(-dims - 1) if groups_of_input else 1,
        )

    return run


def _transposed(dims: int):
    def run(
        self: Tensor,
        weight: Tensor,
        kernel_size: list[int],
        bias: Tensor | None = None,
        stride: list[int] | None = None,
        padding: list[int] | None = None,
        output_padding: list[int] | None = None,
        dilation: list[int] | None = None,
    ) -> Tensor:
        return torch.convolution(
            self,
            weight,
            bias,
            stride or [1] * dims,
            padding or [0] * dims,
            dilation or [1] * dims,
            True,
            output_padding or [0] * dims,
            1,
        )

    return run


def _define_forward() -> None:
    def declare(name: str, dims: int, tail: str, function, out: str = "out") -> None:
        kind = _sizes(dims)
        schema = f"{name}(Tensor self, Tensor weight, {kind} kernel_size, {tail}) -> Tensor"
        define(schema, function)
        define_out(schema, out, function)

    for dims in (2, 3):
        kind = _sizes(dims)
        ones, zeros = f"[{', '.join('1' * dims)}]", f"[{', '.join('0' * dims)}]"
        defaults = f"Tensor? bias=None, {kind} stride={ones}, {kind} padding={zeros}"
        plain = f"Tensor? bias, {kind} stride, {kind} padding"
        declare(
            f"slow_conv_dilated{dims}d", dims, f"{defaults}, {kind} dilation={ones}", _forward(dims)
        )
        declare(
            f"slow_conv_transpose{dims}d",
            dims,
            f"{defaults}, {kind} output_padding={zeros}, {kind} dilation={ones}",
            _transposed(dims),
        )
        declare("thnn_conv2d" if dims == 2 else "slow_conv3d", dims, defaults, _forward(dims))
        declare(
            "_slow_conv2d_forward" if dims == 2 else "slow_conv3d_forward",
            dims,
            plain,
            _forward(dims),
            "output",
        )
        declare(
            "_conv_depthwise2d" if dims == 2 else "conv_depthwise3d",
            dims,
            f"{plain}, {kind} dilation",
            _forward(dims, groups_of_input=True),
        )


_define_forward()


@composed(
    "_slow_conv2d_backward.output_mask(Tensor grad_output, Tensor self, Tensor weight, "
    "SymInt[2] kernel_size, SymInt[2] stride, SymInt[2] padding, bool[3] output_mask) "
    "-> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)",
)
def _slow_conv2d_backward(
    grad_output: Tensor,
    self: Tensor,
    weight: Tensor,
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    output_mask: list[bool],
) -> tuple[Tensor, Tensor, Tensor]:
    return torch.ops.aten.convolution_backward(
        grad_output,
        self,
        weight,
        [weight.size(0)],
        stride,
        padding,
        [1, 1],
        False,
        [0, 0],
        1,
        output_mask,
    )


@composed(
    "conv_tbc_backward(Tensor self, Tensor input, Tensor weight, Tensor bias, int pad) "
    "-> (Tensor, Tensor, Tensor)"
)
def conv_tbc_backward(
    self: Tensor, input: Tensor, weight: Tensor, bias: Tensor, pad: int
) -> tuple[Tensor, Tensor, Tensor]:
    """`self` is the gradient of the result. Time stands first, windows before channels."""
    into, kernel, offset = torch.ops.aten.convolution_backward(
        self.permute(1, 2, 0),
        input.permute(1, 2, 0),
        weight.permute(2, 1, 0),
        [bias.numel()],
        [1],
        [pad],
        [1],
        False,
        [0],
        1,
        [True, True, True],
    )
    return into.permute(2, 0, 1), kernel.permute(2, 1, 0), offset


@composed(
    "_convolution_double_backward(Tensor? ggI, Tensor? ggW, Tensor? ggb, Tensor gO, "
    "Tensor weight, Tensor self, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
    "bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) "
    "-> (Tensor, Tensor, Tensor)"
)
def _convolution_double_backward(
    ggI: Tensor | None,
    ggW: Tensor | None,
    ggb: Tensor | None,
    gO: Tensor,
    weight: Tensor,
    self: Tensor,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    output_padding: list[int],
    groups: int,
    output_mask: list[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Of <gO, conv(x, w)>: a convolution is linear in each operand, so what comes back to gO is
    conv(ggI, w) + conv(x, ggW) + ggb, to w its gradient at ggI, to x its gradient at ggW."""
    rest = (stride, padding, dilation, transposed, output_padding, groups)

    def backward(x: Tensor, w: Tensor, wanted: list[bool]) -> tuple[Tensor, Tensor, Tensor]:
        return torch.ops.aten.convolution_backward(gO, x, w, [gO.size(1)], *rest, wanted)

    to_grad, to_self, to_weight = None, None, None
    if output_mask[0]:
        to_grad = torch.zeros_like(gO)
        if ggI is not None:
            to_grad = to_grad + torch.convolution(ggI, weight, None, *rest)
        if ggW is not None:
            to_grad = to_grad + torch.convolution(self, ggW, None, *rest)
        if ggb is not None:
            to_grad = to_grad + ggb.reshape(1, -1, *[1] * (gO.dim() - 2))
    if output_mask[1]:
        zero = torch.zeros_like(self)
        to_self = zero if ggW is None else backward(self, ggW, [True, False, False])[0]
    if output_mask[2]:
        zero = torch.zeros_like(weight)
        to_weight = zero if ggI is None else backward(ggI, weight, [False, True, False])[1]
    return to_grad, to_self, to_weight
