"""Writes the file of a compiled model as torch/csrc/inductor/aoti_file.h describes it."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Sequence

import torch
from torch import Tensor
from torch._inductor.package._lower import Lowered
from torch._inductor.package._trace import Traced
from torch.utils import _pytree as pytree

__all__ = ["WEIGHT_ALIGNMENT", "Constant", "file_of", "laid_out"]

_MAGIC = b"CRAOTI\x01\n"
WEIGHT_ALIGNMENT = 64
_MOST = (1 << 62) - 1
_KINDS = {torch.SymInt: 1, torch.SymFloat: 2, torch.SymBool: 3}
_LINEAR = re.compile(r"(?:(\d+)\*)?([A-Za-z_]\w*)(?: ([+-]) (\d+))?")


class _Bytes:
    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def pack(self, form: str, *values: object) -> None:
        """Numbers, little-endian."""
        self.parts.append(struct.pack("<" + form, *values))

    def text(self, value: str | bytes) -> None:
        """A text after its length."""
        data = value.encode() if isinstance(value, str) else value
        self.pack("I", len(data))
        self.parts.append(data)

    def numbers(self, form: str, values: Sequence[int]) -> None:
        """A list of numbers after its length."""
        self.pack(f"I{len(values)}{form}", len(values), *values)


class Constant:
    """A tensor of a model and where it lies among the weights."""

    def __init__(self, name: str, fqn: str, value: Tensor) -> None:
        self.name = name
        self.fqn = fqn
        self.value = value
        self.folded = False
        self.in_file = True

    def raw(self) -> bytes:
        """The bytes that its strides reach."""
        held = self.value.detach().cpu()  # of dense memory, so that strides stay
        return ctypes.string_at(held.data_ptr(), _reach(held)) if held.numel() else b""


def _reach(value: Tensor) -> int:
    """Bytes from the first element to the end of the last."""
    if value.numel() == 0:
        return 0
    last = sum((n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True))
    return (1 + last) * value.element_size()


def laid_out(value: Tensor) -> Tensor:
    """A tensor of plain memory without gaps."""
    value = value.detach()
    if value.layout is not torch.strided or value.is_quantized:
        raise NotImplementedError(
            f"a constant of layout {value.layout} and dtype {value.dtype} in a compiled model"
        )
    plain = not value.is_conj() and not value.is_neg()
    if plain and _is_dense(value):
        return value
    return value.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)


def _is_dense(value: Tensor) -> bool:
    expected = 1
    for stride, size in sorted(zip(value.stride(), value.shape, strict=True)):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True


# ---- inputs ---------------------------------------------------------------------------------


class _Symbols:
    """The symbols of the inputs' sizes with their ranges."""

    def __init__(self, ranges: dict[str, tuple[int, int]]) -> None:
        self.ranges = ranges
        self.numbers: dict[str, int] = {}

    def write_size(self, out: _Bytes, size: int | torch.SymInt) -> None:
        """A size: fixed, linear in a symbol, or any."""
        if isinstance(size, torch.SymInt):
            known = size.node.maybe_as_int()
            size = size if known is None else known
        if not isinstance(size, torch.SymInt):
            out.pack("Bq", 0, int(size))
            return
        found = _LINEAR.fullmatch(str(size))
        if found is None or found[2] not in self.ranges:
            out.pack("B", 2)
            return
        number = self.numbers.setdefault(found[2], len(self.numbers))
        offset = int(found[4] or 0) * (-1 if found[3] == "-" else 1)
        out.pack("Bqqi", 1, offset, int(found[1] or 1), number)

    def write(self, out: _Bytes) -> None:
        out.pack("I", len(self.numbers))
        for name in self.numbers:
            least, most = self.ranges[name]
            out.text(name)
            out.pack("qq", least, most)


def _limit(value: object, otherwise: int) -> int:
    """A bound of a range; `otherwise` for the infinities of integers and numbers."""
    return otherwise if "oo" in str(value) else max(-_MOST, min(_MOST, int(value)))


