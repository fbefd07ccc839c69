"""Exported programs to bytes and back: the JSON of a program beside its state, constants and
example inputs as torch.save writes them. `.pt2` archives hold the same JSON
(torch.export.pt2_archive)."""

from __future__ import annotations

import dataclasses
import io
import json

import torch
from torch._export.serde import _records, schema
from torch._export.serde._read import ProgramReader
from torch._export.serde._write import SerializeError, program_record
from torch._export.serde.schema import SCHEMA_VERSION
from torch.export.exported_program import ExportedProgram

__all__ = [
    "ExportedProgramDeserializer",
    "ExportedProgramSerializer",
    "ExtensionHandler",
    "SerializeError",
    "SerializedArtifact",
    "canonicalize",
    "deserialize",
    "register_extension",
    "serialize",
]

OPSET = {"aten": 10}

torch._C._export = _records  # records of programs, by the name that PyTorch's programs know


class ExtensionHandler:
    """How calls of a class of targets that torch does not know are written and read."""

    @classmethod
    def namespace(cls) -> str:
        """A name for the family of targets."""
        raise NotImplementedError(f"{cls.__class__} namespace() must be implemented")

    @classmethod
    def to_op_name(cls, op: object) -> str:
        """The name of a target."""
        raise NotImplementedError(f"{cls.__class__} op_name() must be implemented")

    @classmethod
    def from_op_name(cls, name: str) -> object:
        """The target of a name."""
        raise NotImplementedError(f"{cls.__class__} op_name() must be implemented")

    @classmethod
    def op_schema(cls, op: object) -> torch._C.FunctionSchema:
        """The schema of a target."""
        raise NotImplementedError(f"{cls.__class__} op_schema() must be implemented")


_EXTENSIONS: dict[type, type[ExtensionHandler]] = {}


def register_extension(op_type: type, extension_handler: type[ExtensionHandler]) -> None:
    """Targets of a class are handled by an extension."""
    if not issubclass(extension_handler, ExtensionHandler):
        raise AssertionError(f"expected an ExtensionHandler, got {extension_handler}")
    namespace = extension_handler.namespace()
    if not namespace.isidentifier() or namespace in ("torch", "aten", "higher_order"):
        raise AssertionError(f"{namespace!r} cannot be the namespace of an extension")
    _EXTENSIONS[op_type] = extension_handler


@dataclasses.dataclass
class SerializedArtifact:
    """A program as bytes."""

    exported_program: bytes
    state_dict: bytes
    constants: bytes
    example_inputs: bytes


@dataclasses.dataclass
class _SerializedProgram:
    exported_program: object
    state_dict: bytes
    constants: bytes
    example_inputs: bytes


def _saved(value: object) -> bytes:
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.utils import _pytree as pytree

    if any(isinstance(leaf, FakeTensor) for leaf in pytree.tree_leaves(value)):
        value = pytree.tree_map_only(
            FakeTensor,
            lambda t: torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta"),
            value,
        )
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def load_values(data: bytes) -> object:
    """What torch.save wrote: tensors, plain values, and objects of C++ classes, which are made by
    the __setstate__ that their libraries registered."""
    with torch.serialization.safe_globals([torch._C._script_object_from_state]):
        return torch.load(io.BytesIO(data), weights_only=True)


def _loaded(data: object) -> object:
    if not isinstance(data, bytes):
        return data
    return load_values(data) if data else None


class ExportedProgramSerializer:
    """Programs to records."""

    def __init__(
        self, opset_version: dict[str, int] | None = None, pickle_protocol: int = 2
    ) -> None:
        self.opset_version = {**OPSET, **(opset_version or {})}

    def serialize(self, exported_program: ExportedProgram) -> _SerializedProgram:
        """The records, and bytes for the tensors."""
        exported_program.validate()
        record = program_record(exported_program, self.opset_version, _EXTENSIONS)
        return _SerializedProgram(
            record,
            _saved(dict(exported_program.state_dict)),
            _saved(dict(exported_program.constants)),
            _saved(exported_program.example_inputs),
        )


