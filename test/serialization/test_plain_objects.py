"""Whole objects in checkpoint files: plain pickles, storages as data, records, wrapper tensors."""

import io
import pickle
import pickletools
import zipfile

import pytest

import torch
from torch import nn


def test_single_records_of_a_file(tmp_path):
    weight = torch.arange(6, dtype=torch.float32)
    torch.save({"w": weight}, tmp_path / "file.pt")
    reader = torch.PyTorchFileReader(str(tmp_path / "file.pt"))
    assert reader.has_record("data.pkl")
    assert reader.version() == 3
    (name,) = [n for n in reader.get_all_records() if n.startswith("data/")]
    found = reader.get_storage_from_record(name, 6, torch.float32)
    torch.testing.assert_close(found, weight)
    raw = reader.get_storage_from_record(name, 24, torch.UntypedStorage)
    assert raw.dtype == torch.uint8
    with pytest.raises(RuntimeError):
        reader.get_storage_from_record(name, 7, torch.float32)


class TestStorageAsData:
    """torch.asarray and its kin take a storage as the bytes of a one-dimensional tensor."""

    def test_asarray_shares_the_memory_of_a_slice(self):
        storage = torch.UntypedStorage(16)
        for i in range(16):
            storage[i] = i
        t = torch.asarray(storage[4:8], dtype=torch.uint8)
        assert t.tolist() == [4, 5, 6, 7]
        t[0] = 99
        assert storage[4] == 99

    def test_asarray_reads_bytes_as_the_dtype(self):
        source = torch.tensor([1.5, -2.0])
        t = torch.asarray(source.untyped_storage(), dtype=torch.float32)
        assert t.tolist() == [1.5, -2.0] and t.data_ptr() == source.data_ptr()

    def test_tensor_copies(self):
        source = torch.tensor([1, 2], dtype=torch.int32)
        t = torch.tensor(source.untyped_storage(), dtype=torch.int32)
        assert t.tolist() == [1, 2] and t.data_ptr() != source.data_ptr()

    def test_typed_storage_keeps_its_dtype(self):
        typed = torch.TypedStorage([1.0, 2.0, 3.0])
        t = torch.asarray(typed)
        assert t.dtype == torch.float32 and t.tolist() == [1.0, 2.0, 3.0]
        assert t.data_ptr() == typed.data_ptr()

    def test_size_that_is_no_multiple_is_an_error(self):
        with pytest.raises(ValueError, match="7 bytes"):
            torch.asarray(torch.UntypedStorage(7), dtype=torch.int32)


class TestPlainPickle:
    """pickle.dumps of a tensor names what PyTorch's pickles name, so that each reads the other's
    and an Unpickler can put its own function in the place of torch.storage._load_from_bytes."""

    def test_names(self):
        for dtype in (torch.float32, torch.float8_e5m2):
            data = pickle.dumps(torch.ones(2, dtype=dtype))
            names = [arg for op, arg, _ in pickletools.genops(data) if isinstance(arg, str)]
            assert all(name in known for name, known in zip(names, PICKLED_NAMES, strict=False))

    @pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.uint16])
    def test_round_trip(self, dtype):
        tensor = torch.tensor([0, 1, 1]).to(dtype)
        again = pickle.loads(pickle.dumps(tensor))
        assert again.dtype == dtype and torch.equal(again, tensor)

    def test_shared_memory_stays_shared(self):
        whole = torch.zeros(4)
        a, b = pickle.loads(pickle.dumps((whole, whole[1:])))
        a[1] = 7
        assert b[0] == 7

    def test_storages(self):
        storage = torch.tensor([1.0, 2.0]).untyped_storage()
        again = pickle.loads(pickle.dumps(storage))
        assert again.tolist() == storage.tolist() and again.data_ptr() != storage.data_ptr()

    def test_loader_can_be_replaced(self):
        class Unpickler(pickle.Unpickler):
            def find_class(self, module, name):
                if (module, name) == ("torch.storage", "_load_from_bytes"):
                    return lambda b: torch.load(io.BytesIO(b), map_location="cpu")
                return super().find_class(module, name)

        again = Unpickler(io.BytesIO(pickle.dumps(torch.arange(3)))).load()
        assert again.tolist() == [0, 1, 2]


