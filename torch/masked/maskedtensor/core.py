"""The tensor type with a mask.

It wraps two plain tensors. Operators arrive at __torch_dispatch__, below autograd, and fall into a
few kinds: pointwise ones act on the data and need equal masks, shape operators act on data and mask
alike, reductions are the masked functions of this package. What is in no table is refused, because
an operator that does not know about the mask would use elements that are not there.
"""

import torch
from torch.masked import _reductions as reductions
from torch.masked.maskedtensor._text import text_of

__all__ = ["MaskedTensor", "is_masked_tensor"]

_POINTWISE = frozenset(
    """abs absolute acos acosh angle asin asinh atan atanh bitwise_not ceil clamp clip conj_physical
    cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac i0 isnan lgamma log log10
    log1p log2 logical_not logit nan_to_num neg negative positive rad2deg reciprocal round rsqrt
    sigmoid sign sgn signbit sin sinc sinh sqrt square tan tanh trunc add atan2 bitwise_and
    bitwise_or bitwise_xor div divide true_divide floor_divide fmod logaddexp logaddexp2 maximum
    minimum mul multiply nextafter remainder sub subtract rsub pow eq ne lt le gt ge fmax fmin
    ones_like zeros_like full_like empty_like where copy fill zero threshold_backward
    sigmoid_backward tanh_backward""".split()
)
_SHAPE = frozenset(
    """alias view _unsafe_view reshape _reshape_alias t transpose permute select slice expand
    unsqueeze squeeze clone detach contiguous as_strided flip roll repeat diagonal unbind split
    split_with_sizes narrow index_select select_backward slice_backward""".split()
)
_JOIN = frozenset(["cat", "stack"])
_REDUCE = frozenset("sum mean amax amin prod argmax argmin var std".split())
_FLOATING = (torch.float16, torch.float32, torch.float64)
_INTEGRAL = (torch.bool, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)
_SUPPORTED = (*_FLOATING, *_INTEGRAL)


