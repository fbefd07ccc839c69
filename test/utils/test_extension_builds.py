"""What torch.utils.cpp_extension compiles, with which flags, what it builds again, and where it
says no. The sources are a line each: compilers are run, the headers of torch are not parsed."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import torch
from torch.utils import _extension_build as build
from torch.utils import cpp_extension

needs_ninja = pytest.mark.skipif(
    shutil.which("ninja") is None, reason="only ninja builds what changed and nothing else"
)
# Asked without importing it: setuptools cannot be imported once distutils was.
needs_setuptools = pytest.mark.skipif(
    importlib.util.find_spec("setuptools") is None, reason="setup scripts are run by setuptools"
)
# The emulator of other tests runs no machine code of nvcc.
needs_gpu = pytest.mark.skipif(not os.path.exists("/dev/nvidiactl"), reason="needs a GPU")
PLAIN_MODULE = """
#include <Python.h>
#include "number.h"
static PyObject* number(PyObject*, PyObject*) { return PyLong_FromLong(NUMBER); }
static PyMethodDef methods[] = {{"number", number, METH_NOARGS, nullptr}, {nullptr}};
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
static PyModuleDef module = {PyModuleDef_HEAD_INIT, TEXT(TORCH_EXTENSION_NAME), nullptr, -1,
                             methods};
PyMODINIT_FUNC JOIN(PyInit_, TORCH_EXTENSION_NAME)() { return PyModule_Create(&module); }
"""


@pytest.mark.parametrize(
    "wanted, expected",
    [
        ("9.0", ["-gencode=arch=compute_90,code=sm_90"]),
        (
            "8.0;9.0+PTX",
            [
                "-gencode=arch=compute_80,code=sm_80",
                "-gencode=arch=compute_90,code=sm_90",
                "-gencode=arch=compute_90,code=compute_90",
            ],
        ),
        ("Hopper 9.0", ["-gencode=arch=compute_90,code=sm_90"]),
        ("9.0a", ["-gencode=arch=compute_90a,code=sm_90a"]),
    ],
)
def test_list_of_architectures_becomes_flags(monkeypatch, wanted, expected) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", wanted)
    assert build.cuda_arch_flags([]) == expected


def test_architecture_in_the_flags_is_the_callers(monkeypatch) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")
    assert build.cuda_arch_flags(["-arch=sm_80"]) == []


def test_unknown_architecture_is_a_value_error(monkeypatch) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "nine")
    with pytest.raises(ValueError, match=r"Unknown CUDA arch \(nine\)"):
        build.cuda_arch_flags([])


def test_cuda_source_without_a_compiler_names_the_file() -> None:
    with pytest.raises(OSError, match=r"kernel\.cu needs nvcc"):
        build.compile_step(
            "kernel.cu",
            "kernel.o",
            compiler="c++",
            nvcc=None,
            shared_flags=[],
            cxx_flags=[],
            nvcc_flags=[],
        )


def test_standard_of_the_caller_replaces_ours() -> None:
    def command(flags: list[str]) -> list[str]:
        step = build.compile_step(
            "a.cpp",
            "a.o",
            compiler="c++",
            nvcc=None,
            shared_flags=[],
            cxx_flags=flags,
            nvcc_flags=[],
        )
        return [flag for flag in step.command if flag.startswith("-std")]

    assert command([]) == ["-std=c++17"]
    assert command(["-std=c++20"]) == ["-std=c++20"]


def test_compiler_may_be_named_with_its_cache(monkeypatch) -> None:
    monkeypatch.setenv("CXX", "ccache g++")
    step = build.compile_step(
        "a.cpp",
        "a.o",
        compiler=cpp_extension.get_cxx_compiler(),
        nvcc=None,
        shared_flags=[],
        cxx_flags=[],
        nvcc_flags=[],
    )
    assert step.command[:2] == ["ccache", "g++"]
    assert cpp_extension._link_step(["a.o"], "a.so", [], False, False).command[:2] == [
        "ccache",
        "g++",
    ]


def test_sources_of_one_name_and_two_languages_have_two_objects() -> None:
    names = {cpp_extension._object_name(f"csrc/kernel.{end}") for end in ("cpp", "cu")}
    assert len(names) == 2


def write_module(folder: pathlib.Path, number: int) -> str:
    (folder / "number.h").write_text(f"#define NUMBER {number}\n")
    source = folder / "plain module.cpp"
    if not source.exists():
        source.write_text(PLAIN_MODULE)
    return str(source)


def load(folder: pathlib.Path, source: str, **options):
    return cpp_extension.load("plain_module", [source], build_directory=str(folder), **options)


@needs_ninja
def test_changed_header_is_compiled_again_and_unchanged_is_not(tmp_path: pathlib.Path) -> None:
    source = write_module(tmp_path, 1)
    assert load(tmp_path, source).number() == 1
    built = tmp_path / "plain_module.so"
    before = built.stat().st_mtime_ns
    assert load(tmp_path, source).number() == 1
    assert built.stat().st_mtime_ns == before
    # In this process the module is loaded already: the file says what was built.
    write_module(tmp_path, 2)
    os.utime(tmp_path / "number.h", ns=(before + 10**10, before + 10**10))
    load(tmp_path, source)
    assert built.stat().st_mtime_ns != before


def test_changed_source_is_a_module_of_another_name(tmp_path: pathlib.Path) -> None:
    source = write_module(tmp_path, 5)
    first = load(tmp_path, source, extra_cflags=["-DFIRST"])
    pathlib.Path(source).write_text(PLAIN_MODULE.replace("(NUMBER)", "(NUMBER + 1)"))
    second = load(tmp_path, source, extra_cflags=["-DFIRST"])
    assert (first.number(), second.number()) == (5, 6)
    assert first.__name__ != second.__name__


def test_without_ninja_the_same_steps_run(tmp_path: pathlib.Path, monkeypatch) -> None:
    find = shutil.which
    monkeypatch.setattr(build.shutil, "which", lambda name: None if name == "ninja" else find(name))
    assert load(tmp_path, write_module(tmp_path, 3)).number() == 3
    assert not (tmp_path / "build.ninja").exists()


def test_program_of_its_own_is_returned_as_a_path(tmp_path: pathlib.Path) -> None:
    source = tmp_path / "main.cpp"
    source.write_text('#include <cstdio>\nint main() { std::puts("standing alone"); }\n')
    path = cpp_extension.load(
        "standing", [str(source)], build_directory=str(tmp_path), is_standalone=True
    )
    done = subprocess.run([path], capture_output=True, text=True, check=True)
    assert done.stdout == "standing alone\n"


def test_compilers_message_is_in_the_error(tmp_path: pathlib.Path) -> None:
    source = tmp_path / "broken.cpp"
    source.write_text("int f( {")
    with pytest.raises(
        RuntimeError, match=r"(?s)Error building extension 'broken'.*error: expected"
    ):
        cpp_extension.load("broken", [str(source)], build_directory=str(tmp_path))


def test_default_folder_is_chosen_by_the_environment(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    assert cpp_extension._get_build_directory("x", verbose=False) == str(tmp_path / "x")


def test_intel_sources_are_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(NotImplementedError, match="SYCL"):
        cpp_extension.load("x", ["a.sycl"], build_directory=str(tmp_path))


SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension
setup(
    name="plain_package",
    ext_modules=[CppExtension("plain_module", ["plain module.cpp"],
                              extra_compile_args={"cxx": ["-DOTHER"]}, include_dirs=["."])],
    cmdclass={"build_ext": BuildExtension.with_options(no_python_abi_suffix=True)},
)
"""


