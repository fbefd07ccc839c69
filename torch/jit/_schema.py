"""Operators as scripted code sees them: schemas of the dispatcher and of the interpreter's own
builtins, read with one parser, and matched with the values of a call."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import typing

import torch
from torch.jit import _types as T


class VarType(T.Type):
    """A type variable of a schema."""

    kind_name = "AnyType"

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


class AnyEnum(T.Type):
    """Every enumeration."""

    kind_name = "EnumType"

    def __repr__(self) -> str:
        return "AnyEnumType"


NO_DEFAULT = object()


class Argument(typing.NamedTuple):
    """A parameter of an operator."""

    name: str
    type: T.Type
    size: int | None = None
    default: object = NO_DEFAULT
    kwarg_only: bool = False
    write: bool = False
    alias: str = ""

    def has_default_value(self) -> bool:
        return self.default is not NO_DEFAULT

    @property
    def default_value(self) -> object:
        return None if self.default is NO_DEFAULT else self.default


class Schema:
    """Name, parameters and results; `builtin` is the number of an interpreter's builtin."""

    def __init__(self, name, overload, arguments, returns, vararg=False, varret=False) -> None:
        self.name, self.overload_name = name, overload
        self.arguments: list[Argument] = arguments
        self.returns: list[Argument] = returns
        self.vararg, self.varret = vararg, varret
        self.builtin: int | None = None
        self.text = ""

    def __str__(self) -> str:
        return self.text

    @property
    def mutates(self) -> bool:
        return any(a.write for a in self.arguments)


