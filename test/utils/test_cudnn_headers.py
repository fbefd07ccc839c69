"""Headers for extensions that call cuDNN themselves, with a header that stands for cuDNN's own."""

import importlib.util
import pathlib

import pytest

import torch
from torch.utils import cpp_extension

CUDA_HEADERS = pathlib.Path(cpp_extension.CUDA_HOME or "/") / "include" / "cuda_runtime.h"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("pybind11") is None,
        reason="the headers of pybind11 are a package of their own, and not installed here",
    ),
    pytest.mark.skipif(not CUDA_HEADERS.exists(), reason="needs the headers of CUDA"),
]

SOURCE = """
#include <ATen/cudnn/Descriptors.h>
#include <ATen/cudnn/Handle.h>
std::vector<std::vector<int>> described(const torch::Tensor& x, int64_t pad) {
  const torch::native::TensorDescriptor made(x, static_cast<size_t>(pad));
  return {{made.desc()->type}, made.desc()->sizes, made.desc()->strides};
}
std::vector<std::vector<int>> filter(const torch::Tensor& x) {
  const torch::native::FilterDescriptor made(x);
  return {{made.desc()->type, made.desc()->format}, made.desc()->sizes};
}
int64_t live() { return live_descriptors; }
bool has_handle() { return torch::native::getCudnnHandle() != nullptr; }
void on_cuda(const torch::Tensor& x) { torch::checkBackend("on_cuda", x, torch::Backend::CUDA); }
"""


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory):
    return cpp_extension.load_inline(
        "cudnn_headers",
        SOURCE,
        functions=["described", "filter", "live", "on_cuda"],
        extra_cflags=["-O0"],
        extra_include_paths=[
            str(pathlib.Path(__file__).parent / "fake_cudnn"),
            str(CUDA_HEADERS.parent),
        ],
        build_directory=str(tmp_path_factory.mktemp("cudnn")),
    )


def test_descriptor_has_the_geometry_and_is_freed(extension) -> None:
    x = torch.zeros(2, 3, 4, dtype=torch.float16)
    assert extension.described(x, 5) == [[2], [2, 3, 4, 1, 1], [12, 4, 1, 1, 1]]
    assert extension.described(x.transpose(0, 2), 0) == [[2], [4, 3, 2], [1, 4, 12]]
    assert extension.live() == 0


def test_stride_of_a_single_element_is_that_of_a_dense_tensor(extension) -> None:
    x = torch.zeros(6, 1, 4).as_strided((6, 1, 4), (4, 77, 1))
    assert extension.described(x, 4) == [[0], [6, 1, 4, 1], [4, 4, 1, 1]]


def test_filter_says_how_channels_lie(extension) -> None:
    x = torch.zeros(2, 3, 4, 4, dtype=torch.bfloat16)
    assert extension.filter(x) == [[9, 0], [2, 3, 4, 4]]
    assert extension.filter(x.to(memory_format=torch.channels_last)) == [[9, 1], [2, 3, 4, 4]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: m.described(torch.zeros(2), 0), RuntimeError, "cuDNN failed with code 2000"),
        (lambda m: m.described(torch.zeros(3).bool(), 4), NotImplementedError, "type Bool"),
        (lambda m: m.described(torch.zeros([1] * 9), 0), ValueError, "at most 8 dimensions"),
        (lambda m: m.filter(torch.zeros(2, 3, 4, 5).transpose(0, 2)), ValueError, "contiguous"),
        (lambda m: m.on_cuda(torch.zeros(2)), RuntimeError, "CPUFloatType.*arguments for on_cuda"),
    ],
)
def test_what_cudnn_does_not_take_is_an_error(extension, call, error, message) -> None:
    with pytest.raises(error, match=message):
        call(extension)
    assert extension.live() == 0


@pytest.mark.skipif(
    pathlib.Path("/usr/include/cudnn.h").exists(), reason="cuDNN's own header is installed"
)
def test_missing_header_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(RuntimeError, match=r"cudnn\.h was not found: an extension"):
        cpp_extension.load_inline(
            "no_cudnn",
            "#include <ATen/cudnn/cudnn-wrapper.h>\n",
            no_implicit_headers=True,
            build_directory=str(tmp_path),
        )
