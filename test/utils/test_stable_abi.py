"""Extensions with a stable ABI (torch/csrc/stable): what they can do, what their binary asks of the
library, and failures."""

import ctypes
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import torch
from torch.utils import cpp_extension

pytestmark = pytest.mark.slow

SOURCE = pathlib.Path(__file__).parent / "stable_abi" / "kernels.cpp"


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> str:
    return cpp_extension.load(
        "stable_kernels",
        [str(SOURCE)],
        extra_cflags=["-O1"],
        build_directory=str(tmp_path_factory.mktemp("stable")),
        is_python_module=False,
    )


@pytest.fixture(scope="module")
def ops(binary) -> object:
    return torch.ops.stable_kernels


def test_kernel_reads_and_writes_memory_of_tensors(ops) -> None:
    x, y = torch.arange(5000.0), torch.ones(5000)
    expected = np.float32(2.5) * np.arange(5000, dtype=np.float32) + 1
    assert np.array_equal(ops.axpy(x, y, 2.5).numpy(), expected)


def test_values_of_every_kind_go_in_and_come_out(ops) -> None:
    x = torch.ones(1)
    out, number, text = ops.kinds(
        [x, x], 3, "héllo", [2, 3], torch.float64, torch.device("cpu"), True, [0.5, 1.0]
    )
    assert out.dtype == torch.float64 and out.tolist() == [[3.5] * 3] * 2
    assert (number, text) == (3, "héllo!")
    out, number, text = ops.kinds([], None, "", [0], None, torch.device("meta"), False, [])
    assert out.device.type == "meta" and out.dtype == torch.float32
    assert (number, text) == (-1, "")


def test_optional_tensor_may_be_missing(ops) -> None:
    assert ops.maybe(None).tolist() == [7.0]
    assert ops.maybe(torch.tensor([1.0, 2.0])).tolist() == [1.0, 2.0]


def test_operators_are_called_through_the_dispatcher(ops) -> None:
    x = torch.tensor([[0.0, 1.0], [2.0, 3.0]])
    assert ops.chain(x).item() == 13.0 and ops.chain(x).dtype == torch.float64
    assert ops.neg(torch.tensor([1.0, -2.0])).tolist() == [-1.0, 2.0]


def test_memory_of_the_extension_is_freed_with_its_last_tensor(ops) -> None:
    before = ops.freed_blocks()
    x = ops.counted(3, torch.device("cpu"))
    view = x.detach()[1:]
    assert x.requires_grad and x.tolist() == [0.0, 1.0, 2.0]
    del x
    assert ops.freed_blocks() == before and view.tolist() == [1.0, 2.0]
    del view
    assert ops.freed_blocks() == before + 1


def test_memory_is_freed_once_where_there_is_no_such_tensor(ops) -> None:
    before = ops.freed_blocks()
    with pytest.raises(RuntimeError, match="sizes must not be negative"):
        ops.counted(-1, torch.device("cpu"))
    assert ops.freed_blocks() == before + 1


def test_numbers_and_results_that_are_there_are_arguments(ops) -> None:
    x = torch.tensor([1.0, 2.0, 4.0])
    assert ops.minus_twice_the_sum(x, "cpu").tolist() == [-14.0]
    with pytest.raises(RuntimeError, match="nodevice"):
        ops.minus_twice_the_sum(x, "nodevice:1")


def test_geometry_is_that_of_the_view(ops) -> None:
    x = torch.zeros(4, 6, dtype=torch.int16)[1:, ::2]
    assert ops.geometry(x) == [2, 9, 6, 1, 2, 3, 3, 6, 2]


def test_binary_asks_the_library_for_c_functions_only(binary) -> None:
    names = subprocess.run(
        ["nm", "-D", "--undefined-only", binary], capture_output=True, text=True, check=True
    ).stdout.split()
    of_the_library = [name for name in names if "torch" in name or "c10" in name or "2at" in name]
    assert of_the_library
    assert all(name.startswith(("aoti_torch_", "torch_")) for name in of_the_library)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ops: ops.axpy(torch.ones(2), torch.ones(3), 1.0), "axpy: 2 and 3 elements"),
        (lambda ops: ops.axpy(torch.ones(2).double(), torch.ones(2), 1.0), "axpy: a float x"),
        (lambda ops: ops.parts_that_throw(torch.ones(1)), "part 2 failed"),
        (lambda ops: ops.size_of_an_undefined_tensor(), "expected a defined tensor"),
        (lambda ops: ops.unknown_operator(torch.ones(1)), "Could not find schema for aten::no_suc"),
        (lambda ops: ops.one_argument_too_many(torch.ones(1, 1), 1), "takes 1 arguments"),
        (lambda ops: ops.throws_a_number(torch.ones(1)), "no std::exception|unknown"),
    ],
)
def test_failure_in_a_kernel_is_an_exception_with_its_text(ops, call, message) -> None:
    with pytest.raises(RuntimeError, match=message):
        call(ops)


