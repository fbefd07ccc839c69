"""Checkpoints for the loader to refuse: whole files in the three formats, and mutations of them on
three levels. Bytes are changed blindly; the structure (records, headers, entries of a JSON header)
is changed with everything else made right again, so that the change reaches the code behind the
checksums; and pickles are changed opcode by opcode or composed anew, so that they stay executable.

File number i of a seed depends on nothing but the two numbers."""

from __future__ import annotations

import io
import json
import os
import pickletools
import random
import struct
import sys

import torch
from torch._serialization.safe_table import _TABLE

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "support")
)

from checkpoint_files import Entry, archive, call, checkpoint, name, number, numbers, pickled, text

FORMATS = ("zip", "legacy", "safetensors")
INTEGERS = [0, 1, 2, 3, 4, 7, 8, 15, 16, 64, 65, 127, 128, 255, 256, 1000, 65535, 65536]
INTEGERS += [(1 << n) + d for n in (31, 32, 33, 40, 62, 63, 64, 70) for d in (-1, 0, 1)]
INTEGERS += [-n for n in INTEGERS[1:]]
HOSTILE_NAMES = [
    ("os", "system"),
    ("posix", "system"),
    ("builtins", "eval"),
    ("builtins", "exec"),
    ("builtins", "getattr"),
    ("builtins", "__import__"),
    ("subprocess", "Popen"),
    ("importlib", "import_module"),
    ("antigravity", "fly"),
    ("wave", "open"),
    ("this", "s"),
    ("turtle", "done"),
    ("xmlrpc.client", "dumps"),
    ("code", "interact"),
    ("sndhdr", "what"),
    ("torch.storage", "_load_from_bytes"),
    ("torch", "nn.Module"),
    ("torch.hub", "load"),
    ("torch.serialization", "load"),
]
TEXTS = ["", "storage", "0", "1", "00", "-1", "cpu", "cuda:0", "meta", "cuda:99", "nowhere", "conj"]
TEXTS += ["neg", "latin1", "utf-8", "../0", "\0", "\ud800", "x" * 300, "__class__", "__dict__"]


# ---- files without a fault ----------------------------------------------------------------------


def _values():
    base = torch.arange(24.0)
    linear = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(linear.parameters())
    linear(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    whole = torch.arange(12).reshape(3, 4)
    yield {"a": base, "b": base[3:9], "c": base.view(4, 6).t(), "p": torch.nn.Parameter(base[:2])}
    yield {"model": linear.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}
    yield [
        torch.tensor([True, False]),
        torch.arange(3, dtype=torch.uint16),
        torch.ones(2, dtype=torch.complex64).conj(),
        torch._neg_view(torch.ones(3)),
        torch.ones(2, dtype=torch.bfloat16),
        torch.empty(0, 3),
        torch.tensor(2.5, requires_grad=True),
        torch.empty(2, 3, device="meta"),
    ]
    yield {
        "coo": torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2)).coalesce(),
        "csr": whole.float().to_sparse_csr(),
    }
    yield {
        "plain": [1, -1, 2**40, 2.5, None, True, "text", b"bytes", bytearray(b"x"), 1j],
        "sets": ({1, 2}, frozenset([3]), torch.Size([2, 3]), torch.float16, torch.strided),
        "device": torch.device("cpu"),
        ("tuple", 1): {None: [[[]]]},
    }


