"""The base class of all distributions: shapes, validation of parameters and values, and the
methods that a distribution may have.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.distributions import constraints
from torch.distributions.utils import _holds, _plain, lazy_property

__all__ = ["Distribution"]


class Distribution:
    """A batch of probability distributions over tensors.

    A sample has the shape sample_shape + batch_shape + event_shape: independent draws, then
    independent distributions with parameters of their own, then one possibly dependent event.
    Arguments are validated unless `validate_args` is False or Python runs with -O.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value) -> Any:
        """Turns the validation of arguments on or off where a distribution is not told."""
        if value not in [True, False]:
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape=torch.Size(),  # noqa: B008
        event_shape=torch.Size(),  # noqa: B008
        validate_args=None,
    ) -> None:
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()
        super().__init__()

    def _validate_parameters(self):
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            arg_constraints = {}
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. Please set "
                "`arg_constraints = {}` or initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=3,
            )
        for name, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            # A parameter that would first have to be computed from another is right if that is.
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue
            value = getattr(self, name)
            if not _holds(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {name} "
                    f"({type(value).__name__} of shape {tuple(value.shape)}) "
                    f"of distribution {self!r} "
                    f"to satisfy the constraint {constraint!r}, "
                    f"but found invalid values:\n{_plain(value)}"
                )

    def expand(self, batch_shape, _instance=None) -> Any:
        """The distribution with its parameters expanded, as views, to the batch shape."""
        raise NotImplementedError

    @property
    def batch_shape(self):
        """The shape of the batch of parameters."""
        return self._batch_shape

    @property
    def event_shape(self):
        """The shape of one sample of one distribution."""
        return self._event_shape

    @property
    def arg_constraints(self):
        """What each parameter must satisfy, by name."""
        raise NotImplementedError

    @property
    def support(self):
        """The constraint that samples satisfy."""
        raise NotImplementedError

    @property
    def mean(self):
        """The expected value."""
        raise NotImplementedError

    @property
    def mode(self):
        """The most likely value."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self):
        """The expected squared distance from the mean."""
        raise NotImplementedError

    @property
    def stddev(self):
        """The square root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape=torch.Size()) -> torch.Tensor:  # noqa: B008
        """Draws that carry no gradient."""
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=torch.Size()) -> torch.Tensor:  # noqa: B008
        """Draws through which gradients flow to the parameters."""
        raise NotImplementedError

    def sample_n(self, n) -> Any:
        """The old name of sample((n,))."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return self.sample(torch.Size((n,)))

    def log_prob(self, value) -> torch.Tensor:
        """The logarithm of the density or the probability of each value."""
        raise NotImplementedError

    def cdf(self, value) -> torch.Tensor:
        """The probability of a sample at most as large as each value."""
        raise NotImplementedError

    def icdf(self, value) -> torch.Tensor:
        """The quantile of each probability."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> torch.Tensor:
        """All values of a discrete distribution along a new first dimension; with
        expand=False the batch dimensions keep size 1.
        """
        raise NotImplementedError

    def entropy(self) -> torch.Tensor:
        """The entropy in nats, one for each distribution of the batch."""
        raise NotImplementedError

    def perplexity(self) -> torch.Tensor:
        """exp of the entropy."""
        return torch.exp(self.entropy())

    def _extended_shape(self, sample_shape=torch.Size()):  # noqa: B008
        if not isinstance(sample_shape, torch.Size):
            sample_shape = torch.Size(sample_shape)
        return torch.Size(sample_shape + self._batch_shape + self._event_shape)

    def _validate_sample(self, value):
        """Raises where the value's shape does not fit or it lies outside the support."""
        if not isinstance(value, torch.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        event_start = len(value.size()) - len(self._event_shape)
        if value.size()[event_start:] != self._event_shape:
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{value.size()} vs {self._event_shape}."
            )
        actual, expected = value.size(), self._batch_shape + self._event_shape
        for i, j in zip(reversed(actual), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    "Value is not broadcastable with batch_shape+event_shape: "
                    f"{actual} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable sample validation. "
                "Please initialize the distribution with `validate_args=False` to turn off "
                "validation.",
                stacklevel=2,
            )
            return
        if not _holds(support.check(value)):
            raise ValueError(
                "Expected value argument "
                f"({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) "
                f"of the distribution {self!r}, "
                f"but found invalid values:\n{_plain(value)}"
            )

    def _get_checked_instance(self, cls, _instance=None):
        """What expand() fills in. A subclass with a constructor of its own may need attributes
        that cls.expand does not know, so it must bring its own expand.
        """
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom "
                "__init__ method must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def _finish_expand(self, cls, new, batch_shape, event_shape=None):
        """Sets the shapes of an expanded copy, whose parameters are already known to be valid."""
        event_shape = self._event_shape if event_shape is None else event_shape
        super(cls, new).__init__(batch_shape, event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_parameters(self, cls, names, batch_shape, _instance, event_shape=None):
        """expand() of a distribution whose named tensors have the batch's shape; those that were
        not computed yet stay so.
        """
        new = self._get_checked_instance(cls, _instance)
        batch_shape = torch.Size(batch_shape)
        for name in names:
            if name in self.__dict__:
                setattr(new, name, getattr(self, name).expand(batch_shape))
        return self._finish_expand(cls, new, batch_shape, event_shape)

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        arguments = ", ".join(
            f"{name}: {_plain(self.__dict__[name])}"
            if self.__dict__[name].numel() == 1
            else f"{name}: {self.__dict__[name].size()}"
            for name in names
        )
        return f"{self.__class__.__name__}({arguments})"
