"""Python bindings: constant parameter tables, one invoke function per signature, and a
METH_FASTCALL entry per name.

All parsing is done by one out-of-line function over the tables
(torch/csrc/python/args/arg_parser.h); generated code only reads the parsed values and calls the
operator, which keeps 2,000 overloads at seconds of compile time.
"""

from __future__ import annotations

from . import cpp_types as cpp
from .emit_ops import BANNER
from .emit_pyi import docstring
from .model import Model, Op, shard_count, shard_of
from .python_sigs import MODULES, PyFunction, PyParam, PySignature, is_bound
from .schema import Argument, Type

_PER_SHARD = 110

_ACCESSORS = {
    "Tensor": ("Tensor", "tensor", "opt_tensor"),
    "Scalar": ("Scalar", "scalar", "opt_scalar"),
    "int": ("Int", "integer", "opt_integer"),
    "SymInt": ("SymInt", "symint", "opt_symint"),
    "float": ("Float", "floating", "opt_floating"),
    "bool": ("Bool", "boolean", "opt_boolean"),
    "str": ("Str", "string", "opt_string"),
    "ScalarType": ("ScalarType", "scalar_type", "opt_scalar_type"),
    "Layout": ("Layout", "layout", "opt_layout"),
    "MemoryFormat": ("MemoryFormat", "memory_format", "opt_memory_format"),
    "Device": ("Device", "device", "opt_device"),
    "Generator": ("Generator", "generator", "generator"),
    "Storage": ("Storage", "storage", "storage"),
}
_LIST_ACCESSORS = {
    "int": ("IntList", "int_list", "opt_int_list"),
    "SymInt": ("SymIntList", "symint_list", "opt_symint_list"),
    "float": ("FloatList", "float_list", "opt_float_list"),
    "Scalar": ("ScalarList", "scalar_list", "scalar_list"),
    "Tensor": ("TensorList", "tensor_list", "tensor_list"),
    "bool": ("BoolList", "", ""),
}


def _kind(t: Type) -> tuple[str, str, str]:
    if t.is_list and t.base == "Tensor" and t.item_optional:
        return "OptTensorList", "opt_tensor_list_items", "opt_tensor_list_items"
    if t.is_list and t.base == "bool":
        return "BoolList", f"bool_array<{t.size}>", f"bool_array<{t.size}>"
    return (_LIST_ACCESSORS if t.is_list else _ACCESSORS)[t.base]


# ---- parameters ----------------------------------------------------------------------------------


def _flags(p: PyParam) -> str:
    flags = []
    if p.type.optional or p.role == "out":
        flags.append("kOptional")
    if p.kwarg_only:
        flags.append("kKwOnly")
    if p.default is not None:
        flags.append("kHasDefault")
    if p.role == "out":
        flags.append("kOut")
    if p.type.is_list and p.type.base in ("int", "SymInt") and p.default in ("[]", "()"):
        flags.append("kNoneIsEmpty")
    return " | ".join(flags) or "0"


def _param_row(p: PyParam) -> str:
    default = "nullptr" if p.default_text is None else cpp.cpp_string(p.default_text)
    return f'{{"{p.name}", P::{_kind(p.type)[0]}, {_flags(p)}, {p.type.size}, {default}}}'


def _value(sig: PySignature, index: int, written: bool) -> str:
    """The expression that reads parameter `index` as the operator's argument type."""
    p = sig.params[index]
    _, plain, optional = _kind(p.type)
    if p.type.is_plain_tensor:
        text = f"a.tensor({index})"
        return f"const_cast<at::Tensor&>({text})" if written else text
    get = f"a.{optional if p.type.optional else plain}({index})"
    default = p.arg.default if p.arg is not None else None
    if default is None or default == "None":
        return get  # the optional accessors answer nothing for what was not given
    assert p.arg is not None
    result = cpp.arg_type(p.arg).removeprefix("const ").removesuffix("&")
    value = cpp.default_value(p.type, default)
    wrapped = f"{result}{value}" if value.startswith("{") else f"{result}({value})"
    # None for a factory's dtype means the operator's own default.
    test = "present" if p.default == "None" else "given"
    return f"(a.{test}({index}) ? {get} : {wrapped})"


