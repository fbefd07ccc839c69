"""`torch.package`: what is saved runs from the archive, apart from the program's modules."""

from __future__ import annotations

import inspect
import io
import sys
import textwrap
import zipfile

import pytest

import torch
from torch.package import (
    EmptyMatchError,
    GlobGroup,
    OrderedImporter,
    PackageExporter,
    PackageImporter,
    PackagingError,
    is_from_package,
    sys_importer,
)


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """`pkg_outer` with `pkg_outer.inner`, and `pkg_single`, on the path of the program."""
    files = {
        "pkg_outer/__init__.py": """
            from . import inner

            class Box:
                def __init__(self, value):
                    self.value = inner.twice(value)
        """,
        "pkg_outer/inner.py": """
            import math
            import pkg_single

            def twice(x):
                return 2 * x
        """,
        "pkg_single.py": """
            name = "single"
        """,
    }
    for path, text in files.items():
        file = tmp_path / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in list(sys.modules):
        if name.startswith(("pkg_outer", "pkg_single")):
            del sys.modules[name]


def packed(fill) -> PackageImporter:
    buffer = io.BytesIO()
    with PackageExporter(buffer) as exporter:
        fill(exporter)
    buffer.seek(0)
    return PackageImporter(buffer)


def test_pickled_object_brings_its_modules_and_tensors(modules) -> None:
    import pkg_outer

    tensor = torch.arange(4.0)
    box = pkg_outer.Box(tensor)
    box.alias = box.value[1:]

    def fill(exporter):
        exporter.intern(["pkg_outer.**", "pkg_single"])
        exporter.save_pickle("objects", "box.pkl", box)

    importer = packed(fill)
    loaded = importer.load_pickle("objects", "box.pkl")
    assert loaded.value.tolist() == [0, 2, 4, 6]
    loaded.value[1] = 9
    assert loaded.alias[0] == 9 and box.value[1] == 2
    assert type(loaded) is not pkg_outer.Box and type(loaded).__name__ == "Box"
    assert importer.import_module("pkg_outer").Box is type(loaded)
    assert importer.import_module("math") is sys.modules["math"]
    assert is_from_package(loaded) and not is_from_package(box)
    assert inspect.getsource(type(loaded)) == inspect.getsource(pkg_outer.Box)
    assert importer.python_version().count(".") == 2


def test_two_importers_of_one_package_share_nothing(modules) -> None:
    buffer = io.BytesIO()
    with PackageExporter(buffer) as exporter:
        exporter.save_module("pkg_single")
    first, second = PackageImporter(buffer), PackageImporter(buffer)
    assert first.import_module("pkg_single") is not second.import_module("pkg_single")
    first.import_module("pkg_single").name = "changed"
    assert second.import_module("pkg_single").name == "single"
    with pytest.raises(ModuleNotFoundError, match="pkg_outer"):
        first.import_module("pkg_outer")


def test_modules_that_no_pattern_handles_are_named_together(modules) -> None:
    import pkg_outer

    with pytest.raises(PackagingError) as caught, PackageExporter(io.BytesIO()) as exporter:
        exporter.save_pickle("objects", "box.pkl", pkg_outer.Box(1))
    text = str(caught.value)
    assert "* Module did not match against any action pattern." in text
    assert "    pkg_outer\n" in text and "debug=True" in text


def test_mocked_modules_can_be_imported_but_not_used(modules) -> None:
    def fill(exporter):
        exporter.mock("pkg_single")
        exporter.intern(["pkg_outer.**", "pkg_single"])
        exporter.save_module("pkg_outer")

    inner = packed(fill).import_module("pkg_outer.inner")
    assert inner.twice(3) == 6
    with pytest.raises(NotImplementedError, match="was mocked out"):
        inner.pkg_single.name()


def test_denied_and_unmatched_patterns_raise(modules) -> None:
    with pytest.raises(PackagingError, match="denied"), PackageExporter(io.BytesIO()) as exporter:
        exporter.deny("pkg_single")
        exporter.save_source_string("top", "import pkg_single")
    with (
        pytest.raises(EmptyMatchError, match="did not match any modules"),
        PackageExporter(io.BytesIO()) as exporter,
    ):
        exporter.extern("absent.*", allow_empty=False)
        exporter.save_source_string("top", "x = 1")


def test_externed_modules_are_those_of_the_program(modules) -> None:
    import pkg_single

    def fill(exporter):
        exporter.extern("pkg_single")
        exporter.save_source_string("top", "import pkg_single as held")

    assert packed(fill).import_module("top").held is pkg_single


def test_files_are_read_by_name_and_by_importlib(modules) -> None:
    import importlib.resources

    def fill(exporter):
        exporter.save_text("data.more", "a.txt", "text")
        exporter.save_binary("data.more", "b.bin", b"\x00\x01")

    importer = packed(fill)
    assert importer.load_text("data.more", "a.txt") == "text"
    assert importer.load_binary("data.more", "b.bin") == b"\x00\x01"
    module = importer.import_module("data.more")
    with pytest.warns(DeprecationWarning, match="deprecated"):
        assert importlib.resources.read_text(module, "a.txt") == "text"
    tree = importer.file_structure(include="data/**")
    assert tree.has_file("data/more/a.txt") and not tree.has_file("data/more")
    assert "└── data" in str(tree)


def test_unpacked_folder_is_a_package_too(modules, tmp_path) -> None:
    file = tmp_path / "saved.pt"
    with PackageExporter(str(file)) as exporter:
        exporter.save_module("pkg_single")
    zipfile.ZipFile(file).extractall(tmp_path / "out")
    importer = PackageImporter(tmp_path / "out" / "saved")
    assert importer.import_module("pkg_single").name == "single"


def test_object_of_a_package_is_packed_again_by_its_importer(modules) -> None:
    import pkg_outer

    def fill(exporter):
        exporter.intern(["pkg_outer.**", "pkg_single"])
        exporter.save_pickle("objects", "box.pkl", pkg_outer.Box(4))

    first = packed(fill)
    held = first.load_pickle("objects", "box.pkl")
    buffer = io.BytesIO()
    with PackageExporter(buffer, importer=OrderedImporter(first, sys_importer)) as exporter:
        exporter.intern(["pkg_outer.**", "pkg_single"])
        exporter.save_pickle("objects", "box.pkl", held)
    assert PackageImporter(buffer).load_pickle("objects", "box.pkl").value == 8


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04", b"not a zip at all"])
def test_damaged_archives_raise(damage: bytes) -> None:
    with pytest.raises((RuntimeError, OSError)):
        PackageImporter(io.BytesIO(damage))


def test_storage_of_another_size_than_its_record_raises() -> None:
    buffer = io.BytesIO()
    with PackageExporter(buffer) as exporter:
        exporter.save_pickle("objects", "x.pkl", torch.arange(4.0))
    source = zipfile.ZipFile(buffer)
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            target.writestr(name, data[:3] if name.endswith(".storage") else data)
    with pytest.raises(RuntimeError, match="should have 16 bytes, its record has 3"):
        PackageImporter(other).load_pickle("objects", "x.pkl")


def test_glob_group_matches_whole_components() -> None:
    group = GlobGroup("torch.**", exclude=["torch.**.private"])
    assert group.matches("torch") and group.matches("torch.a.b")
    assert not group.matches("torchvision") and not group.matches("torch.a.private")
    with pytest.raises(ValueError, match="entire path segment"):
        GlobGroup("a.**b")
