"""The base class of transforms and those that are made of others: inverse, composition,
independence, reshaping, concatenation and stacking. Public under torch.distributions.transforms.
"""

from __future__ import annotations

import operator
import weakref
from functools import reduce
from typing import Any

import torch
from torch.distributions import constraints
from torch.distributions.utils import _sum_rightmost


def require_dims(shape, n) -> Any:
    """The shape itself, which must have at least n dimensions."""
    if len(shape) < n:
        raise ValueError("Too few dimensions on input")
    return shape


def broadcast_scalar_shape(shape, *values) -> Any:
    """The shape broadcast with those values that are tensors."""
    return torch.broadcast_shapes(shape, *(getattr(v, "shape", ()) for v in values))


class Transform:
    """A map with a computable log |det| of its Jacobian.

    A subclass gives `domain`, `codomain`, `_call` and, if it can be inverted, `_inverse` and
    log_abs_det_jacobian(x, y). With cache_size=1 the last pair (x, y) is kept, so that the inverse
    of a value just computed is exact and its graph is shared.
    """

    bijective = False

    def __init__(self, cache_size=0) -> None:
        self._cache_size = cache_size
        self._inv = None
        if cache_size == 1:
            self._cached_x_y = None, None
        elif cache_size != 0:
            raise ValueError("cache_size must be 0 or 1")
        super().__init__()

    def __getstate__(self) -> Any:
        state = self.__dict__.copy()
        state["_inv"] = None  # a weak reference, which cannot be pickled
        return state

    @property
    def event_dim(self):
        """How many dimensions one event has on both sides."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self):
        """The inverse transform, whose own inverse is this one."""
        inv = self._inv() if self._inv is not None else None
        if inv is None:
            inv = _InverseTransform(self)
            self._inv = weakref.ref(inv)
        return inv

    @property
    def sign(self):
        """+1 or -1 as a univariate bijection grows or falls."""
        raise NotImplementedError

    def with_cache(self, cache_size=1) -> Any:
        """This transform with another cache size."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other) -> Any:
        return self is other

    def __ne__(self, other) -> Any:
        return not self.__eq__(other)

    def __call__(self, x) -> Any:
        """The image of x."""
        if self._cache_size == 0:
            return self._call(x)
        x_old, y_old = self._cached_x_y
        if x is x_old:
            return y_old
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y):
        if self._cache_size == 0:
            return self._inverse(y)
        x_old, y_old = self._cached_x_y
        if y is y_old:
            return x_old
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x):
        raise NotImplementedError

    def _inverse(self, y):
        raise NotImplementedError

    def log_abs_det_jacobian(self, x, y) -> Any:
        """log |det dy/dx| for each event, of an x and its image y."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.__class__.__name__ + "()"

    def forward_shape(self, shape) -> Any:
        """The shape of the image of a tensor of this shape."""
        return shape

    def inverse_shape(self, shape) -> Any:
        """The shape of the preimage of a tensor of this shape."""
        return shape


class _InverseTransform(Transform):
    """The inverse of a transform. It holds the transform, which knows it by a weak reference."""

    def __init__(self, transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return self._inv.domain

    @property
    def bijective(self):
        return self._inv.bijective

    @property
    def sign(self):
        return self._inv.sign

    @property
    def inv(self):
        return self._inv

    def __getstate__(self) -> Any:
        return self.__dict__.copy()

    def with_cache(self, cache_size=1) -> Any:
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other) -> Any:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self._inv!r})"

    def __call__(self, x) -> Any:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x, y) -> Any:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape) -> Any:
        return self._inv.forward_shape(shape)


class ComposeTransform(Transform):
    """Several transforms, applied in their order."""

    def __init__(self, parts, cache_size=0) -> None:
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts = parts

    def __eq__(self, other) -> Any:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        if not self.parts:
            return constraints.real
        domain = self.parts[0].domain
        # How many dimensions the first part must be given so that the last has its own.
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim += part.domain.event_dim - part.codomain.event_dim
            event_dim = max(event_dim, part.domain.event_dim)
        return _wider(domain, event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        if not self.parts:
            return constraints.real
        codomain = self.parts[-1].codomain
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim += part.codomain.event_dim - part.domain.event_dim
            event_dim = max(event_dim, part.codomain.event_dim)
        return _wider(codomain, event_dim)

    @property
    def bijective(self):
        return all(p.bijective for p in self.parts)

    @property
    def sign(self):
        return reduce(operator.mul, (p.sign for p in self.parts), 1)

    @property
    def inv(self):
        inv = self._inv() if self._inv is not None else None
        if inv is None:
            inv = ComposeTransform([p.inv for p in reversed(self.parts)])
            self._inv = weakref.ref(inv)
            inv._inv = weakref.ref(self)
        return inv

    def with_cache(self, cache_size=1) -> Any:
        if self._cache_size == cache_size:
            return self
        return ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x, y) -> Any:
        if not self.parts:
            return torch.zeros_like(x)
        xs = [x]
        for part in self.parts[:-1]:
            xs.append(part(xs[-1]))
        xs.append(y)
        terms = []
        event_dim = self.domain.event_dim
        for part, before, after in zip(self.parts, xs[:-1], xs[1:], strict=True):
            term = part.log_abs_det_jacobian(before, after)
            terms.append(_sum_rightmost(term, event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return reduce(operator.add, terms)

    def forward_shape(self, shape) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        parts = ",\n    ".join(repr(p) for p in self.parts)
        return f"{self.__class__.__name__}(\n    {parts}\n)"


def _wider(constraint, event_dim):
    extra = event_dim - constraint.event_dim
    return constraints.independent(constraint, extra) if extra > 0 else constraint


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose events take in further dimensions: only the Jacobian's sum differs."""

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size=1) -> Any:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(
            self.base_transform, self.reinterpreted_batch_ndims, cache_size=cache_size
        )

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self):
        return self.base_transform.bijective

    @property
    def sign(self):
        return self.base_transform.sign

    def _call(self, x):
        require_dims(x.shape, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y):
        require_dims(y.shape, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y) -> Any:
        result = self.base_transform.log_abs_det_jacobian(x, y)
        return _sum_rightmost(result, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        name = self.__class__.__name__
        return f"{name}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape) -> Any:
        return self.base_transform.inverse_shape(shape)


class ReshapeTransform(Transform):
    """The last dimensions, of shape in_shape, given the shape out_shape."""

    bijective = True

    def __init__(self, in_shape, out_shape, cache_size=0) -> None:
        self.in_shape = torch.Size(in_shape)
        self.out_shape = torch.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self):
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self):
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size=1) -> Any:
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x):
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y):
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x, y) -> Any:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape) -> Any:
        return _replace_end(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape) -> Any:
        return _replace_end(shape, self.out_shape, self.in_shape)