def _call(sig: PySignature, op: Op, outs: list[str]) -> str:
    values = []
    remaining = iter(outs)
    for arg in op.schema.args:
        if arg.is_out:
            values.append(next(remaining))
        else:
            values.append(_value(sig, sig.index(arg.name), arg.is_write))
            if sig.is_factory and arg in op.options_args:
                values[-1] = _option(sig, op, arg) or values[-1]
    return f"at::_ops::{op.struct}::call({', '.join(values)})"


def _option(sig: PySignature, op: Op, arg: Argument) -> str:
    """An option of a factory whose default is filled in where operators are watched."""
    if arg.name == "pin_memory":
        return f"factory_pin_memory(a, {sig.index(arg.name)})"
    if arg.name == "device" and not any(a.type.is_tensor_like for a in op.schema.args):
        return f"factory_device(a, {sig.index(arg.name)})"
    return ""


# ---- invoke --------------------------------------------------------------------------------------


def _named(op: Op) -> str:
    """Name of the struct sequence of an operator with several named results, or ''."""
    returns = op.schema.returns
    if len(returns) < 2 or not all(r.name and r.type.base == "Tensor" for r in returns):
        return ""
    return f"named_{op.schema.name}_" + "_".join(r.name for r in returns)


def _wrap_result(sig: PySignature, op: Op, call: str) -> list[str]:
    if op.schema.is_inplace and op.schema.args[0].type.is_list and op.functional is not None:
        return [f"{call};", "return wrap_self(a);"]
    if cpp.return_type(op.schema) == "void":
        return [f"{call};", "return wrap_void();"]
    if (
        op.schema.is_inplace
        and op.schema.args
        and sig.params[0].arg is not None
        and sig.params[0].arg.is_write
    ):
        return [f"{call};", "return wrap_self(a);"]
    if _named(op):
        return [f"return wrap_named({_named(op)}, {call});"]
    if sig.is_factory:
        grad = sig.index("", "requires_grad")
        return [f"return finish_factory({call}, a.given({grad}) && a.boolean({grad}));"]
    return [f"return wrap({call});"]


def _out_lines(sig: PySignature, op: Op) -> list[str]:
    """Calls the out variant and returns the objects the caller gave."""
    index = sig.index("", "out")
    outs = op.schema.out_args
    if outs[0].type.is_list:
        return [
            f"{_call(sig, op, [f'a.tensor_list({index})'])};",
            f"return wrap_given(a, {index});",
        ]
    if len(outs) == 1:
        lines = [f"at::Tensor& out = const_cast<at::Tensor&>(a.tensor({index}));"]
        if sig.is_factory:
            dtype, layout, device = (sig.index(n) for n in ("dtype", "layout", "device"))
            lines.append(
                f"check_out_options(out, a.opt_scalar_type({dtype}), a.opt_layout({layout}),\n"
                f"                    a.opt_device({device}));"
            )
        lines.append(f"{_call(sig, op, ['out'])};")
        if sig.is_factory:
            grad = sig.index("", "requires_grad")
            return [*lines, f"return finish_factory(out, a.given({grad}) && a.boolean({grad}));"]
        return [*lines, f"return wrap_given(a, {index});"]
    names = [f"out_tensor(outs, {i})" for i in range(len(outs))]
    lines = [
        f"at::TensorList outs = a.tensor_list({index});",
        f'check_out_count("{sig.name}", outs, {len(outs)});',
    ]
    call = _call(sig, op, names)
    named = _named(op)
    return [*lines, f"return wrap_named({named}, {call});" if named else f"return wrap({call});"]


