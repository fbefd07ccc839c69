"""Gradients that are compositions of other operators."""

import torch
from torch import Tensor
from torch._composed_ops.registry import composed


@composed("cumprod_backward(Tensor grad, Tensor input, int dim, Tensor output) -> Tensor")
def cumprod_backward(grad: Tensor, input: Tensor, dim: int, output: Tensor) -> Tensor:
    with torch.enable_grad():
        x = input.detach().requires_grad_()
        (result,) = torch.autograd.grad(torch.cumprod(x, dim), x, grad)
    return result


@composed("cummaxmin_backward(Tensor grad, Tensor input, Tensor indices, int dim) -> Tensor")
def cummaxmin_backward(grad: Tensor, input: Tensor, indices: Tensor, dim: int) -> Tensor:
    if input.numel() == 0:
        return torch.zeros_like(input)
    return torch.zeros_like(input).scatter_add(dim, indices, grad)


@composed("trace_backward(Tensor grad, SymInt[] sizes) -> Tensor")
def trace_backward(grad: Tensor, sizes: list[int]) -> Tensor:
    if len(sizes) != 2:
        raise RuntimeError(f"expected matrix input, but got sizes {list(sizes)}")
    return grad * torch.eye(*sizes, dtype=grad.dtype, device=grad.device)


@composed(
    "linear_backward(Tensor self, Tensor grad_output, Tensor weight, bool[3] output_mask) "
    "-> (Tensor, Tensor, Tensor)",
    out="out",
)
def linear_backward(
    self: Tensor, grad_output: Tensor, weight: Tensor, output_mask: list[bool]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    rows = grad_output.reshape(-1, grad_output.size(-1))
    return (
        grad_output @ weight.conj() if output_mask[0] else None,
        rows.mT @ self.reshape(-1, self.size(-1)).conj() if output_mask[1] else None,
        rows.sum(0) if output_mask[2] else None,
    )


@composed(
    "matmul_backward(Tensor grad, Tensor self, Tensor other, bool[2] mask) -> (Tensor, Tensor)",
    out="out",
)
def matmul_backward(
    grad: Tensor, self: Tensor, other: Tensor, mask: list[bool]
) -> tuple[Tensor | None, Tensor | None]:
    left = self.unsqueeze(0) if self.dim() == 1 else self
    right = other.unsqueeze(-1) if other.dim() == 1 else other
    full = grad.unsqueeze(-1) if other.dim() == 1 else grad
    full = full.unsqueeze(-2) if self.dim() == 1 else full
    to_left = (full @ right.mH).sum_to_size(left.shape).reshape(self.shape) if mask[0] else None
    to_right = (left.mH @ full).sum_to_size(right.shape).reshape(other.shape) if mask[1] else None
    return to_left, to_right


@composed(
    "glu_backward_jvp(Tensor grad_x, Tensor grad_glu, Tensor x, Tensor dgrad_glu, Tensor dx, "
    "int dim) -> Tensor",
    out="out",
)
def glu_backward_jvp(
    grad_x: Tensor, grad_glu: Tensor, x: Tensor, dgrad_glu: Tensor, dx: Tensor, dim: int
) -> Tensor:
    """glu = a s(b). Its gradient is (g s, g a s'); this is how that changes with g and (a, b)."""
    a, b = x.chunk(2, dim)
    da, db = dx.chunk(2, dim)
    s = torch.sigmoid(b)
    slope = s * (1 - s)
    bend = slope * (1 - 2 * s)
    to_a = dgrad_glu * s + grad_glu * slope * db
    to_b = dgrad_glu * a * slope + grad_glu * (da * slope + a * bend * db)
    return torch.cat([to_a, to_b], dim)


@composed(
    "max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride=[], "
    "int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor",
    out="out",
)
def max_pool2d_backward(
    grad_output: Tensor,
    self: Tensor,
    kernel_size: list[int],
    stride: list[int] = [],  # noqa: B006
    padding: list[int] | int = 0,
    dilation: list[int] | int = 1,
    ceil_mode: bool = False,
) -> Tensor:
    window = (kernel_size, stride, padding, dilation, ceil_mode)
    _, indices = torch.ops.aten.max_pool2d_with_indices(self, *window)
    return torch.ops.aten.max_pool2d_with_indices_backward(grad_output, self, *window, indices)


@composed("to_dense_backward(Tensor grad, Tensor input, bool? masked_grad=None) -> Tensor")
def to_dense_backward(grad: Tensor, input: Tensor, masked_grad: bool | None = None) -> Tensor:
    if input.layout == torch.strided:
        return grad.to_dense()
    if masked_grad or masked_grad is None:
        return grad.sparse_mask(input)
    return grad.to_sparse(layout=input.layout)


@composed(
    "_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor",
    out="out",
)
def _masked_softmax(
    self: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None
) -> Tensor:
    """True hides. Kinds: 0 one mask of queries by keys, 1 of batch by keys, 2 one like `self`."""
    if mask.dtype != torch.bool:
        raise RuntimeError("Mask should be a boolean tensor")
    if mask_type == 1 and mask.dim() == 2 and self.dim() == 4:
        mask = mask[:, None, None, :]
    hidden = mask.expand(self.shape)
    along = self.dim() - 1 if dim is None else dim
    return torch.softmax(self.masked_fill(hidden, float("-inf")), along)


@composed(
    "_masked_softmax_backward(Tensor grad_output, Tensor output, Tensor mask, int? dim=None) "
    "-> Tensor",
    out="out",
)
def _masked_softmax_backward(
    grad_output: Tensor, output: Tensor, mask: Tensor, dim: int | None = None
) -> Tensor:
    along = output.dim() - 1 if dim is None else dim
    hidden = mask.expand(output.shape)
    weighted = (grad_output * output).masked_fill(hidden, 0.0)
    return (weighted - output * weighted.sum(along, keepdim=True)).masked_fill(hidden, 0.0)


@composed(
    "_pack_padded_sequence_backward(Tensor grad, SymInt[] input_size, Tensor batch_sizes, "
    "bool batch_first) -> Tensor"
)
def _pack_padded_sequence_backward(
    grad: Tensor, input_size: list[int], batch_sizes: Tensor, batch_first: bool
) -> Tensor:
    sizes = list(input_size)
    if batch_first:
        sizes[0], sizes[1] = sizes[1], sizes[0]
    result = grad.new_zeros(sizes)
    first = 0
    for step, count in enumerate(batch_sizes.tolist()):
        result[step, :count] = grad[first : first + count]
        first += count
    return result.transpose(0, 1) if batch_first else result


@composed(
    "rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, "
    "Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) "
    "-> (Tensor, Tensor noise_out)"
)
def rrelu_with_noise_functional(
    self: Tensor,
    noise: Tensor,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    drawn = noise.clone()
    result = torch.ops.aten.rrelu_with_noise(self, drawn, lower, upper, training, generator)
    return result, drawn


@composed(
    "rrelu_with_noise_(Tensor(a!) self, Tensor(b!) noise, Scalar lower=0.125, "
    "Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) "
    "-> Tensor(a!)"
)
def rrelu_with_noise_(
    self: Tensor,
    noise: Tensor,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    generator: torch.Generator | None = None,
) -> Tensor:
    result = torch.ops.aten.rrelu_with_noise(self, noise, lower, upper, training, generator)
    return self.copy_(result)
