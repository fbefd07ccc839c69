"""torch.save and torch.load: what goes in comes out, in every dtype, with shared memory still
shared; and where files go. What remains on the disk when writing fails is in test_saving.py."""

import collections
import copy
import io
import pickle
import struct
import zipfile

import pytest
from tensor_support import raw, sample

import torch
from torch import serialization
from torch.serialization import CheckpointError, save_safetensors

DTYPES = [
    name
    for name in (
        "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
        "complex32 complex64 complex128 float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz"
    ).split()
    if hasattr(torch, name)
]


def round_trip(value, **options):
    """The value after a visit to a file in memory."""
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    buffer.seek(0)
    return torch.load(buffer)


# ---- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_tensor_of_each_dtype_keeps_its_bits(dtype, zipped):
    tensor = sample(dtype)
    found = round_trip(tensor, _use_new_zipfile_serialization=zipped)
    assert found.dtype is tensor.dtype
    assert found.shape == tensor.shape and found.stride() == tensor.stride()
    assert raw(found) == raw(tensor)


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_views_of_one_storage_share_it_after_loading(zipped):
    base = torch.arange(20.0)
    found = round_trip(
        {"base": base, "row": base[4:8], "grid": base.view(4, 5).t(), "same": base},
        _use_new_zipfile_serialization=zipped,
    )
    found["base"][5] = 100
    assert found["row"].tolist() == [4, 100, 6, 7]
    assert found["grid"][0, 1] == 100
    assert found["same"] is found["base"]
    assert found["grid"].stride() == (1, 5)


def test_memory_is_written_once_for_all_of_its_views():
    base = torch.zeros(1000)
    buffer = io.BytesIO()
    torch.save([base, base[:10], base.view(10, 100)], buffer)
    assert len(zipfile.ZipFile(buffer).namelist()) == 7
    assert len(buffer.getvalue()) < 6000


def test_views_as_different_dtypes_are_refused_when_saving():
    base = torch.zeros(4)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        torch.save([base, base.view(torch.int32)], io.BytesIO())


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_nested_containers_keep_types_and_order(protocol):
    value = {
        "list": [1, -5, 2**40, 2**100, 2.5, float("inf"), 1j, True, None, "text", "\u00e9\u4e2d"],
        "tuple": (1, (2, (3, [4]))),
        "set": {1, "a", (1, 2)},
        "frozenset": frozenset([1, 2]),
        "bytes": b"\x00\xffabc",
        "bytearray": bytearray(b"xyz"),
        "ordered": collections.OrderedDict([("z", 1), ("a", 2)]),
        "counter": collections.Counter("hello"),
        1: {2.5: {None: {(1, "k"): torch.float16}}},
        "size": torch.Size([2, 3]),
        "device": torch.device("cuda:1"),
        "empty": [[], {}, (), set(), ""],
        "layout": torch.strided,
        torch.int8: "key",
    }
    found = round_trip(value, pickle_protocol=protocol)
    assert found == value
    assert list(found) == list(value)
    assert list(found["ordered"]) == ["z", "a"]
    assert type(found["counter"]) is collections.Counter
    assert type(found["size"]) is torch.Size


@pytest.mark.parametrize("protocol", [2, 4])
def test_tensors_as_keys(protocol):
    parameter = torch.nn.Parameter(torch.ones(2))
    value = {"params": [parameter], "state": {parameter: {"step": 1}}, "set": {parameter}}
    found = round_trip(value, pickle_protocol=protocol)
    (key,) = found["state"]
    assert key is found["params"][0] and key in found["set"]
    assert found["state"][key] == {"step": 1}


def test_shared_and_recursive_containers_keep_their_identity():
    inner = [1]
    value = {"a": inner, "b": inner}
    value["self"] = value
    found = round_trip(value)
    assert found["a"] is found["b"]
    assert found["self"] is found


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1, 1, 1)])
def test_shapes_with_few_elements(shape):
    found = round_trip(torch.ones(shape))
    assert found.shape == shape
    assert found.tolist() == torch.ones(shape).tolist()