def _replace_end(shape, old, new):
    require_dims(shape, len(old))
    cut = len(shape) - len(old)
    if shape[cut:] != old:
        raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
    return shape[:cut] + new


class _Sequence(Transform):
    """What concatenation and stacking share: a list of transforms and a dimension."""

    def __init__(self, tseq, dim, cache_size) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.dim = dim

    @property
    def bijective(self):
        return all(t.bijective for t in self.transforms)

    def _check(self, name, value, length, what):
        dims = value.dim()
        if not -dims <= self.dim < dims:
            raise AssertionError(f"dim {self.dim} out of range for tensor with {dims} dimensions")
        size = value.size(self.dim)
        if size != length:
            raise AssertionError(f"{name}.size({self.dim}) = {size} must equal {what} {length}")


class CatTransform(_Sequence):
    """Each transform applied to a slice of its length along `dim`."""

    def __init__(self, tseq, dim: int = 0, lengths=None, cache_size=0) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})"
            )

    @property
    def event_dim(self):
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self):
        return sum(self.lengths)

    def with_cache(self, cache_size=1) -> Any:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _slices(self, name, value):
        self._check(name, value, self.length, "length")
        return torch.split(value, self.lengths, self.dim)

    def _call(self, x):
        parts = zip(self.transforms, self._slices("x", x), strict=True)
        return torch.cat([t(part) for t, part in parts], dim=self.dim)

    def _inverse(self, y):
        parts = zip(self.transforms, self._slices("y", y), strict=True)
        return torch.cat([t.inv(part) for t, part in parts], dim=self.dim)

    def log_abs_det_jacobian(self, x, y) -> Any:
        xs, ys = self._slices("x", x), self._slices("y", y)
        logdets = []
        for t, before, after in zip(self.transforms, xs, ys, strict=True):
            logdet = t.log_abs_det_jacobian(before, after)
            if t.event_dim < self.event_dim:
                logdet = _sum_rightmost(logdet, self.event_dim - t.event_dim)
            logdets.append(logdet)
        # The Jacobian has lost the event's dimensions: a slice inside them adds, others stay.
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        if dim < 0:
            return torch.cat(logdets, dim=dim)
        return sum(logdets)

    @constraints.dependent_property
    def domain(self):
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_Sequence):
    """Each transform applied to one index of `dim`."""

    def __init__(self, tseq, dim: int = 0, cache_size=0) -> None:
        super().__init__(tseq, dim, cache_size)

    def with_cache(self, cache_size=1) -> Any:
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _slices(self, name, value):
        self._check(name, value, len(self.transforms), "len(transforms)")
        return value.unbind(self.dim)

    def _call(self, x):
        parts = zip(self.transforms, self._slices("x", x), strict=True)
        return torch.stack([t(part) for t, part in parts], dim=self.dim)

    def _inverse(self, y):
        parts = zip(self.transforms, self._slices("y", y), strict=True)
        return torch.stack([t.inv(part) for t, part in parts], dim=self.dim)

    def log_abs_det_jacobian(self, x, y) -> Any:
        xs, ys = self._slices("x", x), self._slices("y", y)
        logdets = [
            t.log_abs_det_jacobian(before, after)
            for t, before, after in zip(self.transforms, xs, ys, strict=True)
        ]
        return torch.stack(logdets, dim=self.dim)

    @constraints.dependent_property
    def domain(self):
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