def _invoke(sig: PySignature, name: str) -> str:
    if sig.op.schema.is_out:
        lines = _out_lines(sig, sig.op)
    else:
        lines = _wrap_result(sig, sig.op, _call(sig, sig.op, []))
        if sig.out is not None:
            index = sig.index("", "out")
            functional = "".join(f"    {line}\n" for line in lines)
            lines = [
                f"if (C10_LIKELY(!a.present({index}))) {{\n{functional}  }}",
                *_out_lines(sig, sig.out),
            ]
    body = "".join(f"  {line}\n" for line in lines)
    unused = "" if "a." in body or "(a" in body else "[[maybe_unused]] "
    return f"PyObject* {name}({unused}ArgValues& a) {{\n{body}}}\n"


# ---- functions -----------------------------------------------------------------------------------


def _signature_flags(sig: PySignature) -> str:
    flags = ["kHidden"] if sig.hidden else []
    if sig.deprecated:
        flags.append("kDeprecated")
    if sig.varargs:
        flags.append("kVarargs")
    return " | ".join(flags) or "0"


def _function(f: PyFunction) -> str:
    parts: list[str] = []
    rows: list[str] = []
    for i, sig in enumerate(f.signatures):
        invoke = f"invoke_{f.name}_{i}"
        parts.append(_invoke(sig, invoke))
        params = "nullptr"
        if sig.params:
            params = f"params_{f.name}_{i}"
            table = ",\n    ".join(_param_row(p) for p in sig.params)
            parts.append(f"constexpr Param {params}[] = {{\n    {table}}};\n")
        rows.append(
            f"    {{{params}, {len(sig.params)}, {sig.positional}, {_signature_flags(sig)},\n"
            f"     &{invoke}, {cpp.cpp_string(sig.message_text)}}},\n"
        )
    parts.append(f"constexpr Signature signatures_{f.name}[] = {{\n{''.join(rows)}}};\n")
    parts.append("}  // namespace\n")
    symbol = _symbol(f)
    parts.append(f"extern const Function {symbol};\n")
    parts.append(
        f'const Function {symbol} = {{"{f.name}", "{f.path}", '
        f"signatures_{f.name}, {len(f.signatures)}}};\n"
    )
    parts.append("namespace {\n")
    self_text = "self" if f.module == "method" else "nullptr"
    self_param = "PyObject* self" if f.module == "method" else "PyObject*"
    parts.append(
        f"PyObject* py_{f.name}({self_param}, PyObject* const* args, Py_ssize_t n,\n"
        f"    PyObject* names) {{\n"
        f"  return call({symbol}, {self_text}, args, n, names);\n}}\n\n"
    )
    return "".join(parts)


def _symbol(f: PyFunction) -> str:
    return f"function_{f.module}_{f.name}"


def _method_row(f: PyFunction) -> str:
    doc = cpp.cpp_string(docstring(f))
    return (
        f'    {{"{f.name}", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&py_{f.name})),\n'
        f"     METH_FASTCALL | METH_KEYWORDS, {doc}}},\n"
    )


def _bind_file(module: str, k: int, functions: list[PyFunction]) -> str:
    bases = sorted({op.base for f in functions for s in f.signatures for op in (s.op, s.out) if op})
    parts = [
        BANNER,
        "#include <torch/csrc/python/runtime/bind_support.h>\n",
        "#include <torch/csrc/python/bind_tables.h>\n",
    ]
    parts += [f"#include <ATen/ops/{b}.h>\n" for b in bases]
    parts.append("\nnamespace torch::python {\nnamespace {\n")
    parts += [_function(f) for f in functions]
    parts.append("}  // namespace\n\n")
    rows = "".join(_method_row(f) for f in functions)
    parts.append(
        f"PyMethodDef {module}_methods_{k}[] = {{\n{rows}    {{nullptr, nullptr, 0, nullptr}}}};\n"
    )
    parts.append("}  // namespace torch::python\n")
    return "".join(parts)


# ---- tables --------------------------------------------------------------------------------------