def test_expanded_tensor_keeps_its_zero_stride():
    found = round_trip(torch.tensor([1.0, 2.0]).expand(3, 2))
    assert found.stride() == (0, 1)
    assert found.untyped_storage().nbytes() == 8


def test_conjugate_and_negative_bits():
    tensor = torch.tensor([1 + 2j, 3 - 4j])
    found = round_trip([tensor.conj(), torch._neg_view(tensor.real.clone())])
    assert found[0].is_conj() and found[0].tolist() == [1 - 2j, 3 + 4j]
    assert found[1].is_neg() and found[1].tolist() == [-1, -3]


def test_parameters_gradient_flags_and_attributes():
    parameter = torch.nn.Parameter(torch.ones(2))
    marked = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    marked.note = "kept"
    leaf = torch.zeros(2, requires_grad=True)
    tagged = torch.zeros(2)
    tagged.tag = [1, 2]
    found = round_trip([parameter, marked, leaf, tagged])
    assert type(found[0]) is torch.nn.Parameter and found[0].requires_grad
    assert type(found[1]) is torch.nn.Parameter and not found[1].requires_grad
    assert found[1].note == "kept"
    assert type(found[2]) is torch.Tensor and found[2].requires_grad
    assert found[3].tag == [1, 2]


def test_meta_tensors_keep_their_geometry():
    found = round_trip(torch.empty(3, 4, device="meta").t())
    assert found.device.type == "meta"
    assert found.shape == (4, 3) and found.stride() == (1, 4)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storages_come_back_as_typed_storages():
    found = round_trip([torch.arange(3.0).storage(), torch.arange(3).untyped_storage()])
    assert found[0].dtype is torch.float32 and found[0].tolist() == [0, 1, 2]
    assert found[1].dtype is torch.uint8 and found[1].nbytes() == 24


def test_state_dict_keeps_its_metadata():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4))
    state = model.state_dict()
    found = round_trip(state)
    assert type(found) is collections.OrderedDict
    assert found._metadata == state._metadata
    other = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4))
    other.load_state_dict(found)
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_random_state_survives():
    torch.manual_seed(5)
    state = round_trip(torch.get_rng_state())
    first = torch.rand(4)
    torch.set_rng_state(state)
    assert torch.equal(torch.rand(4), first)


class Point:
    """A class of the program."""

    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return self.x == other.x


class Slotted:
    """A class without __dict__."""

    __slots__ = ("left", "right")


def test_classes_load_only_when_they_are_allowed():
    buffer = io.BytesIO()
    torch.save([Point(3)], buffer)
    buffer.seek(0)
    with pytest.raises(CheckpointError, match=r"Unsupported global.*Point"):
        torch.load(buffer)
    assert isinstance(CheckpointError("x"), (pickle.UnpicklingError, RuntimeError))
    buffer.seek(0)
    with serialization.safe_globals([Point]):
        assert torch.load(buffer) == [Point(3)]
    buffer.seek(0)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(buffer)
    buffer.seek(0)
    assert torch.load(buffer, weights_only=False) == [Point(3)]


def test_safe_globals_are_listed_and_cleared():
    before = serialization.get_safe_globals()
    try:
        serialization.add_safe_globals([Point, (Point, "old.module.Point")])
        assert Point in serialization.get_safe_globals()
        assert (Point, "old.module.Point") in serialization.get_safe_globals()
        serialization.clear_safe_globals()
        assert serialization.get_safe_globals() == []
        with pytest.raises(TypeError, match="classes or functions"):
            serialization.add_safe_globals([3])
    finally:
        serialization.clear_safe_globals()
        serialization.add_safe_globals(before)


def test_allowed_class_with_slots():
    value = Slotted()
    value.left, value.right = 1, [2]
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    with serialization.safe_globals([Slotted]):
        found = torch.load(buffer)
    assert (found.left, found.right) == (1, [2])


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_names_that_would_be_refused_are_listed(protocol, tmp_path):
    value = [Point(1), torch.ones(2), Slotted(), Point(2)]
    torch.save(value, tmp_path / "x.pt", pickle_protocol=protocol)
    found = serialization.get_unsafe_globals_in_checkpoint(tmp_path / "x.pt")
    assert sorted(found) == [f"{Point.__module__}.{name}" for name in ("Point", "Slotted")]


