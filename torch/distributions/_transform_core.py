"""What transforms are made of: the base class with its cache, inverses, chains of transforms and
transforms applied to parts of a value.

A transform maps values of its ``domain`` to its ``codomain``. Both say how many of the rightmost
dimensions are one value, and ``log_abs_det_jacobian`` has one number for each value of the domain.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.utils import _sum_rightmost, lazy_property

_Shape = Sequence[int]


class Transform:
    """An invertible, or at least pseudo-invertible, map with a tractable volume change.

    A subclass gives ``domain``, ``codomain``, ``_call`` and as far as they exist ``_inverse``,
    ``log_abs_det_jacobian``, ``sign`` and ``bijective``. With ``cache_size`` 1 the last pair of
    input and output is remembered, so that inverting an output costs nothing and is exact.
    """

    bijective = False
    domain: constraints.Constraint
    codomain: constraints.Constraint

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Callable[[], Transform | None] | None = None
        self._cached_x_y: tuple[Tensor | None, Tensor | None] = (None, None)
        super().__init__()

    def __getstate__(self) -> dict[str, Any]:
        # The inverse is a weak reference, which cannot be pickled; it is made again when asked for.
        return {**vars(self), "_inv": None}

    @property
    def event_dim(self) -> int:
        """The dimensions of a value, where domain and codomain agree on them."""
        dims = {self.domain.event_dim, self.codomain.event_dim}
        if len(dims) > 1:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return dims.pop()

    @property
    def inv(self) -> Transform:
        """The inverse transform; its own inverse is this very object."""
        known = None if self._inv is None else self._inv()
        if known is None:
            known = _InverseTransform(self)
            self._inv = weakref.ref(known)
        return known

    @property
    def sign(self) -> Tensor | int:
        """+1 where the map increases, -1 where it decreases; for bijections of numbers."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Returns this transform with another cache size."""
        if cache_size == self._cache_size:
            return self
        if type(self).__init__ is not Transform.__init__:
            raise NotImplementedError(f"{type(self)}.with_cache is not implemented")
        return type(self)(cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __call__(self, x: Tensor) -> Tensor:
        """Maps ``x``."""
        return self._through_cache(self._call, x, 0)

    def _inv_call(self, y: Tensor) -> Tensor:
        """Maps ``y`` back."""
        return self._through_cache(self._inverse, y, 1)

    def _through_cache(
        self, compute: Callable[[Tensor], Tensor], given: Tensor, side: int
    ) -> Tensor:
        """The partner of ``given``, which is member ``side`` of a pair: remembered or computed."""
        if self._cache_size == 0:
            return compute(given)
        if self._cached_x_y[side] is given:
            return self._cached_x_y[1 - side]  # type: ignore[return-value]
        found = compute(given)
        self._cached_x_y = (found, given) if side else (given, found)
        return found

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |det dy/dx| at ``x``, whose image is ``y``."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__ + "()"

    def forward_shape(self, shape: _Shape) -> torch.Size:
        """The shape of the image of an input of ``shape``."""
        return torch.Size(shape)

    def inverse_shape(self, shape: _Shape) -> torch.Size:
        """The shape of the input whose image has ``shape``."""
        return torch.Size(shape)


class Stateless(Transform):
    """A transform without parameters: any two of one class are equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))


class _InverseTransform(Transform):
    """A transform run backwards; it shares the other's cache."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv: Transform = transform  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        return vars(self)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        """The codomain of the other."""
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        """The domain of the other."""
        return self._inv.domain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether the other is one-to-one."""
        return self._inv.bijective

    @property
    def sign(self) -> Tensor | int:
        """The sign of the other."""
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        """The transform that this one inverts."""
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Returns the inverse of the other with that cache."""
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"

    def __call__(self, x: Tensor) -> Tensor:
        """Maps ``x`` by the other's inverse."""
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Minus the other's, with the roles of input and output exchanged."""
        return self._inv.log_abs_det_jacobian(y, x).neg()

    def forward_shape(self, shape: _Shape) -> torch.Size:
        """The other's inverse shape."""
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: _Shape) -> torch.Size:
        """The other's forward shape."""
        return self._inv.forward_shape(shape)


