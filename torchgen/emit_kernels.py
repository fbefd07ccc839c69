"""The bridge from the dispatcher to the kernels: declarations of every kernel named in the yaml
(Native.h per family), and per operator the typed wrappers, the constant kernel table, the registry
entry, call and redispatch.

A wrapper adds nothing that costs time: it drops the context, turns symbolic sizes into plain ones,
for structured operators runs the shape function before the kernel, and lets CPU kernels see large
arguments as they are when the call begins (ATen/native/Snapshot.h). An operator's file is chosen
by a hash of its base name, so that a new entry changes one file of its family.
"""

from __future__ import annotations

from . import cpp_types as cpp
from . import emit_autograd, emit_foreach, emit_pointwise
from .derivatives import Derivatives
from .emit_ops import BANNER, standard_includes
from .model import Entry, Kernel, Model, Op, shard_count, shard_of
from .schema import Argument, Schema

_OPS_PER_SHARD = 36
_DEVICE_OF_KEY = {
    "CPU": "c10::kCPU",
    "CUDA": "c10::kCUDA",
    "Meta": "c10::kMeta",
    "PrivateUse1": "c10::kPrivateUse1",
}


# ---- Native.h ------------------------------------------------------------------------------------


def _native_signature(schema: Schema, fn: str, symint: bool) -> tuple[str, str]:
    params = ", ".join(cpp.params(schema.args, symint))
    return cpp.return_type(schema, symint), f"{fn}({params})"


def _functional_args(schema: Schema) -> list[Argument]:
    return [a for a in schema.args if not a.is_out]


def _structured_signatures(op: Op, fn: str) -> tuple[str, str]:
    """Declarations of the shape function and of a kernel of a structured operator."""
    entry = op.entry
    args = cpp.params(entry.schema.args, entry.symint)
    outs = [f"const at::Tensor& {name}" for name in _output_names(entry.schema)]
    meta = f"meta_{entry.meta}({', '.join(['at::OutputBuilder& out', *args])})"
    return meta, f"{fn}({', '.join([*args, *outs])})"


def _output_names(schema: Schema) -> list[str]:
    count = len(schema.returns)
    names = [r.name or ("out" if count == 1 else f"out{i}") for i, r in enumerate(schema.returns)]
    taken = {a.cpp_name for a in schema.args}
    return [n + "_result" if n in taken else n for n in names]


class _Declarations:
    """Collects declarations of a namespace once each, and finds two that differ in the return type
    only."""

    def __init__(self) -> None:
        self.seen: dict[str, tuple[str, Entry]] = {}

    def add(self, ret: str, signature: str, entry: Entry) -> None:
        types = ",".join(p.rsplit(" ", 1)[0] for p in signature.rstrip(")").split(", "))
        known = self.seen.setdefault(types, (f"{ret} {signature};", entry))
        if known[0].split(" ")[0] != ret.split(" ")[0]:
            raise entry.error(
                f"the kernel '{signature.split('(')[0]}' is declared with another return type "
                f"at line {known[1].line}"
            )

    def text(self) -> list[str]:
        return sorted(text for text, _ in self.seen.values())


def _declarations(ops: list[Op]) -> str:
    """Declarations of every kernel and shape function that `ops` name."""
    native, meta = _Declarations(), _Declarations()
    for op in ops:
        for kernel in op.kernels:
            if kernel.kind == "native":
                ret, signature = _native_signature(op.schema, kernel.fn, op.entry.symint)
                native.add(ret, signature, op.entry)
                if _takes_symbols(op, kernel):
                    native.add(*_native_signature(op.schema, op.entry.symbolic, True), op.entry)
            elif kernel.kind == "pointwise" and op.entry.pointwise and op.entry.pointwise.check:
                args = cpp.params(op.entry.schema.args, symint=False)
                check = f"{op.entry.pointwise.check}({', '.join(args)})"
                native.add("void", check, op.entry)
            elif kernel.kind == "structured":
                meta_signature, fn_signature = _structured_signatures(op, kernel.fn)
                meta.add("void", meta_signature, op.entry)
                if kernel.fn:
                    native.add("void", fn_signature, op.entry)
    parts = []
    for namespace, found in (("at::meta", meta), ("at::native", native)):
        if found.seen:
            lines = "".join(line + "\n" for line in found.text())
            parts.append(f"namespace {namespace} {{\n{lines}}}  // namespace {namespace}\n")
    return "\n".join(parts)


def _has(ops: list[Op], kind: str) -> bool:
    return any(k.kind == kind for op in ops for k in op.kernels)


