"""Where the components of a jagged nested tensor lie in its values, and the symbol that stands for
their differing lengths in sizes.

A structure is made once, by a constructor, and shared by every tensor computed from the first:
two tensors fit together exactly if they have the same structure, which is one identity check. What
operators derive from the offsets (row numbers, positions in a padded tensor) is computed on first
use and kept here, so that a model pays for it once per batch and not once per layer."""

from __future__ import annotations

import itertools
import weakref

import torch
from torch._symbolic import SymInt

_names = itertools.count(1)
_alive = weakref.WeakValueDictionary()  # (id of offsets, id of lengths) -> Structure


class _Number(int):
    """A plain number that meets a symbol from the left: 2 * j."""

    def __getattr__(self, operation):
        if operation == "mul":
            return lambda symbol: symbol.mul(int(self))
        return lambda symbol: symbol._refuse(operation)


class _Indeterminate(ValueError, RuntimeError):
    """A relation that holds for some of the lengths and not for others."""


class RaggedSize:
    """The node of the symbolic size `factor * j`, where j stands for the lengths of all components
    at once. It can be compared and multiplied; it has no value."""

    __slots__ = ("factor", "name")

    def __init__(self, name, factor=1) -> None:
        self.name = name
        self.factor = factor

    def __str__(self) -> str:
        return self.name if self.factor == 1 else f"{self.factor}*{self.name}"

    def __hash__(self) -> int:
        return hash((self.name, self.factor))

    def __eq__(self, other) -> bool:
        return isinstance(other, RaggedSize) and self._key() == other._key()

    def _key(self) -> tuple[str, int]:
        return self.name, self.factor

    def _refuse(self, what):
        raise NotImplementedError(
            f"{what} not supported by NestedIntSymNode: the size {self} of a nested tensor's "
            "ragged dimension stands for several lengths; it can be compared for equality and "
            "multiplied by an int"
        )

    def wrap(self, number) -> _Number:
        """A plain number as an operand."""
        return _Number(number) if isinstance(number, int) else self._refuse("float")

    def guard_int(self, file: str = "", line: int = 0) -> None:
        """Asked for by int() and by operators that need a number."""
        self._refuse("int")

    def mul(self, other) -> SymInt | None:
        """The size times an int."""
        if isinstance(other, int):
            return SymInt(RaggedSize(self.name, self.factor * other))
        self._refuse("mul")

    def is_symbolic(self) -> bool:
        """No: it is made of no symbols that have values."""
        return False

    def maybe_as_int(self) -> None:
        """It has no value."""
        return None

    def is_nested_int(self) -> bool:
        """Yes."""
        return True

    def eq(self, other) -> bool:
        """Whether both are the same symbol."""
        return self == other

    def ne(self, other) -> bool:
        """Whether the two differ; a symbol differs from every number."""
        return self != other

    def ge(self, other) -> bool:
        """Sure for the symbol itself and for bounds that every size fulfils."""
        if self == other or (isinstance(other, int) and other <= 2):
            return True
        raise _Indeterminate("ge: relation is indeterminate")

    def gt(self, other) -> bool:
        """As ge, one more."""
        return self.ge(other + 1 if isinstance(other, int) else other)

    def lt(self, other) -> bool:
        """The opposite of ge."""
        return not self.ge(other)

    def le(self, other) -> bool:
        """The opposite of gt."""
        return not self.gt(other)

    def __getattr__(self, operation):
        if operation.startswith("__"):
            raise AttributeError(operation)
        return lambda *others: self._refuse(operation)


def is_ragged_size(size) -> bool:
    """Whether a size is the symbol of a ragged dimension."""
    return isinstance(size, SymInt) and isinstance(size.node, RaggedSize)