PICKLED_NAMES = [
    {"torch._utils"},
    {"_rebuild_tensor_v2", "_rebuild_tensor_v3"},
    {"torch.storage"},
    {"_load_from_bytes"},
    {"collections"},
    {"OrderedDict"},
    {"torch"},
    {"float8_e5m2"},
]


def test_save_flushes_a_writer():
    class Collector:
        def __init__(self):
            self.parts, self.flushed = [], 0

        def write(self, data):
            self.parts.append(bytes(data))

        def flush(self):
            self.flushed += 1

    out = Collector()
    torch.save({"a": torch.ones(2)}, out)
    assert out.flushed == 1
    assert torch.load(io.BytesIO(b"".join(out.parts)))["a"].tolist() == [1.0, 1.0]


def globals_of(obj):
    """The names that the pickle of a saved object calls for."""
    file = io.BytesIO()
    torch.save(obj, file)
    with zipfile.ZipFile(file) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith("data.pkl"))
        operations = pickletools.genops(archive.read(name))
        return {arg for op, arg, _ in operations if op.name == "GLOBAL"}


class TestWholeObjects:
    def test_classes_are_where_pytorch_looks_for_them(self):
        weight = torch.ones(2, 2, requires_grad=True)
        for obj, name in (
            (torch.optim.AdamW([weight]), "torch.optim.adamw AdamW"),
            (torch.optim.Adafactor([weight]), "torch.optim Adafactor"),
            (torch.optim.Muon([weight]), "torch.optim Muon"),
            (nn.Fold(4, 2), "torch.nn.modules.fold Fold"),
            (nn.Unfold(2), "torch.nn.modules.fold Unfold"),
            (nn.LazyConv2d(2, 3), "torch.nn.modules.conv LazyConv2d"),
            (nn.LazyLinear(2), "torch.nn.modules.module _WrappedHook"),
        ):
            assert name in globals_of(obj)

    def test_lists_of_weights_are_in_pickles_only(self):
        net = nn.LSTM(2, 3, bidirectional=True)
        state = net.__getstate__()
        assert state["_flat_weights_names"][:2] == ["weight_ih_l0", "weight_hh_l0"]
        assert all(w is getattr(net, n) for n, w in zip(
            state["_flat_weights_names"], state["_flat_weights"], strict=True))  # fmt: skip
        again = pickle.loads(pickle.dumps(net))
        assert "_flat_weights" not in vars(again)
        assert torch.equal(again._flat_weights[0], net.weight_ih_l0)

    def test_a_legacy_file_with_the_source_of_a_class(self):
        """PyTorch wrote ("module", class, path, source) for the class of each module."""
        net = nn.Linear(2, 3)

        class Pickler(pickle.Pickler):
            def persistent_id(self, obj):
                if obj is nn.Linear and obj not in described:
                    described.append(obj)
                    return "module", obj, "linear.py", "class Linear: ..."
                if isinstance(obj, torch.storage.TypedStorage):
                    key = str(obj._cdata)
                    kept[key] = obj
                    return "storage", torch.FloatStorage, key, "cpu", obj._size(), None
                return None

        kept, described = {}, []
        file = io.BytesIO()
        system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}
        for head in (0x1950A86A20F9469CFC6C, 1001, system):
            pickle.dump(head, file, protocol=2)
        Pickler(file, protocol=2).dump(net)
        pickle.dump(sorted(kept), file, protocol=2)
        for key in sorted(kept):
            file.write(kept[key]._size().to_bytes(8, "little"))
            file.write(bytes(kept[key].untyped().tolist()))
        file.seek(0)
        loaded = torch.load(file, weights_only=False)
        assert torch.equal(loaded.weight, net.weight)
        file.seek(0)
        with pytest.raises(pickle.UnpicklingError):
            torch.load(file)

    def test_strided_nested_tensors_in_the_form_pytorch_reads(self):
        nested = torch.nested.nested_tensor([torch.ones(2, 2), torch.arange(3.0).view(3, 1)])
        assert "torch._utils _rebuild_nested_tensor" in globals_of(nested)
        file = io.BytesIO()
        torch.save(nested, file)
        file.seek(0)
        for part, own in zip(torch.load(file).unbind(), nested.unbind(), strict=True):
            assert torch.equal(part, own)

    def test_a_hook_before_loading_survives(self):
        net = nn.utils.spectral_norm(nn.Linear(2, 2))
        again = pickle.loads(pickle.dumps(net))
        assert torch.equal(again.weight_orig, net.weight_orig)
        seen = []
        holder = nn.Module()
        holder.register_load_state_dict_pre_hook(lambda module, *rest: seen.append(module))
        (hook,) = holder._load_state_dict_pre_hooks.values()
        state = hook.__getstate__()
        assert state["with_module"] is True and state["module"] is holder
        other = object.__new__(type(hook))
        other.__setstate__({"hook": seen.append, "with_module": False})
        other("loaded")
        assert seen == ["loaded"]

    def test_refusals_have_pytorchs_names(self):
        file = io.BytesIO()
        torch.save(range(3), file)
        file.seek(0)
        with pytest.raises(pickle.UnpicklingError) as caught:
            torch.load(file)
        assert type(caught.value).__name__ == "UnpicklingError"
        assert isinstance(caught.value, torch.serialization.CheckpointError)
        with pytest.raises(RuntimeError) as caught:
            torch.load(io.BytesIO(b"PK\x03\x04"))
        assert type(caught.value).__name__ == "RuntimeError"


