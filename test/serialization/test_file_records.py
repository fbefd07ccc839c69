"""Archives record by record, the source of modules in legacy files, and how file objects are
read."""

import copy
import importlib.util
import io
import pickle
import sys
import warnings
import zipfile

import pytest

import torch
from torch.serialization import SourceChangeWarning


@pytest.mark.parametrize("kind", ["path", "buffer"])
def test_records_written_one_by_one_are_read_back(tmp_path, kind):
    target = tmp_path / "some.zip" if kind == "path" else io.BytesIO()
    with torch.serialization._open_zipfile_writer(target) as writer:
        writer.write_record("a", b"123456", 3)
        writer.write_record("b/c", torch.arange(2, dtype=torch.uint8).untyped_storage(), 2)
        with pytest.raises(RuntimeError, match="has a record 'a' already"):
            writer.write_record("a", b"", 0)
        with pytest.raises(RuntimeError, match="9 bytes asked for of 1"):
            writer.write_record("d", b"1", 9)
    if kind == "buffer":
        target.seek(0)
    with torch.serialization._open_zipfile_reader(target) as reader:
        assert reader.get_record("a") == b"123"
        assert reader.get_record("b/c") == b"\0\1"
    names = zipfile.ZipFile(target).namelist()
    assert {name.split("/", 1)[1] for name in names} >= {"a", "b/c", "version"}


def test_is_zipfile_looks_at_the_position_and_not_at_the_end():
    end_record = bytes([ord("P"), ord("K"), 5, 6] + [0] * 18)
    file = io.BytesIO(b"before" + end_record)
    file.seek(6)
    assert zipfile.is_zipfile(file)
    file.seek(6)
    assert not torch.serialization._is_zipfile(file)
    assert file.tell() == 6
    archive = io.BytesIO()
    torch.save(1, archive)
    archive.seek(0)
    assert torch.serialization._is_zipfile(archive)


class _Readinto(io.BytesIO):
    calls = 0

    def readinto(self, target):
        self.calls += 1
        return super().readinto(target)


@pytest.mark.parametrize("zipped", [True, False])
def test_storages_of_a_file_object_are_read_in_place(zipped):
    plain = io.BytesIO()
    tensor = torch.arange(20.0)
    torch.save(tensor, plain, _use_new_zipfile_serialization=zipped)
    file = _Readinto(plain.getvalue())
    assert torch.equal(torch.load(file), tensor)
    assert file.calls > 0


def _module(folder, text):
    path = folder / "saved_source.py"
    path.write_text("import torch\n\n\nclass Net(torch.nn.Module):\n" + text)
    spec = importlib.util.spec_from_file_location("saved_source", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules["saved_source"] = module
    return module


def test_a_module_whose_source_changed_since_a_legacy_save_warns(tmp_path, monkeypatch):
    import linecache

    monkeypatch.setitem(sys.modules, "saved_source", None)
    file = io.BytesIO()
    net = _module(tmp_path, "    size = 1\n").Net()
    torch.save([net, net], file, _use_new_zipfile_serialization=False)
    file.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert type(torch.load(file, weights_only=False)[1]).size == 1
    _module(tmp_path, "    size = 2  # changed\n")
    linecache.clearcache()
    file.seek(0)
    with pytest.warns(SourceChangeWarning, match="saved_source.Net"):
        assert type(torch.load(file, weights_only=False)[0]).size == 2


def test_encoding_bytes_concerns_the_object_and_not_the_file_itself():
    # A file of Python 2: texts are byte strings, the machine's description included.
    def text(word):
        return b"U" + bytes([len(word)]) + word

    system = b"\x80\x02}(" + text(b"little_endian") + b"\x88" + b"u."
    header = pickle.dumps(torch.serialization.MAGIC_NUMBER, 2) + pickle.dumps(1001, 2)
    whole = header + system + b"\x80\x02" + text(b"\xc5\xbc") + b"." + pickle.dumps([], 2)
    for weights_only in (True, False):
        as_bytes = torch.load(io.BytesIO(whole), weights_only=weights_only, encoding="bytes")
        assert as_bytes == b"\xc5\xbc"
        as_text = torch.load(io.BytesIO(whole), weights_only=weights_only, encoding="utf-8")
        assert as_text == b"\xc5\xbc".decode()


class Wrapper(torch.Tensor):
    """Holds another tensor in a slot."""

    __slots__ = ["elem"]

    @staticmethod
    def __new__(cls, elem):
        made = torch.Tensor._make_wrapper_subclass(cls, elem.shape, dtype=elem.dtype)
        made.elem = elem
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def inner(value):
            return value.elem if isinstance(value, cls) else value

        out = func(*map(inner, args), **(kwargs or {}))
        return cls(out) if isinstance(out, torch.Tensor) else out


def test_a_wrapper_subclass_loads_safely_once_it_is_allowed():
    file = io.BytesIO()
    torch.save(Wrapper(torch.arange(3.0)), file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match=r"add_safe_globals\(\[Wrapper\]\)"):
        torch.load(file)
    file.seek(0)
    assert torch.serialization.get_unsafe_globals_in_checkpoint(file) == [f"{__name__}.Wrapper"]
    file.seek(0)
    with torch.serialization.safe_globals([Wrapper]):
        loaded = torch.load(file)
    assert type(loaded) is Wrapper
    assert loaded.elem.tolist() == [0.0, 1.0, 2.0]


def test_deepcopy_of_a_subclass_copies_its_slots():
    class Noted(torch.Tensor):
        __slots__ = ["note"]

    made = torch.ones(2).as_subclass(Noted)
    made.note = ["x"]
    again = copy.deepcopy(made)
    assert again.note == ["x"]
    assert again.note is not made.note


def test_typed_storage_warns_at_every_use_when_told_so():
    torch.storage._set_always_warn_typed_storage_removal(True)
    try:
        assert torch.storage._get_always_warn_typed_storage_removal()
        for _ in range(2):
            with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
                torch.ones(1).storage()
    finally:
        torch.storage._set_always_warn_typed_storage_removal(False)
