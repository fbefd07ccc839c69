"""L-BFGS: quasi-Newton steps from the last few changes of point and gradient.

The parameters are treated as one flat vector. The closure is evaluated several times per step, so
it must clear the gradients, compute the loss and call backward itself.
"""

from __future__ import annotations

import typing
from typing import NamedTuple

import torch
from torch.optim._stepwise import check_lr, real
from torch.optim.optimizer import Optimizer

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from torch.optim.optimizer import ParamsT

__all__ = ["LBFGS"]

_SUFFICIENT_DECREASE = 1e-4
_SUFFICIENT_FLATNESS = 0.9
_MOST_TRIALS = 25


class _Trial(NamedTuple):
    """A point on the search line: how far, the loss, the gradient, the slope along the line."""

    t: float
    loss: float
    grad: torch.Tensor
    slope: float


def _cubic_minimum(a, b, bounds=None):
    """Where the cubic through two trials' losses and slopes is least, kept within bounds."""
    low, high = bounds if bounds is not None else sorted((a.t, b.t))
    if a.t > b.t:
        a, b = b, a
    if a.t == b.t:
        return (low + high) / 2.0
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if square >= 0:
        d2 = square**0.5
        curve = b.slope - a.slope + 2 * d2
        if curve != 0:
            least = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / curve)
            return min(max(least, low), high)
    return (low + high) / 2.0


class _LineSearch:
    """Looks along a direction for a step that satisfies the strong Wolfe conditions."""

    def __init__(self, evaluate, t, direction, start, tolerance_change) -> None:
        self.evaluate = evaluate
        self.direction = direction
        self.start = start
        self.tolerance = tolerance_change
        self.length = direction.abs().max().item()
        self.evaluations = 0
        self.trial = self._try(t)

    def _try(self, t) -> _Trial:
        loss, grad = self.evaluate(t, self.direction)
        self.evaluations += 1
        return _Trial(t, loss, grad, grad.dot(self.direction).item())

    def _too_high(self, trial) -> bool:
        start = self.start
        return trial.loss > start.loss + _SUFFICIENT_DECREASE * trial.t * start.slope

    def _flat(self, trial) -> bool:
        return abs(trial.slope) <= -_SUFFICIENT_FLATNESS * self.start.slope

    def run(self) -> _Trial:
        """The trial to accept."""
        tries, bracket = self._find_bracket()
        return self._narrow(tries, bracket) if len(bracket) == 2 else bracket[0]

    def _find_bracket(self):
        """Goes further until a minimum lies between two trials, or one trial will do."""
        before, trial = self.start, self.trial
        for tries in range(_MOST_TRIALS):
            if self._too_high(trial) or (tries > 1 and trial.loss >= before.loss):
                return tries, [before, trial]
            if self._flat(trial):
                return tries, [trial]
            if trial.slope >= 0:
                return tries, [before, trial]
            bounds = (trial.t + 0.01 * (trial.t - before.t), trial.t * 10)
            before, trial = trial, self._try(_cubic_minimum(before, trial, bounds))
        return _MOST_TRIALS, [self.start, trial]

    def _inside(self, bracket, stuck):
        """A new point between the ends, and whether it is close to one of them a first time."""
        low, high = sorted(trial.t for trial in bracket)
        t = _cubic_minimum(*bracket)
        margin = 0.1 * (high - low)
        if min(high - t, t - low) >= margin:
            return t, False
        if stuck or t >= high or t <= low:
            nearer_high = abs(t - high) < abs(t - low)
            return (high - margin if nearer_high else low + margin), False
        return t, True

    def _narrow(self, tries, bracket):
        stuck = False
        best, worse = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
        while tries < _MOST_TRIALS:
            if abs(bracket[1].t - bracket[0].t) * self.length < self.tolerance:
                break
            t, stuck = self._inside(bracket, stuck)
            trial = self._try(t)
            tries += 1
            if self._too_high(trial) or trial.loss >= bracket[best].loss:
                bracket[worse] = trial
                best, worse = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
                continue
            if self._flat(trial):
                return trial
            if trial.slope * (bracket[worse].t - bracket[best].t) >= 0:
                bracket[worse] = bracket[best]
            bracket[best] = trial
        return bracket[best]


