"""Files that must be refused: each breaks one rule of the container, of the pickle or of a tensor.
Every one has to raise CheckpointError, execute nothing and leave the process alive. A file that
breaks no rule, built in the same way, has to load: without it the refusals would prove nothing."""

import contextlib
import io
import os
import random
import struct
import sys

import pytest
from checkpoint_files import (
    DATA,
    EMPTY_HOOKS,
    GOOD,
    Entry,
    archive,
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
from torch.serialization import CheckpointError


def test_file_without_a_fault_loads():
    assert load(checkpoint(GOOD, DATA)).tolist() == [[1, 2], [3, 4]]


def _wide(*values):
    """The extra field of 64-bit sizes."""
    return struct.pack(f"<HH{len(values)}Q", 1, 8 * len(values), *values)


def test_64_bit_fields_of_large_archives_load():
    entry = Entry("x/data/0", DATA["0"], local_extra=_wide(16, 0), descriptor_form="<4sIQQ")
    found = load(checkpoint(GOOD, DATA, replaced={"data/0": entry}))
    assert found.tolist() == [[1, 2], [3, 4]]


def _swap(old, new, count=1):
    return lambda data: data.replace(old, new, count)


def _entry(short, data, **fields):
    return {short: Entry("x/" + short, data, **fields)}


BYTEORDER = {"replaced": _entry("byteorder", b"middle")}

CONTAINERS = {
    "shorter than an end record": b"PK\x03\x04" + b"\0" * 10,
    "no end record": checkpoint(GOOD, DATA)[:-22],
    "cut in the middle": checkpoint(GOOD, DATA)[:300],
    "bytes behind the end record": checkpoint(GOOD, DATA, behind=b"\0"),
    "bytes before the first record": checkpoint(GOOD, DATA, before=b"PK\x03\x04junk"),
    "directory outside of the file": checkpoint(GOOD, DATA, start=1 << 30),
    "directory of another length": checkpoint(GOOD, DATA, length=10),
    "entry count too large": checkpoint(GOOD, DATA, count=4000),
    "entry count too small": checkpoint(GOOD, DATA, count=3),
    "sizes that ask for a missing 64-bit record": checkpoint(GOOD, DATA, count=0xFFFF),
    "several disks": checkpoint(GOOD, DATA, disk=1),
    "empty archive": archive([]),
    "local name differs": checkpoint(
        GOOD, DATA, replaced=_entry("data/0", DATA["0"], local_name=b"x/data/1")
    ),
    "local size differs": checkpoint(
        GOOD, DATA, replaced=_entry("data/0", DATA["0"], local_size=99)
    ),
    "local 64-bit size differs": checkpoint(
        GOOD, DATA, replaced=_entry("data/0", DATA["0"], local_extra=_wide(17, 0))
    ),
    "local 64-bit size cut short": checkpoint(
        GOOD,
        DATA,
        replaced=_entry("data/0", DATA["0"], local_extra=struct.pack("<HHI", 1, 4, 16)),
    ),
    "local CRC differs": checkpoint(GOOD, DATA, replaced=_entry("data/0", DATA["0"], local_crc=1)),
    "local method differs": checkpoint(
        GOOD, DATA, replaced=_entry("data/0", DATA["0"], local_method=8)
    ),
    "local flags differ": checkpoint(
        GOOD, DATA, replaced=_entry("data/0", DATA["0"], local_flags=0)
    ),
    "compressed record": checkpoint(GOOD, DATA, replaced=_entry("data/0", DATA["0"], method=8)),
    "encrypted record": checkpoint(
        GOOD, DATA, replaced=_entry("data/0", DATA["0"], flags=8 | 2048 | 1)
    ),
    "sizes of the directory differ": checkpoint(
        GOOD, DATA, replaced=_entry("data/0", DATA["0"], packed=12)
    ),
    "descriptor differs": checkpoint(
        GOOD, DATA, replaced=_entry("data/0", DATA["0"], descriptor_crc=7)
    ),
    "record past the end": checkpoint(
        GOOD, DATA, replaced=_entry("data/0", DATA["0"], size=1 << 28)
    ),
    "overlapping records": checkpoint(GOOD, DATA, replaced=_entry("data/0", DATA["0"], header=0)),
    "bytes between records": checkpoint(
        GOOD, DATA, replaced=_entry("data/0", DATA["0"], after=b"gap")
    ),
    "duplicate names": checkpoint(GOOD, DATA, extra=[Entry("x/data.pkl", GOOD)]),
    "absolute name": checkpoint(GOOD, DATA, extra=[Entry("/etc/passwd", b"")]),
    "name with ..": checkpoint(GOOD, DATA, extra=[Entry("x/../y", b"")]),
    "name with NUL": checkpoint(GOOD, DATA, extra=[Entry("x/a\0b", b"")]),
    "name with a backslash": checkpoint(GOOD, DATA, extra=[Entry("x/a\\b", b"")]),
    "name that is not text": checkpoint(GOOD, DATA, extra=[Entry(b"x/\xff\xfe", b"")]),
    "two folders": checkpoint(GOOD, DATA, extra=[Entry("y/data.pkl", GOOD)]),
    "unknown extra field": checkpoint(
        GOOD, DATA, extra=[Entry("x/e", b"", extra=struct.pack("<HH", 0x7777, 0))]
    ),
    "extra field cut short": checkpoint(
        GOOD, DATA, extra=[Entry("x/e", b"", extra=struct.pack("<HH", 1, 40))]
    ),
    "wrong CRC of a storage": checkpoint(
        GOOD, DATA, replaced=_entry("data/0", DATA["0"], crc=12345)
    ),
    "wrong CRC of the pickle": checkpoint(GOOD, DATA, replaced=_entry("data.pkl", GOOD, crc=1)),
    "unknown byte order": checkpoint(GOOD, DATA, **BYTEORDER),
    "unknown version": checkpoint(GOOD, DATA, replaced=_entry("version", b"999\n")),
    "version that is no number": checkpoint(GOOD, DATA, replaced=_entry("version", b"../")),
    "no version": checkpoint(GOOD, DATA, replaced={"version": None}),
    "no pickle": checkpoint(GOOD, DATA, replaced={"data.pkl": None}),
    "TorchScript": checkpoint(GOOD, DATA, extra=[Entry("x/constants.pkl", GOOD)]),
    "TorchScript code": checkpoint(GOOD, DATA, extra=[Entry("x/code/a.py", b"")]),
    "tar archive": b"\0" * 257 + b"ustar\0" + b"\0" * 300,
    "text": b"these are not the weights",
    "HTML": b"<!DOCTYPE html><title>404</title>",
    "gzip": b"\x1f\x8b\x08" + b"\0" * 40,
    "empty": b"",
}


@pytest.mark.parametrize("data", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_damaged_container_is_refused(data):
    with pytest.raises(CheckpointError):
        load(data)


OS_SYSTEM = name("os", "system")
DEEP = b"]" * 5000 + b"a" * 4999
DEEP_TUPLE = b")" + b"\x85" * 200_000
LAUGHS = b"K\x01\x85q\x000" + b"h\x00h\x00\x86q\x000" * 64 + b"h\x00"
PARAMETER = name("torch._utils", "_rebuild_parameter")

PICKLES = {
    "global outside of the table": call(OS_SYSTEM, text("true")),
    "eval": call(name("builtins", "eval"), text("1")),
    "getattr": call(name("builtins", "getattr"), name("torch", "Tensor"), text("x")),
    "dotted name": name("torch", "nn.Module"),
    "unsafe unpickler of torch": call(name("torch.storage", "_load_from_bytes"), text("x")),
    "call of a list": b"](tR",
    "call of a string": text("os.system") + b"(tR",
    "call of a storage class": name("torch", "FloatStorage") + tuple_of(number(5)) + b"R",
    "call of a dtype": name("torch", "float32") + b"(tR",
    "arguments that are no tuple": name("collections", "OrderedDict") + b"]R",
    "new object of a class": name("collections", "OrderedDict") + b")\x81",
    "new object of a tensor": name("torch", "Tensor") + b")\x81",
    "state of a list": b"]}b",
    "state of a tensor": tensor((4,), (1,)) + b"}" + text("data") + b"K\x01sb",
    "state that hides a method": EMPTY_HOOKS + b"}" + text("items") + b"K\x01sb",
    "item set on a tensor": tensor((4,), (1,)) + b"K\x00K\x05s",
    "item set on a list": b"]K\x00K\x05s",
    "append to a dict": b"}K\x01a",
    "append to a tensor": tensor((4,), (1,)) + b"K\x01a",
    "items added to a list": b"](K\x01\x90",
    "list as a key": b"}]K\x01s",
    "dict as an element of a set": call(name("builtins", "set"), b"]}a"),
    "long integer as a key": b"}" + number(1 << 70) + b"K\x01s",
    "deep tuple as a key": b"}" + DEEP_TUPLE + b"K\x01s",
    "tuple that repeats itself as a key": b"}" + LAUGHS + b"K\x01s",
    "key without a value": b"}(K\x01u",
    "nested too deep": DEEP,
    "tuples nested too deep": DEEP_TUPLE,
    "deep tuple as a function": DEEP_TUPLE + b"(tR",
    "stack underflow": b"\x86",
    "missing mark": b"K\x01t",
    "mark as a value": b"(\x85",
    "nothing at the end": b"",
    "two items at the end": b"K\x01K\x02",
    "mark at the end": b"K\x01(",
    "dangling memo": b"h\x07",
    "long dangling memo": b"j\xff\xff\xff\xff",
    "memo of nothing": b"q\x00K\x01",
    "unknown opcode": b"\xff",
    "text protocol": b"I1\n",
    "old class instance": b"(ios\nsystem\n",
    "object with keywords": name("collections", "OrderedDict") + b")}\x92",
    "extension registry": b"\x82\x01",
    "out-of-band buffer": b"\x97",
    "text persistent id": b"Pstorage\n",
    "cut string": b"X\xff\xff\xff\x7fabc",
    "cut long string": b"\x8d" + b"\xff" * 8,
    "cut bytes": b"B\x10\0\0\0a",
    "cut integer": b"\x8a\x20\x01",
    "negative length": b"\x8b\xff\xff\xff\xff",
    "cut number": b"J\x01",
    "name without its end": b"cos",
    "frame longer than the file": b"\x95" + b"\xff" * 8 + b"N",
    "protocol in the middle": b"N\x80\x02",
    "codec that is not bytes": call(name("_codecs", "encode"), text("x"), text("rot13")),
    "bytearray of a size": call(name("builtins", "bytearray"), number(1 << 40)),
    "complex of texts": call(name("builtins", "complex"), text("1"), text("2")),
    "size of texts": call(name("torch", "Size"), tuple_of(text("a"))),
    "unknown device": call(name("torch", "device"), text("nowhere")),
    "unknown layout": call(name("torch.serialization", "_get_layout"), text("__class__")),
    "parameter of a number": call(PARAMETER, number(1), b"\x88", EMPTY_HOOKS),
    "quantized tensor": call(name("torch._utils", "_rebuild_qtensor"), storage(4)),
    "subclass that is not allowed": call(
        name("torch._tensor", "_rebuild_from_type_v2"),
        name("torch._utils", "_rebuild_tensor_v2"),
        name("collections", "OrderedDict"),
        tuple_of(storage(4), number(0), numbers((4,)), numbers((1,)), b"\x89", EMPTY_HOOKS),
        b"}",
    ),
}


@pytest.mark.parametrize("body", PICKLES.values(), ids=PICKLES.keys())
def test_hostile_pickle_is_refused(body):
    with pytest.raises(CheckpointError):
        load(checkpoint(pickled(body), DATA))


def test_bytes_behind_the_pickle_are_refused():
    with pytest.raises(CheckpointError):
        load(checkpoint(GOOD + b"N.", DATA))


def test_pickle_without_stop_is_refused():
    with pytest.raises(CheckpointError):
        load(checkpoint(GOOD[:-1], DATA))


HUGE = (1 << 62) + 1
META = name("torch._utils", "_rebuild_meta_tensor_no_storage")


def _v3(dtype, size=(4,), stride=(1,), store=None):
    return call(
        name("torch._utils", "_rebuild_tensor_v3"),
        store or storage(16, kind=name("torch.storage", "UntypedStorage")),
        number(0),
        numbers(size),
        numbers(stride),
        b"\x89",
        EMPTY_HOOKS,
        name("torch", dtype),
    )


TENSORS = {
    "larger than its record": tensor((5,), (1,), numel=5),
    "smaller than its record": tensor((3,), (1,), numel=3),
    "count that overflows": tensor((4,), (1,), numel=HUGE),
    "negative count": tensor((4,), (1,), numel=-4),
    "view outside of the storage": tensor((5,), (1,)),
    "stride outside of the storage": tensor((2, 2), (3, 1)),
    "offset outside of the storage": tensor((2,), (1,), offset=3),
    "negative offset": tensor((2,), (1,), offset=-1),
    "negative size": tensor((-1,), (1,)),
    "negative stride": tensor((2,), (-1,)),
    "sizes that overflow": tensor((1 << 62, 4), (0, 1)),
    "stride that overflows": tensor((3,), (HUGE,)),
    "offset that overflows": tensor((2,), (1,), offset=(1 << 63) - 1),
    "number beyond 64 bits": tensor((1 << 70,), (0,)),
    "sizes and strides of different number": tensor((2, 2), (1,)),
    "too many dimensions": tensor((1,) * 65, (1,) * 65),
    "text as a size": call(
        name("torch._utils", "_rebuild_tensor_v2"),
        storage(4),
        number(0),
        tuple_of(text("4")),
        numbers((1,)),
        b"\x89",
        EMPTY_HOOKS,
    ),
    "boolean as a size": call(
        name("torch._utils", "_rebuild_tensor_v2"),
        storage(4),
        number(0),
        tuple_of(b"\x88"),
        numbers((1,)),
        b"\x89",
        EMPTY_HOOKS,
    ),
    "number as requires_grad": tensor((4,), (1,), grad=number(1)),
    "hooks": tensor((4,), (1,), hooks=EMPTY_HOOKS + text("a") + name("torch", "Tensor") + b"s"),
    "unknown metadata": tensor((4,), (1,), more=[b"}" + text("evil") + b"\x88s"]),
    "conjugate of real numbers": tensor((4,), (1,), more=[b"}" + text("conj") + b"\x88s"]),
    "too many arguments": tensor((4,), (1,), more=[b"}", b"}"]),
    "no storage": tensor((4,), (1,), store=b"]"),
    "gradient of integers": tensor(
        (2,), (1,), grad=b"\x88", store=storage(2, kind=name("torch", "LongStorage"))
    ),
    "one storage with two dtypes": b"]("
    + tensor((4,), (1,))
    + tensor((4,), (1,), store=storage(4, kind=name("torch", "IntStorage")))
    + b"e",
    "one storage on two devices": b"]("
    + tensor((4,), (1,))
    + tensor((4,), (1,), store=storage(4, device=text("meta")))
    + b"e",
    "missing record": tensor((4,), (1,), store=storage(4, key=text("7"))),
    "key that leaves the folder": tensor((4,), (1,), store=storage(4, key=text("../data.pkl"))),
    "key that is a number": tensor((4,), (1,), store=storage(4, key=number(0))),
    "key with a sign": tensor((4,), (1,), store=storage(4, key=text("+0"))),
    "device that is a number": tensor((4,), (1,), store=storage(4, device=number(0))),
    "device that is a sentence": tensor((4,), (1,), store=storage(4, device=text("the cpu"))),
    "persistent id of another kind": storage(4, tag=text("module")),
    "persistent id that is a text": text("storage") + b"Q",
    "persistent id of another class": storage(4, kind=name("torch", "Tensor")),
    "boolean bytes other than 0 and 1": tensor(
        (16,), (1,), store=storage(16, kind=name("torch", "BoolStorage"))
    ),
    "booleans through the untyped form": _v3("bool", (16,)),
    "view outside, untyped form": _v3("uint32", (5,)),
    "meta tensor with a negative size": call(
        META, name("torch", "float32"), numbers((-1,)), numbers((1,)), b"\x89"
    ),
    "meta tensor that overflows": call(
        META, name("torch", "float32"), numbers((HUGE, 8)), numbers((8, 1)), b"\x89"
    ),
    "meta tensor of a text": call(META, text("float32"), numbers((1,)), numbers((1,)), b"\x89"),
}


@pytest.mark.parametrize("body", TENSORS.values(), ids=TENSORS.keys())
def test_hostile_tensor_is_refused(body):
    with pytest.raises(CheckpointError):
        load(checkpoint(pickled(body), DATA))


def test_untyped_form_without_a_fault_loads():
    data = {"0": struct.pack("<4I", 1, 2, 3, 1 << 31)}
    found = load(checkpoint(pickled(_v3("uint32")), data))
    assert found.dtype is torch.uint32
    assert found.tolist() == [1, 2, 3, 1 << 31]


def test_refusal_never_suggests_the_unsafe_mode():
    with pytest.raises(CheckpointError) as caught:
        load(checkpoint(pickled(call(OS_SYSTEM, text("true"))), DATA))
    message = str(caught.value)
    assert message.startswith("Weights only load failed")
    assert "os.system" in message
    assert "weights_only=False" not in message


def _legacy(*changes):
    buffer = io.BytesIO()
    torch.save({"a": torch.arange(4.0)}, buffer, _use_new_zipfile_serialization=False)
    data = buffer.getvalue()
    for change in changes:
        data = change(data)
    return data


LEGACY = {
    "wrong magic number": _swap(b"\x8a\nl", b"\x8a\nm"),
    "wrong protocol": _swap(b"M\xe9\x03.", b"M\xe8\x03."),
    "cut in the pickle": lambda data: data[:60],
    "cut in the storages": lambda data: data[:-3],
    "bytes at the end": lambda data: data + b"\0",
    "count of elements too large": lambda data: (
        data[:-24] + struct.pack("<q", 1 << 60) + data[-16:]
    ),
    "negative count": lambda data: data[:-24] + struct.pack("<q", -1) + data[-16:],
    "storage larger than the file": _swap(b"cpuq\x06K\x04", b"cpuq\x06J\xff\xff\xff\x7f"),
    "global": _swap(b"torch._utils\n_rebuild_tensor_v2", b"posix\nsystem"),
}


@pytest.mark.parametrize("change", LEGACY.values(), ids=LEGACY.keys())
def test_hostile_legacy_file_is_refused(change, tmp_path):
    assert load(_legacy())["a"].tolist() == [0, 1, 2, 3]
    path = tmp_path / "legacy.pt"
    path.write_bytes(_legacy(change))
    with pytest.raises(CheckpointError):
        torch.load(path)


# ---- files changed at random --------------------------------------------------------------------


def _samples():
    value = {
        "w": torch.arange(12.0).reshape(3, 4),
        "view": torch.arange(6)[2:4],
        "flags": torch.tensor([True, False]),
        "p": torch.nn.Parameter(torch.ones(2)),
        "nested": [1, 2.5, "text", (None, b"bytes"), {"k": torch.float16}],
    }
    samples = []
    for zipped in (True, False):
        buffer = io.BytesIO()
        torch.save(value, buffer, _use_new_zipfile_serialization=zipped)
        samples.append(buffer.getvalue())
    return samples


def _mutated(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        offset, kind = rng.randrange(len(data)), rng.randrange(5)
        if kind == 0:
            data[offset] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[offset] = rng.randrange(256)
        elif kind == 2:
            del data[offset : offset + rng.randrange(1, 9)]
        elif kind == 3:
            data[offset:offset] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
        else:
            data[offset : offset + 4] = struct.pack(
                "<I", rng.choice((0, 1, 0x7FFFFFFF, 0xFFFFFFFF))
            )
        if not data:
            break
    return bytes(data)


def test_mutated_files_load_or_raise_one_exception_and_import_nothing():
    samples = _samples()
    for sample in samples:
        load(sample)
    loaded = set(sys.modules)
    rng = random.Random(7)
    refused = 0
    for _ in range(int(os.environ.get("CRESSET_LOAD_FUZZ", "3000"))):
        try:
            torch.load(io.BytesIO(_mutated(rng.choice(samples), rng)), map_location="cpu")
        except CheckpointError:
            refused += 1
    assert refused > 1000
    assert set(sys.modules) == loaded


def test_mutated_pickles_in_sound_containers_load_or_raise_one_exception():
    rng = random.Random(11)
    loaded = set(sys.modules)
    for _ in range(3000):
        with contextlib.suppress(CheckpointError):
            load(checkpoint(_mutated(GOOD, rng), DATA))
    assert set(sys.modules) == loaded


def test_every_truncation_is_refused():
    for sample in _samples():
        for length in range(0, len(sample), 7):
            with pytest.raises(CheckpointError):
                load(sample[:length])


def test_every_flipped_bit_in_a_zip_is_refused_or_harmless():
    sample = checkpoint(GOOD, DATA)
    for offset in range(len(sample)):
        data = bytearray(sample)
        data[offset] ^= 0x10
        try:
            found = load(bytes(data))
        except CheckpointError:
            continue
        assert found.tolist() == [[1, 2], [3, 4]], f"byte {offset} changed the content unnoticed"
