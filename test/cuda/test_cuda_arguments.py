"""Structures that the host fills and kernels read: both sides include one header, which states the
layout. Every structure of these headers must be among the stated ones: a member more stops the
compiler."""

import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ATEN = ROOT / "aten" / "src" / "ATen"
HEADERS = [
    ROOT / "c10" / "cuda" / "DeviceError.h",
    ATEN / "cuda" / "device" / "Arguments.h",
    *sorted((ATEN / "native").glob("*/*.args.h")),
]
STRUCT = re.compile(r"^(?:template <[^>]*> )?struct (?:alignas\(16\) )?(\w+) \{\n", re.MULTILINE)
STRUCTS = [(path, name) for path in HEADERS for name in STRUCT.findall(path.read_text())]

compiler = shutil.which("g++")
# The tests compile an argument structure with a member too many: without a compiler there is
# nothing to refuse it. A build of this tree has one.
pytestmark = pytest.mark.skipif(compiler is None, reason="needs a C++ compiler")


def compiled(text):
    command = [compiler, "-std=gnu++17", "-fsyntax-only", "-x", "c++", "-"]
    folders = [f"-I{ATEN.parent}", f"-I{ROOT}"]
    return subprocess.run([*command, *folders], input=text, capture_output=True, text=True)


def test_there_are_structures_to_check():
    assert len(STRUCTS) >= 24


@pytest.mark.parametrize("path", HEADERS, ids=lambda path: path.name)
def test_header_of_arguments_compiles_alone(path):
    done = compiled(path.read_text())
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path, name", STRUCTS, ids=lambda value: getattr(value, "name", value))
def test_member_more_in_a_structure_of_arguments_stops_the_compiler(path, name):
    text = path.read_text()
    found = next(m for m in STRUCT.finditer(text) if m[1] == name)
    changed = text[: found.end()] + "  alignas(16) char added[16];\n" + text[found.end() :]
    done = compiled(changed)
    assert done.returncode != 0
    assert "differs from the one that is written down" in done.stderr


def test_device_programs_and_their_launchers_define_no_arguments_of_their_own():
    for path in [*ATEN.glob("native/*/*.cuh"), *ATEN.glob("native/*/*.cuda.cpp")]:
        assert not re.search(r"struct \w*Args\b\s*\{", path.read_text()), path
