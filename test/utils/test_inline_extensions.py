"""Extensions compiled from text: converters of pybind11, errors, operators."""

import importlib.util
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

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
#include <ATen/AccumulateType.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/NumericUtils.h>
#include <ATen/Parallel.h>
#include <ATen/TensorUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ceil_div.h>
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
c10::Stream stream(c10::Stream s) { return s; }
c10::SymInt symbol(c10::SymInt s) { return s * 2; }
c10::SymFloat half(c10::SymFloat s) { return s.guard_float() / 2; }
c10::SymBool negated(c10::SymBool s) { return !s; }
std::vector<int64_t> lists(at::SymIntArrayRef symbols, at::OptionalIntArrayRef maybe) {
  return {static_cast<int64_t>(symbols.size()), maybe ? maybe->front() : -1};
}
c10::MemoryFormat format() { return c10::get_channels_last_memory_format(); }
std::vector<bool> last(torch::Tensor x, bool twice) {
  constexpr auto last = at::MemoryFormat::ChannelsLast;
  const auto options = x.options().memory_format(last);
  const auto argument = twice ? std::make_optional(last) : std::nullopt;
  std::vector<bool> found;
  for (const torch::Tensor& made : {torch::empty(x.sizes(), options, argument),
                                    at::empty_like(x, options), x.to(options)})
    found.push_back(made.is_contiguous(last));
  return found;
}
torch::Generator seeded(torch::Generator g) { g.set_current_seed(7); return g; }
std::vector<int64_t> dispatched(torch::Tensor x) {
  int64_t listed = 0, other = 0;
  AT_DISPATCH_V2(x.scalar_type(), "dispatched", AT_WRAP([&] { listed = sizeof(scalar_t); }),
                 AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), AT_EXPAND(AT_FLOAT8_TYPES),
                 AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES), at::kHalf, at::kBool);
  AT_DISPATCH_SWITCH(
      x.scalar_type(), "dispatched",
      AT_DISPATCH_CASE_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, [&] { other = 1; })
      AT_DISPATCH_CASE_INTEGRAL_TYPES([&] { other = 2; }));
  return {listed, other};
}
void check_arguments(torch::Tensor x, torch::Tensor y) {
  const at::TensorArg first(x, "x", 1), second(y, "y", 2);
  at::checkContiguous("check_arguments", first);
  at::checkAllSameType("check_arguments", {first, second});
  at::checkSameSize("check_arguments", first, second);
}
double sums(double x) {
  static_assert(std::is_same_v<at::acc_type<float, true>, float>);
  static_assert(std::is_same_v<at::acc_type<float, false>, double>);
  static_assert(std::is_same_v<at::acc_type<int8_t, true>, int64_t>);
  TORCH_CHECK(at::ceil_div(7, 2) == 4 && at::round_up(7, 4) == 8 && at::ceil_div(6, 2) == 3);
  return at::_isnan(x) ? -1 : at::_isinf(x) ? -2 : at::maybe_wrap_dim(-1, 3);
}
torch::Tensor without_lock(torch::Tensor x, bool fail) {
  py::gil_scoped_release release;
  TORCH_CHECK_VALUE(!fail, "failed without the lock");
  return x + 1;
}
void backward_without_lock(torch::Tensor loss) {
  py::gil_scoped_release release;
  loss.backward();
}
py::object cast_without_lock(torch::Tensor x) {
  py::gil_scoped_release release;
  return py::cast(x);
}
torch::Tensor lose_the_lock(torch::Tensor x) {
  PyEval_SaveThread();
  return x;
}
void keep_the_lock() { PyGILState_Ensure(); }
torch::Tensor moved_from(torch::Tensor x) {
  const torch::Tensor taken = std::move(x);
  return x.sum();
}
torch::Tensor wrong_shapes(torch::Tensor x) { return x.mm(x).view({-1, 7}); }
void throw_no_exception() { throw 3; }
int64_t wrapped(int64_t dim, torch::Tensor x) { return at::maybe_wrap_dim(dim, x); }
at::IValue value(at::IValue v) { return v; }
torch::Tensor undefined() { return {}; }
void bad_index(torch::Tensor) { TORCH_CHECK_INDEX(false, "bad index ", 3); }
void standard_error() { throw std::runtime_error("from the standard library"); }
"""
FUNCTIONS = (
    "add_one reshaped made doubled number value undefined bad_index standard_error distinct_grains "
    "stream symbol seeded dispatched check_arguments sums wrapped without_lock half "
    "backward_without_lock keep_the_lock moved_from wrong_shapes throw_no_exception "
    "negated lists format cast_without_lock lose_the_lock last"
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


def test_streams_generators_and_symbols_convert(extension) -> None:
    stream = torch.Stream(device="cpu")
    found = extension.stream(stream)
    assert (found.device, found.stream_id) == (stream.device, stream.stream_id)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        extension.stream(3)
    assert extension.symbol(4) == 8 and extension.half(3) == 1.5
    assert extension.negated(True) is False and extension.format() is torch.channels_last
    assert extension.lists((1, 2, 3), None) == [3, -1] and extension.lists([], [7]) == [0, 7]
    generator = torch.Generator()
    assert extension.seeded(generator) is not None and generator.initial_seed() == 7


@pytest.mark.parametrize(
    "dtype, expected",
    [(torch.float32, [4, 1]), (torch.float16, [2, 1]), (torch.int64, [8, 2]), (torch.int8, [1, 2])],
)
def test_dispatch_gives_the_type_of_each_dtype(extension, dtype, expected) -> None:
    assert extension.dispatched(torch.zeros(1, dtype=dtype)) == expected


def test_dispatch_of_a_dtype_that_is_not_listed_raises(extension) -> None:
    with pytest.raises(NotImplementedError, match="\"dispatched\" not implemented for 'BFloat16'"):
        extension.dispatched(torch.zeros(1, dtype=torch.bfloat16))


def test_checks_of_arguments_name_function_and_argument(extension) -> None:
    x = torch.zeros(2, 3)
    extension.check_arguments(x, x)
    with pytest.raises(RuntimeError, match=r"argument #1 'x' .*check_arguments"):
        extension.check_arguments(x.t(), x.t())
    with pytest.raises(RuntimeError, match=r"'y'.*Float does not equal Long"):
        extension.check_arguments(x, x.long())
    with pytest.raises(RuntimeError, match=r"\[2, 3\] does not equal \[3\]"):
        extension.check_arguments(x, torch.zeros(3))


def test_numbers_that_kernels_ask_about(extension) -> None:
    assert [extension.sums(x) for x in (float("nan"), float("inf"), 1.0)] == [-1, -2, 2]
    assert extension.wrapped(-2, torch.zeros(2, 3)) == 0
    with pytest.raises(IndexError, match=r"range of \[-2, 1\], but got 2"):
        extension.wrapped(2, torch.zeros(2, 3))


@pytest.mark.parametrize("value", [None, 3, "text", [1, 2], (1, "a", None), {"k": [1.5]}])
def test_value_of_any_kind_comes_back_equal(extension, value) -> None:
    assert extension.value(value) == value


def test_memory_format_may_be_among_the_options_but_once(extension) -> None:
    x = torch.ones(2, 3, 4, 4)
    assert extension.last(x, False) == [True, True, True]
    with pytest.raises(RuntimeError, match="memory_format both in TensorOptions and explicit"):
        extension.last(x, True)


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


def test_errors_of_a_second_extension_keep_their_python_type(extension, tmp_path) -> None:
    with pytest.raises(IndexError):
        extension.bad_index(torch.ones(1))
    text = """
    torch::Tensor refuse(torch::Tensor x) { TORCH_CHECK_VALUE(false, "never ", x.dim()); }
    """
    second = cpp_extension.load_inline(
        "second_inline",
        text,
        functions=["refuse"],
        extra_cflags=["-O0", "-fvisibility=default"],
        build_directory=str(tmp_path),
    )
    with pytest.raises(ValueError, match="never 1"):
        second.refuse(torch.ones(1))


def test_functions_that_give_up_the_interpreters_lock(extension) -> None:
    assert extension.without_lock(torch.ones(2), False).tolist() == [2.0, 2.0]
    with pytest.raises(ValueError, match="failed without the lock"):
        extension.without_lock(torch.ones(2), True)
    seen: list[float] = []
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda grad: seen.append(grad.sum().item()))
    extension.backward_without_lock((x * 3).sum())
    assert seen == [6.0] and x.grad.tolist() == [3.0, 3.0]


def test_lock_that_is_never_given_back_hinders_nobody(extension) -> None:
    extension.keep_the_lock()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: extension.add_one(torch.ones(1)).item()).result(30) == 2.0


@pytest.mark.parametrize("function", ["cast_without_lock", "lose_the_lock"])
def test_conversion_without_the_lock_is_an_error(extension, function) -> None:
    for _ in range(2):
        with pytest.raises(RuntimeError, match="without the interpreter's lock"):
            getattr(extension, function)(torch.ones(1))
    assert extension.add_one(torch.ones(1)).item() == 2.0


@pytest.mark.parametrize(
    ("function", "shape", "message"),
    [
        ("moved_from", (2,), "undefined|defined tensor"),
        ("wrong_shapes", (2, 3), "cannot be multiplied"),
        ("wrong_shapes", (2, 2), "shape '\\[-1, 7\\]' is invalid"),
    ],
)
def test_bad_tensors_in_an_extension_are_errors(extension, function, shape, message) -> None:
    with pytest.raises(RuntimeError, match=message):
        getattr(extension, function)(torch.ones(shape))


def test_thrown_object_that_is_no_exception_is_an_error(extension) -> None:
    with pytest.raises(RuntimeError, match="unknown"):
        extension.throw_no_exception()


OTHER_VERSION = """
import ctypes, importlib.util, sys
import torch
make = ctypes.pythonapi.PyCapsule_New
make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
table, name = (ctypes.c_int64 * 16)(99), ctypes.c_char_p(b"torch._C._bridge")
torch._C._bridge = make(ctypes.addressof(table), name, None)
spec = importlib.util.spec_from_file_location("inline_extension", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
try:
    module.add_one(torch.ones(1))
except ImportError as error:
    print(error)
"""


def test_extension_for_another_version_says_so(extension) -> None:
    command = [sys.executable, "-c", OTHER_VERSION, extension.__file__]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "compiled for another version of torch" in done.stdout, done.stderr


def test_broken_source_raises_with_the_compilers_message(tmp_path: pathlib.Path) -> None:
    with pytest.raises(RuntimeError, match="Error building extension 'broken'"):
        cpp_extension.load_inline(
            "broken",
            "int f( {",
            no_implicit_headers=True,
            build_directory=str(tmp_path),
        )


FAILING_MODULE = """
#include <torch/extension.h>
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("one", [] { return 1; });
  BODY
}
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('TORCH_CHECK_VALUE(false, "no licence for ", at::ones({2}).sizes());', r"for \[2\]"),
        ('py::module_::import("no_such_module");', "initialization failed"),
        ("throw 3;", "threw an object that is no std::exception"),
    ],
)
def test_module_that_throws_while_it_is_made_fails_the_import(
    tmp_path: pathlib.Path, body: str, message: str
) -> None:
    source = tmp_path / "module.cpp"
    source.write_text(FAILING_MODULE.replace("BODY", body))
    for _ in range(2):
        with pytest.raises(ImportError, match=message):
            cpp_extension.load(
                "throwing_module",
                [str(source)],
                extra_cflags=["-O0"],
                build_directory=str(tmp_path),
            )
    assert not any(name.startswith("throwing_module") for name in sys.modules)


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
