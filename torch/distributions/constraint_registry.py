"""Registries from constraints to transforms that reach them from unconstrained numbers.

``biject_to`` gives bijections, for changes of variables; ``transform_to`` gives any map onto the
set, cheaper or smoother where a bijection is not needed, as for parameters in an optimizer. The two
differ for few sets, so that one table fills both.
"""

from __future__ import annotations

from collections.abc import Callable

from torch.distributions import constraints, transforms
from torch.distributions.constraints import Constraint
from torch.distributions.transforms import Transform

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Constraint], Transform]


class ConstraintRegistry:
    """Maps classes of constraints to factories of transforms.

    Call it with a constraint to get the transform.
    """

    def __init__(self) -> None:
        self._registry: dict[type[Constraint], Factory] = {}
        super().__init__()

    def register(
        self, constraint: Constraint | type[Constraint], factory: Factory | None = None
    ) -> Factory | Callable[[Factory], Factory]:
        """Registers the factory of a constraint's class; without one, returns a decorator."""
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, Constraint)):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, but got "
                f"{constraint}"
            )

        def enter(made_by: Factory) -> Factory:
            self._registry[kind] = made_by
            return made_by

        return enter if factory is None else enter(factory)

    def __call__(self, constraint: Constraint) -> Transform:
        """Returns a transform onto the constraint's set."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _above(constraint: Constraint) -> Transform:
    shift = transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


def _below(constraint: Constraint) -> Transform:
    shift = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


def _between(constraint: Constraint) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    numbers = isinstance(low, (int, float)) and isinstance(high, (int, float))
    if numbers and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    stretch = transforms.AffineTransform(low, high - low)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), stretch])


def _combinations(registry: ConstraintRegistry) -> dict[type[Constraint], Factory]:
    """Factories for sets made of other sets, which look these up in ``registry``."""

    def arrays(c: Constraint) -> Transform:
        inner = registry(c.base_constraint)
        return transforms.IndependentTransform(inner, c.reinterpreted_batch_ndims)

    def pieces(c: Constraint) -> Transform:
        return transforms.CatTransform([registry(part) for part in c.cseq], c.dim, c.lengths)

    def slices(c: Constraint) -> Transform:
        return transforms.StackTransform([registry(part) for part in c.cseq], c.dim)

    return {constraints.independent: arrays, constraints.cat: pieces, constraints.stack: slices}


_SHARED: dict[type[Constraint], Factory] = {
    constraints._Real: lambda c: transforms.identity_transform,
    constraints.greater_than: _above,
    constraints.greater_than_eq: _above,
    constraints.less_than: _below,
    constraints.interval: _between,
    constraints.half_open_interval: _between,
    constraints._CorrCholesky: lambda c: transforms.CorrCholeskyTransform(),
}

biject_to._registry = {
    **_SHARED,
    **_combinations(biject_to),
    constraints._Simplex: lambda c: transforms.StickBreakingTransform(),
}
transform_to._registry = {
    **_SHARED,
    **_combinations(transform_to),
    constraints._Simplex: lambda c: transforms.SoftmaxTransform(),
    constraints._LowerCholesky: lambda c: transforms.LowerCholeskyTransform(),
    constraints._PositiveDefinite: lambda c: transforms.PositiveDefiniteTransform(),
    constraints._PositiveSemidefinite: lambda c: transforms.PositiveDefiniteTransform(),
}
