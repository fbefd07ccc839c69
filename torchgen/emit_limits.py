"""The page of limits: every operator that raises NotImplementedError for a device, or in a
derivative, read from the same tables the kernels are generated from.

What an operator does not have is not written down anywhere else, so the page cannot go stale: an
operator leaves it when its kernel or formula arrives. The dtypes that kernels refuse are measured
by tools/limits.py, because they are decided in the kernels.
"""

from __future__ import annotations

import re

from .derivatives import Derivative, Derivatives
from .model import Model, Op

_CALL = re.compile(r"\bat::(\w+)\(")
_REFUSAL = "not_implemented("
_INTRO = """# What is not implemented

Generated from `native_functions.yaml` and `derivatives.yaml`. Everything listed here raises
`NotImplementedError` naming the operator; nothing else in the operator tables does. Which dtypes an
operator refuses is measured: see [dtypes by operator](limits_dtypes.md). Public names that are not
implemented at all, and the calls of nested tensors, are on a [page of names](limits_names.md).
"""


def _public(ops: list[Op]) -> list[Op]:
    """Operators with kernels of their own: not the in-place and out forms, not other names."""
    return [op for op in ops if op.functional is None and op.alias_of is None]


def _is_inplace(name: str) -> bool:
    return name.partition(".")[0].endswith("_")


def _keys(op: Op) -> set[str]:
    return {kernel.key for kernel in op.kernels}


def lacks_cuda(op: Op) -> bool:
    """Whether an operator runs on the CPU and would raise for CUDA tensors."""
    keys = _keys(op)
    composite = any(key.startswith("Composite") for key in keys)
    return "CPU" in keys and "CUDA" not in keys and not composite and not op.entry.pointwise


def refused_inputs(derivative: Derivative) -> list[str]:
    """The inputs whose gradient raises."""
    return [a.name for f in derivative.formulas if _REFUSAL in f.text for a in f.inputs]


def second_order_gaps(model: Model, formulas: Derivatives) -> dict[str, list[str]]:
    """Operator -> the operators its gradient calls that have no gradient themselves."""
    by_base: dict[str, list[Op]] = {}
    for op in model.ops:
        by_base.setdefault(op.base, []).append(op)
    missing = {op.base for op in formulas.missing}

    def has_gradient(base: str) -> bool:
        found = [formulas.of(op) for op in by_base[base]]
        described = [d for d in found if d is not None]
        if described and all(len(refused_inputs(d)) == len(d.inputs) for d in described):
            return False
        return base not in missing

    gaps: dict[str, list[str]] = {}
    for name, derivative in formulas.by_op.items():
        called = {base for f in derivative.formulas for base in _CALL.findall(f.text)}
        without = sorted(base for base in called & by_base.keys() if not has_gradient(base))
        if without:
            gaps[name] = without
    return gaps


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    if not rows:
        return "None.\n"
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(row) for row in rows]
    return "".join(f"| {line} |\n" for line in lines)


def _derivative_section(model: Model, formulas: Derivatives) -> str:
    rows = []
    for name, derivative in sorted(formulas.by_op.items()):
        refused = refused_inputs(derivative)
        if refused and not _is_inplace(name):
            rows.append((f"`{name}`", ", ".join(f"`{r}`" for r in refused)))
    rows += [(f"`{op.schema.full_name}`", "all") for op in formulas.missing]
    return "\n## No derivative\n\nBackward raises for these inputs.\n\n" + _table(
        ("operator", "inputs"), sorted(set(rows))
    )


def _second_order_section(model: Model, formulas: Derivatives) -> str:
    rows = [
        (f"`{name}`", ", ".join(f"`{g}`" for g in gap))
        for name, gap in sorted(second_order_gaps(model, formulas).items())
        if not _is_inplace(name)
    ]
    return (
        "\n## No second derivative\n\nThe gradient of these operators calls one that has no "
        "gradient itself.\n\n" + _table(("operator", "through"), rows)
    )


def _cuda_section(model: Model) -> str:
    rows = []
    for family, ops in model.families().items():
        names = sorted({op.base for op in _public(ops) if lacks_cuda(op)})
        if names:
            rows.append((family, ", ".join(f"`{n}`" for n in names)))
    return "\n## No CUDA kernel\n\nThese run on the CPU and for meta tensors.\n\n" + _table(
        ("family", "operators"), rows
    )


def _layout_section(model: Model) -> str:
    words = ("SparseCPU", "SparseCsrCPU")
    rows = []
    for key, layout in zip(words, ("sparse COO", "compressed sparse"), strict=True):
        names = sorted({op.base for op in _public(model.ops) if key in _keys(op)})
        rows.append((layout, ", ".join(f"`{n}`" for n in names)))
    return (
        "\n## Sparse and nested layouts\n\nA layout other than strided has kernels for the "
        "operators below, and for those composed of them; every other operator raises.\n\n"
        + _table(("layout", "operators with kernels"), rows)
        + "\nNested tensors of the jagged layout take every element-wise operator, and the calls "
        "that `torch/nested` names: see the [page of names](limits_names.md).\n"
    )


def emit(model: Model, formulas: Derivatives | None) -> dict[str, str]:
    parts = [_INTRO]
    if formulas is not None:
        parts.append(_derivative_section(model, formulas))
        parts.append(_second_order_section(model, formulas))
    parts += [_cuda_section(model), _layout_section(model)]
    return {"docs/limits.md": "".join(parts)}
