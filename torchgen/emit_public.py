"""The operators' headers as programs see them, below `public/` of the output. The library's own
files see at:: functions that are inline around the op structs; a program includes all operators at
once, where four fifths of the compiler's time would go into structs that hardly any program names.
So programs see declarations, whose definitions are in the library, and the structs have headers of
their own: ATen/ops/NAME_ops.h, or all of them in ATen/Operators.h.
"""

from __future__ import annotations

from . import cpp_types as cpp
from .emit_ops import (
    BANNER,
    Form,
    factories_header,
    family_header,
    forms_of,
    standard_includes,
    struct_declaration,
)
from .model import Model, Op, shard_count, shard_of

FOLDER = "public/"
FAMILIES = ("fft", "linalg", "special")
_FUNCTIONS_PER_SHARD = 600


def _function_forms(ops: list[Op]) -> list[Form]:
    with_function = [op for op in ops if "function" in op.variants]
    return [form for op in with_function for form in forms_of(op, methods=False)]


def structs_header(ops: list[Op]) -> str:
    parts = [BANNER, "#pragma once\n", standard_includes(ops)]
    parts.append("#include <ATen/core/Dispatcher_fwd.h>\n#include <ATen/core/Tensor.h>\n\n")
    parts.append("namespace at::_ops {\n")
    parts += [struct_declaration(op) for op in ops]
    parts.append("}  // namespace at::_ops\n")
    return "".join(parts)


def _declaration(form: Form) -> str:
    ret = cpp.return_type(form.op.schema)
    return f"{ret} {form.name}({', '.join(form.parameters())});\n"


def functions_header(ops: list[Op]) -> str:
    parts = [BANNER, "#pragma once\n", standard_includes(ops)]
    parts.append("#include <ATen/core/Tensor.h>\n\nnamespace at {\n")
    parts += [_declaration(form) for form in _function_forms(ops)]
    parts.append("}  // namespace at\n")
    return "".join(parts)


def cpu_header(base: str, ops: list[Op]) -> str:
    """at::cpu::NAME: the CPU's kernels by name, for backends whose memory the host can reach."""
    parts = [BANNER, f"#pragma once\n#include <ATen/ops/{base}_ops.h>\n\nnamespace at::cpu {{\n"]
    for form in (form for op in ops for form in forms_of(op, methods=False)):
        ret, params = cpp.return_type(form.op.schema), ", ".join(form.parameters())
        keys = "c10::DispatchKeySet(c10::DispatchKey::CPU)"
        given = ", ".join(filter(None, [keys, form.expressions()]))
        call = f"at::_ops::{form.op.struct}::redispatch({given})"
        parts.append(f"inline {ret} {form.name}({params}) {{\n  return {call};\n}}\n")
    return "".join([*parts, "}  // namespace at::cpu\n"])


def both_header(base: str) -> str:
    return (
        f"{BANNER}#pragma once\n"
        f"#include <ATen/ops/{base}_functions.h>\n#include <ATen/ops/{base}_ops.h>\n"
    )


def all_header(bases: list[str], kind: str) -> str:
    return BANNER + "#pragma once\n" + "".join(f"#include <ATen/ops/{b}_{kind}.h>\n" for b in bases)


def _definition(form: Form) -> str:
    ret = cpp.return_type(form.op.schema)
    params = ", ".join(form.parameters(defaults=False))
    call = f"at::_ops::{form.op.struct}::call({form.expressions(of_program=True)})"
    return f"{ret} {form.name}({params}) {{\n  return {call};\n}}\n"


def definition_files(by_base: dict[str, list[Op]]) -> dict[str, str]:
    """The functions for the library, which exports them."""
    forms = {base: _function_forms(ops) for base, ops in by_base.items()}
    forms = {base: mine for base, mine in forms.items() if mine}
    count = shard_count(sum(map(len, forms.values())), _FUNCTIONS_PER_SHARD)
    files: dict[str, str] = {}
    for k in range(count):
        mine = [base for base in forms if shard_of(base, count) == k]
        parts = [BANNER, "#include <ATen/core/CallOptions.h>\n"]
        parts += [f"#include <{FOLDER}ATen/ops/{base}_ops.h>\n" for base in mine]
        parts.append("\n#pragma GCC visibility push(default)\n")
        parts += [f"#include <{FOLDER}ATen/ops/{base}_functions.h>\n" for base in mine]
        parts.append("\nnamespace at {\n")
        parts += [_definition(form) for base in mine for form in forms[base]]
        parts.append("}  // namespace at\n#pragma GCC visibility pop\n")
        files[f"ATen/FunctionsDef_{k}.cpp"] = "".join(parts)
    return files


def emit(model: Model) -> dict[str, str]:
    by_base = model.by_base()
    headers: dict[str, str] = {}
    for base, ops in by_base.items():
        headers[f"ATen/ops/{base}.h"] = both_header(base)
        headers[f"ATen/ops/{base}_ops.h"] = structs_header(ops)
        headers[f"ATen/ops/{base}_functions.h"] = functions_header(ops)
        headers[f"ATen/ops/{base}_cpu_dispatch.h"] = cpu_header(base, ops)
    guard = "#include <ATen/DeviceGuard.h>\n"  # at::device_of, which programs find with these
    headers["ATen/Functions.h"] = all_header(list(by_base), "functions") + guard
    headers["ATen/Operators.h"] = all_header(list(by_base), "ops")
    generated = "torch/csrc/autograd/generated/"
    headers[generated + "factories.h"] = factories_header(model, public=True)
    for family in FAMILIES:
        headers[f"{generated}{family}_namespace.h"] = family_header(model, family, public=True)
    return {FOLDER + name: text for name, text in headers.items()} | definition_files(by_base)
