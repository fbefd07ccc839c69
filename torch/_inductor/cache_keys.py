"""Values as bytes that are equal where a compilation would be the same, for programs that make keys
of their own."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch
from torch import fx
from torch._inductor import graph_cache
from torch._inductor.graph_codec import (
    Json,
    describe_graph,
    describe_input,
    encode_constant,
    encode_value,
    packed,
)

__all__ = ["FxGraphCachePickler", "FxGraphHashDetails", "TensorMetadata", "TensorMetadataAndValues"]

# Constants with at most this many elements are part of generated code.
_INLINED = 8


@dataclasses.dataclass(frozen=True)
class TensorMetadata:
    """What of a tensor decides which code is generated for it."""

    described: str

    @classmethod
    def of(cls, value: torch.Tensor) -> TensorMetadata:
        """Of a tensor, with or without data."""
        return cls(packed(describe_input(value)).decode())


@dataclasses.dataclass(frozen=True)
class TensorMetadataAndValues:
    """The same with the values, for constants."""

    tensor_metadata: TensorMetadata
    values: str


class FxGraphHashDetails:
    """Everything that the compilation of a graph depends on, as it is when the object is made."""

    def __init__(
        self,
        gm: fx.GraphModule | None,
        example_inputs: Sequence[object],
        fx_kwargs: dict[str, object],
        inputs_to_check: Sequence[int],
    ) -> None:
        self.graph = None if gm is None else describe_graph(gm)
        self.example_inputs = list(example_inputs)
        self.fx_kwargs = dict(fx_kwargs)
        self.inputs_to_check = list(inputs_to_check)
        self.environment = graph_cache.environment()


class FxGraphCachePickler:
    """Writes values as bytes. The bytes are compared and hashed, never read back. Values of large
    constants count only with `include_non_inlined`."""

    def __init__(self, gm: fx.GraphModule, include_non_inlined: bool = True) -> None:
        self.gm = gm
        self.include_non_inlined = include_non_inlined

    def dumps(self, value: object) -> bytes:
        """The bytes of a value. Raises BypassFxGraphCache for what has none."""
        return packed(self._data(value))

    def reduced(self, value: torch.Tensor) -> TensorMetadata | TensorMetadataAndValues:
        """What counts of a tensor."""
        known = TensorMetadata.of(value)
        small = value.numel() <= _INLINED
        if torch._C._is_fake(value) or not (self.include_non_inlined or small):
            return known
        return TensorMetadataAndValues(known, packed(encode_constant(value)).decode())

    def _data(self, value: object) -> Json:
        if isinstance(value, torch.Tensor):
            return {type(value).__name__: dataclasses.asdict(self.reduced(value))}
        if isinstance(value, FxGraphHashDetails):
            return {"details": self._data(vars(value))}
        if isinstance(value, fx.GraphModule):
            return {"graph": describe_graph(value)}
        if isinstance(value, (set, frozenset)):
            return {"set": sorted(self.dumps(item).decode() for item in value)}
        if isinstance(value, dict):
            rows = [[self.dumps(k).decode(), self._data(v)] for k, v in value.items()]
            return {"dict": sorted(rows, key=lambda row: row[0])}
        if isinstance(value, (list, tuple)):
            return {type(value).__name__: [self._data(item) for item in value]}
        return encode_value(value, {}, key=True)