class ExportedProgramDeserializer:
    """Records to programs."""

    def __init__(self, expected_opset_version: dict[str, int] | None = None) -> None:
        self.expected_opset_version = {**OPSET, **(expected_opset_version or {})}

    def deserialize(
        self,
        exported_program: object,
        state_dict: dict | bytes,
        constants: dict | bytes,
        example_inputs: tuple | bytes | None = None,
        *,
        _unsafe_skip_version_check: bool = False,
    ) -> ExportedProgram:
        """The program of records."""
        version = exported_program.schema_version
        if version.major != SCHEMA_VERSION[0]:
            raise SerializeError(
                f"Serialized schema version {version} does not match our current schema version "
                f"{SCHEMA_VERSION}."
            )
        reader = ProgramReader(exported_program, _EXTENSIONS)
        state, held = _loaded(state_dict) or {}, _loaded(constants) or {}
        return reader.run(state, held, _loaded(example_inputs))


def to_bytes(record: object) -> bytes:
    """A record as JSON."""
    return json.dumps(schema.to_json(record), allow_nan=False).encode()


def from_bytes(name: str, data: bytes) -> object:
    """The record of a name from JSON. Raises SerializeError."""
    try:
        held = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SerializeError(f"not JSON: {error}") from error
    try:
        return schema.from_json(name, held)
    except schema.SchemaError as error:
        raise SerializeError(f"the program is damaged: {error}") from error


def serialize(
    exported_program: ExportedProgram,
    opset_version: dict[str, int] | None = None,
    pickle_protocol: int = 2,
) -> SerializedArtifact:
    """A program as bytes."""
    made = ExportedProgramSerializer(opset_version).serialize(exported_program)
    return SerializedArtifact(
        to_bytes(made.exported_program), made.state_dict, made.constants, made.example_inputs
    )


def deserialize(
    artifact: SerializedArtifact,
    expected_opset_version: dict[str, int] | None = None,
    *,
    _unsafe_skip_version_check: bool = False,
) -> ExportedProgram:
    """The program of bytes."""
    record = from_bytes("ExportedProgram", artifact.exported_program)
    try:
        return ExportedProgramDeserializer(expected_opset_version).deserialize(
            record, artifact.state_dict, artifact.constants, artifact.example_inputs
        )
    except schema.SchemaError as error:
        raise SerializeError(f"the program is damaged: {error}") from error


def canonicalize(record: object) -> object:
    """The records with nodes in an order that depends on what they compute alone: a node stands as
    early as its inputs allow, those that could change places by target and inputs."""
    made = from_bytes("ExportedProgram", to_bytes(record))
    graph = made.graph_module.graph
    waiting = list(graph.nodes)
    known = {json.dumps(schema.to_json(arg)) for arg in graph.inputs}
    effects = [n for n in waiting if not n.outputs]
    if effects:
        return made  # the order of effects is part of the program
    ordered: list[object] = []
    while waiting:
        ready = [n for n in waiting if _arguments(n) <= known]
        if not ready:
            return made
        first = min(ready, key=lambda n: (json.dumps(schema.to_json(n.inputs)), n.target))
        ordered.append(first)
        waiting.remove(first)
        for output in first.outputs:
            known |= _names(output)
    graph.nodes = ordered
    return made


def _names(arg: object) -> set[str]:
    """The values that an argument names, each as its JSON."""
    if arg.type in ("as_tensor", "as_sym_int", "as_sym_float", "as_sym_bool"):
        return {json.dumps(schema.to_json(arg))}
    if arg.type in ("as_tensors", "as_sym_ints"):
        one = arg.type.removesuffix("s")
        return {json.dumps(schema.to_json(schema.Argument(one, part))) for part in arg.value}
    return set()


def _arguments(node: object) -> set[str]:
    found: set[str] = set()
    for given in node.inputs:
        found |= {n for n in _names(given.arg) if "as_int" not in n}
    return found
