"""How schema types are spelled in C++: arguments, returns, defaults, and the conversions between
the symbolic and the plain form of sizes. Every emitter asks here, so that a type has one spelling
in headers, wrappers and bindings.
"""

from __future__ import annotations

from .errors import GenError
from .schema import (
    MEMORY_FORMAT_NAMES,
    REDUCTION_NAMES,
    SCALAR_TYPE_NAMES,
    Argument,
    Return,
    Schema,
    Type,
    list_items,
)

_BY_VALUE = {
    "int": "int64_t",
    "SymInt": "c10::SymInt",
    "float": "double",
    "bool": "bool",
    "str": "::std::string_view",
    "ScalarType": "at::ScalarType",
    "Layout": "at::Layout",
    "Device": "at::Device",
    "MemoryFormat": "at::MemoryFormat",
    "Generator": "at::Generator",
    "Storage": "at::Storage",
    "Stream": "at::Stream",
}
_LISTS = {
    "int": "at::IntArrayRef",
    "SymInt": "c10::SymIntArrayRef",
    "float": "at::ArrayRef<double>",
    "Scalar": "at::ArrayRef<at::Scalar>",
    "Tensor": "at::TensorList",
}
_OPTIONAL_LISTS = {"int": "at::OptionalIntArrayRef", "SymInt": "at::OptionalSymIntArrayRef"}
# In the order of the numbers that stored schemas use for dtypes.
SCALAR_TYPES_BY_NUMBER = tuple(
    "Byte Char Short Int Long Half Float Double ComplexHalf ComplexFloat ComplexDouble Bool "
    "QInt8 QUInt8 QInt32 BFloat16".split()
)


def concrete(type_: Type) -> Type:
    """The type with SymInt replaced by int: what a kernel that does not ask for `symint`
    receives."""
    if type_.base != "SymInt":
        return type_
    return Type("int", type_.optional, type_.is_list, type_.size, type_.item_optional)


def arg_type(arg: Argument, symint: bool = True) -> str:
    """The C++ type of an argument. symint=False gives the plain integer form."""
    t = arg.type if symint else concrete(arg.type)
    if t.is_list:
        return _list_type(t)
    if t.base == "Tensor":
        if t.optional:
            return "const ::std::optional<at::Tensor>&"
        return "at::Tensor&" if arg.is_write else "const at::Tensor&"
    if t.base == "Scalar":
        return "const ::std::optional<at::Scalar>&" if t.optional else "const at::Scalar&"
    plain = _BY_VALUE.get(t.base)
    if plain is None:
        raise GenError(f"'{t}' has no C++ argument type")
    return f"::std::optional<{plain}>" if t.optional else plain


def _list_type(t: Type) -> str:
    if t.base == "bool" and t.size and not t.optional:
        return f"::std::array<bool,{t.size}>"
    if t.base == "bool":
        plain = "at::ArrayRef<bool>"
    elif t.base == "Tensor" and t.item_optional:
        plain = "at::OptionalTensorList"
    elif t.base in _LISTS and not t.item_optional:
        plain = _LISTS[t.base]
    else:
        raise GenError(f"'{t}' has no C++ argument type")
    if not t.optional:
        return plain
    return _OPTIONAL_LISTS.get(t.base, f"::std::optional<{plain}>")


def _return_item(ret: Return, symint: bool) -> str:
    t = ret.type if symint else concrete(ret.type)
    if t.base == "Tensor":
        if t.is_list:
            return "::std::vector<at::Tensor>"
        return "at::Tensor&" if ret.annotation and ret.annotation.write else "at::Tensor"
    if t.base == "Scalar" and not t.is_list:
        return "::std::optional<at::Scalar>" if t.optional else "at::Scalar"
    if t.is_list:
        return f"::std::vector<{_BY_VALUE[t.base]}>"
    if t.base not in _BY_VALUE:
        raise GenError(f"'{t}' has no C++ return type")
    plain = "::std::string" if t.base == "str" else _BY_VALUE[t.base]
    return f"::std::optional<{plain}>" if t.optional else plain