# ---- files --------------------------------------------------------------------------------------


def test_layout_of_the_archive(tmp_path):
    path = tmp_path / "model.v1.pt"
    torch.save({"a": torch.arange(5), "b": torch.ones(3)}, path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [
            f"model.v1/{name}"
            for name in (
                "data.pkl",
                ".format_version",
                ".storage_alignment",
                "byteorder",
                "data/0",
                "data/1",
                "version",
                ".data/serialization_id",
            )
        ]
        assert archive.read("model.v1/version") == b"3\n"
        assert archive.read("model.v1/byteorder") == b"little"
        for info in archive.infolist():
            with path.open("rb") as file:
                file.seek(info.header_offset)
                header = struct.unpack("<4s5H3I2H", file.read(30))
            assert (info.header_offset + 30 + header[-2] + header[-1]) % 64 == 0


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_saving_the_same_twice_gives_the_same_bytes(zipped):
    first, second = io.BytesIO(), io.BytesIO()
    value = {"a": torch.arange(5), "b": [1, 2]}
    torch.save(value, first, _use_new_zipfile_serialization=zipped)
    torch.save(copy.deepcopy(value), second, _use_new_zipfile_serialization=zipped)
    assert first.getvalue() == second.getvalue()


def test_mapped_storages_are_private_and_keep_the_file_as_it_is(tmp_path):
    path = tmp_path / "x.pt"
    torch.save({"a": torch.arange(100.0), "b": torch.ones(3)}, path)
    before = path.read_bytes()
    found = torch.load(path, mmap=True)
    assert found["a"].tolist() == list(range(100))
    found["a"].add_(1)
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match="file path"):
        torch.load(io.BytesIO(before), mmap=True)


def test_file_replaced_between_reading_and_mapping_is_noticed(tmp_path, monkeypatch):
    path = tmp_path / "x.pt"
    torch.save(torch.arange(100.0), path)
    original = torch.UntypedStorage.from_file

    def late(*args):
        torch.save(torch.ones(100), path)
        return original(*args)

    monkeypatch.setattr(torch.UntypedStorage, "from_file", late)
    with pytest.raises(CheckpointError, match="was replaced while it was loaded"):
        torch.load(path, mmap=True)


def test_mapped_file_survives_its_replacement(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.arange(100_000.0), path)
    found = torch.load(path, mmap=True)
    torch.save(torch.ones(3), path)
    assert torch.equal(found, torch.arange(100_000.0))


def test_map_location_in_its_forms(tmp_path):
    path = tmp_path / "x.pt"
    base = torch.arange(3.0)
    torch.save([base, base[1:]], path)
    seen = []

    def note(storage, location):
        seen.append((type(storage).__name__, location))

    assert torch.load(path, map_location="meta")[1].device.type == "meta"
    assert torch.load(path, map_location=torch.device("cpu"))[0].tolist() == [0, 1, 2]
    assert torch.load(path, map_location={"cpu": "meta"})[0].device.type == "meta"
    assert torch.load(path, map_location=note)[0].tolist() == [0, 1, 2]
    assert seen == [("UntypedStorage", "cpu")]
    with pytest.raises(RuntimeError, match="don't know how to restore"):
        torch.load(path, map_location="nowhere")
    with pytest.raises(TypeError, match="map_location"):
        torch.load(path, map_location=5)


def test_location_of_an_absent_device_is_explained(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    torch.save(torch.ones(2), tmp_path / "x.pt")
    with pytest.raises(RuntimeError, match=r"torch.cuda.is_available\(\) is False"):
        torch.load(tmp_path / "x.pt", map_location="cuda:0")


def test_flipped_bit_in_the_data_is_noticed(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.arange(1000.0), path)
    data = bytearray(path.read_bytes())
    data[2000] ^= 1
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match="checksum"):
        torch.load(path)


