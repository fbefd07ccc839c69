"""The table of decompositions that users change. It is filled when somebody looks at all of it:
until then it knows what was taken out and what was put in."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView

import torch
from torch._ops import OperatorBase, OpOverload

__all__ = ["CustomDecompTable"]


def _is_composite(op: object) -> bool:
    """Whether an operator has a kernel that is written with other operators."""
    return (
        isinstance(op, OpOverload)
        and op._can_decompose()
        and torch.Tag.core not in op.tags
        and not op._schema.is_mutable
    )


def _linear(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """linear, whose kernel is one of its own, by the operators of matrices."""
    turned = weight.permute([1, 0]) if weight.dim() == 2 else weight
    if bias is not None and input.dim() == 2 and weight.dim() == 2:
        return torch.addmm(bias, input, turned)
    if bias is not None and input.dim() > 2 and weight.dim() == 2:
        flat = input.reshape(-1, input.shape[-1])
        rows = torch.addmm(bias, flat, turned)
        return rows.view(*input.shape[:-1], rows.shape[-1])
    product = torch.matmul(input, turned)
    return product if bias is None else product + bias


def _sum(input: torch.Tensor, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    """The sum over all dimensions as one over a list of none."""
    return torch.ops.aten.sum.dim_IntList(input, [], dtype=dtype)


class CustomDecompTable(dict[OperatorBase, Callable]):
    """{operator: function that it is traced as}"""

    def __init__(self) -> None:
        from torch._decomp import core_aten_decompositions

        super().__init__()
        self.decomp_table = dict(core_aten_decompositions())
        self.decomp_table[torch.ops.aten.linear.default] = _linear
        self.decomp_table[torch.ops.aten.sum.default] = _sum
        self.deleted_custom_ops: set[OperatorBase] = set()
        self.has_materialized = False

    def _composite(self, op: object) -> Callable | None:
        if self.has_materialized or op in self.deleted_custom_ops or not _is_composite(op):
            return None
        return op.decompose

    def __getitem__(self, key: OperatorBase) -> Callable:
        if key in self.decomp_table:
            return self.decomp_table[key]
        found = self._composite(key)
        if found is None:
            raise KeyError(key)
        return found

    def get(self, key: OperatorBase, default: object = None) -> object:
        """The function, or default."""
        try:
            return self[key]
        except KeyError:
            return default

    def __setitem__(self, key: OperatorBase, value: Callable) -> None:
        self.decomp_table[key] = value
        self.deleted_custom_ops.discard(key)

    def __delitem__(self, key: OperatorBase) -> None:
        self.pop(key)

    def pop(self, *args: object) -> object:
        """Takes an operator out."""
        key, *default = args
        found = self.get(key)
        if found is None:
            if default:
                return default[0]
            raise KeyError(f"{key} doesn't exist in the table")
        self.decomp_table.pop(key, None)
        self.deleted_custom_ops.add(key)
        return found

    def update(self, other_dict: dict[OperatorBase, Callable]) -> None:
        """Puts in what another table has."""
        for key, value in other_dict.items():
            self[key] = value

    def __contains__(self, key: object) -> bool:
        return key in self.decomp_table or self._composite(key) is not None

    def __len__(self) -> int:
        return len(self.materialize())

    def __iter__(self) -> Iterator[OperatorBase]:
        return iter(self.materialize())

    def __reversed__(self) -> Iterator[OperatorBase]:
        return reversed(self.materialize())

    def __bool__(self) -> bool:
        return True

    def keys(self) -> KeysView[OperatorBase]:
        """All operators."""
        return self.materialize().keys()

    def items(self) -> ItemsView[OperatorBase, Callable]:
        """All operators with their functions."""
        return self.materialize().items()

    def values(self) -> object:
        """All functions."""
        return self.materialize().values()

    def copy(self) -> CustomDecompTable:
        """A table of its own."""
        made = CustomDecompTable()
        made.decomp_table = dict(self.decomp_table)
        made.deleted_custom_ops = set(self.deleted_custom_ops)
        made.has_materialized = self.has_materialized
        return made

    def materialize(self) -> dict[OperatorBase, Callable]:
        """The whole table, with the composite operators that are known now."""
        if not self.has_materialized:
            for op in _known_operators():
                if op not in self.deleted_custom_ops and _is_composite(op):
                    self.decomp_table.setdefault(op, op.decompose)
            self.has_materialized = True
        return self.decomp_table


def _known_operators() -> Iterator[OpOverload]:
    for full in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = full.partition("::")
        name, _, overload = rest.partition(".")
        try:
            packet = getattr(getattr(torch.ops, namespace), name)
            yield getattr(packet, overload or "default")
        except (AttributeError, RuntimeError):
            continue


def composite_table() -> dict[OperatorBase, Callable]:
    """A table that takes every composite operator apart, and leaves all others."""
    table = {op: op.decompose for op in _known_operators() if _is_composite(op)}
    table[torch.ops.aten.linear.default] = _linear
    return table
