"""The tensor type with a mask.

It wraps two plain tensors of one layout. Operators arrive at __torch_dispatch__, below autograd,
and fall into a few kinds: pointwise ones act on the data and need equal masks, shape operators act
on data and mask alike, reductions are the masked functions of this package. What is in no table is
refused, because an operator that does not know about the mask would use elements that are not
there. Sparse data has the indices of its mask: a pointwise operator is one on the values.
"""

import warnings

import torch
from torch.masked import _reductions as reductions
from torch.masked._common import strided
from torch.masked.maskedtensor._text import text_of
from torch.masked.maskedtensor.binary import BINARY_NAMES
from torch.masked.maskedtensor.unary import UNARY_NAMES

__all__ = ["MaskedTensor", "is_masked_tensor"]

_POINTWISE = frozenset(
    [
        *UNARY_NAMES,
        *BINARY_NAMES,
        *"""logical_not masked_fill rsub ones_like zeros_like full_like empty_like copy fill zero
        threshold_backward sigmoid_backward tanh_backward""".split(),
    ]
)
_SHAPE = frozenset(
    """alias view _unsafe_view reshape _reshape_alias t transpose permute select slice expand
    unsqueeze squeeze clone detach contiguous as_strided flip roll repeat diagonal unbind split
    split_with_sizes narrow index_select select_backward slice_backward unfold""".split()
)
# These add up elements that the mask may have left out, and their masks are numbers on the way.
_GATHER = frozenset(["im2col", "col2im", "unfold_backward"])
_JOIN = frozenset(["cat", "stack"])
_REDUCE = frozenset("sum mean amax amin prod argmax argmin var std".split())
_LAYOUTS = (torch.strided, torch.sparse_coo, torch.sparse_csr)
_FLOATING = (torch.float16, torch.float32, torch.float64)
_INTEGRAL = (torch.bool, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)
_SUPPORTED = (*_FLOATING, *_INTEGRAL)


def is_masked_tensor(obj, /) -> bool:
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


def _same(a, b):
    """Whether two masks are equal, elements of sparse ones included."""
    if a.layout != b.layout or a.shape != b.shape:
        return False
    return torch.equal(strided(a), strided(b))


def _tensors_match(a, b, exact=True, rtol=1e-05, atol=1e-08):
    """Whether two plain tensors are equal, or close with exact=False, nan to nan."""
    if is_masked_tensor(a) or is_masked_tensor(b):
        raise ValueError("Neither `a` nor `b` can be a MaskedTensor.")
    if a.layout != b.layout:
        raise ValueError(f"`a` and `b` must have the same layout. Got {a.layout} and {b.layout}")
    a, b = strided(a), strided(b)
    if exact:
        return a.dim() == b.dim() and torch.eq(a, b).all().item()
    if a.dtype != b.dtype:
        b = b.to(a.dtype)
    return a.dim() == b.dim() and torch.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)


def _masks_match(a, b):
    """Whether two masked tensors have the same mask; a plain one goes with any."""
    if not (is_masked_tensor(a) and is_masked_tensor(b)):
        return True
    return _same(a._masked_mask, b._masked_mask)


def _common_mask(values):
    """The one mask of all masked arguments. A mask without a hole (of a gradient that was spread
    over a tensor, say) goes with any other."""
    masks = [v._masked_mask for v in values if isinstance(v, MaskedTensor)]
    if masks[0].layout is not torch.strided:
        if not all(_same(m, masks[0]) for m in masks[1:]):
            raise ValueError(_MISMATCH)
        return masks[0]
    holed = [m for m in masks if not bool(m.all())]
    if not all(_same(m, holed[0]) for m in holed[1:]):
        raise ValueError(_MISMATCH)
    return max(holed or masks, key=lambda m: m.ndim)


_MISMATCH = "Input masks must match."


def _with_values(like, values):
    """A sparse tensor with the indices of another."""
    if like.layout is torch.sparse_coo:
        return torch.sparse_coo_tensor(like.indices(), values, like.shape, is_coalesced=True)
    return torch.sparse_csr_tensor(like.crow_indices(), like.col_indices(), values, like.shape)


def _values(x):
    x = _data(x)
    return x.values() if isinstance(x, torch.Tensor) and x.layout is not torch.strided else x


def _pointwise(func, args, kwargs, in_place):
    mask = _common_mask([*args, *kwargs.values()])
    if mask.layout is torch.strided:
        result = func(*_data(args), **{k: _data(v) for k, v in kwargs.items()})
        return args[0] if in_place else MaskedTensor(result, mask.expand(result.shape))
    result = func(*map(_values, args), **{k: _values(v) for k, v in kwargs.items()})
    return args[0] if in_place else MaskedTensor(_with_values(mask, result), mask)


