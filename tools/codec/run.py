"""The tests of the bytecode codec on other Pythons. The codec needs nothing of the library but some
helpers, so for each Python its files are compiled into a torch._C of their own, which the
tests find in place of the built one. The Pythons need pytest.

    python tools/codec/run.py python3.12 python3.13 [-- pytest arguments]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCES = [
    "tools/codec/module.cpp",
    "torch/csrc/dynamo/code_tables.cpp",
    "torch/csrc/dynamo/code_writer.cpp",
    "torch/csrc/dynamo/decode.cpp",
    "torch/csrc/dynamo/decode_blocks.cpp",
    "torch/csrc/dynamo/encode.cpp",
    "torch/csrc/dynamo/encode_blocks.cpp",
    "torch/csrc/dynamo/instruction.cpp",
    "torch/csrc/python/runtime/support.cpp",
]
_ASK = "import sysconfig; v = sysconfig.get_config_var; p = sysconfig.get_path; print({}, end='')"


def asked(python: str, expression: str) -> str:
    """What an expression over sysconfig is on a Python."""
    command = [python, "-c", _ASK.format(expression)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def build(python: str, folder: str) -> None:
    """A package `torch` in the folder, with the codec and the module that names it."""
    package = os.path.join(folder, "torch")
    os.makedirs(os.path.join(package, "_dynamo"))
    for path in ("torch/__init__.py", "torch/_dynamo/__init__.py"):
        open(os.path.join(folder, path), "w").close()
    shutil.copy(os.path.join(ROOT, "torch/_dynamo/opcodes.py"), os.path.join(package, "_dynamo"))
    library = os.path.join(package, "_C" + asked(python, "v('EXT_SUFFIX')"))
    compiler = os.environ.get("CXX", "c++")
    subprocess.run(
        [compiler, "-std=c++17", "-O1", "-fPIC", "-shared", f"-I{ROOT}",
         "-I" + asked(python, "p('include')"),
         *[os.path.join(ROOT, source) for source in SOURCES], "-o", library],
        check=True,
    )  # fmt: skip


def main() -> int:
    """Builds and tests on each Python; the exit status says whether all passed."""
    given = sys.argv[1:]
    split = given.index("--") if "--" in given else len(given)
    failed = 0
    for python in given[:split]:
        with tempfile.TemporaryDirectory() as folder:
            build(python, folder)
            command = [python, "-m", "pytest", "-q", "--noconftest", "-c", os.devnull]
            command += ["--rootdir", folder, *given[split + 1 :]]
            command.append(os.path.join(ROOT, "test/compiler/test_dynamo_codec.py"))
            print(f"--- {python}", flush=True)
            env = {**os.environ, "PYTHONPATH": folder}
            failed += subprocess.run(command, cwd=folder, env=env, check=False).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