def native_header(ops: list[Op]) -> str:
    builder = "#include <ATen/native/OutputBuilder.h>\n" if _has(ops, "structured") else ""
    includes = f"{standard_includes(ops)}#include <ATen/core/Tensor.h>\n{builder}"
    return f"{BANNER}#pragma once\n{includes}\n{_declarations(ops)}"


# ---- wrappers ------------------------------------------------------------------------------------


def _kernel_args(args: list[Argument], symint: bool) -> list[str]:
    return [a.cpp_name if symint else cpp.to_plain(a) for a in args]


def _takes_symbols(op: Op, kernel: Kernel) -> bool:
    """Whether a kernel may be called on symbolic sizes and has a form of its own for them: tensors
    with memory have plain sizes."""
    return bool(op.entry.symbolic) and op.functional is None and kernel.key not in ("CPU", "CUDA")


def _kernel_call(op: Op, kernel: Kernel, args: list[Argument], results: list[str]) -> list[str]:
    """Calls the kernel, with snapshots of the arguments which it only reads where one may change
    meanwhile. A view, or an operator that may return its argument, needs the original."""
    plain = _kernel_args(args, op.entry.symint)
    returns = "return " if not results else ""
    call = f"{returns}at::native::{kernel.fn}({', '.join([*plain, *results])});"
    aliases = any(r.annotation is not None for r in op.schema.returns) and not op.schema.is_out
    if kernel.key != "CPU" or (aliases and not op.schema.is_inplace):
        return [call]
    read = [
        a.cpp_name
        for a in args
        if a.type.base == "Tensor" and not a.type.is_list and a.annotation is None
    ]
    if not read:
        return [call]
    taken = [f"at::native::snapshot({name})" if name in read else name for name in plain]
    again = f"{returns}at::native::{kernel.fn}({', '.join([*taken, *results])});"
    other = [call] if returns else ["else", f"  {call}"]
    return [
        f"if (C10_UNLIKELY(at::native::may_change({', '.join(read)})))",
        f"  {again}",
        *other,
    ]


def _native_body(op: Op, kernel: Kernel) -> list[str]:
    plain = _kernel_call(op, kernel, list(op.schema.args), [])
    if not _takes_symbols(op, kernel):
        return plain
    names = ", ".join(a.cpp_name for a in op.schema.args)
    symbolic = f"return at::native::{op.entry.symbolic}({names});"
    return [f"if (at::native::any_symbolic({names})) {symbolic}", *plain]


def _return_outs(op: Op) -> str:
    outs = [a.cpp_name for a in op.schema.out_args]
    if cpp.return_type(op.schema) == "void":
        return ""
    return f"return {outs[0]};" if len(outs) == 1 else f"return {{{', '.join(outs)}}};"


def _operands_read(op: Op) -> list[str]:
    """Tells the builder of an in-place or out variant which arguments must not change before the
    kernel has read them. A kernel that serves an in-place variant may write over self."""
    over_self = any(o.schema.is_inplace and _has([o], "structured") for o in op.entry.ops)
    args = _functional_args(op.schema)
    read = [a for a in args if not (over_self and a.name == "self")]
    lines = ["outputs.updates(self);"] if over_self and op.schema.is_out else []
    return [*lines, f"outputs.reads({', '.join(_kernel_args(read, op.entry.symint))});"]


def _structured_body(op: Op, kernel: Kernel) -> list[str]:
    entry = op.entry
    functional = _functional_args(op.schema)
    args = _kernel_args(functional, entry.symint)
    count = len(entry.schema.returns)
    device = _DEVICE_OF_KEY[kernel.key]
    if op.functional is None:
        builder = f"at::OutputBuilder::Functional, {count}, {device}"
        taken = [f"outputs.take({i})" for i in range(count)]
        finish = [f"return {taken[0]};" if count == 1 else f"return {{{', '.join(taken)}}};"]
    elif op.schema.is_out:
        outs = ", ".join(f"&{a.cpp_name}" for a in op.schema.out_args)
        builder = f"at::OutputBuilder::Out, {{{outs}}}, {device}"
        finish = ["outputs.finish();", _return_outs(op)]
    else:
        builder = f"at::OutputBuilder::InPlace, self, {device}"
        finish = ["outputs.finish();", "return self;"]
    lines = [f"at::OutputBuilder outputs({builder});"]
    if op.functional is not None:
        lines += _operands_read(op)
    lines.append(f"at::meta::meta_{entry.meta}({', '.join(['outputs', *args])});")
    if kernel.fn:
        results = [f"outputs[{i}]" for i in range(count)]
        lines += _kernel_call(op, kernel, functional, results)
    return lines + finish


