"""What the safe loader refuses besides broken rules of the format (test_serialization_hostile.py):
files that swell in memory or time, sparse tensors whose indices lie, and archives in 64 bits whose
two ends disagree; and the odd but true files that it must not refuse. A file that would swell has
to be refused before it does, so memory is measured."""

import io
import mmap
import os
import resource
import struct
import zipfile
import zlib

import pytest
from checkpoint_files import (
    DATA,
    EMPTY_HOOKS,
    GOOD,
    Entry,
    call,
    checkpoint,
    load,
    name,
    number,
    numbers,
    pickled,
    storage,
    tensor,
    text,
    tuple_of,
)

import torch
from torch import serialization
from torch._serialization.zip_writer import ZipWriter
from torch.serialization import CheckpointError, load_safetensors


def peak_memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


# ---- files that swell ---------------------------------------------------------------------------

REPEATED = b"K\x01\x85q\x000" + b"h\x00h\x00\x86q\x000" * 40 + b"h\x00"
COPIES = 20_000


def _copies(function, argument):
    """Calls a function many times on one large argument."""
    return argument + b"\x85q\x000" + function + b"q\x010](" + b"h\x01h\x00R" * COPIES + b"e"


def _float(value):
    return b"G" + struct.pack(">d", value)


def _same_hash(count):
    """Complex numbers with one hash: that of their parts adds up to nothing."""
    pairs = ((-1000003.0 * i, float(i)) for i in range(1, count))
    complexes = (call(name("builtins", "complex"), _float(a), _float(b)) for a, b in pairs)
    return b"}(" + b"".join(item + b"N" for item in complexes) + b"u"


def _long_text(length):
    return b"X" + struct.pack("<I", length) + b"a" * length


def _strided(size, stride):
    """A tensor of int64 on the storage of this file, which has room for two elements."""
    return tensor(size, stride, store=storage(2, kind=name("torch", "LongStorage")))


SWELLING = {
    "empty sets": b"\x8f" * 1_000_000,
    "empty lists": b"]" * 2_000_000,
    "calls": name("collections", "OrderedDict") + b"q\x000](" + b"h\x00)R" * 400_000 + b"e",
    "copies of a list": _copies(name("builtins", "set"), b"](" + b"K\x01" * 50_000 + b"e"),
    "copies of a text": _copies(
        name("_codecs", "encode"), _long_text(100_000) + text("latin1") + b"\x860"
    ).replace(b"\x860\x85q", b"\x86q", 1),
    "copies of a size": _copies(name("torch", "Size"), b"(" + b"K\x01" * 50_000 + b"t"),
    "copies of a state": b"}("
    + b"".join(text(f"a{i}") + b"N" for i in range(2000))
    + b"uq\x000"
    + name("collections", "OrderedDict")
    + b"q\x010]("
    + b"h\x01)Rh\x00b" * COPIES
    + b"e",
    "keys with one hash": _same_hash(30_000),
    "repeated tuple as a size": call(name("torch", "Size"), b"(" + REPEATED + b"t"),
    "repeated tuple as a key of a storage": storage(4, key=REPEATED),
    "repeated tuple as a device": storage(4, device=REPEATED),
    "repeated tuple as a class": storage(4, kind=REPEATED),
    "repeated tuple as an offset": call(
        name("torch._utils", "_rebuild_tensor_v2"),
        storage(4),
        REPEATED,
        numbers((4,)),
        numbers((1,)),
        b"\x89",
        EMPTY_HOOKS,
    ),
    "repeated tuple as a stride": call(
        name("torch._utils", "_rebuild_tensor_v2"),
        storage(4),
        number(0),
        numbers((4,)),
        tuple_of(REPEATED),
        b"\x89",
        EMPTY_HOOKS,
    ),
    "tuples of one": b"N" + b"\x85" * 3_000_000,
    "tuples with a mark": b"](" + b"(Nt" * 1_000_000 + b"e",
    "frozen sets": b"](" + b"(\x91" * 1_000_000 + b"e",
    "marks": b"(" * 3_000_000,
    "entries of the memo": b"N" + b"\x94" * 3_000_000,
    "sizes without elements": call(
        name("torch._utils", "_rebuild_strided_nested_tensor"),
        _strided((0,), (1,)),
        _strided((1 << 27, 0), (1, 1)),
        b"\x89",
    ),
    "sizes that are all one": call(
        name("torch._utils", "_rebuild_strided_nested_tensor"),
        _strided((0,), (1,)),
        _strided((1 << 24, 4), (0, 0)),
        b"\x89",
    ),
    "offsets that are all one": call(
        name("torch._utils", "_rebuild_jagged_tensor"),
        _strided((0, 1), (1, 1)),
        _strided((1 << 26,), (0,)),
        b"N",
        number(1),
        b"\x89",
    ),
    "long integer in a message": call(
        name("torch", "Size"), b"(\x8b" + struct.pack("<I", 200_000) + b"\x7f" * 200_000 + b"t"
    ),
}