@needs_setuptools
def test_setup_script_builds_a_module(tmp_path: pathlib.Path) -> None:
    write_module(tmp_path, 7)
    (tmp_path / "setup.py").write_text(SETUP)
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(torch.__file__))}
    command = [sys.executable, "setup.py", "build_ext", "--inplace"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = subprocess.run(
        [sys.executable, "-c", "import torch, plain_module; print(plain_module.number())"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == "7\n", found.stderr
    assert (tmp_path / "plain_module.so").exists()


LINKED_SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
setup(
    name="linked_package",
    ext_modules=[CUDAExtension("plain_module", ["plain module.cpp", "one.cu", "two.cu"], dlink=True,
                               extra_compile_args={"cxx": [], "nvcc": ["-dc"]})],
    cmdclass={"build_ext": BuildExtension},
)
"""


@pytest.mark.slow
@pytest.mark.skipif(cpp_extension._nvcc() is None, reason="needs nvcc")
@needs_setuptools
def test_device_code_of_two_sources_is_linked(tmp_path: pathlib.Path) -> None:
    write_module(tmp_path, 8)
    (tmp_path / "one.cu").write_text("__device__ int twice(int x) { return 2 * x; }\n")
    (tmp_path / "two.cu").write_text(
        "extern __device__ int twice(int);\n__global__ void fill(int* x) { *x = twice(3); }\n"
    )
    (tmp_path / "setup.py").write_text(LINKED_SETUP)
    paths = os.path.dirname(os.path.dirname(torch.__file__))
    environment = {**os.environ, "PYTHONPATH": paths, "TORCH_CUDA_ARCH_LIST": "9.0"}
    command = [sys.executable, "setup.py", "build_ext", "--inplace"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(tmp_path.glob("build/**/dlink.o")) and list(tmp_path.glob("plain_module*.so"))


@needs_setuptools
def test_command_can_be_derived_from() -> None:
    code = """
import setuptools
from torch.utils import cpp_extension
class Mine(cpp_extension.BuildExtension):
    pass
assert issubclass(Mine.with_options(use_ninja=False), (Mine, setuptools.Command))
assert cpp_extension.BuildExtension is cpp_extension.BuildExtension
try:
    cpp_extension.BuildExtensions
except AttributeError as error:
    print(error)
"""
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(torch.__file__))}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert "no attribute 'BuildExtensions'" in done.stdout, done.stderr


KERNEL = """
#include <ATen/ATen.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/cuda/Atomic.cuh>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAUtils.h>
#include <ATen/cuda/detail/IndexUtils.cuh>
#include <ATen/cuda/detail/KernelUtils.h>
#include <ATen/native/cuda/KernelUtils.cuh>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAMacros.h>
#include <c10/cuda/CUDAMathCompat.h>
#include <torch/library.h>

namespace detail = at::cuda::detail;

template <class T>
__global__ void sum_rows(at::PackedTensorAccessor32<T, 2, at::RestrictPtrTraits> rows,
                         detail::TensorInfo<T, int> out) {
  CUDA_KERNEL_LOOP(i, rows.size(0)) {
    T* place = out.data + detail::IndexToOffset<T, int, -1>::get(i, out);
    for (int j = 0; j < rows.size(1); ++j) gpuAtomicAdd(place, rows[i][j]);
  }
}

template <class T> __global__ void fold(const T* in, T* least, T* most, T* product, int n) {
  CUDA_KERNEL_LOOP(i, n) {
    gpuAtomicMin(least, in[i]);
    gpuAtomicMax(most, in[i]);
    gpuAtomicMul(product, in[i]);
  }
}

at::Tensor rows(const at::Tensor& x) {
  TORCH_CHECK(x.is_cuda(), "rows: a CUDA tensor");
  const at::cuda::OptionalCUDAGuard guard(at::device_of(x));
  TORCH_CHECK(at::cuda::check_device({x}));
  at::Tensor out = at::zeros({x.size(0)}, x.options());
  const auto stream = at::cuda::getCurrentCUDAStream();
  const int blocks = detail::GET_BLOCKS(x.size(0));
  AT_DISPATCH_V2(x.scalar_type(), "rows", AT_WRAP([&] {
    sum_rows<scalar_t><<<blocks, detail::CUDA_NUM_THREADS, 0, stream>>>(
        x.packed_accessor32<scalar_t, 2, at::RestrictPtrTraits>(),
        detail::getTensorInfo<scalar_t, int>(out));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }), AT_EXPAND(AT_ALL_TYPES), at::kHalf, at::kBFloat16);
  at::cuda::CUDAEvent event;
  event.record(stream);
  event.synchronize();
  return out;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> folded(const at::Tensor& x) {
  const at::cuda::CUDAGuard guard(x.device());
  at::Tensor least = x[0].clone(), most = x[0].clone(), product = at::ones({}, x.options());
  AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "folded", [&] {
    fold<scalar_t><<<1, 64, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<scalar_t>(), least.data_ptr<scalar_t>(), most.data_ptr<scalar_t>(),
        product.data_ptr<scalar_t>(), static_cast<int>(x.numel()));
  });
  AT_CUDA_CHECK(cudaGetLastError());
  TORCH_CHECK(at::cuda::getCurrentDeviceProperties()->warpSize == at::cuda::warp_size());
  return {least, most, product};
}

TORCH_LIBRARY(cuda_extension_test, m) {
  m.def("rows", &rows);
  m.def("folded", &folded);
}
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory):
    if cpp_extension._nvcc() is None:
        pytest.skip("needs nvcc")
    folder = tmp_path_factory.mktemp("kernels")
    source = folder / "kernels.cu"
    source.write_text(KERNEL)
    cpp_extension.load(
        "cuda_extension_test",
        [str(source)],
        build_directory=str(folder),
        extra_cuda_cflags=["-O0", "-arch=sm_90"],
        is_python_module=False,
    )
    return torch.ops.cuda_extension_test


@pytest.mark.slow
def test_kernels_compile_and_refuse_tensors_of_the_host(kernels) -> None:
    with pytest.raises(RuntimeError, match="rows: a CUDA tensor"):
        kernels.rows(torch.ones(2, 3))


@pytest.mark.slow
@needs_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int8])
def test_kernels_agree_with_operators(kernels, dtype) -> None:
    x = torch.randint(1, 3, (300, 5), device="cuda").to(dtype)
    assert torch.equal(kernels.rows(x), x.sum(1).to(dtype))
    y = torch.tensor([3, -2, 1, 2], device="cuda").to(dtype)
    assert [value.item() for value in kernels.folded(y)] == [-2, 3, -12]
