"""The records of an exported program as JSON holds them. A record has fields; a union has one of
several, and is written as the only one it has. All are declared in one table, from which the
classes, the reader and the writer follow; the reader checks every value, since files come from
elsewhere."""

from __future__ import annotations

import dataclasses
import re
from enum import IntEnum

__all__ = ["SCHEMA_VERSION", "TREESPEC_VERSION", "SchemaError", "from_json", "to_json"]

SCHEMA_VERSION = (8, 20)
TREESPEC_VERSION = 1


class SchemaError(RuntimeError):
    """Data that is no exported program."""


# Numbers of dtypes: those of the first line from 1 on, those of the second from 28 on.
_OLDER = "BYTE CHAR SHORT INT LONG HALF FLOAT DOUBLE COMPLEXHALF COMPLEXFLOAT COMPLEXDOUBLE BOOL"
_OLDER += " BFLOAT16"
_NEWER = "UINT16 FLOAT8E4M3FN FLOAT8E5M2 FLOAT8E4M3FNUZ FLOAT8E5M2FNUZ FLOAT8E8M0FNU UINT32 UINT64"
ScalarType = IntEnum(
    "ScalarType",
    {
        "UNKNOWN": 0,
        **{name: number for number, name in enumerate(_OLDER.split(), 1)},
        **{name: number for number, name in enumerate(_NEWER.split(), 28)},
    },
)


class Layout(IntEnum):
    """Layouts of tensors"""

    Unknown = 0
    SparseCoo = 1
    SparseCsr = 2
    SparseCsc = 3
    SparseBsr = 4
    SparseBsc = 5
    _mkldnn = 6
    Strided = 7


class MemoryFormat(IntEnum):
    """Memory formats"""

    Unknown = 0
    ContiguousFormat = 1
    ChannelsLast = 2
    ChannelsLast3d = 3
    PreserveFormat = 4


class ArgumentKind(IntEnum):
    """How an argument is passed."""

    UNKNOWN = 0
    POSITIONAL = 1
    KEYWORD = 2


# name: fields; `?` may be null, `[T]` is a list, `{T}` an object by name, `=` may be missing.
_RECORDS = """
Device: type str, index int?=
SymExpr: expr_str str, hint SymExprHint?=
TensorMeta: dtype ScalarType, sizes [SymInt], requires_grad bool, device Device, strides [SymInt],
  storage_offset SymInt, layout Layout
TensorArgument: name str
TokenArgument: name str
GraphArgument: name str, graph Graph
CustomObjArgument: name str, class_fqn str
ComplexValue: real float, imag float
NamedArgument: name str, arg Argument, kind ArgumentKind?=
Node: target str, inputs [NamedArgument], outputs [Argument], metadata {str},
  is_hop_single_tensor_return bool?=, name str?=
Graph: inputs [Argument], outputs [Argument], nodes [Node], tensor_values {TensorMeta},
  sym_int_values {SymInt}, sym_bool_values {SymBool}, is_single_tensor_return bool=,
  custom_obj_values {CustomObjArgument}=, sym_float_values {SymFloat}=
UserInputSpec: arg Argument
InputToConstantInputSpec: name str, value ConstantValue
InputToParameterSpec: arg TensorArgument, parameter_name str
InputToBufferSpec: arg TensorArgument, buffer_name str, persistent bool
InputToTensorConstantSpec: arg TensorArgument, tensor_constant_name str
InputToCustomObjSpec: arg CustomObjArgument, custom_obj_name str
InputTokenSpec: arg TokenArgument
UserOutputSpec: arg Argument
LossOutputSpec: arg TensorArgument
BufferMutationSpec: arg TensorArgument, buffer_name str
ParameterMutationSpec: arg TensorArgument, parameter_name str
GradientToParameterSpec: arg TensorArgument, parameter_name str
GradientToUserInputSpec: arg TensorArgument, user_input_name str
UserInputMutationSpec: arg TensorArgument, user_input_name str
OutputTokenSpec: arg TokenArgument
GraphSignature: input_specs [InputSpec], output_specs [OutputSpec]
RangeConstraint: min_val int?=, max_val int?=
ModuleCallSignature: inputs [Argument], outputs [Argument], in_spec str, out_spec str,
  forward_arg_names [str]?=
ModuleCallEntry: fqn str, signature ModuleCallSignature?=
NamedTupleDef: field_names [str]
GraphModule: graph Graph, signature GraphSignature, module_call_graph [ModuleCallEntry],
  metadata {str}=, treespec_namedtuple_fields {NamedTupleDef}=
SchemaVersion: major int, minor int
ExportedProgram: graph_module GraphModule, opset_version {int}, range_constraints {RangeConstraint},
  schema_version SchemaVersion, verifiers [str]=, torch_version str=, guards_code [str]=
PayloadMeta: path_name str, is_param bool, use_pickle bool, tensor_meta TensorMeta?=
PayloadConfig: config {PayloadMeta}
"""

