"""Operations inside of a loop body: what `ops.add(a, b)` means depends on who runs the body.
`TensorOps` computes it for all elements at once, by operators, which is how bodies that users write
become a part of the graph; `MockHandler` writes it as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

__all__ = ["MockHandler", "OpsHandler", "TensorOps", "WrapperHandler"]


class OpsHandler:
    """The interface: one method per operation."""


class MockHandler(OpsHandler):
    """ops.add("a", "b") is the text "ops.add(a, b)"."""

    def __getattr__(self, name: str) -> Callable[..., str]:
        if name.startswith("__"):
            raise AttributeError(name)

        def write(*args: object, **kwargs: object) -> str:
            parts = [str(a) for a in args] + [f"{k}={v}" for k, v in kwargs.items()]
            return f"ops.{name}({', '.join(parts)})"

        return write


class WrapperHandler(OpsHandler):
    """Passes everything on."""

    def __init__(self, inner: object) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


# Operations whose name is that of another operator, or that take their operands otherwise.
_OTHER_NAMES = {
    "truediv": "true_divide",
    "lshift": "bitwise_left_shift",
    "bitwise_right_shift": "bitwise_right_shift",
    "rshift": "bitwise_right_shift",
    "invert": "bitwise_not",
    "mod": "remainder",
    "libdevice_abs": "abs",
    "libdevice_exp": "exp",
    "libdevice_sqrt": "sqrt",
    "libdevice_sin": "sin",
    "libdevice_cos": "cos",
    "libdevice_log": "log",
    "libdevice_sigmoid": "sigmoid",
    "and_": "bitwise_and",
    "or_": "bitwise_or",
    "xor": "bitwise_xor",
}


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, bool, complex, torch.SymInt, torch.SymFloat))


class TensorOps(OpsHandler):
    """Values are tensors over the ranges of the loop, or numbers."""

    def __init__(self, ranges: Sequence[object], symbols: Sequence[object]) -> None:
        self.ranges = list(ranges)
        self.symbols = list(symbols)
        self.indirect: dict[object, torch.Tensor] = {}
        self.clamping = False

    def __getattr__(self, name: str) -> Callable:
        if name.startswith("__"):
            raise AttributeError(name)
        real = _OTHER_NAMES.get(name, name)
        for space in (torch, torch.special, torch.nn.functional):
            found = getattr(space, real, None)
            if callable(found):
                return _with_tensors(found)
        raise NotImplementedError(f"ops.{name} is not implemented in bodies of user lowerings")

    # ---- values

    def constant(self, value: object, dtype: torch.dtype) -> object:
        """A number of a dtype."""
        return torch.full((), value, dtype=dtype)

    def to_dtype(self, x: object, dtype: torch.dtype, src_dtype: object = None, **kwargs: object):
        """x converted."""
        if _is_number(x):
            return torch.full((), x, dtype=dtype)
        return x.to(dtype)

    def to_dtype_bitcast(self, x: torch.Tensor, dtype: torch.dtype, src_dtype: object = None):
        """The bits of x as another dtype."""
        return x.view(dtype)

    def index_expr(self, expr: object, dtype: torch.dtype) -> torch.Tensor:
        """An expression of the loop's indices as numbers."""
        return self.evaluate(expr).to(dtype)

    def where(self, condition: object, a: object, b: object) -> torch.Tensor:
        """a where the condition holds, else b."""
        return torch.where(condition, a, b)

    def masked(self, mask: torch.Tensor, body: Callable[[], object], other: object) -> object:
        """The body where the mask holds, else a number. The body may read out of range where it
        does not: indices are clamped."""
        before, self.clamping = self.clamping, True
        try:
            found = body()
        finally:
            self.clamping = before
        value = found if isinstance(found, torch.Tensor) else torch.full((), found)
        return torch.where(mask, value, torch.full((), other, dtype=value.dtype))

    def square(self, x: torch.Tensor) -> torch.Tensor:
        """x * x."""
        return x * x

    def reciprocal(self, x: torch.Tensor) -> torch.Tensor:
        """1 / x."""
        return torch.reciprocal(x)

    def truncdiv(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a / b towards zero."""
        return torch.div(a, b, rounding_mode="trunc")

    def floordiv(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a / b towards minus infinity."""
        return torch.div(a, b, rounding_mode="floor")

    def trunc_to_int(self, x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """x towards zero."""
        return torch.trunc(x).to(dtype)

    def floor_to_int(self, x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """x towards minus infinity."""
        return torch.floor(x).to(dtype)

    def identity(self, x: object) -> object:
        """x."""
        return x

    # ---- indices

    def indirect_indexing(
        self, x: torch.Tensor, size: object, check: bool = True, wrap_neg: bool = True
    ) -> object:
        """An index that is a value."""
        import sympy

        index = torch.where(x < 0, x + size, x) if wrap_neg else x
        symbol = sympy.Symbol(f"indirect{len(self.indirect)}", integer=True)
        self.indirect[symbol] = index
        return symbol

    def check_bounds(self, expr: object, size: object, lower: bool, upper: bool) -> None:
        """Indexing by operators checks bounds by itself."""

    def evaluate(self, expr: object) -> torch.Tensor:
        """An expression of the loop's indices as a tensor that broadcasts over the ranges."""
        import sympy

        expr = sympy.sympify(expr)
        if expr.is_Integer:
            return torch.full((), int(expr), dtype=torch.int64)
        if expr in self.indirect:
            return self.indirect[expr]
        if expr in self.symbols:
            at = self.symbols.index(expr)
            shape = [1] * len(self.ranges)
            shape[at] = self.ranges[at]
            return torch.arange(self.ranges[at], dtype=torch.int64).reshape(shape)
        parts = [self.evaluate(a) for a in expr.args]
        combine = {
            "Add": torch.add, "Mul": torch.mul, "Min": torch.minimum, "Max": torch.maximum,
            "FloorDiv": self.floordiv, "Mod": torch.remainder, "PythonMod": torch.remainder,
        }.get(type(expr).__name__)  # fmt: skip
        if type(expr).__name__ == "ModularIndexing":
            return torch.remainder(self.floordiv(parts[0], parts[1]), parts[2])
        if combine is None:
            raise NotImplementedError(f"the index {expr} of a user lowering")
        found = parts[0]
        for part in parts[1:]:
            found = combine(found, part)
        return found

    def read(self, tensor: torch.Tensor, index: Sequence[object]) -> torch.Tensor:
        """tensor[index] for every element of the loop. Views serve where each index is a loop
        variable or a number; otherwise elements are gathered."""
        viewed = self._as_view(tensor, index)
        if viewed is not None:
            return viewed
        parts = [self.evaluate(e) for e in index]
        if self.clamping:
            sizes = tensor.shape
            parts = [p.clamp(0, n - 1) for p, n in zip(parts, sizes, strict=True)]
        return tensor[tuple(parts)] if parts else tensor

    def _as_view(self, tensor: torch.Tensor, index: Sequence[object]) -> torch.Tensor | None:
        import sympy

        used: list[int] = []
        view = tensor
        dim = 0
        for expr in index:
            expr = sympy.sympify(expr)
            if expr.is_Integer and 0 <= int(expr) < view.shape[dim]:
                view = view.select(dim, int(expr)) if view.shape[dim] != 1 else view.squeeze(dim)
                continue
            if expr not in self.symbols:
                return None
            at = self.symbols.index(expr)
            if at in used or view.shape[dim] != self.ranges[at]:
                return None
            used.append(at)
            dim += 1
        order = sorted(range(len(used)), key=used.__getitem__)
        if order != list(range(len(used))):
            view = view.permute(order)
        for at in range(len(self.ranges)):
            if at not in used:
                view = view.unsqueeze(at)
        return view


def _with_tensors(function: Callable) -> Callable:
    def run(*args: object, **kwargs: object) -> object:
        if args and all(_is_number(a) for a in args):
            args = (torch.as_tensor(args[0]), *args[1:])
        if any(_is_number(a) for a in args) and function in _TENSORS_ONLY:
            like = next(a for a in args if isinstance(a, torch.Tensor))
            args = tuple(torch.full((), a, dtype=like.dtype) if _is_number(a) else a for a in args)
        return function(*args, **kwargs)

    return run


_TENSORS_ONLY = (torch.maximum, torch.minimum, torch.logical_and, torch.logical_or, torch.atan2)
