"""What a backend's own methods refuse, before they begin: lists of tensors whose number, types or
sizes cannot be right, and roots that are none. The functions of torch.distributed make their lists
themselves and do not come here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._distributed import options as _o
from torch._distributed.work import Work

Tensor = torch.Tensor


def listed(tensors: Tensor | Sequence[Tensor]) -> list[Tensor]:
    """One tensor, or several, as a list."""
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def is_reduction(value: object) -> bool:
    """Whether a value says how to reduce."""
    return isinstance(value, _o.ReduceOp)


def _fail(where: str, text: str) -> None:
    raise RuntimeError(f"{where}: {text}")


def _check_root(where: str, root: Any, size: int, tensor: int = 0, count: int = 1) -> None:
    rank = root if isinstance(root, int) else root.rootRank
    if not 0 <= rank < size:
        _fail(where, f"invalid root rank: {rank}")
    if not 0 <= tensor < count:
        _fail(where, f"invalid root tensor: {tensor}")


def _check_like(where: str, first: Tensor, tensors: Sequence[Tensor], sizes: bool = True) -> None:
    for i, tensor in enumerate(tensors):
        if tensor.layout != first.layout:
            _fail(where, f"invalid tensor layout at index {i}")
        if tensor.dtype != first.dtype or tensor.device.type != first.device.type:
            text = f"expected {first.dtype} on {first.device}, got {tensor.dtype} on "
            _fail(where, f"invalid tensor type at index {i} ({text}{tensor.device})")
        if sizes and tensor.shape != first.shape:
            text = f"expected {tuple(first.shape)}, got {tuple(tensor.shape)}"
            _fail(where, f"invalid tensor size at index {i} ({text})")


def _check_one_list(where: str, lists: Any, own: Tensor, size: int, what: str) -> None:
    """At the root: one list with a tensor for each rank."""
    lists = list(lists)
    if lists and isinstance(lists[0], Tensor):
        lists = [lists]
    if len(lists) != 1:
        _fail(where, f"requires a single-element {what} list containing a list with {size} tensors")
    if len(lists[0]) != size:
        name = what.capitalize()
        text = f"{name} list size should be {size}, same as size of the process group."
        _fail(where, f"Incorrect {what} list size {len(lists[0])}. {text}")
    _check_like(where, own, lists[0])


class ListChecks:
    """The operations of a backend, with their lists checked: comes before it among the bases."""

    def broadcast(self, tensors: Any, opts: Any = None, *args: Any, **kwargs: Any) -> Work:
        """Sends the tensors of rank `root` to all."""
        given = listed(tensors)
        if isinstance(opts, _o.BroadcastOptions):
            _check_root("broadcast", opts, self.size(), opts.rootTensor, len(given))
        if given:
            _check_like("broadcast", given[0], given)
        return super().broadcast(given, opts, *args, **kwargs)

    def allreduce(self, tensors: Any, opts: Any = None, *args: Any, **kwargs: Any) -> Work:
        """Reduces the tensors over all ranks, in place; several also among themselves."""
        given = listed(tensors)
        if not given:
            _fail("allreduce", "requires non-empty tensor list")
        _check_like("allreduce", given[0], given)
        if given[0].layout != torch.strided:
            op = opts if is_reduction(opts) else getattr(opts, "reduceOp", _o.RedOpType.SUM)
            if _o.kind_and_factor(op)[0] != _o.RedOpType.SUM:
                _fail("allreduce", "unsupported reduction operation of sparse tensors")
        return super().allreduce(given, opts, *args, **kwargs)

    def allreduce_coalesced(self, tensors: Sequence[Tensor], opts: Any = None) -> Work:
        """Reduces several tensors over all ranks, in place, as one operation."""
        given = list(tensors)
        if not given:
            _fail("allreduce_coalesced", "requires non-empty tensor list")
        for i, tensor in enumerate(given):
            if tensor.layout != given[0].layout:
                _fail("allreduce_coalesced", f"invalid tensor layout at index {i}")
            if tensor.dtype != given[0].dtype:
                _fail("allreduce_coalesced", "tensors must all have the same type")
        if given[0].layout != torch.strided:
            _fail("allreduce_coalesced", f"unsupported layout: {given[0].layout}")
        return super().allreduce_coalesced(given, opts)

    def reduce(self, tensors: Any, opts: Any = None, *args: Any, **kwargs: Any) -> Work:
        """Reduces the tensors over all ranks; rank `root` gets the result."""
        given = listed(tensors)
        if isinstance(opts, _o.ReduceOptions):
            _check_root("reduce", opts, self.size(), opts.rootTensor, len(given))
        if len(given) != 1:
            _fail("reduce", "requires a single-element tensor list")
        return super().reduce(given, opts, *args, **kwargs)

    def allgather(self, outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Work:
        """Every rank gets every rank's tensor."""
        given, lists = listed(inputs), list(outputs)
        if not given:
            _fail("allgather", "requires non-empty input tensor list")
        if lists and isinstance(lists[0], Tensor):
            lists = [lists]
        if len(lists) != len(given):
            _fail("allgather", "requires input/output tensor lists to have the same length")
        count = len(given) * self.size()
        for i, one in enumerate(lists):
            if len(one) != count:
                text = f"expected length {count}, got {len(one)}"
                _fail("allgather", f"invalid output tensor list at index {i} ({text})")
        for one in (given, *lists):
            _check_like("allgather", given[0], one)
        return super().allgather(lists, given, *args, **kwargs)

    def allgather_coalesced(self, output_lists: Any, input_list: Any, opts: Any = None) -> Work:
        """Every rank gets every rank's list of tensors."""
        where, inputs, lists = "allgather_coalesced", list(input_list), list(output_lists)
        if len(lists) != self.size():
            _fail(where, "output lists should be equal to world size")
        for one in lists:
            if len(one) != len(inputs):
                _fail(where, f"invalid output size: (expected {len(inputs)}, got {len(one)})")
            for i, (out, given) in enumerate(zip(one, inputs, strict=True)):
                if out.shape != given.shape:
                    text = f"expected {tuple(given.shape)}, got {tuple(out.shape)}"
                    _fail(where, f"invalid size of output tensor at index {i} ({text})")
                if out.dtype != given.dtype:
                    text = f"expected {given.dtype}, got {out.dtype}"
                    _fail(where, f"invalid tensor type at index {i} ({text})")
        return super().allgather_coalesced(lists, inputs, opts)

    def gather(self, outputs: Any, inputs: Any, opts: Any = None, *args: Any, **kw: Any) -> Work:
        """Rank `root` gets every rank's tensor."""
        given = listed(inputs)
        root = self._checked_root("gather", opts, kw)
        if len(given) != 1:
            _fail("gather", "requires a single-element input tensor list")
        if root == self.rank():
            _check_one_list("gather", outputs, given[0], self.size(), "output")
        elif len(list(outputs)) > 0:
            _fail("gather", "requires empty output on non-root")
        return super().gather(outputs, given, opts, *args, **kw)

    def scatter(self, outputs: Any, inputs: Any, opts: Any = None, *args: Any, **kw: Any) -> Work:
        """Rank `root` sends one tensor to each rank."""
        given = listed(outputs)
        root = self._checked_root("scatter", opts, kw)
        if len(given) != 1:
            _fail("scatter", "requires a single-element output tensor list")
        if root == self.rank():
            _check_one_list("scatter", inputs, given[0], self.size(), "input")
        elif len(list(inputs)) > 0:
            _fail("scatter", "requires empty input on non-root")
        return super().scatter(given, inputs, opts, *args, **kw)

    def _checked_root(self, where: str, opts: Any, named: dict[str, Any]) -> int:
        root = opts if opts is not None else named.get("root")
        root = 0 if root is None else root if isinstance(root, int) else root.rootRank
        _check_root(where, root, self.size())
        return root