def _saved(value, zipped, protocol):
    buffer = io.BytesIO()
    torch.save(value, buffer, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
    return buffer.getvalue()


def _safetensors_file(header, data):
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + data


class Samples:
    """Right files by format; for zip also their records, for legacy their pickles and storages."""

    def __init__(self) -> None:
        self.files = {name: [] for name in FORMATS}
        self.archives, self.streams = [], []
        torch.manual_seed(0)
        for value in _values():
            for protocol in (2, 4):
                self.files["zip"].append(_saved(value, True, protocol))
                self.files["legacy"].append(_saved(value, False, protocol))
        for data in self.files["zip"]:
            self.archives.append(_records(data))
        for data in self.files["legacy"]:
            self.streams.append(_stream(data))
        named = {"w": torch.arange(6.0).view(2, 3), "b": torch.tensor([True]), "e": torch.empty(0)}
        for metadata in (None, {"format": "pt"}):
            buffer = io.BytesIO()
            torch.serialization.save_safetensors(named, buffer, metadata)
            self.files["safetensors"].append(buffer.getvalue())


def _records(data):
    """[(short name, content)] of an archive."""
    import zipfile

    with zipfile.ZipFile(io.BytesIO(data)) as found:
        return [(n.split("/", 1)[1], found.read(n)) for n in found.namelist()]


def _stream(data):
    """The five pickles of a legacy file and what follows them."""
    parts, start = [], 0
    for _ in range(5):
        end = start
        for _, _, position in pickletools.genops(data[start:]):
            end = start + position
        parts.append(data[start : end + 1])
        start = end + 1
    return parts, data[start:]


# ---- bytes --------------------------------------------------------------------------------------


def mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    """Blind changes: bits, bytes, words, holes, insertions, copies within, a cut."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        if not out:
            break
        offset, kind = rng.randrange(len(out)), rng.randrange(9)
        if kind == 0:
            out[offset] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[offset] = rng.randrange(256)
        elif kind == 2:
            del out[offset : offset + rng.choice((1, 2, 4, 8, 64))]
        elif kind == 3:
            out[offset:offset] = rng.randbytes(rng.choice((1, 2, 4, 8, 64)))
        elif kind == 4:
            form = rng.choice(("<H", "<I", "<Q"))
            size = struct.calcsize(form)
            value = rng.choice(INTEGERS) & ((1 << 8 * size) - 1)
            out[offset : offset + size] = struct.pack(form, value)
        elif kind == 5:
            count = rng.choice((4, 16, 64))
            to = rng.randrange(len(out))
            out[to : to + count] = out[offset : offset + count]
        elif kind == 6:
            out[offset:offset] = out[offset : offset + rng.choice((4, 46, 100))]
        elif kind == 7 and rng.random() < 0.3:
            del out[offset:]
        else:
            out[offset] = (out[offset] + rng.choice((-1, 1))) & 255
    return bytes(out)


# ---- opcodes ------------------------------------------------------------------------------------


def operations(data: bytes):
    """The pickle cut into its opcodes with their operands."""
    places = [position for _, _, position in pickletools.genops(data)]
    return [data[a:b] for a, b in zip(places, [*places[1:], len(data)], strict=True)]


def _global(rng):
    if rng.random() < 0.2:
        return name(*rng.choice(HOSTILE_NAMES))
    return name(*rng.choice(list(_TABLE)).rsplit(".", 1))


def _integer(rng):
    return number(rng.choice(INTEGERS))


def _long(rng, form, code):
    size = struct.calcsize(form)
    raw = rng.randbytes(rng.choice((0, 1, 3, 9)))
    told = rng.choice((len(raw), 0, (1 << 8 * size) - 1, 1 << (8 * size - 1), len(raw) + 1))
    return code + struct.pack(form, told) + raw


def _persistent(rng):
    parts = [
        text(rng.choice(("storage", "storage", "storage", "module"))),
        _global(rng) if rng.random() < 0.3 else name("torch", "FloatStorage"),
        text(rng.choice(("0", "1", "2", "9"))),
        text(rng.choice(("cpu", "cpu", "meta", "cuda:0"))),
        _integer(rng),
    ]
    if rng.random() < 0.2:
        parts.append(b"N")
    return b"(" + b"".join(parts) + b"tQ"


def _tensor(rng):
    rank = rng.choice((0, 1, 2, 2, 3, 66))
    size = [rng.choice((0, 1, 2, 3, *INTEGERS)) for _ in range(rank)]
    stride = [rng.choice((0, 1, 2, 3, *INTEGERS)) for _ in range(rank)]
    return call(
        name("torch._utils", rng.choice(("_rebuild_tensor_v2", "_rebuild_tensor"))),
        _persistent(rng),
        _integer(rng),
        numbers(size),
        numbers(stride),
        *([rng.choice((b"\x88", b"\x89")), b"N"] if rng.random() < 0.8 else []),
    )


# A tuple with two to the thirtieth leaves in a hundred bytes.
_REPEATED = b"K\x01\x85q\x630" + b"h\x63h\x63\x86q\x630" * 30 + b"h\x63"
_BARE = [
    bytes([c]) for c in b"(012N\x88\x89]})t\x85\x86\x87aesu\x8f\x90\x91\x94RbQ\x81\x93.PLiod\x92"
]
_MAKERS = [
    _global,
    _integer,
    _persistent,
    _tensor,
    lambda rng: text(rng.choice(TEXTS).encode("utf-8", "surrogatepass").decode("latin-1")),
    lambda rng: b"X" + struct.pack("<I", 3) + "\ud800".encode("utf-8", "surrogatepass"),
    lambda rng: rng.choice(_BARE),
    lambda rng: _REPEATED,
    lambda rng: rng.choice(_BARE) * rng.choice((1, 2, 1000, 3000)),
    lambda rng: rng.choice((b"q", b"h")) + bytes([rng.randrange(40)]),
    lambda rng: rng.choice((b"r", b"j")) + struct.pack("<I", rng.choice(INTEGERS) & 0xFFFFFFFF),
    lambda rng: b"G" + rng.randbytes(8),
    lambda rng: _long(rng, "<B", rng.choice((b"\x8a", b"\x8c", b"C", b"U"))),
    lambda rng: _long(rng, "<I", rng.choice((b"\x8b", b"X", b"B", b"T"))),
    lambda rng: _long(rng, "<Q", rng.choice((b"\x8d", b"\x8e", b"\x96", b"\x95"))),
    lambda rng: b"\x80" + bytes([rng.randrange(7)]),
    lambda rng: bytes([rng.randrange(256)]),
]


def _replaced(piece, rng):
    """Another operand or opcode of the same kind."""
    code = piece[:1]
    if rng.random() < 0.03:
        return _REPEATED
    if code in b"JKM\x8a":
        return number(rng.randrange(6)) if rng.random() < 0.5 else _integer(rng)
    if code in b"X\x8c":
        return text(rng.choice(TEXTS[:15]))
    if code == b"c":
        return _global(rng)
    if code in b"\x88\x89N":
        return rng.choice((b"\x88", b"\x89", b"N", b"K\x01", b"]"))
    return rng.choice(_MAKERS)(rng)


def mutate_pickle(data: bytes, rng: random.Random) -> bytes:
    """A pickle with some opcodes taken out, doubled, exchanged, replaced or added."""
    pieces = operations(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        if len(pieces) < 2:
            break
        index, kind = rng.randrange(1, len(pieces)), rng.randrange(10)
        if kind == 0:
            del pieces[index]
        elif kind == 1:
            pieces.insert(index, pieces[index])
        elif kind == 2:
            to = rng.randrange(1, len(pieces))
            pieces[index], pieces[to] = pieces[to], pieces[index]
        elif kind == 3:
            pieces.insert(index, rng.choice(_MAKERS)(rng))
        elif kind == 4:
            first = rng.randrange(1, len(pieces))
            pieces[index:index] = pieces[first : first + rng.choice((2, 5, 20))]
        else:
            pieces[index] = _replaced(pieces[index], rng)
    return b"".join(pieces)


def composed_pickle(rng: random.Random) -> bytes:
    """A pickle of random parts, which mostly ends with something on the stack."""
    parts = [rng.choice(_MAKERS)(rng) for _ in range(rng.choice((1, 2, 4, 12)))]
    if rng.random() < 0.5:
        parts = [b"](", *parts, b"e"]
    return pickled(*parts)


# ---- structure ----------------------------------------------------------------------------------

_FIELDS = ("flags", "crc", "size", "header", "method", "packed", "local_flags", "local_method")
_FIELDS += ("local_crc", "local_size", "descriptor_crc")
_WHOLE = ("start", "count", "length", "disk")


def _field(rng):
    return rng.choice(INTEGERS) & rng.choice((0xFF, 0xFFFF))


def mutate_archive(records, rng: random.Random) -> bytes:
    """Records renamed, exchanged, dropped, doubled or changed, or a header that lies."""
    entries = [["x/" + short, data, {}] for short, data in records]
    fields = {}
    for _ in range(rng.choice((1, 1, 2, 3))):
        index, kind = rng.randrange(len(entries)), rng.randrange(9)
        entry = entries[index]
        if kind == 0 and len(entries) > 1:
            del entries[index]
        elif kind == 1:
            entries.insert(index, [entry[0], entry[1], dict(entry[2])])
        elif kind == 2:
            entry[1] = mutate_bytes(entry[1], rng) if entry[1] else rng.randbytes(4)
        elif kind == 3:
            to = rng.choice(entries)
            entry[1], to[1] = to[1], entry[1]
        elif kind == 4:
            entry[0] = rng.choice(("x/data/9", "y/data.pkl", "x/code/a", "/x", "x/..", "x", "x//y"))
        elif kind == 5:
            entry[2][rng.choice(_FIELDS)] = _field(rng)
        elif kind == 6:
            kind16 = rng.choice((1, 0x4246, 0x7075, 0x9901))
            extra = struct.pack("<HH", kind16, rng.choice((0, 4, 8, 16, 24))) + rng.randbytes(16)
            entry[2][rng.choice(("extra", "local_extra"))] = extra[: rng.choice((3, 12, 20))]
        elif kind == 7:
            entry[1] += rng.randbytes(rng.choice((1, 4, 64)))
        else:
            fields[rng.choice(_WHOLE)] = _field(rng)
    return archive([Entry(n.encode(), data, **more) for n, data, more in entries], **fields)


def _json_value(rng):
    integers = [n for n in INTEGERS if n.bit_length() <= 70]
    return rng.choice(
        (rng.choice(integers), rng.choice(TEXTS[:15]), None, True, 1.5, [], {}, [[0]], {"a": 1})
    )


def _mutate_tree(tree, rng) -> None:
    """Changes one place of a JSON value."""
    keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
    if not keys or rng.random() < 0.1:
        if isinstance(tree, dict):
            tree[rng.choice(TEXTS[:15])] = _json_value(rng)
        else:
            tree.append(_json_value(rng))
        return
    key = rng.choice(keys)
    if isinstance(tree[key], (dict, list)) and rng.random() < 0.85:
        _mutate_tree(tree[key], rng)
    elif rng.random() < 0.15:
        del tree[key]
    elif key == "dtype":
        tree[key] = rng.choice(("F64", "F32", "BOOL", "U8", "C64", "F8_E4M3", "F4", "I64"))
    else:
        tree[key] = _json_value(rng)


def mutate_safetensors(data: bytes, rng: random.Random) -> bytes:
    """A header with some values changed and its length made right, or text that is hardly JSON."""
    length = struct.unpack_from("<Q", data)[0]
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    for _ in range(rng.choice((1, 1, 2, 4))):
        _mutate_tree(header, rng)
    raw = json.dumps(header).encode()
    kind = rng.randrange(10)
    if kind == 0:
        raw = mutate_bytes(raw, rng)
    elif kind == 1:
        raw = b'{"a":' + rng.choice((b"[", b'{"a":')) * rng.choice((10, 900, 50_000))
    elif kind == 2:
        raw = raw[:-1] + b"," + raw[1:]
    elif kind == 3:
        raw = raw.replace(b"1", rng.choice((b"1" * 5000, b"1e999", b"NaN", b"-0", b"Infinity")))
    if rng.random() < 0.1:
        body = mutate_bytes(body, rng)
    return _safetensors_file(raw, body)


# ---- the sequence -------------------------------------------------------------------------------


class Sequence:
    """(format, level, bytes) of each number."""

    def __init__(self, seed: int, formats=FORMATS) -> None:
        self.seed, self.formats = seed, tuple(formats)
        self.samples = Samples()

    def __call__(self, index: int):
        rng = random.Random(self.seed * 1_000_003 + index)
        kind = rng.choice(self.formats)
        if kind == "safetensors":
            level = rng.choice(("bytes", "structure", "structure"))
        else:
            level = rng.choice(("bytes", "structure", "opcodes", "opcodes", "composed"))
        return kind, level, getattr(self, f"_{kind}")(level, rng)

    def _zip(self, level, rng):
        index = rng.randrange(len(self.samples.archives))
        records = self.samples.archives[index]
        if level == "bytes":
            return mutate_bytes(self.samples.files["zip"][index], rng)
        if level == "structure":
            return mutate_archive(records, rng)
        contents = dict(records)
        old = contents["data.pkl"]
        new = composed_pickle(rng) if level == "composed" else mutate_pickle(old, rng)
        storages = {n[5:]: d for n, d in records if n.startswith("data/")}
        if rng.random() < 0.1:
            key = rng.choice([*storages, "0"])
            storages[key] = rng.randbytes(rng.choice((0, 1, 4, 16, 96)))
        return checkpoint(new, storages)

    def _legacy(self, level, rng):
        index = rng.randrange(len(self.samples.streams))
        if level == "bytes":
            return mutate_bytes(self.samples.files["legacy"][index], rng)
        pickles, rest = self.samples.streams[index]
        pickles = list(pickles)
        if level == "structure":
            kind, where = rng.randrange(4), rng.randrange(5)
            if kind == 0:
                pickles[where] = pickles[rng.randrange(5)]
            elif kind == 1:
                del pickles[where]
            elif kind == 2:
                rest = mutate_bytes(rest, rng) if rest else rng.randbytes(9)
            else:
                pickles[4] = mutate_pickle(pickles[4], rng)
        elif level == "opcodes":
            where = rng.choice((0, 1, 2, 3, 3, 3, 3, 3, 4))
            pickles[where] = mutate_pickle(pickles[where], rng)
        else:
            pickles[3] = composed_pickle(rng)
        return b"".join(pickles) + rest

    def _safetensors(self, level, rng):
        data = rng.choice(self.samples.files["safetensors"])
        return (mutate_bytes if level == "bytes" else mutate_safetensors)(data, rng)
