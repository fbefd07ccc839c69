"""The operator reference page: every operator with its schemas, where it runs, and whether it has a
derivative.

It is generated because a page kept by hand is wrong after the first new operator.
"""

from __future__ import annotations

from .model import Model, Op

_DEVICES = {"CPU": "CPU", "CUDA": "CUDA", "Meta": "meta", "PrivateUse1": "PrivateUse1"}


def _devices(ops: list[Op]) -> str:
    keys = {k.key for op in ops if op.functional is None for k in op.kernels}
    if any(key.startswith("Composite") for key in keys):
        return "any (composite)"
    names = [name for key, name in _DEVICES.items() if key in keys]
    names += sorted(k for k in keys if k.startswith(("Sparse", "Quantized", "Nested")))
    return ", ".join(names) or "-"


def _dtypes(ops: list[Op]) -> str:
    found = sorted({op.entry.pointwise.types for op in ops if op.entry.pointwise})
    return ", ".join(found) or "see the op record"


def _derivative(model: Model, ops: list[Op]) -> str:
    if any(op.schema.full_name in model.derivatives for op in ops):
        return "yes"
    if any(k.key == "CompositeImplicitAutograd" for op in ops for k in op.kernels):
        return "through its parts"
    return "no"


def _variants(ops: list[Op]) -> str:
    words = []
    functional = [op for op in ops if not op.schema.is_out and not op.schema.is_inplace]
    if any("function" in op.variants for op in functional):
        words.append("function")
    if any("method" in op.variants for op in functional):
        words.append("method")
    if any(op.schema.is_inplace for op in ops):
        words.append("in-place")
    if any(op.schema.is_out for op in ops):
        words.append("out")
    return ", ".join(words)


def emit(model: Model) -> dict[str, str]:
    parts = ["# Operator reference\n\n", "Generated from `native_functions.yaml`.\n"]
    for family, family_ops in model.families().items():
        if not family_ops:
            continue
        parts.append(f"\n## {family}\n")
        by_base: dict[str, list[Op]] = {}
        for op in family_ops:
            by_base.setdefault(op.base, []).append(op)
        for base, ops in sorted(by_base.items()):
            doc = next((op.entry.doc for op in ops if op.entry.doc), "")
            parts.append(f"\n### {base}\n\n" + (f"{doc}\n\n" if doc else ""))
            schemas = "".join(f"    {op.schema}\n" for op in ops)
            parts.append(schemas + "\n")
            parts.append(f"- forms: {_variants(ops)}\n- devices: {_devices(ops)}\n")
            parts.append(f"- dtypes: {_dtypes(ops)}\n- derivative: {_derivative(model, ops)}\n")
    return {"docs/ops.md": "".join(parts)}