_UNIONS = """
SymExprHint: as_int int, as_bool bool, as_float float
SymInt: as_expr SymExpr, as_int int
SymFloat: as_expr SymExpr, as_float float
SymBool: as_expr SymExpr, as_bool bool
SymIntArgument: as_name str, as_int int
SymFloatArgument: as_name str, as_float float
SymBoolArgument: as_name str, as_bool bool
OptionalTensorArgument: as_tensor TensorArgument, as_none bool
Argument: as_none bool, as_tensor TensorArgument, as_tensors [TensorArgument], as_int int,
  as_ints [int], as_float float, as_floats [float], as_string str, as_strings [str],
  as_sym_int SymIntArgument, as_sym_ints [SymIntArgument], as_scalar_type ScalarType,
  as_memory_format MemoryFormat, as_layout Layout, as_device Device, as_bool bool, as_bools [bool],
  as_sym_bool SymBoolArgument, as_sym_bools [SymBoolArgument], as_graph GraphArgument,
  as_optional_tensors [OptionalTensorArgument], as_custom_obj CustomObjArgument, as_operator str,
  as_sym_float SymFloatArgument, as_sym_floats [SymFloatArgument],
  as_optional_tensor OptionalTensorArgument, as_complex ComplexValue, as_int_lists [[int]],
  as_string_to_argument {Argument}
ConstantValue: as_none bool, as_int int, as_float float, as_string str, as_bool bool
InputSpec: user_input UserInputSpec, parameter InputToParameterSpec, buffer InputToBufferSpec,
  tensor_constant InputToTensorConstantSpec, custom_obj InputToCustomObjSpec, token InputTokenSpec,
  constant_input InputToConstantInputSpec
OutputSpec: user_output UserOutputSpec, loss_output LossOutputSpec,
  buffer_mutation BufferMutationSpec, gradient_to_parameter GradientToParameterSpec,
  gradient_to_user_input GradientToUserInputSpec, user_input_mutation UserInputMutationSpec,
  token OutputTokenSpec, parameter_mutation ParameterMutationSpec
"""

_ENUMS = {e.__name__: e for e in (ScalarType, Layout, MemoryFormat, ArgumentKind)}
_SCALARS = {"str": str, "int": int, "bool": bool, "float": float}
_MAX_DEPTH = 64


@dataclasses.dataclass(frozen=True)
class _Field:
    name: str
    kind: str
    nullable: bool
    optional: bool


def _default(field: _Field) -> object:
    if field.nullable:
        return dataclasses.field(default=None)
    if field.kind.startswith("["):
        return dataclasses.field(default_factory=list)
    if field.kind.startswith("{"):
        return dataclasses.field(default_factory=dict)
    return dataclasses.field(default={"bool": False, "str": ""}[field.kind])


class Union:
    """A value that is one of several kinds: `type` names it."""

    def __init__(self, type: str, value: object) -> None:
        self.type, self.value = type, value

    @classmethod
    def create(cls, **given: object) -> Union:
        """create(as_int=3)"""
        if len(given) != 1:
            raise ValueError(f"{cls.__name__}.create takes one field, got {sorted(given)}")
        ((name, value),) = given.items()
        if name not in cls._fields:
            raise ValueError(f"{cls.__name__} has no field {name}")
        return cls(name, value)

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") or name not in type(self)._fields:
            raise AttributeError(name)
        if name != self.__dict__.get("type"):
            raise AttributeError(f"Field {name} is not set.")
        return self.__dict__["value"]

    def __eq__(self, other: object) -> bool:
        same = type(self) is type(other)
        return same and (self.type, self.value) == (other.type, other.value)

    __hash__ = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.type}={self.value!r})"