def growth(part: Transform) -> int:
    """How many dimensions more a value has after the transform."""
    return part.codomain.event_dim - part.domain.event_dim


def chain_event_dim(parts: Iterable[Transform]) -> int:
    """The fewest dimensions of an input that leave every part of a chain enough to work on."""
    needed = grown = 0
    for part in parts:
        needed = max(needed, part.domain.event_dim - grown)
        grown += growth(part)
    return needed


def chain_volume(
    parts: Sequence[Transform], values: Sequence[Tensor], event_dim: int
) -> list[Tensor]:
    """log |det| of each part of a chain, summed to one number per value of the whole chain.

    ``values`` are the input, all values between and the output; ``event_dim`` the dimensions of one
    input of the chain.
    """
    terms = []
    for part, (x, y) in zip(parts, pairwise(values), strict=True):
        term = part.log_abs_det_jacobian(x, y)
        terms.append(_sum_rightmost(term, event_dim - part.domain.event_dim))
        event_dim += growth(part)
    return terms


class ComposeTransform(Transform):
    """Several transforms, one after the other."""

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    def _widened(
        self, constraint: constraints.Constraint, event_dim: int
    ) -> constraints.Constraint:
        missing = event_dim - constraint.event_dim
        return constraints.independent(constraint, missing) if missing > 0 else constraint

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        """The first part's domain, with the dimensions that later parts need."""
        if not self.parts:
            return constraints.real
        return self._widened(self.parts[0].domain, chain_event_dim(self.parts))

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        """The last part's codomain, with the dimensions that earlier parts leave."""
        if not self.parts:
            return constraints.real
        grown = sum(map(growth, self.parts))
        return self._widened(self.parts[-1].codomain, chain_event_dim(self.parts) + grown)

    @lazy_property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether every part is one-to-one."""
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self) -> Tensor | int:  # type: ignore[override]
        """The product of the parts' signs."""
        sign: Tensor | int = 1
        for part in self.parts:
            sign = part.sign * sign
        return sign

    @property
    def inv(self) -> Transform:
        """The parts' inverses in reverse order; both know each other."""
        known = None if self._inv is None else self._inv()
        if known is None:
            known = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv, known._inv = weakref.ref(known), weakref.ref(self)
        return known

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Returns the chain with that cache size in every part."""
        same = cache_size == self._cache_size
        return self if same else ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        """Maps ``x`` by each part in turn; the parts have the caches."""
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum of the parts' log determinants."""
        if not self.parts:
            return torch.zeros_like(x)
        between = accumulate(self.parts[:-1], lambda value, part: part(value), initial=x)
        return sum(chain_volume(self.parts, [*between, y], self.domain.event_dim))

    def forward_shape(self, shape: _Shape) -> torch.Size:
        """The shape after all parts."""
        for part in self.parts:
            shape = part.forward_shape(shape)
        return torch.Size(shape)

    def inverse_shape(self, shape: _Shape) -> torch.Size:
        """The shape before all parts."""
        for part in self.parts[::-1]:
            shape = part.inverse_shape(shape)
        return torch.Size(shape)

    def __repr__(self) -> str:
        lines = ",\n".join(f"    {part!r}" for part in self.parts)
        return f"{type(self).__name__}(\n{lines}\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose values are arrays of values of another one, each mapped alone."""

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Returns this transform with another cache size."""
        if cache_size == self._cache_size:
            return self
        return IndependentTransform(
            self.base_transform, self.reinterpreted_batch_ndims, cache_size=cache_size
        )

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        """Arrays of the other's domain."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        """Arrays of the other's codomain."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether the other is one-to-one."""
        return self.base_transform.bijective

    @property
    def sign(self) -> Tensor | int:
        """The sign of the other."""
        return self.base_transform.sign

    def _at_least(self, dims: int, value: Tensor) -> Tensor:
        if value.dim() < dims:
            raise ValueError("Too few dimensions on input")
        return value

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(self._at_least(self.domain.event_dim, x))

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform.inv(self._at_least(self.codomain.event_dim, y))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The other's, summed over the array."""
        each = self.base_transform.log_abs_det_jacobian(x, y)
        return _sum_rightmost(each, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        inner = f"{self.base_transform!r}, {self.reinterpreted_batch_ndims}"
        return f"{type(self).__name__}({inner})"

    def forward_shape(self, shape: _Shape) -> torch.Size:
        """The other's forward shape."""
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: _Shape) -> torch.Size:
        """The other's inverse shape."""
        return self.base_transform.inverse_shape(shape)