@pytest.mark.parametrize("body", SWELLING.values(), ids=SWELLING.keys())
def test_file_that_swells_is_refused_within_its_memory(body):
    data = checkpoint(pickled(body), DATA)
    torch.load(io.BytesIO(checkpoint(GOOD, DATA)))
    before = peak_memory()
    with pytest.raises(CheckpointError):
        load(data)
    # Python's own allocator keeps what is freed; the rule allows 64 MiB and twice the file.
    assert peak_memory() - before < (64 << 20) + 8 * len(data)


def test_limit_of_memory_can_be_raised_and_lowered():
    buffer = io.BytesIO()
    torch.save([[] for _ in range(20_000)], buffer)
    try:
        serialization.set_load_memory_limit(1000)
        buffer.seek(0)
        with pytest.raises(CheckpointError, match="set_load_memory_limit"):
            torch.load(buffer)
        serialization.set_load_memory_limit(1 << 30)
        assert serialization.get_load_memory_limit() == 1 << 30
        buffer.seek(0)
        assert len(torch.load(buffer)) == 20_000
        with pytest.raises(ValueError, match="number of bytes"):
            serialization.set_load_memory_limit(-1)
    finally:
        serialization.set_load_memory_limit(None)


@pytest.mark.parametrize(
    "make",
    [
        lambda: [[float(i), i, str(i)] for i in range(100_000)],
        lambda: {(i, -i): {"k": i} for i in range(60_000)},
        lambda: [torch.zeros(1) for _ in range(6_000)],
        lambda: list(torch.arange(15_000).unbind()),
        lambda: {(x, y) for x in range(-150, 150) for y in range(-150, 150)},
    ],
    ids=["lists", "dicts", "tensors", "views", "grid"],
)
def test_large_plain_data_is_not_taken_for_an_attack(make):
    value = make()
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    found = torch.load(buffer)
    assert len(found) == len(value)
    if not isinstance(value, list) or not isinstance(value[0], torch.Tensor):
        assert found == value


def _zipped(value, method):
    """The file of a value, its records packed anew by Python's zipfile."""
    buffer, out = io.BytesIO(), io.BytesIO()
    torch.save(value, buffer)
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(out, "w", method) as new:
        for entry in old.namelist():
            new.writestr(entry, old.read(entry))
    return out.getvalue()


def test_compressed_file_loads_until_it_swells(tmp_path):
    value = {"a": torch.arange(100_000.0), "b": torch.tensor([True, False])}
    data = _zipped(value, zipfile.ZIP_DEFLATED)
    found = load(data)
    assert torch.equal(found["a"], value["a"]) and torch.equal(found["b"], value["b"])
    (tmp_path / "x.pt").write_bytes(data)
    with pytest.raises(CheckpointError, match="cannot be mapped"):
        torch.load(tmp_path / "x.pt", mmap=True)
    with pytest.raises(CheckpointError, match="far larger"):
        load(_zipped(torch.zeros(20_000_000), zipfile.ZIP_DEFLATED))
    with pytest.raises(CheckpointError, match="unknown way"):
        load(_zipped(torch.zeros(4), zipfile.ZIP_BZIP2))