def _fields_of(text: str) -> dict[str, _Field]:
    found = {}
    for part in text.split(","):
        name, kind = part.split()
        optional = kind.endswith("=")
        kind = kind.removesuffix("=")
        nullable = kind.endswith("?")
        found[name] = _Field(name, kind.removesuffix("?"), nullable, optional)
    return found


def _declared(table: str) -> dict[str, dict[str, _Field]]:
    joined = re.sub(r"\n\s+", " ", table).strip()
    return {
        line.split(":", 1)[0]: _fields_of(line.split(":", 1)[1]) for line in joined.splitlines()
    }


def _make() -> dict[str, type]:
    made: dict[str, type] = {}
    for name, fields in _declared(_RECORDS).items():
        ordered = sorted(fields.values(), key=lambda f: f.optional)
        rows = [(f.name, object, _default(f)) if f.optional else (f.name, object) for f in ordered]
        cls = dataclasses.make_dataclass(name, rows)
        cls._fields = fields
        made[name] = cls
    for name, fields in _declared(_UNIONS).items():
        made[name] = type(name, (Union,), {"_fields": fields, "__doc__": f"One of {[*fields]}."})
    for cls in made.values():
        cls.__module__ = __name__
    return made


_CLASSES = _make()
globals().update(_CLASSES)


# ---- reading


def from_json(name: str, data: object) -> object:
    """The record of a name from what json.loads returned. Raises SchemaError."""
    return _read(name, data, name, 0)


def _read(kind: str, data: object, path: str, depth: int) -> object:
    if depth > _MAX_DEPTH:
        raise SchemaError(f"{path}: nested too deeply")
    if kind.startswith("["):
        if not isinstance(data, list):
            raise SchemaError(f"{path}: expected a list, got {type(data).__name__}")
        return [_read(kind[1:-1], d, f"{path}[{i}]", depth + 1) for i, d in enumerate(data)]
    if kind.startswith("{"):
        if not isinstance(data, dict):
            raise SchemaError(f"{path}: expected an object, got {type(data).__name__}")
        return {k: _read(kind[1:-1], d, f"{path}.{k}", depth + 1) for k, d in data.items()}
    if kind in _SCALARS:
        return _scalar(kind, data, path)
    if kind in _ENUMS:
        try:
            return _ENUMS[kind](data)
        except (ValueError, TypeError):
            raise SchemaError(f"{path}: {data!r} is no {kind}") from None
    cls = _CLASSES[kind]
    if not isinstance(data, dict):
        raise SchemaError(f"{path}: expected {kind}, got {type(data).__name__}")
    if issubclass(cls, Union):
        return _read_union(cls, data, path, depth)
    return _read_record(cls, data, path, depth)


def _scalar(kind: str, data: object, path: str) -> object:
    wanted = _SCALARS[kind]
    if kind == "float":
        if data in ("Infinity", "-Infinity", "NaN"):
            return float(data)
        if isinstance(data, (int, float)) and not isinstance(data, bool):
            return float(data)
    elif kind == "int":
        if type(data) is int and -(1 << 63) <= data < 1 << 64:
            return data
    elif isinstance(data, wanted):
        return data
    raise SchemaError(f"{path}: expected {kind}, got {data!r:.60}")


def _read_union(cls: type, data: dict, path: str, depth: int) -> object:
    given = {k: v for k, v in data.items() if v is not None}
    if len(given) != 1:
        raise SchemaError(f"{path}: expected one kind of {cls.__name__}, got {sorted(data)}")
    ((name, value),) = given.items()
    if name not in cls._fields:
        raise SchemaError(f"{path}: {cls.__name__} has no kind {name!r}")
    return cls(name, _read(cls._fields[name].kind, value, f"{path}.{name}", depth + 1))


def _read_record(cls: type, data: dict, path: str, depth: int) -> object:
    found = {}
    for name, field in cls._fields.items():
        if name not in data:
            if field.optional:
                continue
            raise SchemaError(f"{path}: {cls.__name__} without {name}")
        value = data[name]
        if value is None and field.nullable:
            found[name] = None
        else:
            found[name] = _read(field.kind, value, f"{path}.{name}", depth + 1)
    return cls(**found)


# ---- writing


def to_json(value: object) -> object:
    """What json.dumps takes."""
    if isinstance(value, Union):
        return {value.type: to_json(value.value)}
    if dataclasses.is_dataclass(value):
        return {name: to_json(getattr(value, name)) for name in type(value)._fields}
    if isinstance(value, IntEnum):
        return int(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    return value