def _where(condition, a, b):
    """Each element from one of two tensors, with the mask it has there."""
    data = torch.where(condition, _data(a), _data(b))
    masks = [
        m._masked_mask if is_masked_tensor(m) else torch.ones((), dtype=torch.bool) for m in (a, b)
    ]
    return MaskedTensor(data, torch.where(condition, *masks).expand(data.shape))


def _gather(func, args, kwargs):
    """An operator that moves or adds up elements: 0 for those that are not there; valid where any
    element took part."""
    self = args[0]
    data = func(self.to_tensor(0), *args[1:], **kwargs)
    counts = func(self._masked_mask.to(data.dtype), *args[1:], **kwargs)
    return MaskedTensor(data, counts > 0)


def _any_true(self):
    if self.dtype is not torch.bool:
        raise ValueError("__torch_dispatch__, aten._is_any_true: expected a boolean tensor")
    found = strided(self._masked_data) & strided(self._masked_mask)
    return MaskedTensor(found.any(), torch.tensor(True))


def _reduced(name, data, mask, rest, kwargs):
    """The masked function of that name with the arguments of the operator."""
    dim = rest[0] if rest else kwargs.get("dim")
    keepdim = kwargs.get("keepdim", rest[-1] if len(rest) > 1 and rest[-1] is True else False)
    extra = {}
    if name in ("var", "std"):
        extra["correction"] = kwargs.get("correction", 1)
    dim = tuple(dim) if isinstance(dim, list) else dim
    return getattr(reductions, name)(data, dim, keepdim=keepdim, mask=mask, **extra)


def _reduce(name, args, kwargs):
    """A reduction of the data; valid where any element was."""
    self, *rest = args
    data, mask = strided(self._masked_data), strided(self._masked_mask)
    # argmax counts in the flattened tensor when there is no dimension.
    result = _reduced(name, data, mask, rest, kwargs)
    dim = rest[0] if rest else kwargs.get("dim")
    keepdim = result.ndim == data.ndim
    dims = tuple(range(data.ndim)) if dim in (None, (), []) else dim
    valid = mask.any() if data.ndim == 0 else torch.any(mask, dims, keepdim)
    return MaskedTensor(result, valid.expand(result.shape))


def _check_pair(data, mask) -> None:
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


def _prepared(data, mask):
    """The data of a new masked tensor, with the elements of a sparse mask."""
    _check_pair(data, mask)
    if data.layout != mask.layout:
        raise TypeError("data and mask must have the same layout.")
    if data.layout not in _LAYOUTS:
        raise TypeError(f"data layout of {data.layout} is not supported.")
    if data.requires_grad:
        warnings.warn(
            "It is not recommended to create a MaskedTensor with a tensor that requires_grad. "
            "To avoid this, you can use data.detach().clone()",
            UserWarning,
            stacklevel=4,
        )
    if data.layout is torch.sparse_coo:
        mask, data = mask.coalesce(), data.detach().coalesce()
        if data._nnz() != mask._nnz():
            return data.sparse_mask(mask)
        if not torch.equal(data.indices(), mask.indices()):
            raise ValueError(
                "data and mask are both sparse COO tensors but do not have the same indices."
            )
    elif data.layout is torch.sparse_csr:
        if data._nnz() != mask._nnz():
            return data.detach().sparse_mask(mask)
        same = torch.equal(data.crow_indices(), mask.crow_indices()) and torch.equal(
            data.col_indices(), mask.col_indices()
        )
        if not same:
            raise ValueError(
                "data and mask are both sparse CSR tensors but do not share either crow or col "
                "indices."
            )
    return data


class _Reduction(torch.autograd.Function):
    """A reduction whose gradient has the mask of what was reduced. The formulas of the plain
    operators spread it over all elements, those included that are not there."""

    @staticmethod
    def forward(ctx, input, func, args, kwargs):
        ctx.input, ctx.call = input.detach(), (func.__name__, args, kwargs)
        return func(input.detach(), *args, **kwargs)

    @staticmethod
    def backward(ctx, grad):
        name, args, kwargs = ctx.call
        mask = ctx.input._masked_mask
        with torch.enable_grad():
            data = strided(ctx.input._masked_data).detach().requires_grad_()
            result = _reduced(name, data, strided(mask), args, kwargs)
            spread = strided(_data(grad)).expand(result.shape)
            found = torch.autograd.grad(result, data, spread)[0]
        if mask.layout is not torch.strided:
            found = found.sparse_mask(mask)
        return MaskedTensor(found, mask), None, None, None