class Structure:
    """Offsets of the components along the ragged dimension of the values; `lengths` where they do
    not fill the space between offsets."""

    __slots__ = ("__weakref__", "_bounds", "_kept", "_version", "lengths", "offsets", "symbol")

    def __init__(self, offsets, lengths=None) -> None:
        self.offsets = offsets
        self.lengths = lengths
        self.symbol = SymInt(RaggedSize(f"j{next(_names)}"))
        self._bounds = self._version = None
        self._kept = {}
        _alive[id(offsets), id(lengths)] = self

    @classmethod
    def of(cls, offsets, lengths=None) -> Structure:
        """The structure of these very tensors: the same one as long as it is in use."""
        key = id(offsets), id(lengths)
        found = _alive.get(key)
        if found is None:
            _check_index_tensor(offsets, "offsets")
            if lengths is not None:
                _check_index_tensor(lengths, "lengths")
                if lengths.numel() != offsets.numel() - 1:
                    raise RuntimeError(
                        f"lengths must have one item per component, got {lengths.numel()} for "
                        f"{offsets.numel()} offsets"
                    )
            found = cls(offsets, lengths)
        return found

    @classmethod
    def of_lengths(cls, lengths, device=None) -> Structure:
        """The structure of components that lie one after the other, from a list of lengths."""
        ends = [0, *itertools.accumulate(lengths)]
        made = cls(torch.tensor(ends, dtype=torch.int64, device=device))
        made._bounds = list(zip(ends, lengths, strict=False))
        made._version = made._state()
        return made

    def _state(self) -> tuple[int, int]:
        def version(tensor) -> int:
            return 0 if tensor is None or tensor.is_inference() else tensor._version

        return version(self.offsets), version(self.lengths)

    @property
    def batch(self) -> int:
        """The number of components."""
        return self.offsets.numel() - 1

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """(start, length) of every component, as numbers. Raises if they do not ascend."""
        if self._bounds is None or self._version != self._state():
            offsets = self.offsets.tolist()
            if self.lengths is None:
                lengths = [end - start for start, end in itertools.pairwise(offsets)]
            else:
                lengths = self.lengths.tolist()
            if offsets[0] < 0 or any(n < 0 for n in lengths):
                raise RuntimeError(
                    "the offsets of a nested tensor must ascend and its lengths be at least 0, got "
                    f"offsets {offsets} and lengths {lengths}"
                )
            self._bounds = list(zip(offsets, lengths, strict=False))
            self._version = self._state()
            self._kept.clear()
        return self._bounds

    def check_inside(self, total) -> None:
        """Raises unless every component lies within `total` rows."""
        end = max((s + n for s, n in self.bounds), default=0)
        if end > total:
            raise RuntimeError(
                f"the components of a nested tensor end at row {end}, but the values have "
                f"{total} rows along the ragged dimension"
            )

    @property
    def seqlens(self) -> list[int]:
        """The lengths as a list."""
        return [n for _, n in self.bounds]

    @property
    def longest(self) -> int:
        """The length of the longest component."""
        return max(self.seqlens, default=0)

    @property
    def shortest(self) -> int:
        """The length of the shortest component."""
        return min(self.seqlens, default=0)

    def fills(self, total) -> bool:
        """Whether the components follow each other without gaps and use all `total` rows."""
        if self._bounds is None or self._version != self._state():
            self.bounds  # noqa: B018
        if "end" not in self._kept:
            end = 0
            for start, length in self._bounds:
                end = end + length if start == end else -1
            self._kept["end"] = end
        return self._kept["end"] == total

    def _keep(self, key, make) -> torch.Tensor:
        if self._version != self._state():
            self._kept.clear()
        if key not in self._kept:
            with torch.inference_mode(False), torch.no_grad():
                self._kept[key] = make()
        return self._kept[key]

    def sizes_tensor(self):
        """The lengths as an int64 tensor on the device of the offsets."""
        if self.lengths is not None:
            return self.lengths.to(torch.int64)
        return self._keep("sizes", lambda: self.offsets.to(torch.int64).diff())

    def _per_row(self, key, make) -> torch.Tensor:
        """An index with an item for every row of the components, in order. It is made from the
        numbers, on the CPU, and kept on the device of the offsets."""
        return self._keep(key, lambda: make(_list(self.seqlens)).to(self.offsets.device))

    def rows(self) -> torch.Tensor:
        """The row of the values that holds each row of the components."""

        def make(sizes) -> torch.Tensor:
            starts = _list([start for start, _ in self.bounds])
            return starts.repeat_interleave(sizes) + _counted(sizes)

        return self._per_row("rows", make)

    def owners(self) -> torch.Tensor:
        """The number of the component of each row."""
        return self._per_row("owners", lambda sizes: _numbers(sizes).repeat_interleave(sizes))

    def places(self) -> torch.Tensor:
        """The place of each row within its component."""
        return self._per_row("places", _counted)

    def padded_rows(self, width) -> torch.Tensor:
        """The row of each in a padded tensor (batch * width, ...)."""
        return self._keep(("padded", width), lambda: self.owners() * width + self.places())

    def value_owners(self, total):
        """For each of the `total` rows of the values the component it belongs to; rows between
        components count to the one before."""
        if self.fills(total):
            return self.owners()

        def make():
            starts = _list([start for start, _ in self.bounds])
            found = torch.searchsorted(starts, torch.arange(total), right=True) - 1
            return found.clamp(min=0).to(self.offsets.device)

        return self._keep(("value_owners", total), make)

    def dense_offsets(self) -> torch.Tensor:
        """Offsets of the components once nothing lies between them."""
        start, lengths = self.bounds[0][0] if self.bounds else 0, self.lengths
        return self.offsets if lengths is None and start == 0 else self.compact().offsets

    def compact(self) -> Structure:
        """The structure of the same components without gaps between them."""
        return self._keep(
            "compact", lambda: Structure.of_lengths(self.seqlens, self.offsets.device)
        )

    def to(self, device):
        """The same structure, and the same symbol, on another device. Values without data keep
        offsets that have some."""
        device = torch.device(device)
        if device == self.offsets.device or device.type == "meta":
            return self

        def make():
            lengths = None if self.lengths is None else self.lengths.to(device)
            moved = Structure(self.offsets.to(device), lengths)
            moved.symbol = self.symbol
            moved._bounds, moved._version = self.bounds, moved._state()
            return moved

        return self._keep(("device", device), make)


def _list(numbers) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int64)


def _numbers(sizes) -> torch.Tensor:
    return torch.arange(sizes.numel())


def _counted(sizes) -> torch.Tensor:
    """0, 1, ... for each of the sizes."""
    first = (sizes.cumsum(0) - sizes).repeat_interleave(sizes)
    return torch.arange(first.numel()) - first


def _check_index_tensor(tensor, name) -> None:
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name} must be a Tensor, not {type(tensor).__name__}")
    if tensor.dim() != 1:
        raise RuntimeError(f"{name} must be 1D, but got {tensor.dim()}D")
    if tensor.dtype not in (torch.int32, torch.int64):
        raise RuntimeError(f"{name} must be of dtype int32 or int64, got {tensor.dtype}")
    if name == "offsets" and tensor.numel() < 1:
        raise RuntimeError("offsets must have at least one item")