def test_compressed_pickle_of_many_opcodes_is_refused():
    body = pickled(b"N0" * 15_000_000 + b"N")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for entry, data in (("data.pkl", body), ("version", b"3")):
            file.writestr("archive/" + entry, data)
    with pytest.raises(CheckpointError, match="opcodes"):
        load(out.getvalue())


def _deflated(data, **fields):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(data) + packer.flush()
    return packed, {"method": 8, "local_method": 8, "packed": len(packed), **fields}


@pytest.mark.parametrize(
    ("size", "change"),
    [
        (15, lambda packed: packed),
        (17, lambda packed: packed),
        (16, lambda packed: packed[:-2]),
        (16, lambda packed: packed + b"\0"),
        (16, lambda packed: b"\xff" + packed[1:]),
        (1 << 40, lambda packed: packed),
    ],
)
def test_damaged_compressed_record_is_refused(size, change):
    packed, fields = _deflated(DATA["0"])
    data = change(packed)
    fields.update(packed=len(data), flags=1 << 11, crc=zlib.crc32(DATA["0"]))
    entry = Entry("x/data/0", data, size=size & 0xFFFFFFFF, local_size=len(data), **fields)
    with pytest.raises(CheckpointError):
        load(checkpoint(GOOD, DATA, replaced={"data/0": entry}))


# ---- archives in 64 bits ------------------------------------------------------------------------


def _with_wide_end(data, **fields):
    """An archive with 64-bit end records, which a field may make wrong."""
    *_, count, _, size, start, _ = struct.unpack("<4s4H2IH", data[-22:])
    wide = {"count": count, "size": size, "start": start, "at": len(data) - 22, "disks": 1}
    wide.update(fields)
    end64 = struct.pack(
        "<4sQ2H2I4Q",
        wide.get("magic", b"PK\x06\x06"),
        wide.get("length", 44),
        45,
        45,
        wide.get("disk", 0),
        0,
        wide["count"],
        wide["count"],
        wide["size"],
        wide["start"],
    )
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, wide["at"], wide["disks"])
    return data[:-22] + end64 + locator + data[-22:]


def test_wide_end_without_a_fault_loads():
    assert load(_with_wide_end(checkpoint(GOOD, DATA))).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "fields",
    [
        {"count": 3},
        {"size": 10},
        {"start": 1 << 40},
        {"at": 0},
        {"at": (1 << 64) - 1},
        {"disks": 2},
        {"disk": 1},
        {"magic": b"PK\x06\x08"},
        {"length": 1 << 60},
    ],
    ids=str,
)
def test_wide_end_that_disagrees_is_refused(fields):
    with pytest.raises(CheckpointError):
        load(_with_wide_end(checkpoint(GOOD, DATA), **fields))


def test_second_end_record_is_refused():
    data = checkpoint(GOOD, DATA)
    with pytest.raises(CheckpointError):
        load(data + data[-22:])
    with pytest.raises(CheckpointError):
        load(data[:-22] + data)


@pytest.mark.parametrize("record", ["bytecode.pkl", "mobile_debug_handles.pkl", "code/a.py"])
def test_programs_are_refused(record):
    with pytest.raises(CheckpointError, match="program"):
        load(checkpoint(GOOD, DATA, extra=[Entry("x/" + record, b"")]))


ZEROS = bytes(1 << 24)


class SparseFile:
    """Writes a file and leaves holes where zeros belong."""

    def __init__(self, file):
        self.file = file

    def write(self, data):
        if len(data) == len(ZEROS) and bytes(data) == ZEROS:
            self.file.seek(len(ZEROS), os.SEEK_CUR)
        else:
            self.file.write(data)
        return len(data)


