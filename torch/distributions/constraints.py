"""Constraints: the sets that parameters and samples of distributions lie in.

A constraint tells for each value whether it belongs to the set. A set of vectors or matrices has
``event_dim`` 1 or 2 and ``check`` then drops that many dimensions. Sets that are bounded by numbers
are declared by one comparison for each bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.distributions.utils import _holds

__all__ = [
    "Constraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "independent",
    "integer_interval",
    "interval",
    "half_open_interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "MixtureSameFamilyConstraint",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_semidefinite",
    "positive_definite",
    "positive_integer",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]

Bound = Tensor | int | float


class Constraint:
    """A set of values of one variable.

    ``is_discrete`` says whether the set is countable, ``event_dim`` how many of the rightmost
    dimensions make up one value.
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Tells for each value of the batch whether it is in the set."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self._named("")

    def _named(self, arguments: str) -> str:
        return f"{type(self).__name__.lstrip('_')}({arguments})"


class _Dependent(Constraint):
    """A set that is known only once other variables are; it may know its kind and dimension."""

    def __init__(
        self,
        *,
        is_discrete: bool | None = NotImplemented,
        event_dim: int | None = NotImplemented,
    ) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def _known(self, name: str) -> Any:
        fact = getattr(self, "_" + name)
        if fact is NotImplemented:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return fact

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether the set is countable, when that was stated."""
        return self._known("is_discrete")

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """How many dimensions make up one value, when that was stated."""
        return self._known("event_dim")

    def __call__(
        self,
        *,
        is_discrete: bool | None = NotImplemented,
        event_dim: int | None = NotImplemented,
    ) -> _Dependent:
        """Returns a dependent constraint with these facts added to those of this one."""
        stated = {"is_discrete": is_discrete, "event_dim": event_dim}
        facts = {k: getattr(self, "_" + k) if v is NotImplemented else v for k, v in stated.items()}
        return _Dependent(**facts)

    def check(self, x: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


dependent = _Dependent()


def is_dependent(constraint: object) -> bool:
    """Tells whether the constraint depends on other variables."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property whose value is a constraint; on the class itself it is a dependent constraint.

    ``is_discrete`` and ``event_dim`` say what holds for every instance.
    """

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: bool | None = NotImplemented,
        event_dim: int | None = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]
        """Decorates ``fn`` when the decorator was written with arguments."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


dependent_property = _DependentProperty


class _Wrapper(Constraint):
    """A set made of another one, which decides whether it is countable."""

    _more_dims = 0

    def __init__(self, base_constraint: Constraint) -> None:
        if not isinstance(base_constraint, Constraint):
            kind = type(base_constraint).__name__
            raise AssertionError(f"base_constraint must be a Constraint, got {kind}")
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether the inner set is countable."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The dimensions of the inner set and those added to it."""
        return self.base_constraint.event_dim + self._more_dims


class _IndependentConstraint(_Wrapper):
    """Values whose every slice along some of the rightmost dimensions lies in one set."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        if not isinstance(reinterpreted_batch_ndims, int):
            kind = type(reinterpreted_batch_ndims).__name__
            raise AssertionError(f"reinterpreted_batch_ndims must be an int, got {kind}")
        if reinterpreted_batch_ndims < 0:
            raise AssertionError(
                f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}"
            )
        super().__init__(base_constraint)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def _more_dims(self) -> int:  # type: ignore[override]
        return self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        each = self.base_constraint.check(value)
        dims = self.reinterpreted_batch_ndims
        if each.dim() < dims:
            expected = self.base_constraint.event_dim + dims
            raise ValueError(f"Expected value.dim() >= {expected} but got {value.dim()}")
        return each.flatten(-dims).all(-1) if dims else each

    def __repr__(self) -> str:
        return self._named(f"{self.base_constraint!r}, {self.reinterpreted_batch_ndims}")


independent = _IndependentConstraint


class MixtureSameFamilyConstraint(_Wrapper):
    """Values that every component of a mixture supports; the components add one batch dimension."""

    def check(self, value: Tensor) -> Tensor:
        """Checks the value against each component's set."""
        return self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)).all(-1)

    def __repr__(self) -> str:
        return self._named(repr(self.base_constraint))


class _Bounded(Constraint):
    """Numbers on the right side of each bound: ``_bounds`` maps its name to the comparison."""

    _bounds: ClassVar[dict[str, Callable[[Tensor, Bound], Tensor]]]

    def check(self, value: Tensor) -> Tensor:
        inside = value % 1 == 0 if self.is_discrete else None
        for name, holds in self._bounds.items():
            side = holds(value, getattr(self, name))
            inside = side if inside is None else inside & side
        return inside

    def __repr__(self) -> str:
        return self._named(", ".join(f"{name}={getattr(self, name)}" for name in self._bounds))


class _Above(_Bounded):
    def __init__(self, lower_bound: Bound) -> None:
        self.lower_bound = lower_bound


class _Below(_Bounded):
    def __init__(self, upper_bound: Bound) -> None:
        self.upper_bound = upper_bound


class _Between(_Bounded):
    def __init__(self, lower_bound: Bound, upper_bound: Bound) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound


class _GreaterThan(_Above):
    """Numbers above a bound."""

    _bounds = {"lower_bound": torch.gt}


greater_than = _GreaterThan
positive = _GreaterThan(0.0)


class _GreaterThanEq(_Above):
    """Numbers at or above a bound."""

    _bounds = {"lower_bound": torch.ge}


greater_than_eq = _GreaterThanEq
nonnegative = _GreaterThanEq(0.0)


class _LessThan(_Below):
    """Numbers below a bound."""

    _bounds = {"upper_bound": torch.lt}


less_than = _LessThan


