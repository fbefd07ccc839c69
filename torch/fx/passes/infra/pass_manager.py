"""PassManager runs passes in an order that constraints decide, some times over."""

import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any

from torch import nn
from torch.fx._compatibility import compatibility
from torch.fx.passes.infra.pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]

logger = logging.getLogger(__name__)


@compatibility(is_backward_compatible=False)
def pass_result_wrapper(fn: Callable) -> Callable | None:
    """A pass that returns a PassResult, made of one that changes the module and returns nothing."""
    if fn is None:
        return None

    @functools.wraps(fn, updated=())
    def wrapped(gm: nn.Module) -> PassResult:
        result = fn(gm)
        return PassResult(gm, True) if result is None else result

    if not inspect.isfunction(fn):
        wrapped.__name__ = type(fn).__name__
    return wrapped


def _validate_pass_schedule_constraint(
    constraint: Callable[[Callable, Callable], bool], passes: list[Callable]
) -> None:
    """Raises for the first pair of passes in an order that the constraint refuses."""
    for i, first in enumerate(passes):
        for j, second in enumerate(passes[i + 1 :], i + 1):
            if not constraint(first, second):
                raise RuntimeError(
                    f"pass schedule constraint violated. Expected {first} before {second} but "
                    f"found {first} at index {i} and {second} at index{j} in pass list."
                )


def _topological_sort_passes(passes: list[Callable], constraints: list[Callable]) -> list[Callable]:
    """The passes in an order that satisfies the constraints. Of those that may come next, the one
    that has been free to for longest does; without constraints the order stays."""
    if not constraints:
        return passes
    count = range(len(passes))
    # a -> b: b before a is refused, so a comes first.
    after = {
        a: [
            b
            for b in count
            if b != a and not all(rule(passes[b], passes[a]) for rule in constraints)
        ]
        for a in count
    }
    waiting = dict.fromkeys(count, 0)
    for targets in after.values():
        for b in targets:
            waiting[b] += 1
    queue = [a for a in count if waiting[a] == 0]
    order: list[int] = []
    for a in queue:
        order.append(a)
        for b in after[a]:
            waiting[b] -= 1
            if waiting[b] == 0:
                queue.append(b)
    if len(order) < len(passes):
        stuck = [p for i, p in enumerate(passes) if waiting[i] > 0]
        raise RuntimeError(f"Circular dependency detected within the following passes: {stuck}")
    return [passes[i] for i in order]


@compatibility(is_backward_compatible=False)
def this_before_that_pass_constraint(this: Callable, that: Callable) -> Callable:
    """A constraint: one pass comes before another."""
    return lambda first, second: not (first == that and second == this)


@compatibility(is_backward_compatible=False)
class PassManager:
    """Runs passes until nothing changes or `steps` times; checks run behind each or behind all."""

    passes: list[Callable[[nn.Module], PassResult]]
    constraints: list[Callable[[Callable, Callable], bool]]
    _validated: bool = False
    steps: int = 1

    def __init__(
        self,
        passes: list[Callable] | None = None,
        constraints: list[Callable] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes = passes or []
        self.constraints = constraints or []
        if steps:
            self.steps = steps
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures

    def add_pass(self, _pass: Callable) -> None:
        """Puts a pass at the end."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable) -> None:
        """Adds a rule on pairs of passes."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """Raises if the passes stand in an order that a constraint refuses."""
        if not self._validated:
            for constraint in self.constraints:
                _validate_pass_schedule_constraint(constraint, self.passes)
            self._validated = True

    def solve_constraints(self) -> None:
        """Sorts the passes so that all constraints hold."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable) -> None:
        """Makes a function of the module the check."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check

    def check(self, module: nn.Module) -> None:
        """Raises if the module is not well formed; checks nothing unless one was added."""

    def __call__(self, module: nn.Module) -> PassResult:
        """Runs the passes."""
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            module, modified = self._run_once(module)
            changed = changed or modified
            if not modified:
                break
        return PassResult(module, changed)

    def _run_once(self, module: nn.Module) -> tuple[nn.Module, bool]:
        changed = False
        for i, fn in enumerate(self.passes):
            name = _name(fn)
            logger.debug("Running pass '%s'", name)
            try:
                result = fn(module)
                if not isinstance(result, PassResult) and not hasattr(result, "graph_module"):
                    raise TypeError(
                        f"The result of the pass {name} should be type PassResult. Please wrap it "
                        "with pass_result_wrapper()"
                    )
                module, modified = result.graph_module, result.modified
                changed = changed or modified
                if isinstance(module, nn.Module) and hasattr(module, "recompile"):
                    module.recompile()
                if self.run_checks_after_each_pass:
                    self.check(module)
            except Exception as error:
                done = [_name(p) for p in self.passes[:i]]
                raise Exception(
                    f"An error occurred when running the '{name}' pass after the following "
                    f"passes: {done}"
                ) from error
        self.check(module)
        return module, changed


def _name(fn: Any) -> str:
    return fn.__name__ if inspect.isfunction(fn) else type(fn).__name__
