"""Guards as text over the sources of inputs, and what users promised about sizes checked against
them."""

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch._guards import Source
from torch.fx.experimental._shape_contexts import RelaxedUnspecConstraint, StrictMinMaxConstraint

if TYPE_CHECKING:
    from torch.fx.experimental._shape_env import ShapeEnv


class ConstraintViolationError(RuntimeError):
    """The trace does not hold for all sizes that the user promised."""


class _Part(NamedTuple):
    """A number of an input: where it is, what it is, and what was promised of it."""

    source: Source
    value: Any
    constraint: Any


class GuardProducer:
    """Writes the guards of a ShapeEnv. `source_ref` turns a source into the text that names it."""

    def __init__(self, env: "ShapeEnv", source_ref: Callable[[Source], str]) -> None:
        self.env = env
        self.source_ref = source_ref
        self.names: dict[str, str] = {}  # of symbols
        self.lines: list[str] = []
        self.violations: list[tuple[Any, Source, str]] = []

    def produce(
        self,
        placeholders: list,
        sources: list,
        contexts: list | None,
        ignore_static: bool,
        simplified: bool = False,
    ) -> list[str]:
        """One line to a guard; ConstraintViolationError where a promise is broken. Simplified, the
        lines leave out that sizes are neither 0 nor 1, which holds for every symbol of a size.
        A source may be given as the name of a local variable."""
        if len(placeholders) != len(sources):
            raise ValueError(
                f"expected one source for each of {len(placeholders)} inputs, got {len(sources)}"
            )
        parts = list(self._parts(placeholders, [_as_source(s) for s in sources], contexts))
        self._name_symbols(parts)
        for part in parts:
            self._fix_part(part, ignore_static)
        for node, _, _ in self.env._guards():
            # Bounds of a size are part of its range, which is written below.
            if not _is_bound(node):
                self._write(node)
        self._write_ranges(simplified)
        self._check_promises(parts)
        return self.lines

    def bind(self, placeholders: list, args: Any) -> dict:
        """{sympy symbol: value} read off arguments."""
        out = {}
        for held, given in zip(placeholders, args, strict=True):
            for value, number in zip(_numbers(held), _numbers(given), strict=True):
                symbol = _symbol_of(value)
                if symbol is not None:
                    out.setdefault(self.env._sympy_symbol(symbol), number)
        return out

    def _parts(self, placeholders: list, sources: list, contexts: list | None) -> Any:
        from torch._dynamo.source import TensorProperty, TensorPropertySource

        for i, (held, source) in enumerate(zip(placeholders, sources, strict=True)):
            context = contexts[i] if contexts else None
            if not isinstance(held, torch.Tensor):
                if isinstance(held, (int, float, bool, torch.SymInt, torch.SymFloat)):
                    yield _Part(source, held, getattr(context, "constraint", None))
                continue
            promised = getattr(context, "constraint_sizes", None) or [None] * held.dim()
            for dim, size in enumerate(held.size()):
                place = TensorPropertySource(source, TensorProperty.SIZE, dim)
                yield _Part(place, size, promised[dim])
            for dim, stride in enumerate(held.stride()):
                yield _Part(TensorPropertySource(source, TensorProperty.STRIDE, dim), stride, None)
            place = TensorPropertySource(source, TensorProperty.STORAGE_OFFSET)
            yield _Part(place, held.storage_offset(), None)

    def _name_symbols(self, parts: list[_Part]) -> None:
        for part in parts:
            symbol = _symbol_of(part.value, shown=False)
            if symbol is not None:
                self.names.setdefault(symbol, self.source_ref(part.source))

    def _fix_part(self, part: _Part, ignore_static: bool) -> None:
        """What an input number must be besides the value of its own symbol."""
        text = self.source_ref(part.source)
        if not isinstance(part.value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            if not ignore_static:
                self.lines.append(f"{text} == {part.value}")
            return
        node = part.value.node
        own = _symbol_of(part.value, shown=False)
        if own is not None and self.names[own] == text and _symbol_of(part.value) == own:
            return
        self.lines.append(f"{text} == {self._text(node)}")

    def _text(self, node: Any) -> str:
        return self.env._print(node._shown(), self.names)

    def _write(self, node: Any) -> None:
        # A condition that replacements made trivial is said by the equalities already.
        line = self._text(node)
        known = {str(symbol) for symbol in node._symbols()}
        if line != "True" and line not in self.lines and known <= set(self.names):
            self.lines.append(line)

    def _write_ranges(self, simplified: bool) -> None:
        for symbol, text in self.names.items():
            node = self.env._nodes[symbol]
            if not node.is_int() or node._shown()._tree()[0] != "symbol":
                continue
            low, high = self.env._range(node)
            if simplified and low is not None and low <= 2:
                low = None
            if low is not None and high is not None:
                self.lines.append(f"{low} <= {text} and {text} <= {high}")
            elif low is not None:
                self.lines.append(f"{low} <= {text}")
            elif high is not None:
                self.lines.append(f"{text} <= {high}")

    # ---- promises
    def _check_promises(self, parts: list[_Part]) -> None:
        for part in parts:
            if part.constraint is not None:
                self._check_promise(part)
        errors = [row for row in self.violations if not row[0].warn_only]
        if errors:
            names = ", ".join(self.source_ref(source) for _, source, _ in errors)
            lines = "\n".join(f"  - {text}" for _, _, text in errors)
            raise ConstraintViolationError(
                f"Constraints violated ({names})! For more information, run with "
                f'TORCH_LOGS="+dynamic".\n{lines}'
            )
        if self.violations:
            warnings.warn(f"{len(self.violations)} Warning only constraints violated", stacklevel=2)

    def _check_promise(self, part: _Part) -> None:
        source, constraint = part.source, part.constraint
        name = self.source_ref(source)
        constant = _constant_of(part.value)
        if constant is not None:
            self._violate(
                part,
                f"You marked {name} as dynamic but your code specialized it to be a constant "
                f"({constant}). If you're using mark_dynamic, either remove it or use "
                f"maybe_mark_dynamic. (Not all values of {constraint.render(source)} are valid "
                f"because {name} was inferred to be a constant ({constant}).)",
            )
        elif isinstance(constraint, StrictMinMaxConstraint):
            self._check_range(part, name)
        elif not isinstance(constraint, RelaxedUnspecConstraint):
            raise TypeError(f"unknown constraint {constraint}")

    def _check_range(self, part: _Part, name: str) -> None:
        from torch.fx.experimental._shape_env import _ends

        symbol = _symbol_of(part.value)
        if symbol is None:
            self._violate(
                part,
                f"Not all values of {part.constraint.render(part.source)} are valid because "
                f"{name} was inferred to be equal to {self._text(part.value.node)}.",
            )
            return
        low, high = self.env._range(self.env._nodes[symbol])
        promised_low, promised_high = _ends(part.constraint.vr)
        # Sizes 0 and 1 are always programs of their own.
        narrower = (low or 0) > max(promised_low or 0, 2) or (
            high is not None and (promised_high is None or high < promised_high)
        )
        for node, _, _ in self.env._guards():
            mentioned = {str(s) for s in node._symbols()}
            if symbol in mentioned and (narrower or len(mentioned) > 1 or _splits(node)):
                self._violate(
                    part,
                    f"Not all values of {name} in the specified range "
                    f"{part.constraint.render(part.source)} satisfy the generated guard "
                    f"{self._text(node)}.",
                )
                return

    def _violate(self, part: _Part, text: str) -> None:
        self.violations.append((part.constraint, part.source, text))


def _as_source(source: Source | str) -> Source:
    if not isinstance(source, str):
        return source
    from torch._dynamo.source import LocalSource

    return LocalSource(source)


def _splits(node: Any) -> bool:
    """Whether a condition is no bound of a range: a remainder, an inequality."""
    return node._tree()[0] not in ("lt", "le", "and")


def _is_bound(node: Any) -> bool:
    """Whether a condition bounds one symbol by a number, which the symbol's range says too."""
    kind, _, parts = node._tree()
    if kind not in ("lt", "le") or not all(part.is_int() for part in parts):
        return False
    return sorted(part._tree()[0] for part in parts) == ["integer", "symbol"]


def _symbol_of(value: Any, shown: bool = True) -> str | None:
    """The name of the symbol that a number is."""
    if not isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return None
    node = value.node._shown() if shown else value.node
    kind, payload, _ = node._tree()
    return payload if kind == "symbol" else None


def _constant_of(value: Any) -> Any:
    if not isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return value
    return value.node.maybe_as_int() if value.node.is_int() else value.node.maybe_as_float()


def _numbers(held: Any) -> list:
    if isinstance(held, torch.Tensor):
        return [*held.size(), *held.stride(), held.storage_offset()]
    return [held]
