"""torch._C._export: the JSON of a program as a checked record, and the record as JSON again, for
programs that keep one without making a graph of it."""

from __future__ import annotations

import json

from torch._export.serde import schema

__all__ = ["deserialize_exported_program", "serialize_exported_program"]


def deserialize_exported_program(serialized: str | bytes) -> object:
    """The record that JSON holds. Raises where it is no exported program."""
    try:
        data = json.loads(serialized)
    except (ValueError, RecursionError) as error:
        raise schema.SchemaError(f"this is no JSON of an exported program: {error}") from None
    return schema.from_json("ExportedProgram", data)


def serialize_exported_program(program: object) -> str:
    """The JSON of a record."""
    return json.dumps(schema.to_json(program), allow_nan=False)