def test_device_of_an_accelerator_that_does_not_exist_is_an_error(ops) -> None:
    if torch.accelerator.is_available():
        pytest.skip("the question has an answer where there is an accelerator")
    with pytest.raises(RuntimeError, match=r"none is available|not linked"):
        ops.current_device()


class Interface:
    """The C functions of the library, called by ctypes; a failing call raises."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(pathlib.Path(torch.__file__).parent / "lib" / "libtorch.so")
        self._library.torch_last_error_message.restype = ctypes.c_char_p

    def call(self, name: str, *arguments: object) -> None:
        if getattr(self._library, name)(*arguments):
            raise RuntimeError(self._library.torch_last_error_message().decode())


@pytest.mark.parametrize(
    ("text", "expected"), [(b"cpu", (0, -1)), (b"cuda:3", (1, 3)), (b"meta", None)]
)
def test_text_of_a_device_is_parsed(text, expected) -> None:
    kind, index = ctypes.c_uint32(), ctypes.c_int32()
    Interface().call("torch_parse_device_string", text, ctypes.byref(kind), ctypes.byref(index))
    assert expected is None or (kind.value, index.value) == expected
    with pytest.raises(RuntimeError, match="nodevice"):
        Interface().call(
            "torch_parse_device_string", b"nodevice", ctypes.byref(kind), ctypes.byref(index)
        )


def test_dispatcher_is_called_with_the_version_of_an_extension() -> None:
    interface, handle, data = Interface(), ctypes.c_void_p(), ctypes.c_void_p()
    sizes, strides = (ctypes.c_int64 * 1)(4), (ctypes.c_int64 * 1)(1)
    made = ctypes.byref(handle)
    interface.call("aoti_torch_empty_strided", ctypes.c_int64(1), sizes, strides, 6, 0, 0, made)
    stack = (ctypes.c_uint64 * 1)(handle.value)
    version = ctypes.c_uint64(2 << 56 | 10 << 48)
    interface.call("torch_call_dispatcher", b"aten::zero_", b"", stack, version)
    result = ctypes.c_void_p(stack[0])
    interface.call("torch_get_mutable_data_ptr", result, ctypes.byref(data))
    assert list((ctypes.c_float * 4).from_address(data.value)) == [0.0] * 4
    interface.call("torch_set_requires_grad", result, ctypes.c_bool(True))
    interface.call("aoti_torch_delete_tensor_object", result)
    thread = ctypes.c_uint32(9)
    interface.call("torch_get_thread_idx", ctypes.byref(thread))
    assert thread.value == 0


def test_registration_that_fails_is_the_error_of_the_load(tmp_path: pathlib.Path) -> None:
    source = tmp_path / "bad.cpp"
    source.write_text(
        "#include <torch/csrc/stable/library.h>\n"
        'STABLE_TORCH_LIBRARY(stable_bad, m) { m.def("no schema"); }\n'
    )
    with pytest.raises(ImportError, match=r"STABLE_TORCH_LIBRARY\(stable_bad\)"):
        cpp_extension.load(
            "stable_bad",
            [str(source)],
            extra_cflags=["-O0"],
            build_directory=str(tmp_path),
            is_python_module=False,
        )


# Loads a binary where it was not built, and prints what its operators give.
ELSEWHERE = """
import sys, torch
torch.ops.load_library(sys.argv[1])
ops = torch.ops.stable_kernels
x = torch.arange(6.0).view(2, 3)
print(ops.neg(x).tolist(), ops.geometry(x), ops.chain(x).item())
try:
    ops.unknown_operator(x)
except RuntimeError:
    print("refused")
"""


@pytest.mark.parametrize("minor", [0, 99])
def test_binary_for_another_version_loads_into_this_one(tmp_path: pathlib.Path, minor: int) -> None:
    include = pathlib.Path(torch.__file__).parent / "include"
    text = (include / "torch" / "version.h").read_text()
    other = re.sub(r"(#define TORCH_VERSION_MINOR) \d+", rf"\1 {minor}", text)
    assert other != text
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "version.h").write_text(other)
    flags = [f"-I{tmp_path}", f"-I{include}", "-std=c++17", "-O0", "-shared", "-fPIC"]
    target = str(tmp_path / "elsewhere.so")
    library = [f"-L{pathlib.Path(torch.__file__).parent / 'lib'}", "-ltorch"]
    subprocess.run(["g++", *flags, str(SOURCE), "-o", target, *library], check=True)
    command = [sys.executable, "-c", ELSEWHERE, target]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    values, end = done.stdout.splitlines()
    assert values.startswith("[[-0.0, -1.0, -2.0], [-3.0, -4.0, -5.0]] [2, 6, 0, 1, 4, 2, 3, 3, 1]")
    assert end == "refused"