class _ToDense(torch.autograd.Function):
    """Strided data and mask of sparse ones."""

    @staticmethod
    def forward(ctx, input):
        ctx.mask = input._masked_mask
        return MaskedTensor(input._masked_data.to_dense(), ctx.mask.to_dense())

    @staticmethod
    def backward(ctx, grad):
        return MaskedTensor(strided(_data(grad)).sparse_mask(ctx.mask), ctx.mask)


class _ToSparse(torch.autograd.Function):
    """Sparse data and mask of strided ones, with the elements that the mask selects."""

    @staticmethod
    def forward(ctx, input, layout):
        mask = input._masked_mask.to_sparse(layout=layout)
        ctx.mask = input._masked_mask
        return MaskedTensor(input._masked_data.sparse_mask(mask), mask)

    @staticmethod
    def backward(ctx, grad):
        return MaskedTensor(strided(_data(grad)), ctx.mask), None


class MaskedTensor(torch.Tensor):
    """A tensor of which only the elements with a true mask exist."""

    @staticmethod
    def __new__(cls, data, mask, requires_grad=False):
        data = _prepared(data, mask)
        geometry = {}
        if data.layout is torch.strided:
            geometry = {"strides": data.stride(), "storage_offset": data.storage_offset()}
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            data.size(),
            device=data.device,
            dtype=data.dtype,
            layout=data.layout,
            requires_grad=requires_grad,
            **geometry,
        )
        made._masked_data, made._masked_mask = data.detach(), mask
        return made

    def __init__(self, data, mask, requires_grad=False) -> None:
        pass  # __new__ has made it whole

    def __repr__(self):
        return text_of(strided(self._masked_data), strided(self._masked_mask))

    def get_data(self):
        """The plain tensor, with arbitrary values where the mask is false."""
        return self._masked_data

    def get_mask(self):
        """The mask."""
        return self._masked_mask

    def to_tensor(self, value):
        """A plain tensor with value where the mask is false."""
        return strided(self._masked_data).masked_fill(~strided(self._masked_mask), value)

    def to_dense(self, dtype=None, *, masked_grad=None):
        """The same with a strided layout."""
        dense = self if self.layout is torch.strided else _ToDense.apply(self)
        return dense if dtype is None else dense.to(dtype)

    def to_sparse(self, *, layout=torch.sparse_coo):
        """The same in a sparse layout, with the elements that the mask selects."""
        return self if self.layout is layout else _ToSparse.apply(self.to_dense(), layout)

    def to_sparse_coo(self):
        """The same in coordinate layout."""
        return self.to_sparse()

    def to_sparse_csr(self, dense_dim=None):
        """The same in compressed row layout."""
        return self.to_sparse(layout=torch.sparse_csr)

    def is_contiguous(self, *, memory_format=torch.contiguous_format):
        """Whether the data lies in memory in order."""
        self._check_strided()
        return self._masked_data.is_contiguous(memory_format=memory_format)

    def contiguous(self, *, memory_format=torch.contiguous_format):
        """The same with data in order in memory."""
        self._check_strided()
        return super().contiguous(memory_format=memory_format)

    def _check_strided(self) -> None:
        if self.layout is not torch.strided:
            raise ValueError("MaskedTensors with sparse data do not have is_contiguous")

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

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        with torch._C.DisableTorchFunctionSubclass():
            name = getattr(func, "__name__", "")
            if name in _REDUCE and args and is_masked_tensor(args[0]) and args[0].requires_grad:
                return _Reduction.apply(args[0], func, args[1:], kwargs)
            return func(*args, **kwargs)

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
        if base in _GATHER:
            return _gather(func, args, kwargs)
        if base == "where" and not is_masked_tensor(args[0]) and len(args) == 3:
            return _where(*args)
        if base == "_is_any_true":
            return _any_true(args[0])
        if base in ("all", "any"):
            self = args[0]
            neutral = self.to_tensor(base == "all")
            valid = torch.any(strided(self._masked_mask), *args[1:], **kwargs)
            return MaskedTensor(func(neutral, *args[1:], **kwargs), valid)
        if base in ("_softmax", "_log_softmax"):
            return MaskedTensor(func(args[0].to_tensor(float("-inf")), *args[1:], **kwargs),
                                args[0]._masked_mask)  # fmt: skip
        if base == "_softmax_backward_data":
            filled = [a.to_tensor(0) if is_masked_tensor(a) else a for a in args[:2]]
            return MaskedTensor(func(*filled, *args[2:], **kwargs), _common_mask(args[:2]))
        if base == "_to_copy":
            return MaskedTensor(func(args[0]._masked_data, **kwargs), args[0]._masked_mask)
        if base in ("_local_scalar_dense", "is_same_size"):
            return func(*_data(args), **kwargs)
        return NotImplemented
