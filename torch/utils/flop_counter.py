"""Counting the floating-point operations of matrix products, convolutions and attention, per module
and operator."""

from __future__ import annotations

import math
from collections import defaultdict

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map
from torch.utils.module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "flop_registry", "register_flop_formula"]

aten = torch.ops.aten
flop_registry = {}


def _shape_of(value) -> int | torch.Size | None:
    return value.shape if isinstance(value, torch.Tensor) else value


def register_flop_formula(targets, get_raw=False):
    """A decorator for formula(*args, out_shape, **kwargs): tensors arrive as their shapes, or with
    get_raw as they are, and the result as out_val."""

    def decorate(formula):
        def by_shapes(*args, out_val=None, **kwargs) -> int:
            args, kwargs, shape = tree_map(_shape_of, (args, kwargs, out_val))
            return formula(*args, out_shape=shape, **kwargs)

        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            flop_registry[target] = formula if get_raw else by_shapes
        return formula

    return decorate


@register_flop_formula(aten.mm)
def mm_flop(a_shape, b_shape, *args, out_shape=None, **kwargs) -> int:
    """2 m k n."""
    return 2 * a_shape[0] * a_shape[1] * b_shape[1]


@register_flop_formula(aten.addmm)
def addmm_flop(self_shape, a_shape, b_shape, *args, out_shape=None, **kwargs) -> int:
    """That of the product."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.linear)
def linear_flop(x_shape, weight_shape, *args, out_shape=None, **kwargs):
    """That of the product."""
    return 2 * math.prod(x_shape) * weight_shape[0]


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape, b_shape, *args, out_shape=None, **kwargs):
    """2 b m k n."""
    return 2 * a_shape[0] * a_shape[1] * a_shape[2] * b_shape[2]


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(self_shape, a_shape, b_shape, *args, out_shape=None, **kwargs):
    """That of the product."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape, w_shape, out_shape, transposed=False) -> int:
    """2 * batch * places * weights: places of the output, or of the input when transposed."""
    places = (x_shape if transposed else out_shape)[2:]
    return 2 * x_shape[0] * math.prod(places) * math.prod(w_shape)


@register_flop_formula([aten.convolution, aten._convolution])
def conv_flop(x_shape, w_shape, _bias, _stride, _padding, _dilation, transposed, *args,
              out_shape=None, **kwargs) -> int:  # fmt: skip
    """Of a convolution."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(
    grad_shape, x_shape, w_shape, _bias, _stride, _padding, _dilation, transposed, _output_padding,
    _groups, output_mask, out_shape=None,
):  # fmt: skip
    """As much as forward for each gradient asked for."""
    once = conv_flop_count(x_shape, w_shape, grad_shape, transposed)
    return once * (bool(output_mask[0]) + bool(output_mask[1]))


def _sdpa_flop(query, key, value):
    batch, heads, rows, size = query
    columns, value_size = key[-2], value[-1]
    return 2 * batch * heads * rows * columns * (size + value_size)


_attend = [aten._scaled_dot_product_flash_attention_for_cpu, aten._attention_by_products]
_attend_backward = [
    aten._scaled_dot_product_flash_attention_for_cpu_backward,
    aten._attention_by_products_backward,
]


@register_flop_formula(_attend)
def sdpa_flop(query_shape, key_shape, value_shape, *args, out_shape=None, **kwargs):
    """Two products."""
    return _sdpa_flop(query_shape, key_shape, value_shape)


@register_flop_formula(_attend_backward)
def sdpa_backward_flop(grad_shape, query_shape, key_shape, value_shape, *args, out_shape=None,
                       **kwargs):  # fmt: skip
    """Five products: the scores again and four gradients."""
    return _sdpa_flop(query_shape, key_shape, value_shape) * 5 // 2


class FlopCounterMode:
    """Counts inside the block; prints a table at its end unless display is off."""

    def __init__(self, mods=None, depth=2, display=True, custom_mapping=None) -> None:
        self.flop_counts = defaultdict(lambda: defaultdict(int))
        self.depth = depth
        self.display = display
        self.flop_registry = {
            **flop_registry,
            **{op: _wrapped(formula) for op, formula in (custom_mapping or {}).items()},
        }
        self.mod_tracker = ModuleTracker()
        self._mode = None

    def get_total_flops(self) -> int:
        """All of them."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self):
        """{module: {operator: count}}."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth=None) -> str:
        """The counts as text, modules down to a depth."""
        depth = self.depth if depth is None else depth
        rows = []
        total = self.get_total_flops()

        def add(name, label, indent) -> None:
            counts = self.flop_counts[name]
            value = sum(counts.values())
            share = f"{value / total * 100:.2f}%" if total else "0%"
            rows.append((" " * indent + label, _short(value, total), share))
            for operator, count in counts.items():
                share = f"{count / total * 100:.2f}%" if total else "0%"
                rows.append((" " * (indent + 1) + f"- {operator}", _short(count, total), share))

        names = [n for n in sorted(self.flop_counts) if n != "Global"]
        add("Global", "Global", 0)
        for name in names:
            level = name.count(".") + 1
            if depth is None or level <= depth:
                add(name, name, level)
        rows.insert(0, ("Module", "FLOP", "% Total"))
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join(lines)

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self._mode = _CountingMode(self)
        self._mode.__enter__()
        return self

    def __exit__(self, *exc) -> None:
        self._mode.__exit__(*exc)
        self._mode = None
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def _count(self, packet, out, args, kwargs) -> torch.Tensor:
        formula = self.flop_registry.get(packet)
        if formula is not None:
            self._add(packet, formula(*args, **kwargs, out_val=out))
        return out

    def _add(self, packet, flops) -> None:
        """Counts for every module that is running."""
        for module in set(self.mod_tracker.parents):
            self.flop_counts[module][packet] += flops


def _wrapped(formula):
    """A user's formula takes shapes unless it says get_raw."""
    if getattr(formula, "_get_raw", False):
        return formula

    def by_shapes(*args, out_val=None, **kwargs):
        named = {"out_shape": out_val, **kwargs}
        shapes, named_shapes = tree_map(_shape_of, [args, named])
        return formula(*shapes, **named_shapes)

    return by_shapes


def _short(value, total) -> str:
    unit, size = "", 1
    for name, limit in (("T", 10**12), ("B", 10**9), ("M", 10**6), ("K", 10**3)):
        if total >= limit:
            unit, size = name, limit
            break
    return f"{value / size:.3f}{unit}" if unit else str(value)


class _CountingMode(TorchDispatchMode):
    def __init__(self, counter) -> None:
        super().__init__()
        self.counter = counter

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        packet = func._overloadpacket
        if packet not in self.counter.flop_registry:
            # An operator made of others is counted by them.
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return self.counter._count(packet, func(*args, **kwargs), args, kwargs)
