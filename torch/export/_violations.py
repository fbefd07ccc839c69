"""Sizes of which the user promised more than the program allows: what was found, and definitions
that would fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from torch.export._inputs import DimUse, FakeInputs
from torch.export.dynamic_shapes import Dim, _DerivedDim, _DimHint, _DimHintType, linear_text

if TYPE_CHECKING:
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

__all__ = ["check_promises", "guard_texts"]

_MARKED = (
    "You marked {0} as dynamic but your code specialized it to be a constant ({1}). If you're "
    "using mark_dynamic, either remove it or use maybe_mark_dynamic. If you're using Dim.DYNAMIC, "
    "replace it with either Dim.STATIC or Dim.AUTO. (Not all values of {0}{2} in the specified "
    "range are valid because {0} was inferred to be a constant ({1}).)"
)


class _Found(NamedTuple):
    """A broken promise: about which size, in words, and a definition that fits."""

    name: str
    text: str
    fixes: tuple[str, ...]


class _Promises:
    """All sizes of one trace."""

    def __init__(self, env: ShapeEnv, inputs: FakeInputs) -> None:
        self.env, self.inputs = env, inputs
        self.found: list[_Found] = []
        self.special: list[str] = []
        self.names: dict[str, str] = {}  # symbols -> sources
        self.dims: dict[str, DimUse] = {}  # symbols -> uses by a Dim
        for use in inputs.uses:
            symbol = _symbol(use.node)
            if symbol is not None:
                self.names.setdefault(symbol, use.text)
                if isinstance(use.dim, Dim):
                    self.dims.setdefault(symbol, use)

    def run(self) -> None:
        seen: set[str] = set()
        for use in self.inputs.uses:
            name = use.text if isinstance(use.dim, _DimHint) else use.dim.__name__
            if name in seen:
                continue
            seen.add(name)
            if isinstance(use.dim, _DimHint):
                self._check_hint(use)
            elif isinstance(use.dim, _DerivedDim):
                self._check_derived(use)
            else:
                self._check_dim(use)

    def _check_hint(self, use: DimUse) -> None:
        if use.dim.type is not _DimHintType.DYNAMIC:
            return
        constant = _constant(use.node)
        if constant is not None:
            text = _MARKED.format(use.text, constant, "")
            text = text.replace("Not all values of ", "Not all values of RelaxedUnspecConstraint ")
            self.found.append(_Found(use.text, text, ()))

    def _check_derived(self, use: DimUse) -> None:
        constant = _constant(use.node)
        root = use.dim.root
        if constant is None:
            return
        value = (constant - use.dim.offset) // use.dim.scale
        self.special.append(root.__name__)
        self.found.append(
            _Found(
                root.__name__,
                f"solving the guards generated for {use.dim.__name__} = {use.text} resulted in a "
                f"specialized value of {constant}.",
                (f"{root.__name__} = {value}",),
            )
        )

    def _check_dim(self, use: DimUse) -> None:
        name = use.dim.__name__
        derived = [
            u
            for u in self.inputs.uses
            if isinstance(u.dim, _DerivedDim) and u.dim.root.__name__ == name
        ]
        constant = _constant(use.node)
        if constant is not None:
            if not derived:
                text = _MARKED.format(name, constant, f" = {use.text}")
                self.found.append(_Found(name, text, (f"{name} = {constant}",)))
            return
        shown = use.node._shown()
        if _symbol(shown) != _symbol(use.node):
            self._related(use, shown)
            return
        self._check_range(use)
        self._check_guards(use)

    def _related(self, use: DimUse, shown: object) -> None:
        """A size that was found to be an expression of others."""
        name = use.dim.__name__
        symbols = [str(s) for s in shown._symbols()]
        other = self.dims.get(symbols[0]) if len(symbols) == 1 else None
        if other is None:
            guard = self.env._print(shown, self.names)
            self._not_all(use, f"{use.text} == {guard}", ())
            return
        linear = _linear(shown)
        if linear == (1, 0):
            fix = f"{name} = {other.dim.__name__}"
            text = (
                f"The values of {name} = {use.text} and {other.dim.__name__} = {other.text} must "
                "always be equal."
            )
        else:
            right = (
                linear_text(other.dim.__name__, *linear)
                if linear
                else self.env._print(shown, {symbols[0]: other.dim.__name__})
            )
            fix = f"{name} = {right}"
            text = (
                f"The values of {name} = {use.text} must always be related to the values of "
                f"{other.dim.__name__} = {other.text} by {fix}."
            )
        self.found.append(_Found(name, text, (fix,)))

    def _not_all(self, use: DimUse, guard: str, fixes: tuple[str, ...]) -> None:
        dim = use.dim
        low, high = dim.min, dim.max
        bounded = _finite(high)
        if low > 0 and bounded:
            promised = f" {low} <= {dim.__name__} <= {high}"
        elif low > 0:
            promised = f" {low} <= {dim.__name__}"
        else:
            promised = f" {dim.__name__} <= {high}" if bounded else ""
        text = (
            f"Not all values of {dim.__name__} = {use.text} in the specified range{promised} "
            f"satisfy the generated guard {guard}"
        )
        self.found.append(_Found(dim.__name__, text, fixes))

    def _check_range(self, use: DimUse) -> None:
        dim = use.dim
        low, high = self.env._range(use.node)
        low = 0 if low is None else low
        narrower_low = low > max(dim.min, 2)
        narrower_high = high is not None and (not _finite(dim.max) or high < dim.max)
        if not narrower_low and not narrower_high:
            return
        parts = []
        if low > 2 or narrower_low:
            parts.append(f"{low} <= {use.text}")
        if high is not None:
            parts.append(f"{use.text} <= {high}")
        bounds = f", min={low}" if low > 2 or dim.min == low > 0 else ""
        bounds += f", max={high}" if high is not None else ""
        fix = f"{dim.__name__} = Dim('{dim.__name__}'{bounds})"
        self._not_all(use, " and ".join(parts), (fix,))

    def _check_guards(self, use: DimUse) -> None:
        symbol = _symbol(use.node)
        if symbol is None:
            return
        for node, _, _ in self.env._guards():
            mentioned = {str(s) for s in node._symbols()}
            text = self.env._print(node._shown(), self.names)
            if symbol not in mentioned or text == "True" or _is_bound(node):
                continue
            if self.outside(node):
                continue
            if len(mentioned) > 1 and any(m not in self.names for m in mentioned):
                continue
            self._not_all(use, f"{text}.", self._fix_remainder(use, node))

    def outside(self, node: object) -> bool:
        """Whether a condition says that a size is not a number outside of its range, as 0 or 1."""
        kind, _, parts = node._shown()._tree()
        if kind != "ne" or sorted(p._tree()[0] for p in parts) != ["integer", "symbol"]:
            return False
        number = next(p.maybe_as_int() for p in parts if p._tree()[0] == "integer")
        symbol = next(p for p in parts if p._tree()[0] == "symbol")
        low, high = self.env._range(symbol)
        return (low is not None and number < low) or (high is not None and number > high)

    def _fix_remainder(self, use: DimUse, node: object) -> tuple[str, ...]:
        """`dim = 2*_dim` for a size that has to be a multiple."""
        kind, _, parts = node._tree()
        if kind != "eq":
            return ()
        mods = [p for p in parts if p._tree()[0] == "mod"]
        if len(mods) != 1:
            return ()
        _, _, (number, by) = mods[0]._tree()
        factor, linear = by.maybe_as_int(), _linear(number)
        rest = next((p.maybe_as_int() for p in parts if p.maybe_as_int() is not None), None)
        if factor is None or linear is None or linear[0] != 1 or rest is None:
            return ()
        name = use.dim.__name__
        offset = (rest - linear[1]) % factor
        if offset:
            offset -= factor
        high = use.dim.max
        bound = f", max={math.floor((high - offset) / factor)}" if _finite(high) else ""
        return (
            f"_{name} = Dim('_{name}'{bound})",
            f"{name} = {linear_text(f'_{name}', factor, offset)}",
        )


def _is_bound(node: object) -> bool:
    kind, _, parts = node._tree()
    return (
        kind in ("lt", "le", "and")
        and len(node._symbols()) <= 1
        and all(p._tree()[0] in ("integer", "symbol", "lt", "le") for p in parts)
    )


def _finite(value: object) -> bool:
    return isinstance(value, int)


def _constant(node: object) -> int | None:
    return node._shown().maybe_as_int()


def _symbol(node: object) -> str | None:
    kind, payload, _ = node._tree()
    return payload if kind == "symbol" else None


def _linear(node: object) -> tuple[int, int] | None:
    """(scale, offset) of an expression of one symbol."""
    kind, payload, parts = node._tree()
    if kind == "symbol":
        return 1, 0
    if kind == "sum" and len(parts) == 1 and parts[0]._tree()[0] == "symbol":
        offset, scale = payload
        return int(scale), int(offset)
    return None


def check_promises(env: ShapeEnv, inputs: FakeInputs) -> None:
    """Raises UserError where the program does not hold for all sizes that were promised."""
    from torch._dynamo.exc import UserError, UserErrorType

    promises = _Promises(env, inputs)
    promises.run()
    if not promises.found:
        return
    names = ", ".join(dict.fromkeys(f.name for f in promises.found))
    head = "Specializations unexpectedly required" if promises.special else "Constraints violated"
    text = f'{head} ({names})! For more information, run with TORCH_LOGS="+dynamic".\n'
    text += "\n".join(f"  - {f.text}" for f in promises.found)
    fixes = list(dict.fromkeys(fix for f in promises.found for fix in f.fixes))
    if fixes:
        text += "\nSuggested fixes:\n" + "\n".join(f"  {fix}" for fix in _ordered(fixes))
    raise UserError(
        UserErrorType.CONSTRAINT_VIOLATION,
        f"{text}\n\nThe error above occurred when calling torch.export.export. If you would like "
        "to view some more information about this error, and get a list of all other errors that "
        "may occur in your export call, you can replace your `export()` call with "
        "`draft_export()`.",
    )


def _ordered(fixes: Sequence[str]) -> list[str]:
    """Definitions that others refer to first."""
    return sorted(fixes, key=lambda fix: not fix.startswith("_"))


def guard_texts(env: ShapeEnv, inputs: FakeInputs) -> list[str]:
    """The conditions on inputs that neither their shapes nor the ranges of symbols say."""
    promises = _Promises(env, inputs)
    found = []
    for node, _, _ in env._guards():
        if _is_bound(node) or promises.outside(node):
            continue
        mentioned = {str(s) for s in node._shown()._symbols()}
        if not mentioned or not mentioned <= set(promises.names):
            continue
        text = env._print(node._shown(), promises.names)
        if text not in ("True", "False") and text not in found:
            found.append(text)
    return found