def test_checksums_can_be_left_out():
    serialization.set_crc32_options(False)
    try:
        buffer = io.BytesIO()
        torch.save(torch.arange(4), buffer)
    finally:
        serialization.set_crc32_options(True)
    assert all(info.CRC == 0 for info in zipfile.ZipFile(buffer).infolist())
    buffer.seek(0)
    assert torch.load(buffer).tolist() == [0, 1, 2, 3]


def test_settings_are_those_of_the_config_module(tmp_path):
    from torch.utils.serialization import config

    path = tmp_path / "x.pt"
    with config.patch({"save.storage_alignment": 4096, "save.compute_crc32": False}):
        assert not serialization.get_crc32_options()
        torch.save({"a": torch.arange(5)}, path)
    assert serialization.get_crc32_options()
    with zipfile.ZipFile(path) as archive:
        assert all(info.CRC == 0 for info in archive.infolist())
    data = path.read_bytes()
    assert data.find(struct.pack("<2q", 0, 1)) % 4096 == 0 and b"4096PK" in data
    with config.patch("load.mmap", True):
        assert torch.load(path)["a"].tolist() == [0, 1, 2, 3, 4]
        # Only a file that has a path can be mapped.
        with pytest.raises(ValueError, match="f must be a file path"):
            torch.load(io.BytesIO(data))
    assert torch.load(io.BytesIO(data))["a"].tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(AttributeError, match=r"load\.bogus does not exist"):
        config.load.bogus = 1
    with config.patch("save.storage_alignment", 100), pytest.raises(ValueError, match="power"):
        torch.save(1, tmp_path / "y.pt")
    assert not (tmp_path / "y.pt").exists()


def test_skipped_data_leaves_room_for_it():
    buffer = io.BytesIO()
    with serialization.skip_data():
        torch.save(torch.arange(4.0), buffer)
    buffer.seek(0)
    assert torch.load(buffer).tolist() == [0, 0, 0, 0]
    full = io.BytesIO()
    torch.save(torch.arange(4.0), full)
    assert len(full.getvalue()) == len(buffer.getvalue())
    full.seek(0)
    with serialization.skip_data():
        assert torch.load(full).shape == (4,)


def test_objects_one_after_another_in_a_legacy_stream():
    buffer = io.BytesIO()
    for value in (torch.arange(3), {"b": torch.ones(2)}, "end"):
        torch.save(value, buffer, _use_new_zipfile_serialization=False)
    buffer.seek(0)
    assert torch.load(buffer).tolist() == [0, 1, 2]
    assert torch.load(buffer)["b"].tolist() == [1, 1]
    assert torch.load(buffer) == "end"


def test_archive_behind_other_bytes_in_a_stream():
    buffer = io.BytesIO(b"header")
    buffer.seek(6)
    torch.save(torch.arange(3), buffer)
    buffer.seek(6)
    assert torch.load(buffer).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda p: torch.load(p / "absent.pt"), FileNotFoundError, "absent.pt"),
        (lambda p: torch.load(5), AttributeError, "seekable"),
        (lambda p: torch.save(1, 5), AttributeError, "'write' attribute"),
        (lambda p: torch.save(1, p / "no" / "x.pt"), RuntimeError, "Parent directory"),
        (
            lambda p: torch.save(lambda: 1, p / "x"),
            (AttributeError, pickle.PicklingError),
            "pickle",
        ),
        (
            lambda p: torch.load(p / "x", pickle_module=pickle, weights_only=True),
            RuntimeError,
            "explicit pickle_module",
        ),
        (lambda p: torch.load(p / "x", bogus=1), TypeError, "bogus"),
    ],
)
def test_wrong_arguments(call, error, message, tmp_path):
    with pytest.raises(error, match=message):
        call(tmp_path)


def test_file_of_another_kind_is_named(tmp_path):
    save_safetensors({"a": torch.ones(2)}, tmp_path / "x.safetensors")
    with pytest.raises(CheckpointError, match="safetensors file"):
        torch.load(tmp_path / "x.safetensors")
    (tmp_path / "p.pt").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    with pytest.raises(CheckpointError, match="Git LFS"):
        torch.load(tmp_path / "p.pt")
