"""Pointwise operators: the loop tables of every functor, compiled once per instruction set, the
run-time choice among them, and the short wrappers that hand operands and parameters to the
iterator.

Operators that use the same functor with the same arity and output share one table (add.Tensor and
add.Scalar), because the loops are most of the library's machine code. The iterator's interface is
used in this file only.
"""

from __future__ import annotations

from . import cpp_types as cpp
from .emit_ops import BANNER
from .model import Entry, Model, Op, Pointwise, shards_by_header

_FUNCTORS_PER_SHARD = 10
OUT_KINDS = {"same": "Same", "bool": "Bool", "real": "Real"}
_PROMOTE = {"default": "Default", "float": "Float", "none": "None"}


def tables(model: Model) -> dict[str, Pointwise]:
    found: dict[str, Pointwise] = {}
    for entry in model.entries:
        for pw in entry.pointwise.forms() if entry.pointwise else ():
            found[pw.table] = pw
    return dict(sorted(found.items()))


def spec_name(entry: Entry, plain: bool = False) -> str:
    return f"{'plain' if plain else 'spec'}_{entry.ops[0].struct}"


def table_declarations(ops: list[Op]) -> str:
    """The loop tables that `ops` use; a full list would recompile every shard for each new
    functor."""
    names = sorted(
        {pw.table for op in ops if op.entry.pointwise for pw in op.entry.pointwise.forms()}
    )
    if not names:
        return ""
    lines = "".join(f"extern const LoopTable* const {name}[3];\n" for name in names)
    programs = "".join(f"extern const PointwiseProgram {name};\n" for name in names)
    return (
        f"\nnamespace at::native {{\n{lines}}}  // namespace at::native\n"
        f"namespace at::cuda {{\n{programs}}}  // namespace at::cuda\n"
    )


def spec_definition(entry: Entry) -> str:
    assert entry.pointwise is not None
    parts = []
    for pw in entry.pointwise.forms():
        name = spec_name(entry, plain=pw is not entry.pointwise)
        parts.append(
            f"constexpr at::iter::PointwiseSpec {name}{{\n"
            f'    "{entry.schema.name}", at::native::{pw.table},\n'
            f"    {len(pw.operands)}, {len(pw.params)}, "
            f"at::iter::OutKind::{OUT_KINDS[pw.output]}, "
            f"at::iter::Promote::{_PROMOTE[pw.promote]}, &at::cuda::{pw.table},\n"
            f"    at::iter::NumberRule::{pw.numbers.capitalize()}}};\n"
        )
    return "".join(parts)


def _call(op: Op, spec: str, arguments: str) -> str:
    if op.functional is None:
        return f"return at::iter::pointwise({spec}, {arguments});"
    target = op.schema.out_args[0].cpp_name if op.schema.is_out else "self"
    function = "pointwise_out" if op.schema.is_out else "pointwise_"
    return f"return at::iter::{function}({spec}, {target}, {arguments});"


def wrapper_body(op: Op) -> list[str]:
    entry = op.entry
    pw = entry.pointwise
    assert pw is not None
    lines: list[str] = []
    if pw.check:
        args = ", ".join(cpp.to_plain(a) for a in op.schema.args if not a.is_out)
        lines.append(f"at::native::{pw.check}({args});")
    operands = "{" + ", ".join(_name(op, n) for n in pw.operands) + "}"
    if pw.plain:
        # An integer 1; other kinds of 1 take part in the checks of the parameter's type.
        unit = _name(op, pw.params[0])
        lines.append(f"if ({unit}.isIntegral(false) && {unit}.equal(int64_t(1)))")
        lines.append("  " + _call(op, spec_name(entry, plain=True), operands))
    names: list[str] = []
    for name in pw.params:
        arg = op.schema.arg(name)
        assert arg is not None
        if arg.type.base == "Scalar":
            names.append(f"&{arg.cpp_name}")
        else:
            lines.append(f"const at::Scalar {arg.name}_scalar({cpp.to_plain(arg)});")
            names.append(f"&{arg.name}_scalar")
    arguments = ", ".join([operands, "{" + ", ".join(names) + "}"] if names else [operands])
    return [*lines, _call(op, spec_name(entry), arguments)]


def _name(op: Op, name: str) -> str:
    arg = op.schema.arg(name)
    assert arg is not None
    return arg.cpp_name


def _simd_file(tables: dict[str, Pointwise]) -> str:
    headers = sorted({pw.header for pw in tables.values()})
    parts = [BANNER, "#include <ATen/iter/Loops.h>\n"]
    parts += [f"#include <ATen/native/pointwise/{h}>\n" for h in headers]
    parts.append("\nnamespace at::native::CRESSET_ISA {\n")
    for name, pw in tables.items():
        arity = f"{len(pw.operands)}, {len(pw.params)}"
        arguments = f"fn::{pw.functor}, {arity}, OutKind::{OUT_KINDS[pw.output]}"
        parts.append(f"extern const LoopTable {name};\n")
        parts.append(
            f"const LoopTable {name} =\n    make_loop_table<{arguments}>(types::{pw.types}{{}});\n"
        )
    parts.append("}  // namespace at::native::CRESSET_ISA\n")
    return "".join(parts)


def _tables_source(tables: dict[str, Pointwise]) -> str:
    parts = [BANNER, "#include <ATen/iter/LoopTable.h>\n\n"]
    for isa in ("base", "avx2", "avx512"):
        if isa == "avx2":
            parts.append("#ifdef CRESSET_HAVE_X86_ISA\n")
        parts.append(f"namespace at::native::{isa} {{\n")
        parts += [f"extern const LoopTable {name};\n" for name in tables]
        parts.append(f"}}  // namespace at::native::{isa}\n")
    parts.append("#define CRESSET_TABLES(name) {&base::name, &avx2::name, &avx512::name}\n#else\n")
    parts.append("#define CRESSET_TABLES(name) {&base::name, &base::name, &base::name}\n#endif\n\n")
    parts.append("namespace at::native {\n")
    parts.append("// By instruction set: Isa::Base, Avx2, Avx512.\n")
    for name in tables:
        parts.append(f"extern const LoopTable* const {name}[3];\n")
        parts.append(f"const LoopTable* const {name}[3] = CRESSET_TABLES({name});\n")
    parts.append("}  // namespace at::native\n")
    return "".join(parts)


def emit(model: Model) -> dict[str, str]:
    found = tables(model)
    files = {"ATen/PointwiseTables.cpp": _tables_source(found)}
    if not found:
        return files
    headers = {name: pw.header for name, pw in found.items()}
    for group, names in shards_by_header(headers, _FUNCTORS_PER_SHARD).items():
        mine = {name: found[name] for name in names}
        files[f"ATen/PointwiseLoops_{group}.simd.cpp"] = _simd_file(mine)
    return files