@pytest.mark.slow
def test_record_beyond_four_gibibytes_loads(tmp_path):
    count = (1 << 32) + (1 << 24) + 3
    path = tmp_path / "x.pt"
    zeros = mmap.mmap(-1, count)
    zeros[count - 1] = 5
    big = call(
        name("torch._utils", "_rebuild_tensor_v2"),
        storage(count, kind=name("torch", "ByteStorage")),
        number(0),
        numbers((count,)),
        numbers((1,)),
        b"\x89",
        EMPTY_HOOKS,
    )
    with path.open("wb") as file:
        writer = ZipWriter(SparseFile(file), "x", False)
        writer.add("data.pkl", pickled(big))
        writer.add("byteorder", b"little")
        writer.add("data/0", zeros)
        writer.add("version", b"3\n")
        writer.finish()
    zeros.close()
    assert path.stat().st_blocks * 512 < 1 << 26
    found = torch.load(path, mmap=True)
    assert found.shape == (count,) and found[-1] == 5 and found[1 << 32] == 0


# ---- sparse tensors -----------------------------------------------------------------------------

SPARSE = name("torch._utils", "_rebuild_sparse_tensor")
LONGS = name("torch", "LongStorage")


def _layout(label):
    return call(name("torch.serialization", "_get_layout"), text(f"torch.{label}"))


def _part(key, numel, size, kind, stride=None):
    strides = stride or tuple(torch.empty(size, device="meta").stride())
    store = storage(numel, kind=kind, key=text(str(key)))
    return tensor(size, strides, store=store)


def _coo(indices, values=(1.0, 2.0), size=(2, 3), more=(), shape=None):
    """A pickle and its storages: a tensor in coordinates."""
    shape = shape or (2, len(values))
    data = {"0": struct.pack(f"<{len(indices)}q", *indices)}
    data["1"] = struct.pack(f"<{len(values)}f", *values)
    parts = [
        _part(0, len(indices), shape, LONGS),
        _part(1, len(values), (len(values),), name("torch", "FloatStorage")),
        numbers(size),
    ]
    return call(SPARSE, _layout("sparse_coo"), tuple_of(*parts, *more)), data


def _csr(crow, col, size=(2, 3)):
    data = {"0": struct.pack(f"<{len(crow)}q", *crow), "1": struct.pack(f"<{len(col)}q", *col)}
    data["2"] = struct.pack(f"<{len(col)}f", *range(len(col)))
    parts = [
        _part(0, len(crow), (len(crow),), LONGS),
        _part(1, len(col), (len(col),), LONGS),
        _part(2, len(col), (len(col),), name("torch", "FloatStorage")),
        numbers(size),
    ]
    return call(SPARSE, _layout("sparse_csr"), tuple_of(*parts)), data


def _expanded():
    big = 1 << 40
    data = _coo((0, 0))[1]
    parts = [
        _part(0, 2, (2, big), LONGS, (0, 0)),
        _part(1, 2, (big,), name("torch", "FloatStorage"), (0,)),
        numbers((2, 3)),
    ]
    return call(SPARSE, _layout("sparse_coo"), tuple_of(*parts)), data


