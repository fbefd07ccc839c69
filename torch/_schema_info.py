"""What a schema, together with the values of a call, says about writes and shared memory.

A schema's alias letters are a promise for any call: `add_(Tensor(a!) self, Tensor other)` writes to
its first argument alone. A particular call may promise less, since the caller can pass the same
tensor twice; SchemaInfo joins the two. The names are those of torch._C."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping

import torch

# Statistics that an operator updates in training; their schemas cannot say so, because they do
# not in evaluation.
_STATISTICS = ("running_mean", "running_var")
_TRAINING = ("training", "train", "use_input_stats")


class _SchemaArgType(enum.Enum):
    """Which list of a schema an entry stands in."""

    input = 0
    output = 1


class _SchemaArgument:
    """An entry of a schema: the list and the position."""

    def __init__(self, type: _SchemaArgType, index: int) -> None:
        self.type = type
        self.index = index

    def __repr__(self) -> str:
        return f"_SchemaArgument({self.type.name}, {self.index})"


def _tensors(value: object) -> Iterator[torch.Tensor]:
    """The tensors in a value: itself, or those of a list, tuple or dict."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The strided tensors whose memory a tensor occupies."""
    if tensor.layout == torch.strided:
        return [tensor]
    if tensor.layout == torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    return []


def _same_storage(first: torch.Tensor, second: torch.Tensor) -> bool:
    if first is second:
        return True
    mine = [part.untyped_storage()._cdata for part in _parts(first)]
    return any(part.untyped_storage()._cdata in mine for part in _parts(second))


def _is_alias_of(first: object, second: object) -> bool:
    """Whether two tensors, or collections of the same kind, share memory entry by entry."""
    if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
        return _same_storage(first, second)
    return isinstance(first, (list, tuple)) and len(first) > 0 and first is second


def _overlaps(first: object, second: object) -> bool:
    """Whether any tensor of the first value shares memory with any of the second."""
    others = list(_tensors(second))
    return any(_same_storage(mine, other) for mine in _tensors(first) for other in others)


class _SchemaInfo:
    """Writes and aliases of an operator, narrowed by the values of a call."""

    def __init__(self, schema: torch._C.FunctionSchema | str) -> None:
        self._schema = torch._C.parse_schema(schema) if isinstance(schema, str) else schema
        self._names = [argument.name for argument in self._schema.arguments]
        self._values: dict[str, object] = {}

    # ---- the values of a call
    def add_argument_value(self, name: str, value: object) -> None:
        """Notes the value of an argument; `input` names the argument `self` as well."""
        if name == "input" and name not in self._names and "self" in self._names:
            name = "self"
        if name not in self._names:
            raise RuntimeError(f"Schema has no argument named {name}")
        self._values[name] = value

    def add_argument_values(self, values: Mapping[str, object]) -> None:
        """Notes the values of several arguments."""
        for name, value in values.items():
            self.add_argument_value(name, value)

    # ---- questions
    def _entry(self, argument: _SchemaArgument) -> torch._C.Argument:
        schema = self._schema
        inputs = argument.type is _SchemaArgType.input
        entries = schema.arguments if inputs else schema.returns
        if not 0 <= argument.index < len(entries):
            raise RuntimeError(f"Invalid index {argument.index} for schema {schema}")
        return entries[argument.index]

    def _position(self, which: _SchemaArgument | int | str) -> _SchemaArgument:
        if isinstance(which, str):
            name = "self" if which == "input" and which not in self._names else which
            which = self._names.index(name)
        if isinstance(which, int):
            which = _SchemaArgument(_SchemaArgType.input, which)
        return which

    def has_argument(self, name: str) -> bool:
        """Whether the schema has an argument of this name."""
        return name in self._names

    def is_mutable(self, which: _SchemaArgument | int | str | None = None) -> bool:
        """Whether the call may write to an argument, or to any of them."""
        if which is None:
            return any(self.is_mutable(i) for i in range(len(self._names)))
        place = self._position(which)
        if place.type is _SchemaArgType.output:
            info = self._entry(place).alias_info
            return info is not None and info.is_write
        own = self._values.get(self._names[place.index])
        return self._writes(place.index) or any(
            self._writes(i) and _overlaps(own, self._values.get(name))
            for i, name in enumerate(self._names)
        )

    def _writes(self, index: int) -> bool:
        """Whether the argument itself is written to, whoever shares its memory."""
        argument = self._schema.arguments[index]
        if argument.alias_info is not None and argument.alias_info.is_write:
            return True
        return argument.name in _STATISTICS and any(
            self._values.get(flag) is True for flag in _TRAINING
        )

    def may_alias(self, lhs: _SchemaArgument, rhs: _SchemaArgument) -> bool:
        """Whether two entries may share memory in this call."""
        return any(
            _share_letter(self._entry(mine), self._entry(other))
            for mine in self._sharing(lhs)
            for other in self._sharing(rhs)
        ) or self._overlap_as_inputs(lhs, rhs)

    def may_contain_alias(self, lhs: _SchemaArgument, rhs: _SchemaArgument) -> bool:
        """The same, counting what lists hold."""
        return self.may_alias(lhs, rhs)

    def is_nondeterministic(self) -> bool:
        """Whether two calls with the same arguments may differ."""
        namespace, _, name = self._schema.name.partition("::")
        overload = self._schema.overload_name or "default"
        packet = getattr(getattr(torch.ops, namespace), name)
        if self._values.get("train") is False:
            return False
        return torch.Tag.nondeterministic_seeded in getattr(packet, overload).tags

    def _sharing(self, which: _SchemaArgument) -> Iterable[_SchemaArgument]:
        """The entry and, for an input, the other inputs whose memory it was passed."""
        yield which
        if which.type is _SchemaArgType.input:
            own = self._values.get(self._names[which.index])
            for i, name in enumerate(self._names):
                if i != which.index and _overlaps(own, self._values.get(name)):
                    yield _SchemaArgument(_SchemaArgType.input, i)

    def _overlap_as_inputs(self, lhs: _SchemaArgument, rhs: _SchemaArgument) -> bool:
        if lhs.type is not _SchemaArgType.input or rhs.type is not _SchemaArgType.input:
            return False
        first, second = (self._values.get(self._names[x.index]) for x in (lhs, rhs))
        return _overlaps(first, second)


def _share_letter(first: torch._C.Argument, second: torch._C.Argument) -> bool:
    """Whether the alias sets of two entries meet; `*` meets every set."""
    one, two = first.alias_info, second.alias_info
    if one is None or two is None:
        return False
    letters, others = one.before_set | one.after_set, two.before_set | two.after_set
    return bool(letters & others) or "*" in letters or "*" in others