def test_storage_from_buffer():
    content = bytearray(range(8))
    storage = torch.UntypedStorage.from_buffer(content, dtype=torch.uint8, count=4, offset=2)
    assert storage.tolist() == [2, 3, 4, 5]
    storage[0] = 9
    assert content[2] == 2
    swapped = torch.UntypedStorage.from_buffer(content, byte_order="big", dtype=torch.int16)
    assert torch.tensor([], dtype=torch.int16).set_(swapped).tolist() == [1, 515, 1029, 1543]
    floats = torch.FloatStorage.from_buffer(b"\0\0\x80?\0\0\0@", byte_order="little")
    assert floats.tolist() == [1.0, 2.0] and floats.dtype is torch.float32
    assert torch.ByteStorage.from_buffer(b"").tolist() == []


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (RuntimeError, "argument 'dtype' cannot be None", {}),
        (RuntimeError, "must be of type torch.dtype", {"dtype": "x"}),
        (RuntimeError, "missing required argument 'byte_order'", {"dtype": torch.float32}),
        (ValueError, "invalid byte_order 'x'", {"dtype": torch.int8, "byte_order": "x"}),
        (ValueError, "multiple of element size", {"dtype": torch.int16, "byte_order": "little"}),
        (ValueError, "but specified a size of 8", {"dtype": torch.uint8, "count": 8}),
        (ValueError, "offset must be non-negative", {"dtype": torch.uint8, "offset": 8}),
        (ValueError, "offset must be non-negative", {"dtype": torch.uint8, "offset": -1}),
    ],
)
def test_storage_from_buffer_errors(error, message, arguments):
    with pytest.raises(error, match=message):
        torch.UntypedStorage.from_buffer(bytes(7), **arguments)
    with pytest.raises(TypeError, match="bytes-like"):
        torch.UntypedStorage.from_buffer(5, dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="'dtype' can only be specified"):
        torch.ByteStorage.from_buffer(b"", dtype=torch.int8)
