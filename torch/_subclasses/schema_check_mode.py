"""SchemaCheckMode: a dispatch mode that holds every operator to its schema.

Inside the mode each call is compared with what its schema promises: an argument without `!` must
keep its value, results may share memory only where letters say so, and operators of other packages
never return an argument itself. What really happened is kept in `ops`, `mutated` and `aliasing`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch._schema_info import (
    _parts,
    _same_storage,
    _SchemaArgType,
    _SchemaArgument,
    _SchemaInfo,
    _tensors,
)
from torch.utils._python_dispatch import TorchDispatchMode, _bind

__all__ = ["SchemaCheckMode"]


def _held(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The tensors that hold a tensor's memory: itself, or those inside a wrapper subclass."""
    if type(tensor) in (torch.Tensor, torch.nn.Parameter):
        return [tensor]
    if hasattr(tensor, "__tensor_flatten__"):
        inner = [getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]]
    else:
        slots = [name for base in type(tensor).__mro__ for name in _slots(base)]
        values = [getattr(tensor, name, None) for name in slots]
        inner = [v for v in (*values, *vars(tensor).values()) if isinstance(v, torch.Tensor)]
    return [held for part in inner for held in _held(part)] or [tensor]


def _slots(base: type) -> Sequence[str]:
    names = vars(base).get("__slots__", ())
    return (names,) if isinstance(names, str) else tuple(names)


def _memory(value: object) -> Iterator[torch.Tensor]:
    for tensor in _tensors(value):
        for held in _held(tensor):
            yield from _parts(held)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of the elements as bytes, in which NaN equals itself."""
    plain = tensor.detach().resolve_conj().resolve_neg()
    plain = plain.clone(memory_format=torch.contiguous_format)
    return plain.reshape(-1).view(torch.uint8)


class _Snapshot:
    """A value of an argument before the call, to be compared with the value after it."""

    def __init__(self, value: object) -> None:
        self._value = value
        self._before = [self._state(part) for part in _memory(value)]

    @staticmethod
    def _state(part: torch.Tensor) -> tuple[tuple[object, ...], torch.Tensor | None]:
        geometry = tuple(part.shape), part.stride(), part.storage_offset(), part.dtype
        return geometry, None if part.is_meta else _bits(part)

    def changed(self) -> bool:
        """Whether an element, a size or a stride is another one now."""
        after = [self._state(part) for part in _memory(self._value)]
        if [geometry for geometry, _ in after] != [geometry for geometry, _ in self._before]:
            return True
        pairs = zip((bits for _, bits in self._before), (bits for _, bits in after), strict=True)
        return any(old is not None and not torch.equal(old, new) for old, new in pairs)


def _share(first: object, second: object) -> bool:
    theirs = list(_memory(second))
    return any(
        _same_storage(mine, other) for mine in _memory(first) for other in theirs if mine.numel()
    )


def _is_unsafe(operator: str) -> bool:
    """Whether an operator returns views that its schema keeps silent about on purpose: the caller
    vouches that nobody else writes to the memory."""
    return operator.split("::")[-1].lstrip("_").startswith("unsafe_")


def _shown(name: str) -> str:
    """An argument's name as a caller of torch.* knows it."""
    return "input" if name == "self" else name


class SchemaCheckMode(TorchDispatchMode):
    """Raises RuntimeError at an operator that does what its schema does not allow.

    After the with statement `ops` has the operators in order, `mutated` the pairs (operator,
    argument) that were written to and `aliasing` the triples (operator, argument, output_i) that
    share memory."""

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[str] = []
        self.mutated: list[tuple[str, str]] = []
        self.aliasing: list[tuple[str, str, str]] = []

    def reset_cache(self) -> None:
        """Forgets what was recorded."""
        self.ops.clear()
        self.mutated.clear()
        self.aliasing.clear()

    def display_ops(self) -> None:
        """Prints the operators seen, separated by commas."""
        print(*self.ops, sep=",")

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        schema = func._schema
        values = _bind(schema, args, kwargs)
        info = _SchemaInfo(schema)
        info.add_argument_values(values)
        before = {name: _Snapshot(value) for name, value in values.items()}
        result = func(*args, **kwargs)
        outputs = _outputs(schema, result)
        self.ops.append(schema.name)
        for i, argument in enumerate(schema.arguments):
            if argument.name in values:
                place = _SchemaArgument(_SchemaArgType.input, i)
                self._check_argument(info, place, argument.name, before[argument.name], outputs)
                self._check_returned(schema, argument, values[argument.name], outputs)
        self._check_outputs(info, outputs)
        return result

    def _check_argument(
        self,
        info: _SchemaInfo,
        place: _SchemaArgument,
        name: str,
        before: _Snapshot,
        outputs: Sequence[object],
    ) -> None:
        operator = info._schema.name
        for i, output in enumerate(outputs):
            if not _share(before._value, output) or _is_unsafe(operator):
                continue
            if not info.may_alias(place, _SchemaArgument(_SchemaArgType.output, i)):
                raise RuntimeError(
                    f"Argument {_shown(name)} is not defined to alias output but was aliasing"
                    f" (operator {operator}, output {i})"
                )
            self.aliasing.append((operator, _shown(name), f"output_{i}"))
        if before.changed():
            if not info.is_mutable(place):
                raise RuntimeError(
                    f"Argument {_shown(name)} is not defined as mutable but was mutated"
                    f" (operator {operator})"
                )
            self.mutated.append((operator, _shown(name)))

    @staticmethod
    def _check_returned(
        schema: torch._C.FunctionSchema,
        argument: torch._C.Argument,
        value: object,
        outputs: Sequence[object],
    ) -> None:
        """Operators of this package may return an argument; autograd of others' does not expect
        it unless the argument is written to."""
        if schema.name.startswith(("aten::", "prim::", "prims::")) or argument.is_write:
            return
        if any(tensor is output for tensor in _tensors(value) for output in outputs):
            raise RuntimeError(
                f"Custom operators such as {schema.name} are not allowed to directly return inputs,"
                f" but it returned its argument {_shown(argument.name)}; return a view of it,"
                " for example input.view_as(input)"
            )

    @staticmethod
    def _check_outputs(info: _SchemaInfo, outputs: Sequence[object]) -> None:
        for i, first in enumerate(outputs):
            for j in range(i + 1, len(outputs)):
                places = (_SchemaArgument(_SchemaArgType.output, k) for k in (i, j))
                if _share(first, outputs[j]) and not _outputs_may_alias(info, *places):
                    raise RuntimeError(f"Outputs {i} and {j} alias unexpectedly")


def _outputs(schema: torch._C.FunctionSchema, result: object) -> list[object]:
    """One value for each return of the schema."""
    if len(schema.returns) == 1:
        return [result]
    return list(result) if isinstance(result, (tuple, list)) else []


def _outputs_may_alias(info: _SchemaInfo, first: _SchemaArgument, second: _SchemaArgument) -> bool:
    """Whether two results may share memory: by their letters, or both through arguments that the
    caller passed the same memory for."""
    if info.may_alias(first, second):
        return True
    inputs = [_SchemaArgument(_SchemaArgType.input, i) for i in range(len(info._schema.arguments))]
    return any(info.may_alias(x, first) and info.may_alias(x, second) for x in inputs)
