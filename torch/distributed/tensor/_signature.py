"""The algebra from which sharding rules are made.

An operator's signature names the dimensions of its tensors with letters, as einsum does:
`ik,kj->ij`. A dimension may be a product of letters, outermost first, as a flattened one is:
`(ab)c->a(bc)`; a dimension that is broadcast has none. From that alone it follows how the operator
can run on parts: cut every tensor along one letter. Tensors that have the letter as the first of a
dimension are cut there, tensors without it are whole, and an output without it becomes partial, if
the operator reduces the letter. Letters that only make sense as a whole (the dimension of a
softmax) are frozen.

Each mesh dimension chooses for itself, by what moving the arguments would cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import Any, NamedTuple

from torch.distributed.tensor._collective_utils import step_cost
from torch.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard, cut

Letter = int
Dims = tuple[tuple[Letter, ...], ...]


class Strategy(NamedTuple):
    """Placements along one mesh dimension that an operator can run with."""

    inputs: tuple[Placement, ...]
    outputs: tuple[Placement, ...]


@dataclass
class Signature:
    """The letters of an operator's tensors, for one call.

    inputs, outputs: the dimensions by position of the tensor among the call's tensors.
    reduces: how parts of a letter that an output lacks are joined, as a placement or as the name of
        a reduction; "nonempty:" before it says that every part must have elements, "even:" that all
        must have the same number.
    frozen: letters that cannot be cut.
    whole: pairs of an output and a letter it does not depend on: cutting leaves the output whole.
    added: inputs that are added to the result, and are parts of a sum where it is.
    linear: which inputs may be partial at the same time, and the reductions that commute.
    extra: further strategies, as placements of inputs and outputs.
    sizes: arguments that name the shape of an output, which on parts is the part's.
    local: runs the operator on parts in the place of a plain call."""

    inputs: dict[int, Dims]
    outputs: dict[int, Dims]
    sizes_of: dict[Letter, int]
    reduces: dict[Letter, str | Partial] = field(default_factory=dict)
    frozen: set[Letter] = field(default_factory=set)
    whole: set[tuple[int, Letter]] = field(default_factory=set)
    added: set[int] = field(default_factory=set)
    linear: list[tuple[frozenset[int], tuple[str, ...]]] = field(default_factory=list)
    extra: list[Strategy] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    local: Callable[..., Any] | None = None

    def strategies(self, parts: int, already: dict[Letter, int]) -> list[Strategy]:
        """All ways to run along a mesh dimension of `parts` ranks; `already` says into how many
        parts outer mesh dimensions have cut each letter."""
        whole = Replicate()
        found = [Strategy((whole,) * len(self.inputs), (whole,) * len(self.outputs))]
        for members, reductions in self.linear:
            for op in reductions:
                ins = tuple(Partial(op) if i in members else whole for i in self.inputs)
                found.append(Strategy(ins, (Partial(op),) * len(self.outputs)))
        found.extend(self.extra)
        for letter in self.sizes_of:
            made = self._cut_along(letter, parts * already.get(letter, 1))
            if made is not None:
                found.append(made)
        return found

    def _cut_along(self, letter: Letter, parts: int) -> Strategy | None:
        if letter in self.frozen:
            return None
        tensors = [*self.inputs.values(), *self.outputs.values()]
        places = []
        for dims in tensors:
            at = [i for i, dim in enumerate(dims) if letter in dim]
            if len(at) > 1 or any(dims[i][0] != letter for i in at):
                return None
            places.append(at[0] if at else None)
        alone = all(
            at is None or len(dims[at]) == 1 for dims, at in zip(tensors, places, strict=True)
        )
        if not alone and self.sizes_of[letter] % parts:
            return None
        outs: list[Placement] = []
        for output, at in zip(self.outputs, places[len(self.inputs) :], strict=True):
            if at is not None:
                outs.append(Shard(at))
                continue
            joined = Replicate() if (output, letter) in self.whole else self._joined(letter, parts)
            if joined is None:
                return None
            outs.append(joined)
        rest = Partial() if self.added and any(p.is_partial() for p in outs) else Replicate()
        ins = tuple(
            Shard(at) if at is not None else rest if name in self.added else Replicate()
            for name, at in zip(self.inputs, places, strict=False)
        )
        return Strategy(ins, tuple(outs))

    def _joined(self, letter: Letter, parts: int) -> Placement | None:
        how = self.reduces.get(letter)
        if how is None or isinstance(how, Partial):
            return how
        condition, _, op = how.rpartition(":")
        size = self.sizes_of[letter]
        if condition == "even" and size % parts:
            return None
        if condition and not cut(size, parts, parts - 1)[0]:
            return None
        return Partial(op)

    def letters_cut(self, strategy: Strategy) -> list[Letter]:
        """The letters that a strategy cuts."""
        found = []
        for dims, placement in zip(self.inputs.values(), strategy.inputs, strict=True):
            if isinstance(placement, Shard) and dims[placement.dim]:
                found.append(dims[placement.dim][0])
        for dims, placement in zip(self.outputs.values(), strategy.outputs, strict=True):
            if isinstance(placement, Shard) and dims[placement.dim]:
                found.append(dims[placement.dim][0])
        return list(dict.fromkeys(found))


def choose(
    signature: Signature,
    mesh_shape: Sequence[int],
    current: Sequence[Sequence[Placement]],
    bytes_of: Sequence[float],
    fixed: set[int],
) -> tuple[list[tuple[Placement, ...]], list[tuple[Placement, ...]]] | None:
    """The cheapest strategy for each mesh dimension: placements of inputs and of outputs. Inputs in
    `fixed` are written to and must stay as they are; None where that is not possible."""
    ins: list[list[Placement]] = [[] for _ in signature.inputs]
    outs: list[list[Placement]] = [[] for _ in signature.outputs]
    already: dict[Letter, int] = {}
    for mesh_dim, parts in enumerate(mesh_shape):
        best, least = None, float("inf")
        for strategy in signature.strategies(parts, already):
            cost = 0.0
            for i, new in enumerate(strategy.inputs):
                old = current[i][mesh_dim]
                if old == new or _same_cut(old, new):
                    continue
                cost += float("inf") if i in fixed else step_cost(old, new, bytes_of[i], parts)
            if cost < least:
                best, least = strategy, cost
        if best is None:
            return None
        for letter in signature.letters_cut(best):
            already[letter] = already.get(letter, 1) * parts
        for i, new in enumerate(best.inputs):
            old = current[i][mesh_dim]
            ins[i].append(old if _same_cut(old, new) else new)
        for o, new in enumerate(best.outputs):
            outs[o].append(_like_inputs(signature, best, o, new, current, mesh_dim))
    return [tuple(p) for p in ins], [tuple(p) for p in outs]


def _same_cut(old: Placement, new: Placement) -> bool:
    """Whether a strided cut serves as the plain one: where it does, all tensors have it alike."""
    return isinstance(old, Shard) and isinstance(new, Shard) and old.dim == new.dim


def _like_inputs(
    signature: Signature,
    strategy: Strategy,
    output: int,
    new: Placement,
    current: Sequence[Sequence[Placement]],
    mesh_dim: int,
) -> Placement:
    """An output's cut in the form that the inputs' has: strided cuts stay strided."""
    if not isinstance(new, Shard):
        return new
    dims = list(signature.outputs.values())[output]
    for i, (name, placed) in enumerate(zip(signature.inputs, strategy.inputs, strict=True)):
        old = current[i][mesh_dim]
        if (
            isinstance(placed, Shard)
            and type(old) is not Shard
            and isinstance(old, Shard)
            and signature.inputs[name][placed.dim] == dims[new.dim]
        ):
            return type(old)(new.dim, old.split_factor)
    return new


# ---- making signatures ---------------------------------------------------------------------------
class Letters:
    """Gives out letters, and remembers their sizes."""

    def __init__(self) -> None:
        self.sizes: dict[Letter, int] = {}

    def new(self, size: int) -> Letter:
        """A letter that no other dimension has."""
        letter = len(self.sizes)
        self.sizes[letter] = size
        return letter

    def dims(self, shape: Sequence[int]) -> Dims:
        """One new letter for each dimension."""
        return tuple((self.new(size),) for size in shape)


def broadcast_dims(letters: Letters, whole: Dims, shape: Sequence[int]) -> Dims:
    """The letters of a tensor of `shape` that is broadcast to a tensor with the letters `whole`."""
    tail = whole[len(whole) - len(shape) :]
    return tuple(
        dim if size != 1 or (dim and letters.sizes[dim[0]] == 1) else ()
        for dim, size in zip(tail, shape, strict=True)
    )


def reshaped(
    letters: Letters, old: Sequence[int], new: Sequence[int]
) -> tuple[Dims, Dims, set[Letter]]:
    """The letters of a tensor before and after its shape changes without its order: both shapes as
    products of common factors. Where they have none, the rest of both is one frozen block."""
    frozen: set[Letter] = set()
    before: list[list[Letter]] = [[] for _ in old]
    after: list[list[Letter]] = [[] for _ in new]
    if 0 in old or 0 in new:
        for dims, shape in ((before, old), (after, new)):
            for i, size in enumerate(shape):
                letter = letters.new(size)
                dims[i].append(letter)
                frozen.add(letter)
        return tuple(map(tuple, before)), tuple(map(tuple, after)), frozen
    left, right = list(old), list(new)
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] == 1 or right[j] == 1:
            if old[i] == new[j] == 1:
                # The one element may lie on the first rank alone, before and after.
                letter = letters.new(1)
                before[i].append(letter)
                after[j].append(letter)
            i, j = i + (left[i] == 1), j + (right[j] == 1)
            continue
        factor = gcd(left[i], right[j])
        letter = letters.new(factor)
        if factor == 1:
            # What is left has no common order: both sides stay whole up to the next common border.
            letters.sizes[letter] = left[i]
            frozen.add(letter)
            a, b = left[i], right[j]
            before[i].append(letter)
            after[j].append(letter)
            while a != b:
                if a < b:
                    i += 1
                    a *= left[i]
                    before[i].append(letter)
                else:
                    j += 1
                    b *= right[j]
                    after[j].append(letter)
            left[i] = right[j] = 1
            continue
        before[i].append(letter)
        after[j].append(letter)
        left[i] //= factor
        right[j] //= factor
    return tuple(map(tuple, before)), tuple(map(tuple, after)), frozen