def return_type(schema: Schema, symint: bool = True) -> str:
    """The C++ return type. A written list is void: its tensors are changed in place."""
    items = schema.returns
    if not items:
        return "void"
    if any(r.type.is_list and r.annotation and r.annotation.write for r in items):
        return "void"
    if len(items) == 1:
        return _return_item(items[0], symint)
    return "::std::tuple<" + ", ".join(_return_item(r, symint) for r in items) + ">"


def params(
    args: tuple[Argument, ...] | list[Argument], symint: bool = True, defaults: bool = False
) -> list[str]:
    """Parameter declarations. Defaults are given from the last argument back to the first one
    without."""
    result: list[str] = []
    may_default = defaults
    for arg in reversed(args):
        may_default = may_default and arg.default is not None
        text = f"{arg_type(arg, symint)} {arg.cpp_name}"
        if may_default:
            text += f" = {default(arg, symint)}"
        result.append(text)
    return result[::-1]


def cpp_string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def string_value(text: str) -> str:
    """The value of a quoted schema default."""
    return text[1:-1].replace("\\" + text[0], text[0])


def default(arg: Argument, symint: bool = True) -> str:
    """The default of an argument as a C++ expression of its type."""
    assert arg.default is not None
    return default_value(arg.type if symint else concrete(arg.type), arg.default)


def default_value(t: Type, text: str) -> str:
    if text == "None":
        return "{}" if t.base in ("Tensor", "Scalar") else "::std::nullopt"
    if t.is_list:
        return _list_default(t, text)
    if t.base in ("int", "SymInt", "Scalar", "float"):
        text = REDUCTION_NAMES.get(text, text)
        if text.endswith("inf"):
            return text.replace("inf", "__builtin_inf()")
        return {"True": "true", "False": "false"}.get(text, text)
    if t.base == "bool":
        return text.lower()
    if t.base == "str":
        return cpp_string(string_value(text))
    if t.base == "ScalarType":
        name = SCALAR_TYPE_NAMES.get(text) or SCALAR_TYPES_BY_NUMBER[int(text)]
        return f"at::ScalarType::{name}"
    if t.base == "MemoryFormat":
        name = MEMORY_FORMAT_NAMES.get(text) or list(MEMORY_FORMAT_NAMES.values())[int(text)]
        return f"at::MemoryFormat::{name}"
    if t.base == "Layout":
        return (
            "at::Layout::Strided"
            if text in ("0", "strided")
            else f"static_cast<at::Layout>({text})"
        )
    if t.base == "Device":
        return f"at::Device({cpp_string(string_value(text))})"
    raise GenError(f"'{t}' cannot have the default '{text}'")


def _list_default(t: Type, text: str) -> str:
    items = list_items(text) if text.startswith("[") else [text] * max(t.size, 1)
    values = "{" + ", ".join(default_value(Type(t.base), i) for i in items) + "}"
    if t.base == "bool" and t.size:
        return "{" + values + "}"
    return f"{_list_type(Type(t.base, False, True))}({values})" if t.optional else values


def to_plain(arg: Argument) -> str:
    """The expression that turns a symbolic argument into the plain one; other arguments pass
    unchanged."""
    name = arg.cpp_name
    if arg.type.base != "SymInt":
        return name
    return f"c10::as_int_array({name})" if arg.type.is_list else f"c10::as_int({name})"


def to_symbolic(arg: Argument) -> str:
    """The expression that turns a plain argument into the symbolic one."""
    name = arg.cpp_name
    if arg.type.base != "SymInt" or not arg.type.is_list:
        return name
    if not arg.type.optional:
        return f"c10::as_symint_array({name})"
    given = f"at::OptionalSymIntArrayRef(c10::as_symint_array(*{name}))"
    return f"{name} ? {given} : at::OptionalSymIntArrayRef()"
