"""The licences of what was taken from others: listed, carried by every installation, and true about
the files of the tree."""

import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "build"))

import metadata  # noqa: E402

TEXT = (ROOT / "THIRD_PARTY.md").read_text()


def test_installed_metadata_carries_the_licence_texts(tmp_path):
    folder = metadata.write(tmp_path)
    for name in ("LICENSE", "THIRD_PARTY.md"):
        assert (folder / "licenses" / name).read_text() == (ROOT / name).read_text()
        assert f"License-File: {name}\n" in (folder / "METADATA").read_text()
        assert f"{folder.name}/licenses/{name},," in (folder / "RECORD").read_text().splitlines()


def test_metadata_of_another_version_is_removed_with_its_licences(tmp_path):
    old = tmp_path / "torch-0+cresset.0.dist-info" / "licenses"
    old.mkdir(parents=True)
    (old / "LICENSE").write_text("old")
    folder = metadata.write(tmp_path)
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize(
    "holder",
    [
        "Stephen L. Moshier",
        "Julien Pommier",
        "Giovanni Garberoglio",
        "Frances Y. Kuo and Stephen Joe",
        "The OpenBLAS Project",
        "The University of Tennessee",
    ],
)
def test_every_holder_of_rights_is_named_in_a_licence_text(holder):
    texts = re.findall(r"```text\n(.*?)```", TEXT, flags=re.DOTALL)
    assert any(holder in text and "opyright" in text for text in texts)


def test_files_named_beside_the_licences_exist_and_point_back():
    named = set(re.findall(r"`((?:aten|torch)/[\w./-]+)`", TEXT))
    files = {name for name in named if (ROOT / name).is_file()}
    assert named == files | {name for name in named if (ROOT / name).is_dir()}
    taken = TEXT.split("## Published algorithms")[0]
    for name in files:
        if name in taken:
            where = ROOT / name
            where = where if where.suffix == ".cpp" else where.parent / "__init__.py"
            assert "THIRD_PARTY.md" in where.read_text(), name


@pytest.mark.slow
def test_built_wheel_lists_the_licence_texts(tmp_path):
    """With the backend's own settings, on a project without anything to compile."""
    pytest.importorskip("scikit_build_core", reason="the build backend is not installed here")
    settings = (ROOT / "pyproject.toml").read_text()
    (tmp_path / "pyproject.toml").write_text(settings.replace("tool.ruff", "tool.unused"))
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(empty LANGUAGES NONE)\n"
    )
    for name in ("README.md", "LICENSE", "THIRD_PARTY.md"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    for package in ("torch", "functorch"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    build = "import sys; from scikit_build_core.build import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=tmp_path, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    listed = zipfile.ZipFile(wheel).namelist()
    for name in ("LICENSE", "THIRD_PARTY.md"):
        assert sum(entry.endswith(f".dist-info/licenses/{name}") for entry in listed) == 1
