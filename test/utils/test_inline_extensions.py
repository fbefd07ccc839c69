"""Extensions compiled from text: converters of pybind11, errors, operators."""

import importlib.util
import pathlib

import pytest

import torch
from torch.utils import cpp_extension

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("pybind11") is None,
        reason="the headers of pybind11 are a package of their own, and not installed here",
    ),
]

SOURCE = """
#include <ATen/Parallel.h>
#include <torch/torch.h>
// Containers of the standard library that extensions use without including them.
int64_t distinct_grains(std::vector<int64_t> costs) {
  std::set<int64_t> grains;
  for (int64_t cost : costs) grains.insert(at::internal::GRAIN_SIZE / cost);
  return static_cast<int64_t>(grains.size());
}
torch::Tensor add_one(torch::Tensor x) { return x + 1; }
std::tuple<torch::Tensor, int64_t> reshaped(torch::Tensor x, std::vector<int64_t> size,
                                            std::optional<torch::Tensor> other) {
  return {x.reshape(size), other ? other->numel() : -1};
}
torch::Tensor made(at::Device device, at::ScalarType dtype, at::IntArrayRef size) {
  return at::zeros(size, at::TensorOptions().device(device).dtype(dtype));
}
std::vector<torch::Tensor> doubled(std::vector<torch::Tensor> all) {
  for (auto& each : all) each = each * 2;
  return all;
}
at::Scalar number(at::Scalar s) { return s; }
at::IValue value(at::IValue v) { return v; }
torch::Tensor undefined() { return {}; }
void bad_index(torch::Tensor) { TORCH_CHECK_INDEX(false, "bad index ", 3); }
void standard_error() { throw std::runtime_error("from the standard library"); }
"""
FUNCTIONS = (
    "add_one reshaped made doubled number value undefined bad_index standard_error distinct_grains"
).split()


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> object:
    folder = tmp_path_factory.mktemp("extension")
    return cpp_extension.load_inline(
        "inline_extension",
        SOURCE,
        functions=FUNCTIONS,
        extra_cflags=["-O0"],
        build_directory=str(folder),
    )


def test_tensor_goes_in_and_comes_out(extension) -> None:
    x = torch.ones(2, requires_grad=True)
    y = extension.add_one(x)
    assert y.tolist() == [2.0, 2.0]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_tuples_lists_and_optionals_convert(extension) -> None:
    x = torch.arange(6)
    made, count = extension.reshaped(x, [2, 3], None)
    assert made.shape == (2, 3) and count == -1
    assert extension.reshaped(x, (6,), x)[1] == 6
    assert [t.item() for t in extension.doubled([torch.tensor(1), torch.tensor(2)])] == [2, 4]


def test_grain_of_parallel_work_is_a_number_to_divide(extension) -> None:
    assert extension.distinct_grains([1, 2, 2, 4]) == 3


def test_devices_dtypes_and_sizes_convert(extension) -> None:
    made = extension.made(torch.device("cpu"), torch.int32, (2, 2))
    assert made.dtype == torch.int32 and made.shape == (2, 2)


@pytest.mark.parametrize("value", [3, 2.5, True, 1 + 2j])
def test_scalar_keeps_its_kind(extension, value) -> None:
    result = extension.number(value)
    assert result == value and type(result) is type(value)


@pytest.mark.parametrize("value", [None, 3, "text", [1, 2], (1, "a", None), {"k": [1.5]}])
def test_value_of_any_kind_comes_back_equal(extension, value) -> None:
    assert extension.value(value) == value


def test_undefined_tensor_is_none(extension) -> None:
    assert extension.undefined() is None


@pytest.mark.parametrize("wrong", [3, None, "x", [torch.ones(1)]])
def test_argument_that_is_no_tensor_is_a_type_error(extension, wrong) -> None:
    with pytest.raises(TypeError, match="incompatible function arguments"):
        extension.add_one(wrong)


def test_error_thrown_in_the_extension_keeps_its_python_type(extension) -> None:
    with pytest.raises(IndexError, match="bad index 3"):
        extension.bad_index(torch.ones(1))
    with pytest.raises(RuntimeError, match="from the standard library"):
        extension.standard_error()


def test_broken_source_raises_with_the_compilers_message(tmp_path: pathlib.Path) -> None:
    with pytest.raises(RuntimeError, match="Error building extension 'broken'"):
        cpp_extension.load_inline(
            "broken",
            "int f( {",
            no_implicit_headers=True,
            build_directory=str(tmp_path),
        )


BAD_BLOCK = """
TORCH_LIBRARY(failing_block_{n}, m) {{
  m.def("fine(Tensor x) -> Tensor", [](const at::Tensor& x) {{ return x; }});
  m.def("not a schema");
}}
"""


def test_exception_in_a_registration_block_fails_the_import(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ImportError, match=r"TORCH_LIBRARY\(failing_block_1\) in .*not a schema"):
        cpp_extension.load_inline(
            "failing_module",
            BAD_BLOCK.format(n=1) + "int one() { return 1; }",
            functions=["one"],
            extra_cflags=["-O0"],
            build_directory=str(tmp_path),
        )
    with pytest.raises(AttributeError, match="not a schema"):
        _ = torch.ops.failing_block_1.other


def test_library_with_a_failing_block_is_refused_each_time(tmp_path: pathlib.Path) -> None:
    source = tmp_path / "block.cpp"
    source.write_text("#include <torch/library.h>\n" + BAD_BLOCK.format(n=2))
    with pytest.raises(ImportError, match="failing_block_2"):
        cpp_extension.load(
            "failing_library",
            [str(source)],
            extra_cflags=["-O0"],
            build_directory=str(tmp_path),
            is_python_module=False,
        )
    (built,) = tmp_path.glob("failing_library*.so")
    with pytest.raises(ImportError, match="failing_block_2"):
        torch.ops.load_library(built)
    assert torch.ops.failing_block_2.fine(torch.ones(1)).tolist() == [1.0]