def _functional_call(op: Op, keep_self: bool = False) -> str:
    """Calls the functional variant from a derived one; a factory takes its options from `out`.
    `keep_self`: its parts are differentiated and may save self, which is written afterwards.
    """
    assert op.functional is not None
    from_out = {
        "dtype": "out.scalar_type()",
        "layout": "out.layout()",
        "device": "out.device()",
        "pin_memory": "::std::nullopt",
    }
    args = []
    for arg in op.functional.schema.args:
        if op.schema.is_out and arg in op.functional.options_args:
            args.append(from_out[arg.name].replace("out.", f"{op.schema.out_args[0].cpp_name}."))
        elif keep_self and arg.name == "self" and not arg.type.is_list:
            args.append(f"at::native::generated::kept_for_backward({arg.cpp_name})")
        else:
            args.append(arg.cpp_name)
    return f"at::_ops::{op.functional.struct}::call({', '.join(args)})"


def _store_body(op: Op, kernel: Kernel) -> list[str]:
    store = f"at::native::generated::{kernel.kind}"
    # Not `result`: out= arguments may be called that.
    in_place = kernel.kind == "store_inplace"
    composite = kernel.key == "CompositeImplicitAutograd"
    lines = [f"auto computed = {_functional_call(op, in_place and composite)};"]
    targets = (
        [a for a in op.schema.args if a.name == "self"] if in_place else list(op.schema.out_args)
    )
    for i, target in enumerate(targets):
        name = target.cpp_name
        value = "computed" if len(targets) == 1 else f"::std::get<{i}>(computed)"
        if not target.type.is_list:
            lines.append(f"{store}({name}, {value});")
            continue
        lines.append(
            f'TORCH_CHECK({name}.size() == {value}.size(), "{op.schema.name}: expected ",\n'
            f'              {value}.size(), " tensors in {target.name} but got ", {name}.size());'
        )
        lines.append(
            f"for (size_t i = 0; i < {name}.size(); ++i)\n"
            f"    {store}(const_cast<at::Tensor&>({name}[i]), {value}[i]);"
        )
    if in_place:
        return lines + (["return self;"] if op.schema.returns else [])
    return [*lines, _return_outs(op)]


def _body(op: Op, kernel: Kernel) -> list[str]:
    if kernel.kind == "native":
        return _native_body(op, kernel)
    if kernel.kind == "structured":
        return _structured_body(op, kernel)
    if kernel.kind == "pointwise":
        return emit_pointwise.wrapper_body(op)
    if kernel.kind == "foreach":
        return emit_foreach.body(op, kernel)
    if kernel.kind == "alias":
        args = ", ".join(a.cpp_name for a in op.schema.args)
        return [f"return at::_ops::{kernel.fn}::call({args});"]
    return _store_body(op, kernel)


def _needs_guard(op: Op, kernel: Kernel) -> bool:
    """Whether a kernel must find its device current. Views touch no data, and the pointwise driver
    sees to it itself."""
    return kernel.key == "CUDA" and kernel.kind in ("native", "structured") and not op.is_view


def _device_guard(op: Op, kernel: Kernel) -> list[str]:
    if not _needs_guard(op, kernel):
        return []
    args = ", ".join(a.cpp_name for a in op.schema.args)
    return [f"const c10::cuda::CUDAGuard device_guard(at::cuda::device_of({args}));"]


def _wrappers(op: Op) -> tuple[list[str], list[str]]:
    """Wrapper definitions and the rows of the kernel table. Keys with the same body share one
    wrapper."""
    code: list[str] = []
    rows: list[str] = []
    names: dict[str, str] = {}
    params = ", ".join(["at::KernelContext", *cpp.params(op.schema.args)])
    for kernel in op.kernels:
        lines = [*_device_guard(op, kernel), *_body(op, kernel)]
        body = "".join(f"  {line}\n" for line in lines if line)
        name = names.get(body)
        if name is None:
            name = names[body] = f"{kernel.key}_{op.struct}"
            code.append(f"{cpp.return_type(op.schema)} {name}({params}) {{\n{body}}}\n")
        rows.append(f"    {{c10::DispatchKey::{kernel.key}, reinterpret_cast<void*>(&{name})}},\n")
    return code, rows


