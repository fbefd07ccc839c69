"""Questions about engines that are not here, small helpers of other packages, and overloads that
differ from an operator with an entry in their arguments only."""

import torch
from torch import Tensor
from torch._composed_ops.registry import composed

# ---- questions


@composed(
    "_use_cudnn_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, "
    "int[] target_lengths, int blank) -> bool",
    "_use_cudnn_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, "
    "Tensor target_lengths, int blank) -> bool",
    "_use_miopen_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, "
    "int[] target_lengths, int blank) -> bool",
    "_use_miopen_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, "
    "Tensor target_lengths, int blank) -> bool",
    "_use_cudnn_rnn_flatten_weight() -> bool",
    "_nnpack_available() -> bool",
    "is_vulkan_available() -> bool",
    "_is_zerotensor(Tensor self) -> bool",
)
def never(*args: object) -> bool:
    """None of these engines is used, and no tensor is known to be zero without memory."""
    return False


@composed("sym_is_contiguous(Tensor self, MemoryFormat memory_format=0) -> SymBool")
def sym_is_contiguous(
    self: Tensor, memory_format: torch.memory_format = torch.contiguous_format
) -> bool:
    return self.is_contiguous(memory_format=memory_format)


# ---- casts of autocast
@composed(
    "_autocast_to_full_precision(Tensor(a) self, bool cuda_enabled, bool cpu_enabled) -> Tensor(a)"
)
def _autocast_to_full_precision(self: Tensor, cuda_enabled: bool, cpu_enabled: bool) -> Tensor:
    enabled = cuda_enabled if self.is_cuda else cpu_enabled and self.is_cpu
    low = self.dtype in (torch.float16, torch.bfloat16)
    return self.float() if enabled and low else self


@composed(
    "_autocast_to_reduced_precision(Tensor(a) self, bool cuda_enabled, bool cpu_enabled, "
    "ScalarType cuda_dtype, ScalarType cpu_dtype) -> Tensor(a)"
)
def _autocast_to_reduced_precision(
    self: Tensor,
    cuda_enabled: bool,
    cpu_enabled: bool,
    cuda_dtype: torch.dtype,
    cpu_dtype: torch.dtype,
) -> Tensor:
    if self.dtype != torch.float32:
        return self
    if self.is_cuda and cuda_enabled:
        return self.to(cuda_dtype)
    return self.to(cpu_dtype) if self.is_cpu and cpu_enabled else self


# ---- helpers
@composed("_lazy_clone(Tensor self) -> Tensor")
def _lazy_clone(self: Tensor) -> Tensor:
    return self.clone()


@composed(
    "_nnpack_spatial_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[2] padding, "
    "SymInt[2] stride=[1, 1]) -> Tensor",
    out="out",
)
def _nnpack_spatial_convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    padding: list[int],
    stride: list[int] | None = None,
) -> Tensor:
    return torch.convolution(
        input, weight, bias, stride or [1, 1], padding, [1, 1], False, [0, 0], 1
    )


@composed(
    "_rowwise_prune(Tensor weight, Tensor mask, ScalarType compressed_indices_dtype) "
    "-> (Tensor, Tensor)"
)
def _rowwise_prune(
    weight: Tensor, mask: Tensor, compressed_indices_dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """The rows that stay, and for each row its new number, -1 where it is gone."""
    numbers = mask.to(torch.int64).cumsum(0) - 1
    return weight[mask], torch.where(mask, numbers, -1).to(compressed_indices_dtype)


@composed(
    "_new_zeros_with_same_feature_meta(Tensor self, Tensor other, *, int self_num_batch_dims=0) "
    "-> Tensor",
    out="out",
)
def _new_zeros_with_same_feature_meta(
    self: Tensor, other: Tensor, *, self_num_batch_dims: int = 0
) -> Tensor:
    """Zeros like `other`, once for each place in the leading dimensions of `self`."""
    return other.new_zeros((*self.shape[:self_num_batch_dims], *other.shape))


@composed(
    "_efficientzerotensor(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor",
    out="out",
)
def _efficientzerotensor(size: list[int], **options: object) -> Tensor:
    """Zeros. Elsewhere they take no memory until they are written; here they do."""
    return torch.zeros(
        size, **{name: value for name, value in options.items() if value is not None}
    )


@composed(
    "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, "
    "ScalarType? out_dtype=None) -> Tensor"
)
def _grouped_mm(
    self: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """Products of groups of matrices. A side with two dimensions holds its groups one after the
    other, up to the places `offs`: rows of the left one, columns of the right one, or, where both
    have two dimensions, the summed one."""
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if self.dim() == 3 and mat2.dim() == 3:
        if offs is not None:
            raise RuntimeError("offs are for operands with two dimensions")
        product = torch.bmm(self, mat2)
        return product if out_dtype is None else product.to(out_dtype)
    if offs is None:
        raise RuntimeError("offs are needed where an operand has two dimensions")
    ends = offs.tolist()
    spans = list(zip([0, *ends[:-1]], ends, strict=True))
    if self.dim() == 2 and mat2.dim() == 2:
        product = torch.stack([self[:, a:b] @ mat2[a:b] for a, b in spans])
    elif self.dim() == 2:
        product = torch.cat([self[a:b] @ mat2[g] for g, (a, b) in enumerate(spans)])
    else:
        product = torch.cat([self[g] @ mat2[:, a:b] for g, (a, b) in enumerate(spans)], 1)
    return product if out_dtype is None else product.to(out_dtype)


# ---- further overloads
@composed(
    "range(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor"
)
def range_by_one(start: float, end: float, **options: object) -> Tensor:
    return torch.ops.aten.range.step(start, end, 1, **options)


@composed("range.out_(Scalar start, Scalar end, *, Tensor(a!) out) -> Tensor(a!)")
def range_out(start: float, end: float, *, out: Tensor) -> Tensor:
    return torch.ops.aten.range.out(start, end, 1, out=out)


@composed(
    "normal.out(Tensor self, float mean=0., float std=1., *, Generator? generator=None, "
    "Tensor(a!) out) -> Tensor(a!)"
)
def normal_like(
    self: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    *,
    generator: torch.Generator | None = None,
    out: Tensor,
) -> Tensor:
    out.resize_(self.shape)
    return out.normal_(mean, std, generator=generator)


@composed(
    "adaptive_avg_pool3d_backward.grad_input(Tensor grad_output, Tensor self, *, "
    "Tensor(a!) grad_input) -> Tensor(a!)"
)
def adaptive_avg_pool3d_backward(
    grad_output: Tensor, self: Tensor, *, grad_input: Tensor
) -> Tensor:
    found = torch.ops.aten._adaptive_avg_pool3d_backward(grad_output, self)
    return torch.ops.aten.clone.out(found, out=grad_input)


@composed(
    "from_file(str filename, bool? shared=None, int? size=0, *, ScalarType? dtype=None, "
    "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"
)
def from_file(
    filename: str, shared: bool | None = None, size: int | None = 0, **options: object
) -> Tensor:
    given = {name: value for name, value in options.items() if value is not None}
    return torch.from_file(filename, shared, size, **given)


@composed(
    "from_file.out(str filename, bool? shared=None, int? size=0, *, Tensor(a!) out) -> Tensor(a!)"
)
def from_file_out(
    filename: str, shared: bool | None = None, size: int | None = 0, *, out: Tensor
) -> Tensor:
    found = torch.from_file(filename, shared, size, dtype=out.dtype)
    return torch.ops.aten.clone.out(found, out=out)
