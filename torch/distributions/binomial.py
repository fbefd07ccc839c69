"""The binomial distribution of the number of successes among independent trials."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import constraints
from torch.distributions._probs import ProbsOrLogits
from torch.distributions._special import HALF_LOG_2PI, deviance, stirling_error
from torch.distributions.utils import Number

__all__ = ["Binomial"]


def _log_binomial(k: Tensor, n: Tensor, p: Tensor, q: Tensor) -> Tensor:
    """The log probability of k of n trials by deviances from the means n p and n q.

    See ``_special``: no term is larger than the result, whatever n.
    """
    rest = n - k
    inner = (k > 0) & (rest > 0)
    # Where all trials agree the probability is a power; other places hold 1 of 2 meanwhile.
    i, j, m = torch.where(inner, k, 1.0), torch.where(inner, rest, 1.0), torch.where(inner, n, 2.0)
    error = stirling_error(m) - stirling_error(i) - stirling_error(j)
    spread = 0.5 * (m.log() - i.log() - j.log()) - HALF_LOG_2PI
    body = error + spread - deviance(i, m * p) - deviance(j, m * q)
    power = torch.where(
        k > 0,
        torch.special.xlogy(k, p),
        torch.where(p < 0.5, torch.special.xlog1py(rest, -p), torch.special.xlogy(rest, q)),
    )
    return torch.where(inner, body, power)


class Binomial(ProbsOrLogits):
    """Successes among ``total_count`` trials that each succeed with probability ``probs``."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _parts = ("_given",)

    def __init__(
        self,
        total_count: Tensor | int = 1,
        probs: Tensor | Number | None = None,
        logits: Tensor | Number | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = self._one_of(probs, logits)
        param = given[self._given]
        if isinstance(total_count, Tensor):
            like = param.dtype if isinstance(param, Tensor) else torch.get_default_dtype()
            total_count = total_count.to(like)
        self._set_parameters(validate_args, **given, total_count=total_count)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        """Whole numbers up to the number of trials."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        """n p."""
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        """The whole part of (n + 1) p, at most n."""
        return torch.minimum(torch.floor((self.total_count + 1) * self.probs), self.total_count)

    @property
    def variance(self) -> Tensor:
        """n p (1 - p)."""
        return self.mean * (1 - self.probs)

    def _draw(self, shape: torch.Size) -> Tensor:
        return torch.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def _log_density(self, value: Tensor) -> Tensor:
        if self._given == "probs":
            p, q = self.probs, 1 - self.probs
            return _log_binomial(value, self.total_count, p, q)
        # log p and log q are exact however far out the logits are; the rest is the coefficient.
        even = torch.full_like(self.logits, 0.5)
        coefficient = _log_binomial(value, self.total_count, even, even)
        log_p, log_q = F.logsigmoid(self.logits), F.logsigmoid(-self.logits)
        rest = self.total_count - value
        half = even.log()
        return coefficient + value * (log_p - half) + rest * (log_q - half)

    def _same_count(self, what: str) -> int:
        count = int(self.total_count.max())
        if count != int(self.total_count.min()):
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{what}`.")
        return count

    def _outcomes(self, count: int) -> Tensor:
        return torch.arange(1 + count, dtype=self._param.dtype, device=self._param.device)

    def entropy(self) -> Tensor:
        """The sum over all outcomes."""
        outcomes = self._spread(self._outcomes(self._same_count("entropy")), expand=False)
        log_prob = self.log_prob(outcomes)
        # A probability of zero adds nothing, however minus infinite its logarithm.
        return -torch.special.xlogy(log_prob.exp(), log_prob.exp()).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """0, 1, ... up to the number of trials, which has to be the same for the whole batch."""
        return self._spread(self._outcomes(self._same_count("enumerate_support")), expand)
