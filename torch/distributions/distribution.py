"""The base of all distributions.

A family of the library is a declaration: ``arg_constraints`` names its parameters and where they
lie, ``support`` says where samples lie, and small hooks give the mathematics: ``_draw`` a sample of
a given shape, ``_log_density`` the density, ``_cdf`` and ``_quantile`` the distribution function
and its inverse. Storing the parameters, validation, expansion and text come from here.

Classes of users need none of the hooks: they may override the public methods, as families outside
this package do.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.utils import (
    EMPTY,
    Shape,
    _holds,
    _plain,
    broadcast_all,
    lazy_property,
)

__all__ = ["Distribution"]


class Distribution:
    """A batch of probability distributions of one family.

    ``batch_shape`` counts the distributions, ``event_shape`` is the shape of one outcome. The
    arguments are checked unless ``validate_args`` is False.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    # Attributes besides the parameters that expand() carries over: distributions are expanded,
    # other things kept. The class that states them vouches that nothing else makes up an instance.
    _parts: tuple[str, ...]
    # The parameters that such a class stores, when they are not those of its arg_constraints.
    _held: dict[str, constraints.Constraint]

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Turns validation on or off for distributions made without ``validate_args``."""
        if value not in (True, False):
            raise ValueError(f"validate_args must be True or False, got {value!r}")
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: torch.Size = EMPTY,
        event_shape: torch.Size = EMPTY,
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        try:
            declared = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set "
                "`arg_constraints = {}` or initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        for name, constraint in declared.items():
            # A property computed on first use was not given; computing it here would waste it.
            given = name in vars(self) or not isinstance(
                getattr(type(self), name, None), lazy_property
            )
            if constraints.is_dependent(constraint) or not given:
                continue
            value = getattr(self, name)
            if not _holds(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{_plain(value)}"
                )

    def _set_parameters(
        self, validate_args: bool | None, event_dim: int = 0, **values: Tensor | float
    ) -> None:
        """Stores the parameters at their common shape and finishes the construction.

        The last ``event_dim`` dimensions of that shape are those of an outcome.
        """
        for name, value in zip(values, broadcast_all(*values.values()), strict=True):
            setattr(self, name, value)
        shape = value.shape
        split = len(shape) - event_dim
        Distribution.__init__(self, shape[:split], shape[split:], validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The constraint of each parameter by name."""
        raise NotImplementedError

    @property
    def support(self) -> constraints.Constraint:
        """The set in which samples lie."""
        raise NotImplementedError

    @property
    def batch_shape(self) -> torch.Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> torch.Size:
        """The shape of one outcome."""
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        """The mean of each distribution."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most likely outcome of each distribution."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance of each distribution."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation of each distribution."""
        return self.variance.sqrt()

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        """Returns this distribution with its batch expanded to ``batch_shape``, without copies."""
        owner = next((c for c in type(self).__mro__ if "_parts" in vars(c)), None)
        if owner is None:
            raise NotImplementedError
        new = self._get_checked_instance(owner, _instance)
        batch_shape = torch.Size(batch_shape)
        own = vars(self)
        for name, constraint in self._stored(owner).items():
            if name in own:
                event = own[name].shape[own[name].dim() - constraint.event_dim :]
                setattr(new, name, own[name].expand(batch_shape + event))
        for name in owner._parts:
            part = getattr(self, name)
            if isinstance(part, Distribution):
                part = part.expand(self._batch_of_part(part, batch_shape))
            setattr(new, name, part)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _stored(self, owner: type) -> dict[str, constraints.Constraint]:
        """The parameters that instances of ``owner`` hold, whatever a subclass calls its own."""
        declared = vars(owner).get("_held", owner.arg_constraints)
        return declared.fget(self) if isinstance(declared, property) else declared

    def _batch_of_part(self, part: Distribution, batch_shape: torch.Size) -> torch.Size:
        """The batch shape that ``part`` has when this distribution has ``batch_shape``."""
        return batch_shape

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """An empty instance for expand() to fill; ``cls`` is the class whose expand() it is."""
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom "
                "__init__ method must also define a custom .expand() method."
            )
        return self.__new__(type(self))

    def sample(self, sample_shape: Shape = EMPTY) -> Tensor:
        """Draws without gradients: one outcome per distribution for each entry of the shape."""
        hooked = type(self)._draw is not Distribution._draw
        with torch.no_grad():
            if hooked and not self.has_rsample:
                return self._draw(self._extended_shape(sample_shape))
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Shape = EMPTY) -> Tensor:
        """Draws so that gradients flow from the sample to the parameters."""
        if not self.has_rsample:
            raise NotImplementedError(f"{type(self).__name__} has no reparameterized sampler")
        return self._draw(self._extended_shape(sample_shape))

    def sample_n(self, n: int) -> Tensor:
        """Draws n outcomes; ``sample((n,))`` has replaced it."""
        warnings.warn(
            "sample_n(n) will be deprecated. Use .sample((n,)) instead.",
            FutureWarning,
            stacklevel=2,
        )
        return self.sample(torch.Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at ``value``."""
        return self._log_density(self._checked(value))

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of an outcome at or below ``value``."""
        return self._cdf(self._checked(value))

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of :meth:`cdf`."""
        return self._quantile(value)

    def entropy(self) -> Tensor:
        """The entropy in nats of each distribution."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All outcomes along a new first dimension, for each distribution if ``expand``."""
        raise NotImplementedError

    def _spread(self, outcomes: Tensor, expand: bool) -> Tensor:
        """Lays the outcomes, one per row, along a first dimension before the batch's."""
        event = self._event_shape
        outcomes = outcomes.reshape(-1, *(1,) * len(self._batch_shape), *event)
        return outcomes.expand(-1, *self._batch_shape, *event) if expand else outcomes

    def _draw(self, shape: torch.Size) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no sampler")

    def _log_density(self, value: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no density")

    def _cdf(self, value: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no distribution function")

    def _quantile(self, value: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no quantile function")

    def _checked(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return value

    def _extended_shape(self, sample_shape: Shape = EMPTY) -> torch.Size:
        """The shape of ``sample(sample_shape)``."""
        return torch.Size(sample_shape) + self._batch_shape + self._event_shape

    def _lead(self, shape: torch.Size) -> torch.Size:
        """The ``sample_shape`` of a sample of ``shape``, for parts that are drawn on their own."""
        return shape[: len(shape) - len(self._batch_shape) - len(self._event_shape)]

    def _validate_sample(self, value: Tensor) -> None:
        """Raises ValueError unless ``value`` can be an outcome: its type, shape and support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        self._validate_shape(value.shape)
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if support is None:
            raise AssertionError("support is None")
        if not _holds(support.check(value)):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) of the distribution {self!r}, but found "
                f"invalid values:\n{_plain(value)}"
            )

    def _validate_shape(self, shape: Sequence[int]) -> None:
        event = self._event_shape
        if tuple(shape[len(shape) - len(event) :]) != tuple(event):
            raise ValueError(
                f"The right-most size of value must match event_shape: {shape} vs {event}."
            )
        expected = self._batch_shape + event
        pairs = zip(reversed(shape), reversed(expected), strict=False)
        if any(a != b and a != 1 and b != 1 for a, b in pairs):
            raise ValueError(
                f"Value is not broadcastable with batch_shape+event_shape: {shape} vs {expected}."
            )

    def __repr__(self) -> str:
        own = vars(self)
        known = {name: _plain(own[name]) for name in self.arg_constraints if name in own}
        shown = (f"{k}: {v if v.numel() == 1 else v.size()}" for k, v in known.items())
        return f"{type(self).__name__}({', '.join(shown)})"