def op_flags(op: Op) -> str:
    flags = []
    if any(a.is_write for a in op.schema.args):
        flags.append("at::kOpMutates")
    if op.is_view:
        flags.append("at::kOpView")
    if op.options_args and not any(a.type.is_tensor_like for a in op.schema.args):
        flags.append("at::kOpFactory")
    if {k.key for k in op.kernels} == {"CompositeImplicitAutograd"}:
        flags.append("at::kOpComposite")
    return " | ".join(flags) or "0"


def definition(op: Op, formulas: Derivatives | None) -> str:
    s = op.schema
    wrappers, rows = _wrappers(op)
    rows.append(emit_autograd.table_row(op, formulas))
    kernels = f"kernels_{op.struct}"
    parts = ["namespace {\n", *wrappers]
    if op.entry.pointwise and op.functional is None:
        parts.insert(1, emit_pointwise.spec_definition(op.entry))
    parts.append(f"const at::KernelInit {kernels}[] = {{\n{''.join(rows)}")
    parts.append("    {c10::DispatchKey::Undefined, nullptr}};\n}  // namespace\n")
    parts.append(
        f"const at::OperatorEntry {op.struct}::entry{{\n"
        f"    name, overload_name, schema_str, {kernels}, &at::kBoxingOps<schema>,\n"
        f"    {op_flags(op)}, {cpp.cpp_string(','.join(op.entry.tags))}}};\n"
    )
    ret = cpp.return_type(s)
    template_args = ", ".join([ret, *(cpp.arg_type(a) for a in s.args)])
    params = cpp.params(s.args)
    names = [a.cpp_name for a in s.args]
    call = f"at::dispatch_call<{template_args}>({', '.join(['entry', *names])})"
    again = f"at::dispatch_redispatch<{template_args}>({', '.join(['entry', 'keys', *names])})"
    parts.append(f"{ret} {op.struct}::call({', '.join(params)}) {{\n  return {call};\n}}\n")
    redispatch = ", ".join(["c10::DispatchKeySet keys", *params])
    parts.append(f"{ret} {op.struct}::redispatch({redispatch}) {{\n  return {again};\n}}\n\n")
    return "".join(parts)


def _ops_file(ops: list[Op], formulas: Derivatives | None) -> str:
    # The kernels are declared here and not included from Native.h, so that a new entry recompiles
    # one shard.
    includes = ["ATen/core/Boxing.h", "ATen/core/Dispatcher.h", "ATen/native/GeneratedSupport.h"]
    if _has(ops, "pointwise"):
        includes.append("ATen/iter/Pointwise.h")
    if _has(ops, "structured"):
        includes.append("ATen/native/OutputBuilder.h")
    if any(k.key == "CPU" and k.kind in ("native", "structured") for op in ops for k in op.kernels):
        includes.append("ATen/native/Snapshot.h")
    if any(_takes_symbols(op, kernel) for op in ops for kernel in op.kernels):
        includes.append("ATen/native/Sizes.h")
    if any(_needs_guard(op, kernel) for op in ops for kernel in op.kernels):
        includes.append("ATen/cuda/DeviceOf.h")
    if formulas:
        includes.append("ATen/core/AutogradKernels.h")
    if _has(ops, "foreach"):
        includes += ["ATen/iter/Foreach.h", "ATen/iter/Pointwise.h"]
    called = {o.base for op in ops for o in (op, op.functional, op.alias_of, op.target) if o}
    includes += [f"ATen/ops/{base}.h" for base in sorted(called)]
    parts = [BANNER, *(f"#include <{i}>\n" for i in includes), "\n"]
    parts += [
        _declarations(ops),
        emit_pointwise.table_declarations([*ops, *(op.target for op in ops if op.target)]),
        emit_autograd.declarations(ops, formulas),
        "\nnamespace at::_ops {\n",
        emit_foreach.specs(ops),
    ]
    parts += [definition(op, formulas) for op in ops]
    parts.append("}  // namespace at::_ops\n")
    return "".join(parts)


def emit(model: Model, formulas: Derivatives | None = None) -> dict[str, str]:
    files: dict[str, str] = {}
    for family, ops in model.families().items():
        files[f"ATen/native/{family}/Native.h"] = native_header(ops)
        if not ops:
            continue
        count = shard_count(len(ops), _OPS_PER_SHARD)
        shards: list[list[Op]] = [[] for _ in range(count)]
        for op in sorted(ops, key=lambda op: op.base):
            shards[shard_of(op.base, count)].append(op)
        for k, shard in enumerate(shards):
            files[f"ATen/Ops_{family}_{k}.cpp"] = _ops_file(shard, formulas)
    return files