def _shards_name(module: str) -> str:
    return "tensor_method_shards" if module == "method" else f"{module}_function_shards"


def _named_returns(model: Model) -> dict[str, Op]:
    found = {_named(op): op for op in model.ops if is_bound(op)}
    found.pop("", None)
    return dict(sorted(found.items()))


def _tables_header(model: Model) -> str:
    parts = [
        BANNER,
        "#pragma once\n#include <torch/csrc/python/args/arg_parser.h>\n\n",
        "namespace torch::python {\n",
    ]
    parts.append("// Method tables of each module; a null pointer ends the list.\n")
    parts += [f"extern PyMethodDef* const {_shards_name(m)}[];\n" for m in MODULES]
    parts.append(
        "// The struct sequence types of operators with several named results; null at the end.\n"
    )
    parts.append("extern const NamedReturn* const named_returns[];\n")
    parts += [f"extern const NamedReturn {name};\n" for name in _named_returns(model)]
    parts.append("}  // namespace torch::python\n")
    return "".join(parts)


def _tables_source(
    model: Model, functions: dict[str, list[PyFunction]], shards: dict[str, int]
) -> str:
    parts = [BANNER, "#include <cstring>\n\n#include <torch/csrc/python/bind_tables.h>\n\n"]
    parts.append("namespace torch::python {\n")
    for module in MODULES:
        names = [f"{module}_methods_{k}" for k in range(shards[module])]
        parts += [f"extern PyMethodDef {n}[];\n" for n in names]
        parts.append(
            f"PyMethodDef* const {_shards_name(module)}[] = {{{', '.join([*names, 'nullptr'])}}};\n"
        )
    named = _named_returns(model)
    for name, op in named.items():
        fields = ", ".join(f'"{r.name}"' for r in op.schema.returns)
        parts.append(f"static const char* const fields_{name}[] = {{{fields}}};\n")
        count = len(op.schema.returns)
        parts.append(
            f'const NamedReturn {name} = {{"{op.schema.name}", fields_{name}, {count}, nullptr}};\n'
        )
    listed = "".join(f"&{n}, " for n in named)
    parts.append(f"const NamedReturn* const named_returns[] = {{{listed}nullptr}};\n\n")
    every = sorted((f for fs in functions.values() for f in fs), key=lambda f: (f.path, f.name))
    parts += [f"extern const Function {_symbol(f)};\n" for f in every]
    parts.append(
        "namespace {\n// Sorted by module, then name.\nconst Function* const all_functions[] = {\n"
    )
    parts += [f"    &{_symbol(f)},\n" for f in every]
    parts.append(
        f"    nullptr}};\nconstexpr int kFunctionCount = {len(every)};\n}}  // namespace\n\n"
    )
    parts.append(_FIND_FUNCTION)
    parts.append("}  // namespace torch::python\n")
    return "".join(parts)


_FIND_FUNCTION = """\
const Function* find_function(const char* module, const char* name) {
  int low = 0, high = kFunctionCount;
  while (low < high) {
    const int middle = (low + high) / 2;
    const Function* f = all_functions[middle];
    int order = ::std::strcmp(f->module, module);
    if (order == 0) order = ::std::strcmp(f->name, name);
    if (order == 0) return f;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return nullptr;
}
"""


def emit(model: Model, functions: dict[str, list[PyFunction]]) -> dict[str, str]:
    files: dict[str, str] = {}
    shards: dict[str, int] = {}
    for module in MODULES:
        mine = functions[module]
        count = shard_count(len(mine), _PER_SHARD) if mine else 0
        shards[module] = count
        for k in range(count):
            part = [f for f in mine if shard_of(f.name, count) == k]
            files[f"torch/csrc/python/bind_{module}_{k}.cpp"] = _bind_file(module, k, part)
    files["torch/csrc/python/bind_tables.h"] = _tables_header(model)
    files["torch/csrc/python/bind_tables.cpp"] = _tables_source(model, functions, shards)
    return files
