"""Operators over lists of tensors, made from the operator on one tensor.

A foreach operator calls its target on the i-th elements of its lists. On the CPU a pointwise target
skips the dispatcher: all tensors are planned first and run as one piece of work (iter/Foreach.h).
Everywhere else, and where gradients are recorded, the target is called tensor by tensor.
"""

from __future__ import annotations

from . import cpp_types as cpp
from .emit_pointwise import spec_definition, spec_name
from .model import Kernel, Op, Pointwise
from .schema import Argument


def _arguments(op: Op) -> dict[str, str]:
    """For each argument of the target, the expression that a foreach operator gives for tensor i:
    the argument of the same name, else the next one left, else the default."""
    assert op.target is not None
    named = {a.name: a for a in op.schema.args}
    targets = op.target.schema.args
    free = [a for a in op.schema.args if op.target.schema.arg(a.name) is None]
    result: dict[str, str] = {}
    for arg in targets:
        given = named.get(arg.name) or (free.pop(0) if free else None)
        result[arg.name] = _element(given) if given else cpp.default(arg)
    if free:
        raise op.entry.error(
            f"'{op.target.schema}' has no argument for '{free[0].name}' of the foreach operator"
        )
    return result


def _element(arg: Argument) -> str:
    if arg.type.is_list and arg.type.base in ("Tensor", "Scalar"):
        item = f"{arg.cpp_name}[i]"
        return f"const_cast<at::Tensor&>({item})" if arg.is_write else item
    return arg.cpp_name


def _lists(op: Op) -> list[Argument]:
    return [a for a in op.schema.args if a.type.is_list and a.type.base == "Tensor"]


def _checks(op: Op) -> list[str]:
    lists = _lists(op)
    sizes = ", ".join(f"{a.cpp_name}.size()" for a in lists)
    lines = [f"at::iter::check_foreach_lists({{{sizes}}});"]
    for arg in op.schema.args:
        if arg.type.is_list and arg.type.base == "Scalar":
            first = lists[0].cpp_name
            lines.append(f"at::iter::check_foreach_scalars({first}.size(), {arg.cpp_name}.size());")
        elif arg.type.is_plain_tensor:
            lines.append(f"at::iter::check_foreach_number({arg.cpp_name});")
    return lines


def _loop(op: Op) -> list[str]:
    assert op.target is not None
    call = f"at::_ops::{op.target.struct}::call({', '.join(_arguments(op).values())})"
    count = f"{_lists(op)[0].cpp_name}.size()"
    head = f"for (size_t i = 0; i < {count}; at::iter::foreach_step(++i))"
    if op.schema.is_inplace:
        return [f"{head} {call};"]
    return [
        "::std::vector<at::Tensor> result;",
        f"result.reserve({count});",
        f"{head} result.push_back({call});",
        "return result;",
    ]


def _batch(op: Op, pw: Pointwise, spec: str) -> list[str]:
    """Plans every tensor and runs them together."""
    values = _arguments(op)
    count = f"{_lists(op)[0].cpp_name}.size()"
    where = f", {op.schema.args[0].cpp_name}" if op.schema.is_inplace else ""
    operands = "{" + ", ".join(values[n] for n in pw.operands) + "}"
    params = "{" + ", ".join(f"&{values[n]}" for n in pw.params) + "}"
    lines = [f"at::iter::PointwiseBatch batch({spec}, {count}{where});"]
    steps = []
    if pw.check:
        assert op.target is not None
        functional = op.target.functional or op.target
        checked = ", ".join(values[a.name] for a in functional.schema.args)
        steps.append(f"at::native::{pw.check}({checked});")
    steps.append(f"batch.add({operands}{', ' + params if pw.params else ''});")
    body = " ".join(steps)
    lines.append(f"for (size_t i = 0; i < {count}; ++i) {{ {body} }}")
    lines.append("batch.finish();" if op.schema.is_inplace else "return batch.finish();")
    return lines


def _is_given(value: str) -> bool:
    """Whether it comes from the foreach operator's arguments, not from a default."""
    return value[0].isalpha() or value[0] == "_"


def _fast(op: Op) -> list[str]:
    assert op.target is not None
    entry = op.target.entry
    pw = entry.pointwise
    assert pw is not None
    values = _arguments(op)
    plain = pw.plain_form()
    if plain is not None:
        unit = values[pw.params[0]]
        if not _is_given(unit):
            return _batch(op, plain, spec_name(entry, plain=True))
        fast = _batch(op, plain, spec_name(entry, plain=True))
        if op.schema.is_inplace:
            fast.append("return;")
        inner = "".join(f"    {line}\n" for line in fast)
        test = f"{unit}.isIntegral(false) && {unit}.equal(int64_t(1))"
        return [f"if ({test}) {{\n{inner}  }}", *_batch(op, pw, spec_name(entry))]
    return _batch(op, pw, spec_name(entry))


def _is_fast(op: Op) -> bool:
    """Whether the short path can be given all it needs: parameters that are Scalars."""
    target = op.target
    pw = target.entry.pointwise if target else None
    if target is None or pw is None:
        return False
    values = _arguments(op)
    for name in pw.params:
        arg = target.schema.arg(name)
        if arg is None or str(arg.type) != "Scalar":
            return False
        if not _is_given(values[name]) and not pw.plain:
            return False
    return True


def body(op: Op, kernel: Kernel) -> list[str]:
    fast = kernel.key == "CPU" and _is_fast(op)
    return [*_checks(op), *(_fast(op) if fast else _loop(op))]


def specs(ops: list[Op]) -> str:
    """The pointwise constants of the targets, once per file."""
    entries = {}
    for op in ops:
        if op.target is not None and _is_fast(op):
            entries[spec_name(op.target.entry)] = op.target.entry
    if not entries:
        return ""
    lines = "".join(spec_definition(entry) for entry in entries.values())
    checks = sorted(
        {
            f"void {e.pointwise.check}({', '.join(cpp.params(e.schema.args, symint=False))});\n"
            for e in entries.values()
            if e.pointwise and e.pointwise.check
        }
    )
    text = f"namespace {{\n{lines}}}  // namespace\n"
    if checks:
        declared = f"namespace at::native {{\n{''.join(checks)}}}  // namespace at::native\n"
        text = f"}}  // namespace at::_ops\n{declared}namespace at::_ops {{\n{text}"
    return text