class _Interval(_Between):
    """Numbers between two bounds, these included."""

    _bounds = {"lower_bound": torch.ge, "upper_bound": torch.le}


interval = _Interval
unit_interval = _Interval(0.0, 1.0)


class _HalfOpenInterval(_Between):
    """Numbers from a bound on and below another."""

    _bounds = {"lower_bound": torch.ge, "upper_bound": torch.lt}


half_open_interval = _HalfOpenInterval


class _IntegerInterval(_Between):
    """Whole numbers between two bounds, these included."""

    is_discrete = True
    _bounds = {"lower_bound": torch.ge, "upper_bound": torch.le}


integer_interval = _IntegerInterval


class _IntegerLessThan(_Below):
    """Whole numbers up to a bound."""

    is_discrete = True
    _bounds = {"upper_bound": torch.le}


class _IntegerGreaterThan(_Above):
    """Whole numbers from a bound on."""

    is_discrete = True
    _bounds = {"lower_bound": torch.ge}


nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)


class _Boolean(Constraint):
    """Zero and one."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return value * value == value


boolean = _Boolean()


class _Real(Constraint):
    """Numbers, infinite ones too, but not NaN."""

    def check(self, value: Tensor) -> Tensor:
        return value.eq(value)


real = _Real()
real_vector = _IndependentConstraint(real, 1)


class _OneHot(Constraint):
    """Vectors of one 1 and otherwise 0."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return boolean.check(value).all(-1) & (value.sum(-1) == 1)


one_hot = _OneHot()


class _Simplex(Constraint):
    """Vectors of numbers at or above zero that sum to one."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ~(value < 0).any(-1) & ((1 - value.sum(-1)).abs() < 1e-6)


simplex = _Simplex()


class _Multinomial(Constraint):
    """Vectors of counts whose sum is at most ``upper_bound``."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Bound) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Tensor) -> Tensor:
        return ~(x < 0).any(-1) & (x.sum(-1) <= self.upper_bound)


multinomial = _Multinomial


class _Matrix(Constraint):
    event_dim = 2


class _LowerTriangular(_Matrix):
    """Matrices with zeros above the diagonal."""

    def check(self, value: Tensor) -> Tensor:
        return value.eq(value.tril()).flatten(-2).all(-1)


lower_triangular = _LowerTriangular()


class _LowerCholesky(_Matrix):
    """Lower triangular matrices with a positive diagonal."""

    def check(self, value: Tensor) -> Tensor:
        return lower_triangular.check(value) & (_diagonal(value) > 0).all(-1)


lower_cholesky = _LowerCholesky()


class _CorrCholesky(_Matrix):
    """Cholesky factors of correlation matrices: their rows have length one."""

    def check(self, value: Tensor) -> Tensor:
        slack = 10 * value.shape[-1] * torch.finfo(value.dtype).eps  # rounding of one row's sum
        unit = (torch.linalg.vector_norm(value.detach(), dim=-1) - 1).abs() < slack
        return unit.all(-1) & lower_cholesky.check(value)


corr_cholesky = _CorrCholesky()


class _Square(_Matrix):
    """Matrices with as many rows as columns."""

    def check(self, value: Tensor) -> Tensor:
        is_square = value.shape[-2] == value.shape[-1]
        return torch.full(value.shape[:-2], is_square, dtype=torch.bool, device=value.device)


square = _Square()


class _Symmetric(_Square):
    """Square matrices equal to their transpose up to 1e-6."""

    def check(self, value: Tensor) -> Tensor:
        square = super().check(value)
        if not _holds(square):
            return square
        return value.isclose(value.mT, atol=1e-6).flatten(-2).all(-1)


symmetric = _Symmetric()


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not _holds(symmetric):
            return symmetric
        return torch.linalg.eigvalsh(value).ge(0).all(-1)


positive_semidefinite = _PositiveSemidefinite()


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices that have a Cholesky factor."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not _holds(symmetric):
            return symmetric
        return torch.linalg.cholesky_ex(value).info == 0


positive_definite = _PositiveDefinite()


def _diagonal(matrix: Tensor) -> Tensor:
    return matrix.diagonal(dim1=-2, dim2=-1)


class _Sequence(Constraint):
    """Several sets, each for its part of the value along ``dim``."""

    def __init__(self, cseq: Iterable[Constraint], dim: int) -> None:
        self.cseq = list(cseq)
        self.dim = dim
        if not all(isinstance(c, Constraint) for c in self.cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether any of the parts is countable."""
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The most dimensions that one value of a part has."""
        return max(c.event_dim for c in self.cseq)

    def _check_parts(
        self, value: Tensor, cut: Callable[[Tensor], Sequence[Tensor]]
    ) -> list[Tensor]:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(
                f"dim {self.dim} out of range for value with {value.dim()} dimensions"
            )
        return [c.check(part) for c, part in zip(self.cseq, cut(value), strict=False)]


class _Cat(_Sequence):
    """Values whose pieces of ``lengths`` along ``dim`` lie each in its own set."""

    def __init__(
        self, cseq: Iterable[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})"
            )

    def check(self, value: Tensor) -> Tensor:
        def pieces(whole: Tensor) -> Sequence[Tensor]:
            return whole.narrow(self.dim, 0, sum(self.lengths)).split(self.lengths, self.dim)

        return torch.cat(self._check_parts(value, pieces), self.dim)


cat = _Cat


class _Stack(_Sequence):
    """Values whose slices along ``dim`` lie each in its own set."""

    def __init__(self, cseq: Iterable[Constraint], dim: int = 0) -> None:
        super().__init__(cseq, dim)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """One more than a slice has when the slices lie side by side within a value."""
        dim = super().event_dim
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Tensor) -> Tensor:
        return torch.stack(self._check_parts(value, lambda v: v.unbind(self.dim)), self.dim)


stack = _Stack