def ranges_of(values: Sequence[object], given: dict | None) -> dict[str, tuple[int, int]]:
    """{symbol: (least, most)} of sizes."""
    found: dict[str, tuple[int, int]] = {}
    rows = dict(given or {})
    for value in values:
        for size in value.shape if isinstance(value, Tensor) else (value,):
            if isinstance(size, torch.SymInt) and not rows:
                rows = dict(size.node.shape_env.var_to_range)
    for symbol, allowed in rows.items():
        found[str(symbol)] = (_limit(allowed.lower, 0), _limit(allowed.upper, _MOST))
    return found


def _write_inputs(
    out: _Bytes, names: Sequence[str], values: Sequence[object], symbols: _Symbols
) -> None:
    out.pack("I", len(values))
    for name, value in zip(names, values, strict=True):
        if not isinstance(value, Tensor):
            out.pack("B", _KINDS[type(value)])
            out.text(name)
            continue
        out.pack("B", 0)
        out.text(name)
        out.pack("bI", torch._C._aoti.dtype_number(value.dtype), value.dim())
        for size in value.shape:
            symbols.write_size(out, size)


# ---- the whole ------------------------------------------------------------------------------


def _device_of(values: Sequence[object], constants: Sequence[Constant]) -> str:
    tensors = [v for v in values if isinstance(v, Tensor)]
    tensors += [c.value for c in constants if not c.folded]
    kinds = {t.device.type for t in tensors}
    if not kinds <= {"cpu", "cuda"}:
        raise NotImplementedError(f"a compiled model for {', '.join(sorted(kinds))}")
    return "cuda" if "cuda" in kinds else "cpu"


def file_of(
    traced: Traced,
    lowered: Lowered,
    constants: Sequence[Constant],
    fold: int,
    metadata: dict[str, str],
    ranges: dict | None,
) -> tuple[bytes, list[bytes]]:
    """The file of a model, and its weights in parts that are written one after the other."""
    values = [n.meta["val"] for n in traced.graph.graph.find_nodes(op="placeholder")]
    symbols = _Symbols(ranges_of(values, ranges))
    inputs, out = _Bytes(), _Bytes()
    _write_inputs(inputs, traced.names, values, symbols)
    out.pack("I", len(metadata))
    for key, text in metadata.items():
        out.text(key)
        out.text(text)
    out.text(pytree.treespec_dumps(traced.in_spec))
    out.text(pytree.treespec_dumps(traced.out_spec))
    out.pack("B", _device_of(values, constants) == "cuda")
    symbols.write(out)
    out.parts += inputs.parts
    weights = _write_constants(out, constants)
    out.pack("iI", fold, len(lowered.graphs))
    for planned, used, program in lowered.graphs:
        out.pack("B", planned)
        out.numbers("i", used)
        out.parts.append(program)
    body = b"".join(out.parts)
    head = _MAGIC + struct.pack("<Q", torch._C._aoti.checksum(body))
    return head + body, weights


def _write_constants(out: _Bytes, constants: Sequence[Constant]) -> list[bytes]:
    parts: list[bytes] = []
    begin = 0
    out.pack("I", len(constants))
    for constant in constants:
        raw = b"" if constant.folded or not constant.in_file else constant.raw()
        value = constant.value
        out.text(constant.name)
        out.text(constant.fqn)
        out.pack("b", torch._C._aoti.dtype_number(value.dtype))
        out.numbers("q", tuple(value.shape))
        out.numbers("q", tuple(value.stride()))
        out.pack("BB", constant.folded, constant.in_file and not constant.folded)
        out.pack("QQQ", begin, _reach(value), torch._C._aoti.checksum(raw))
        if raw:
            padding = -len(raw) % WEIGHT_ALIGNMENT
            parts += [raw, bytes(padding)]
            begin += len(raw) + padding
    return parts