class LBFGS(Optimizer):
    """Limited-memory BFGS, with a strong Wolfe line search on request."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | torch.Tensor = 1,
        max_iter=20,
        max_eval=None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size=100,
        line_search_fn=None,
    ) -> None:
        check_lr(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _flat_grad(self) -> torch.Tensor:
        parts = []
        for param in self._params:
            grad = torch.zeros_like(param) if param.grad is None else param.grad
            if grad.is_sparse:
                grad = grad.to_dense()
            parts.append(real(grad).reshape(-1))
        return torch.cat(parts)

    def _move(self, t, direction) -> None:
        """Adds t times the direction to the parameters."""
        flat = [real(param) for param in self._params]
        moves = direction.split([param.numel() for param in flat])
        for param, move in zip(flat, moves, strict=True):
            param.add_(move.view_as(param), alpha=t)

    def _evaluator(self, closure):
        """A function of (t, direction): loss and gradient there; parameters stay where they are."""
        kept = [param.clone(memory_format=torch.contiguous_format) for param in self._params]

        def evaluate(t, direction) -> tuple[float, torch.Tensor]:
            self._move(t, direction)
            loss = float(closure())
            grad = self._flat_grad()
            for param, value in zip(self._params, kept, strict=True):
                param.copy_(value)
            return loss, grad

        return evaluate

    @staticmethod
    def _direction(state, grad, history_size) -> torch.Tensor:
        """Minus the gradient times the inverse Hessian that the history implies."""
        change = grad.sub(state["prev_flat_grad"])
        move = state["d"].mul(state["t"])
        curvature = change.dot(move)
        changes, moves, inverses = state["old_dirs"], state["old_stps"], state["ro"]
        if curvature.item() > 1e-10:
            if len(changes) == history_size:
                for kept in (changes, moves, inverses):
                    kept.pop(0)
            changes.append(change)
            moves.append(move)
            inverses.append(1.0 / curvature)
            state["H_diag"] = curvature / change.dot(change)
        factors = state.setdefault("al", [None] * history_size)
        direction = grad.neg()
        for i in reversed(range(len(changes))):
            factors[i] = moves[i].dot(direction) * inverses[i]
            direction.add_(changes[i], alpha=-factors[i].item())
        direction = direction.mul(state["H_diag"])
        for i in range(len(changes)):
            back = changes[i].dot(direction) * inverses[i]
            direction.add_(moves[i], alpha=(factors[i] - back).item())
        return direction

    def _first_direction(self, state, grad, lr) -> None:
        state["d"] = grad.neg()
        steepness = grad.abs().sum().item()
        state["t"] = min(1.0, 1.0 / steepness) * lr if steepness else lr
        state["old_dirs"], state["old_stps"], state["ro"] = [], [], []
        state["H_diag"] = 1

    @torch.no_grad()
    def step(self, closure: Callable[[], typing.Any]) -> typing.Any:
        """Up to max_iter iterations; returns the loss before the first."""
        group = self.param_groups[0]
        search_fn = group["line_search_fn"]
        if search_fn is not None and search_fn != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        closure = torch.enable_grad()(closure)
        lr = float(group["lr"]) if isinstance(group["lr"], torch.Tensor) else group["lr"]
        # One state for all, kept with the first parameter, which makes it saveable.
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        first_loss = closure()
        loss = float(first_loss)
        evaluations = 1
        state["func_evals"] += 1
        grad = self._flat_grad()
        if grad.abs().max().item() <= group["tolerance_grad"]:
            return first_loss

        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                self._first_direction(state, grad, lr)
            else:
                state["d"] = self._direction(state, grad, group["history_size"])
                state["t"] = lr
            state["prev_flat_grad"] = grad.clone(memory_format=torch.contiguous_format)
            state["prev_loss"] = previous = loss
            direction, t = state["d"], state["t"]
            slope = grad.dot(direction).item()
            if slope > -group["tolerance_change"]:
                break

            spent = 0
            if search_fn is not None:
                start = _Trial(0, loss, grad, slope)
                search = _LineSearch(self._evaluator(closure), t, direction, start, 1e-9)
                found = search.run()
                loss, grad, t, spent = found.loss, found.grad, found.t, search.evaluations
                state["t"] = t
                self._move(t, direction)
            else:
                self._move(t, direction)
                # After the last iteration nobody would use another evaluation.
                if iteration != group["max_iter"]:
                    loss = float(closure())
                    grad = self._flat_grad()
                    spent = 1
            evaluations += spent
            state["func_evals"] += spent
            if (
                evaluations >= group["max_eval"]
                or grad.abs().max().item() <= group["tolerance_grad"]
                or direction.mul(t).abs().max().item() <= group["tolerance_change"]
                or abs(loss - previous) < group["tolerance_change"]
            ):
                break
        return first_loss