HOSTILE_SPARSE = {
    "index too large": _coo((0, 1, 0, 3)),
    "negative index": _coo((0, -1, 0, 1)),
    "index near the end of the integers": _coo((0, (1 << 62), 0, 1)),
    "false claim of order": _coo((1, 0, 0, 0), more=[b"\x88"]),
    "false claim of uniqueness": _coo((0, 0, 1, 1), more=[b"\x88"]),
    "claim that is a number": _coo((0, 1, 0, 1), more=[number(1)]),
    "fewer values than indices": _coo((0, 1, 0, 1), values=(1.0,), shape=(2, 2)),
    "indices of one dimension": _coo((0, 1, 0, 1), shape=(4,)),
    "size of another rank": _coo((0, 1, 0, 1), size=(2,)),
    "negative size": _coo((0, 1, 0, 1), size=(2, -3)),
    "size that overflows": _coo((0, 1, 0, 1), size=(1 << 62, 8)),
    "expanded to 2^41 indices": _expanded(),
    "pointers that fall": _csr((0, 2, 1), (0, 1)),
    "pointers that do not begin at zero": _csr((1, 1, 2), (0, 1)),
    "pointers beyond the values": _csr((0, 1, 9), (0, 1)),
    "too few pointers": _csr((0, 2), (0, 1)),
    "column too large": _csr((0, 1, 2), (0, 3)),
    "columns out of order": _csr((0, 2, 2), (1, 0)),
    "unknown layout": (call(SPARSE, _layout("strided"), tuple_of(*[b"N"] * 4)), {}),
    "no tensors": (call(SPARSE, _layout("sparse_coo"), tuple_of(b"]", b"]", numbers((1,)))), {}),
    "no tuple": (call(SPARSE, _layout("sparse_coo"), b"]"), {}),
}


@pytest.mark.parametrize("hostile", HOSTILE_SPARSE.values(), ids=HOSTILE_SPARSE.keys())
def test_hostile_sparse_tensor_is_refused(hostile):
    body, data = hostile
    with pytest.raises(CheckpointError):
        load(checkpoint(pickled(body), data))


def test_sparse_tensors_without_a_fault_load():
    body, data = _coo((0, 1, 0, 2), more=[b"\x88"])
    found = load(checkpoint(pickled(body), data))
    assert found.is_coalesced() and found.to_dense().tolist() == [[1, 0, 0], [0, 0, 2]]
    body, data = _csr((0, 1, 2), (0, 2))
    assert load(checkpoint(pickled(body), data)).to_dense().tolist() == [[0, 0, 0], [0, 0, 1]]


def test_sparse_tensors_in_legacy_files_are_checked_when_their_content_is_there():
    value = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).coalesce()
    buffer = io.BytesIO()
    torch.save(value, buffer, _use_new_zipfile_serialization=False)
    data = buffer.getvalue()
    assert torch.equal(load(data).to_dense(), value.to_dense())
    indices = struct.pack("<4q", 0, 1, 2, 0)
    assert data.count(indices) == 1
    for wrong in ((0, 1, 3, 0), (0, -1, 2, 0), (1, 0, 0, 2)):
        with pytest.raises(CheckpointError):
            load(data.replace(indices, struct.pack("<4q", *wrong)))


# ---- elements smaller than a byte, safetensors --------------------------------------------------


@pytest.mark.parametrize("kind", ["QUInt4x2Storage", "QUInt2x4Storage", "QInt8Storage"])
def test_storages_of_packed_elements_give_no_tensor(kind):
    body = tensor((16,), (1,), numel=16, store=storage(16, kind=name("torch", kind)))
    with pytest.raises(CheckpointError):
        load(checkpoint(pickled(body), DATA))


def test_header_beyond_the_limit_is_refused(tmp_path):
    path = tmp_path / "x.safetensors"
    with path.open("wb") as file:
        file.write(struct.pack("<Q", 100_000_001) + b"{")
        file.truncate(100_000_009)
    with pytest.raises(CheckpointError, match="a header of 100000001 bytes"):
        load_safetensors(path)


@pytest.mark.parametrize("filler", [b"[],", b"{},"])
def test_header_of_nothing_but_brackets_is_refused(filler):
    header = b'{"a":[' + filler * 500_000 + b"0]}"
    before = peak_memory()
    with pytest.raises(CheckpointError, match="nests more"):
        load_safetensors(io.BytesIO(struct.pack("<Q", len(header)) + header))
    assert peak_memory() - before < (64 << 20) + 2 * len(header)