_NAMES = {
    "Tensor": T.Tensor, "int": T.Int, "SymInt": T.Int, "float": T.Float, "SymFloat": T.Float,
    "bool": T.Bool, "SymBool": T.Bool, "complex": T.Complex, "str": T.String, "Scalar": T.Number,
    "number": T.Number, "ScalarType": T.Int, "Layout": T.Int, "MemoryFormat": T.Int,
    "QScheme": T.Int, "DeviceIndex": T.Int, "Device": T.Device, "Generator": T.Generator,
    "Storage": T.StorageType.of(), "Stream": T.StreamObjType.of(), "Any": T.Any,
    "NoneType": T.NoneT, "Dimname": T.String, "AnyEnumType": AnyEnum.of(),
}  # fmt: skip
_TOKEN = re.compile(r'\s*(\.\.\.|->|"(?:[^"\\]|\\.)*"|[A-Za-z_][\w]*|-?[\d.]+(?:e-?\d+)?|\S)')
_ENUMS = {
    "contiguous_format": 0, "preserve_format": 1, "channels_last": 2, "channels_last_3d": 3,
    "strided": 0, "Mean": 1, "Sum": 2, "long": 4, "float": 6, "double": 7, "inf": float("inf"),
}  # fmt: skip


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens = _TOKEN.findall(text)
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, token: str | None = None) -> str:
        found = self.peek()
        if token is not None and found != token:
            raise RuntimeError(f"expected '{token}' but found '{found}' in a schema")
        self.at += 1
        return found

    def accept(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.at += 1
        return True

    def alias(self) -> str:
        """The text of an alias annotation: "a!", "b -> *"."""
        text = ""
        self.take("(")
        while (token := self.take()) != ")":
            text += token
        return text

    def type(self) -> tuple[T.Type, int | None, str]:
        size, alias = None, ""
        if self.accept("("):
            parts = []
            while not self.accept(")"):
                parts.append(self.type()[0])
                self.accept(",")
            made = T.tuple_of(*parts) if len(parts) != 1 else parts[0]
        else:
            made = self.named()
        while True:
            if self.peek() == "(":
                alias += self.alias()
            elif self.accept("["):
                if self.peek() != "]":
                    size = int(self.take())
                self.take("]")
                made = T.ListType.of(made)
            elif self.accept("?"):
                made = T.OptionalType.of(made)
            else:
                return made, size, alias

    def named(self) -> T.Type:
        name = self.take()
        if name == "__torch__":
            while self.accept("."):
                name += "." + self.take()
            return T.CustomClassType.of(name)
        if name == "Dict":
            self.take("(")
            key = self.type()[0]
            self.take(",")
            value = self.type()[0]
            self.take(")")
            return T.DictType.of(key, value)
        if name == "Future":
            self.take("(")
            inner = self.type()[0]
            self.take(")")
            return T.FutureType.of(inner)
        return _NAMES.get(name) or VarType.of(name)

    def default(self) -> object:
        token = self.take()
        if token == "[":
            items = []
            while not self.accept("]"):
                items.append(self.default())
                self.accept(",")
            return items
        if token in ("None", "True", "False"):
            return ast.literal_eval(token)
        if token[0] == '"':
            return ast.literal_eval(token)
        if token in _ENUMS:
            return _ENUMS[token]
        if token[0].isdigit() or token[0] in "-.":
            return ast.literal_eval(token)
        return token


def parse(text: str) -> Schema:
    """The schema that a text describes."""
    head, _, rest = text.partition("(")
    name, _, overload = head.strip().partition(".")
    reader = _Reader(rest)
    arguments, kwarg_only, vararg = [], False, False
    while not reader.accept(")"):
        if reader.accept("..."):
            vararg = True
        elif reader.accept("*"):
            kwarg_only = True
        else:
            type, size, alias = reader.type()
            label = reader.take()
            default = reader.default() if reader.accept("=") else NO_DEFAULT
            default = _fitting(default, type)
            write = "!" in alias
            arguments.append(Argument(label, type, size, default, kwarg_only, write, alias))
        reader.accept(",")
    reader.take("->")
    returns, varret = _returns(reader)
    made = Schema(name, overload, arguments, returns, vararg, varret)
    made.text = text
    return made


def _fitting(default: object, type: T.Type) -> object:
    inner = type.element if isinstance(type, T.OptionalType) else type
    if inner is T.Float and isinstance(default, int) and not isinstance(default, bool):
        return float(default)
    if isinstance(inner, T.ListType) and isinstance(default, int | float):
        return default  # broadcast when the size is known
    return default


def _returns(reader: _Reader) -> tuple[list[Argument], bool]:
    if reader.accept("..."):
        return [], True
    if not reader.accept("("):
        type, _, alias = reader.type()
        return [Argument("", type, alias=alias)], False
    out = []
    while not reader.accept(")"):
        if reader.accept("..."):
            reader.take(")")
            return out, True
        type, _, alias = reader.type()
        name = reader.take() if reader.peek() not in (",", ")") else ""
        out.append(Argument(name, type, alias=alias))
        reader.accept(",")
    return out, False


@functools.cache
def _builtins() -> dict[str, list[Schema]]:
    out: dict[str, list[Schema]] = {}
    for number, text in enumerate(torch._C._script_builtins()):
        schema = parse(text)
        schema.builtin = number
        out.setdefault(schema.name, []).append(schema)
    return out


_dispatched: dict[str, list[Schema]] = {}
# Operators that Python composes and the dispatcher does not have: scripted code composes them too.
_SYNONYMS = {"aten::__and__": "aten::bitwise_and", "aten::__or__": "aten::bitwise_or",
             "aten::__xor__": "aten::bitwise_xor", "aten::__lshift__": "aten::bitwise_left_shift",
             "aten::__rshift__": "aten::bitwise_right_shift"}  # fmt: skip


# Namespaces of which Python defines operators when they are asked for.
_PYTHON_MAKERS = {"aten": "torch._composed_ops", "quantized": "torch._quantized_ops"}


# Operators under the name that graphs and their passes know, for those of many names; in-place
# forms, with a last underscore, likewise.
_FIRST_NAMES = dict(
    pair.split("=")
    for pair in """absolute=abs negative=neg arccos=acos arccosh=acosh arcsin=asin arcsinh=asinh
    arctan=atan arctanh=atanh arctan2=atan2 subtract=sub multiply=mul divide=div true_divide=div
    greater=gt greater_equal=ge less=lt less_equal=le not_equal=ne fix=trunc clip=clamp
    special_erf=erf special_erfc=erfc special_erfinv=erfinv special_exp2=exp2 special_expm1=expm1
    special_log1p=log1p special_sinc=sinc special_digamma=digamma special_psi=digamma
    special_i0=i0 special_xlogy=xlogy special_expit=sigmoid special_gammaln=lgamma
    special_gammainc=igamma special_gammaincc=igammac special_polygamma=polygamma
    special_multigammaln=mvlgamma special_logit=logit matrix_exp=linalg_matrix_exp""".split()
)


def first_name(name: str) -> str:
    """aten::acos for aten::arccos; a name without another is its own."""
    namespace, _, short = name.partition("::")
    plain = short.removesuffix("_")
    if namespace != "aten" or plain not in _FIRST_NAMES:
        return name
    return f"aten::{_FIRST_NAMES[plain]}{short[len(plain) :]}"


# A number for a list stands for its only item. Where another overload takes the number as such, as
# tensor_split does, that one is meant.
_NUMBER = re.compile(r"\((Tensor(\([^)]*\))? \w+, )?(SymInt|int) \w")


def _takes_list(text: str) -> bool:
    return _NUMBER.search(text) is None


def schemas(name: str, composed: bool = True) -> list[Schema]:
    """Every overload of an operator: tensors first, then the interpreter's own. With `composed`,
    operators that Python defines when they are asked for are defined."""
    known = _dispatched.get(name)
    if known is None:
        texts = torch._C._script_schemas(name)
        maker = _PYTHON_MAKERS.get(name.partition("::")[0])
        if not texts and composed and maker is not None and name not in _builtins():
            importlib.import_module(maker)

            texts = torch._C._script_schemas(name)
        known = [parse(text) for text in sorted(texts, key=_takes_list)]
        if known:
            _dispatched[name] = known
    out = known + _builtins().get(name, [])
    if name in _SYNONYMS:
        out = out + schemas(_SYNONYMS[name])
    return out


def forget(name: str) -> None:
    """Operators of `name` may have changed."""
    _dispatched.pop(name, None)


class Mismatch(Exception):
    """Why a call does not fit a schema."""


def bind(formal: T.Type, actual: T.Type, bound: dict[str, T.Type]) -> bool:
    """Whether `actual` fits `formal`, whose variables it binds."""
    if isinstance(formal, VarType):
        if formal.name in bound:
            both = T.unify(bound[formal.name], actual)
            if both is None:
                return False
            # A variable that a container fixed does not grow.
            return both is bound[formal.name]
        bound[formal.name] = actual
        return True
    if isinstance(formal, AnyEnum):
        return isinstance(actual, T.EnumType)
    if isinstance(formal, T.OptionalType):
        if actual is T.NoneT:
            return True
        inner = actual.element if isinstance(actual, T.OptionalType) else actual
        return bind(formal.element, inner, bound)
    if isinstance(formal, T.ListType) and isinstance(actual, T.ListType):
        if isinstance(formal.element, T.OptionalType) and formal.element.element is actual.element:
            return True
        if formal.element is T.Number and actual.element in (T.Int, T.Float, T.Complex):
            return True
        return (_contains_var(formal) and bind(formal.element, actual.element, bound)) or (
            formal is actual
        )
    if type(formal) is type(actual) and _contains_var(formal):
        pairs = zip(formal.contained, actual.contained, strict=False)
        return len(formal.contained) == len(actual.contained) and all(
            bind(f, a, bound) for f, a in pairs
        )
    return T.is_subtype(actual, formal)


def _contains_var(t: T.Type) -> bool:
    return isinstance(t, VarType) or any(map(_contains_var, t.contained))


def substitute(t: T.Type, bound: dict[str, T.Type]) -> T.Type:
    """The type with its variables replaced."""
    if isinstance(t, VarType):
        return bound.get(t.name, T.Any)
    if not t.contained or not _contains_var(t):
        return t
    parts = [substitute(p, bound) for p in t.contained]
    if isinstance(t, T.TupleType):
        return T.tuple_of(*parts)
    if isinstance(t, T.OptionalType):
        return T.optional(parts[0])
    return type(t).of(*parts)