def is_masked_tensor(obj, /):
    """Whether obj is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)


def _data(x):
    if isinstance(x, (list, tuple)):
        return type(x)(_data(v) for v in x)
    return x._masked_data if isinstance(x, MaskedTensor) else x


def _mask(x):
    if isinstance(x, (list, tuple)):
        return type(x)(_mask(v) for v in x)
    return x._masked_mask if isinstance(x, MaskedTensor) else x


def _wrap(data, mask):
    if isinstance(data, (list, tuple)):
        return type(data)(_wrap(d, m) for d, m in zip(data, mask, strict=True))
    return MaskedTensor(data, mask)


def _common_mask(values):
    """The one mask of all masked arguments. A mask without a hole (of a gradient that was spread
    over a tensor, say) goes with any other."""
    masks = [v._masked_mask for v in values if isinstance(v, MaskedTensor)]
    holed = [m for m in masks if not bool(m.all())]
    for other in holed[1:]:
        if other.shape != holed[0].shape or not torch.equal(other, holed[0]):
            raise ValueError(
                "Input masks must match. If you need support for this, please open an issue on "
                "Github."
            )
    return max(holed or masks, key=lambda m: m.ndim)


def _pointwise(func, args, kwargs, in_place):
    mask = _common_mask([*args, *kwargs.values()])
    result = func(*_data(args), **{k: _data(v) for k, v in kwargs.items()})
    return args[0] if in_place else MaskedTensor(result, mask.expand(result.shape))


def _reduce(name, args, kwargs):
    """The masked function of that name; valid where any element was."""
    self, *rest = args
    data, mask = self._masked_data, self._masked_mask
    dim = rest[0] if rest else kwargs.get("dim")
    keepdim = kwargs.get("keepdim", rest[-1] if len(rest) > 1 and rest[-1] is True else False)
    extra = {}
    if name in ("var", "std"):
        extra["correction"] = kwargs.get("correction", 1)
    if isinstance(dim, list):
        dim = tuple(dim)
    # argmax counts in the flattened tensor when there is no dimension.
    result = getattr(reductions, name)(data, dim, keepdim=keepdim, mask=mask, **extra)
    dims = tuple(range(data.ndim)) if dim in (None, ()) else dim
    valid = mask.any() if data.ndim == 0 else torch.any(mask, dims, keepdim)
    return MaskedTensor(result, valid.expand(result.shape))


def _check_pair(data, mask):
    """Raises unless these are plain tensors of one shape, the mask of bools."""
    for name, given in {"data": data, "mask": mask}.items():
        if not isinstance(given, torch.Tensor) or is_masked_tensor(given):
            raise TypeError(f"{name} must be a Tensor")
    for measure in ("dim", "size"):
        if getattr(data, measure)() != getattr(mask, measure)():
            raise ValueError(f"data.{measure}() must equal mask.{measure}()")
    if mask.dtype is not torch.bool:
        raise TypeError("mask must have dtype bool.")
    if data.dtype not in _SUPPORTED:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")


class MaskedTensor(torch.Tensor):
    """A tensor of which only the elements with a true mask exist."""

    @staticmethod
    def __new__(cls, data, mask, requires_grad=False):
        _check_pair(data, mask)
        return torch.Tensor._make_wrapper_subclass(
            cls,
            data.size(),
            strides=data.stride(),
            storage_offset=data.storage_offset(),
            device=data.device,
            dtype=data.dtype,
            layout=data.layout,
            requires_grad=requires_grad,
        )

    def __init__(self, data, mask, requires_grad=False):
        self._masked_data = data.detach()
        self._masked_mask = mask

    def __repr__(self):
        return text_of(self._masked_data, self._masked_mask)

    def get_data(self):
        """The plain tensor, with arbitrary values where the mask is false."""
        return self._masked_data

    def get_mask(self):
        """The mask."""
        return self._masked_mask

    def to_tensor(self, value):
        """A plain tensor with value where the mask is false."""
        return self._masked_data.masked_fill(~self._masked_mask, value)

    @classmethod
    def unary(cls, fn, data, mask):
        """fn of the data beside the same mask."""
        return cls(fn(data), mask)

    def is_sparse_coo(self):
        """Whether the data is a sparse COO tensor."""
        return self._masked_data.layout == torch.sparse_coo

    def is_sparse_csr(self):
        """Whether the data is a sparse CSR tensor."""
        return self._masked_data.layout == torch.sparse_csr

    @property
    def is_sparse(self):
        return self.is_sparse_coo() or self.is_sparse_csr()

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        base = name[:-1] if name.endswith("_") and not name.endswith("__") else name
        if base in _POINTWISE:
            return _pointwise(func, args, kwargs, in_place=base != name)
        if base in _SHAPE:
            return _wrap(func(*_data(args), **kwargs), func(*_mask(args), **kwargs))
        if base in _JOIN:
            masks = [
                m if is_masked_tensor(t) else torch.ones_like(t, dtype=torch.bool)
                for t, m in zip(args[0], _mask(args[0]), strict=True)
            ]
            return _wrap(func(_data(args[0]), *args[1:], **kwargs), func(masks, *args[1:]))
        if base in _REDUCE:
            return _reduce(base, args, kwargs)
        if base in ("all", "any"):
            self = args[0]
            neutral = self.to_tensor(base == "all")
            valid = torch.any(self._masked_mask, *args[1:], **kwargs)
            return MaskedTensor(func(neutral, *args[1:], **kwargs), valid)
        if base in ("_softmax", "_log_softmax"):
            return MaskedTensor(func(args[0].to_tensor(float("-inf")), *args[1:], **kwargs),
                                args[0]._masked_mask)  # fmt: skip
        if base == "_to_copy":
            return MaskedTensor(func(args[0]._masked_data, **kwargs), args[0]._masked_mask)
        if base in ("_local_scalar_dense", "is_same_size"):
            return func(*_data(args), **kwargs)
        raise NotImplementedError(f"torch.{name} is not implemented for MaskedTensor")
