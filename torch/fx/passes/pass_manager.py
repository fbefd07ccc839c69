"""The first PassManager: passes are plain functions of a module that return a module. New code uses
torch.fx.passes.infra.pass_manager."""

import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any

from torch.fx._compatibility import compatibility
from torch.fx.passes.infra.pass_manager import _validate_pass_schedule_constraint

__all__ = [
    "PassManager",
    "inplace_wrapper",
    "log_hook",
    "loop_pass",
    "these_before_those_pass_constraint",
    "this_before_that_pass_constraint",
]

logger = logging.getLogger(__name__)


@compatibility(is_backward_compatible=False)
def inplace_wrapper(fn: Callable) -> Callable:
    """A pass that changes its module and returns nothing, as one that returns the module."""

    @functools.wraps(fn)
    def wrapped(gm: Any) -> Any:
        fn(gm)
        return gm

    return wrapped


@compatibility(is_backward_compatible=False)
def log_hook(fn: Callable, level: int = logging.INFO) -> Callable:
    """A pass that logs what the pass returned."""

    @functools.wraps(fn)
    def wrapped(gm: Any) -> Any:
        result = fn(gm)
        logger.log(level, "Ran pass %s\t Return value: %s", fn, result)
        return result

    return wrapped


@compatibility(is_backward_compatible=False)
def loop_pass(
    base_pass: Callable, n_iter: int | None = None, predicate: Callable | None = None
) -> Callable:
    """A pass that runs another n_iter times, or as long as a predicate of its result holds."""
    if (n_iter is None) == (predicate is None):
        raise AssertionError("Exactly one of `n_iter`or `predicate` must be specified.")

    @functools.wraps(base_pass)
    def looped(source: Any) -> Any:
        if n_iter is not None:
            for _ in range(n_iter):
                source = base_pass(source)
            return source
        while predicate(source):
            source = base_pass(source)
        return source

    return looped


@compatibility(is_backward_compatible=False)
def this_before_that_pass_constraint(this: Callable, that: Callable) -> Callable:
    """A constraint: one pass comes before another."""
    return lambda first, second: not (first == that and second == this)


@compatibility(is_backward_compatible=False)
def these_before_those_pass_constraint(these: Callable, those: Callable) -> Callable:
    """A constraint between passes that were wrapped: whatever unwraps to one comes before whatever
    unwraps to the other."""
    return lambda first, second: (
        not (inspect.unwrap(first) == those and inspect.unwrap(second) == these)
    )


@compatibility(is_backward_compatible=False)
class PassManager:
    """Runs passes in their order, which constraints check."""

    passes: list[Callable]
    constraints: list[Callable]
    _validated: bool = False

    def __init__(
        self, passes: list[Callable] | None = None, constraints: list[Callable] | None = None
    ) -> None:
        self.passes = passes or []
        self.constraints = constraints or []

    @classmethod
    def build_from_passlist(cls, passes: list[Callable]) -> "PassManager":
        """A manager of these passes."""
        return cls(passes)

    def add_pass(self, _pass: Callable) -> None:
        """Puts a pass at the end."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable) -> None:
        """Adds a rule on pairs of passes."""
        self.constraints.append(constraint)
        self._validated = False

    def remove_pass(self, _passes: list[str]) -> None:
        """Takes passes of these names away."""
        self.passes = [p for p in self.passes if p.__name__ not in _passes]
        self._validated = False

    def replace_pass(self, _target: Callable, _replacement: Callable) -> None:
        """Puts a pass in the place of another of its name."""
        self.passes = [_replacement if p.__name__ == _target.__name__ else p for p in self.passes]
        self._validated = False

    def validate(self) -> None:
        """Raises if the order breaks a constraint."""
        if not self._validated:
            for constraint in self.constraints:
                _validate_pass_schedule_constraint(constraint, self.passes)
            self._validated = True

    def __call__(self, source: Any) -> Any:
        self.validate()
        for run in self.passes:
            source = run(source)
        return source