class _PartsTransform(Transform):
    """Several transforms, each for its part of the value along ``dim``."""

    transforms: list[Transform]
    _join: Callable[..., Tensor]
    _constraint: Callable[..., constraints.Constraint]

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        super().__init__(cache_size=cache_size)
        if any(not isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        self.transforms = [t.with_cache(cache_size) if cache_size else t for t in tseq]
        self.dim = dim

    def _split(self, name: str, value: Tensor) -> Sequence[Tensor]:
        """The parts of ``value``, which an error calls ``name``."""
        raise NotImplementedError

    def _check_dim(self, name: str, value: Tensor, size: int, what: str) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(
                f"dim {self.dim} out of range for tensor with {value.dim()} dimensions"
            )
        if value.shape[self.dim] != size:
            raise AssertionError(
                f"{name}.size({self.dim}) = {value.shape[self.dim]} must equal {what} {size}"
            )

    def _call(self, x: Tensor) -> Tensor:
        pieces = zip(self.transforms, self._split("x", x), strict=True)
        return self._joined([t(piece) for t, piece in pieces], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        pieces = zip(self.transforms, self._split("y", y), strict=True)
        return self._joined([t.inv(piece) for t, piece in pieces], self.dim)

    def _volumes(self, x: Tensor, y: Tensor) -> list[Tensor]:
        parts = zip(self.transforms, self._split("x", x), self._split("y", y), strict=True)
        return [t.log_abs_det_jacobian(a, b) for t, a, b in parts]

    def _joined(self, parts: list[Tensor], dim: int) -> Tensor:
        raise NotImplementedError

    def _sets(self, side: str) -> list[constraints.Constraint]:
        return [getattr(t, side) for t in self.transforms]

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether every part is one-to-one."""
        return all(t.bijective for t in self.transforms)


class CatTransform(_PartsTransform):
    """Applies each transform to its piece of ``lengths`` along ``dim``, like ``torch.cat``."""

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})"
            )

    @lazy_property
    def event_dim(self) -> int:  # type: ignore[override]
        """The most dimensions that a value of a part has."""
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """The size of a value along ``dim``."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Returns this transform with another cache size."""
        if cache_size == self._cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _split(self, name: str, value: Tensor) -> Sequence[Tensor]:
        self._check_dim(name, value, self.length, "length")
        return value.split(self.lengths, self.dim)

    def _joined(self, parts: list[Tensor], dim: int) -> Tensor:
        return torch.cat(parts, dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The parts' log determinants side by side, or their sum when ``dim`` is in the event."""
        terms = [
            _sum_rightmost(term, self.event_dim - t.event_dim)
            for t, term in zip(self.transforms, self._volumes(x, y), strict=True)
        ]
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return torch.cat(terms, dim) if dim < 0 else sum(terms)

    @constraints.dependent_property
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        """The parts' domains side by side."""
        return constraints.cat(self._sets("domain"), self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        """The parts' codomains side by side."""
        return constraints.cat(self._sets("codomain"), self.dim, self.lengths)


class StackTransform(_PartsTransform):
    """Applies each transform to its slice along ``dim``, like ``torch.stack``."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Returns this transform with another cache size."""
        same = cache_size == self._cache_size
        return self if same else StackTransform(self.transforms, self.dim, cache_size)

    def _split(self, name: str, value: Tensor) -> Sequence[Tensor]:
        self._check_dim(name, value, len(self.transforms), "len(transforms)")
        return value.unbind(self.dim)

    def _joined(self, parts: list[Tensor], dim: int) -> Tensor:
        return torch.stack(parts, dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The slices' log determinants stacked."""
        return torch.stack(self._volumes(x, y), self.dim)

    @constraints.dependent_property
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        """The slices' domains stacked."""
        return constraints.stack(self._sets("domain"), self.dim)

    @constraints.dependent_property
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        """The slices' codomains stacked."""
        return constraints.stack(self._sets("codomain"), self.dim)
