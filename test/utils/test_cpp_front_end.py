"""The C++ front end as programs outside of the tree use it: the examples are found by CMake,
compiled and run, and print what their twins in Python compute."""

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

import torch

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "cpp"


@pytest.fixture(scope="module")
def twins() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cpp_twins", EXAMPLES / "twins.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, twins: ModuleType) -> Path:
    folder = tmp_path_factory.mktemp("data")
    twins.write_all(folder)
    return folder


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cmake") is None or shutil.which("c++") is None:
        pytest.skip("needs cmake and a C++ compiler")
    build = tmp_path_factory.mktemp("cpp")
    configure = ["cmake", "-S", str(EXAMPLES), "-B", str(build)]
    configure.append(f"-DCMAKE_PREFIX_PATH={torch.utils.cmake_prefix_path}")
    subprocess.run([*configure, "-DCMAKE_CXX_FLAGS=-O0"], check=True, capture_output=True)
    made = subprocess.run(["cmake", "--build", str(build), "-j2"], capture_output=True, text=True)
    assert made.returncode == 0, made.stdout[-3000:] + made.stderr[-3000:]
    return build


def run(program: Path, *arguments: object) -> list[tuple[str, float]]:
    command = [str(program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [(name, float(value)) for name, value in map(str.split, done.stdout.splitlines())]


def assert_same_lines(found: list[tuple[str, float]], expected: list[tuple[str, float]]) -> None:
    assert [name for name, _ in found] == [name for name, _ in expected]
    torch.testing.assert_close(
        torch.tensor([value for _, value in found]), torch.tensor([value for _, value in expected])
    )


# One worker builds the programs once for all of these.
pytestmark = pytest.mark.xdist_group("cpp_examples")


@pytest.mark.slow
def test_regression_trains_as_python_does_and_exchanges_files(
    programs: Path, twins: ModuleType, data: Path, tmp_path: Path
) -> None:
    end = tmp_path / "end.pt"
    lines = run(programs / "regression", end, data / "regression.pt", 20)
    assert_same_lines(lines, twins.regression(data, 20))
    assert torch.load(end)["hidden"]["weight"].shape == (8, 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mnist", "dcgan"])
def test_training_on_pictures_prints_the_losses_of_python(
    programs: Path, twins: ModuleType, data: Path, name: str
) -> None:
    lines = run(programs / name, data, data / f"{name}.pt", 2)
    assert_same_lines(lines, getattr(twins, name)(data, 2))
    if name == "mnist":
        assert lines[-6][1] < lines[0][1]


@pytest.mark.slow
def test_own_dataset_read_by_workers_prints_the_losses_of_python(
    programs: Path, twins: ModuleType, data: Path
) -> None:
    lines = run(programs / "custom_dataset", data / "table.csv", data / "custom_dataset.pt", 3)
    assert_same_lines(lines, twins.custom_dataset(data, 3))


@pytest.mark.slow
def test_checkpoint_of_python_is_trained_on_and_read_back(
    programs: Path, twins: ModuleType, data: Path, tmp_path: Path
) -> None:
    end = tmp_path / "end.pt"
    lines = run(programs / "transfer", end, data / "transfer.pt", 10)
    expected, state = twins.transfer(data, 10)
    assert_same_lines(lines, expected)
    saved = torch.load(end)
    torch.testing.assert_close(saved["head"]["weight"], state["head.weight"])
    torch.testing.assert_close(
        saved["features"]["1"]["running_var"], state["features.1.running_var"]
    )


@pytest.mark.slow
def test_gradients_of_gradients_and_own_functions_equal_those_of_python(
    programs: Path, twins: ModuleType
) -> None:
    assert_same_lines(run(programs / "autograd", 9), twins.autograd(9))


@pytest.mark.slow
def test_own_operator_trains_in_both_languages(programs: Path, twins: ModuleType) -> None:
    softplus = torch.nn.functional.softplus
    expected = twins.custom_op(lambda x, beta: softplus(x, beta=beta), 5)
    assert_same_lines(run(programs / "custom_op", 5), expected)
    torch.ops.load_library(str(programs / "libexample_ops.so"))
    assert_same_lines(twins.custom_op(torch.ops.example.smooth, 5), expected)
    assert torch.ops.example.smooth(torch.empty(2, 3, device="meta"), 1.0).shape == (2, 3)
    with pytest.raises(ValueError, match="beta must be positive"):
        torch.ops.example.smooth(torch.ones(1), -1.0)


@pytest.mark.slow
def test_program_given_a_damaged_file_says_so_and_ends(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "start.pt").write_bytes(b"not a zip file")
    command = [programs / "regression", tmp_path / "end.pt", tmp_path / "start.pt", "1"]
    run = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert run.returncode == 1
    assert "not a zip file" in run.stderr


def test_headers_of_the_front_end_never_include_python() -> None:
    include = Path(torch.__file__).parent / "include"
    if not include.is_dir():
        pytest.skip("the headers are not laid out: run a build")
    public = ["torch", "ATen", "c10"]
    private = re.compile(r"torch/csrc/(python|dynamo|fx)/")
    for folder in public:
        for header in (include / folder).rglob("*.h*"):
            name = header.relative_to(include).as_posix()
            if private.match(name):
                continue
            text = header.read_text()
            assert "Python.h" not in re.findall(r"#include *[<\"]([^>\"]+)", text), name


def parsed(source: str, folder: Path, *options: str) -> str:
    """What the compiler prints for a program that it reads without translating it."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    include = Path(torch.__file__).parent / "include"
    program = folder / "program.cpp"
    program.write_text(source)
    paths = [f"-I{include}", f"-I{include / 'torch' / 'csrc' / 'api' / 'include'}"]
    command = ["g++", "-std=c++17", *paths, *options, str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_including_the_front_end_reads_no_header_of_python(tmp_path: Path) -> None:
    read = parsed("#include <torch/torch.h>\n#include <torch/script.h>\n", tmp_path, "-M")
    assert "torch/torch.h" in read
    assert "Python.h" not in read


# Each line is what a published extension does; the headers are all that it includes.
USES = {
    "torch/types.h": """
        const auto kinds = int(at::DeviceType::COMPILE_TIME_MAX_DEVICE_TYPES);
        assert(kinds > int(at::kMeta) && DeviceTypeName(at::kCPU, true) == "cpu" && INT_MAX > 0);
        using torch::indexing::Slice;
        const at::Tensor y = x.index({Slice(torch::indexing::None), Slice({at::nullopt, 2})});
        std::map<std::tuple<at::ScalarType, at::ScalarType>, int> table;
        using c10::CppTypeToScalarType;
        table[std::tuple(CppTypeToScalarType<at::Half>(), CppTypeToScalarType<int>())] = 1;
        if (at::globalContext().deterministicAlgorithms()) table.clear();
    """,
    "ATen/Functions.h": """
        at::optional<at::Tensor> y = at::empty_like(x);
        const auto device = device_of(x);
        at::DimVector sizes(x.sizes());
        sizes.append({2, 3});
        y = at::zeros(sizes, x.options());
    """,
}


@pytest.mark.slow
@pytest.mark.parametrize("header", USES)
def test_names_that_published_extensions_use_are_there(tmp_path: Path, header: str) -> None:
    includes = f"#include <{header}>\n#include <map>\n#include <tuple>\n"
    parsed(f"{includes} void use(at::Tensor x) {{ {USES[header]} }}", tmp_path, "-fsyntax-only")


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/usr/local/cuda/include/cuda_runtime_api.h").exists(), reason="needs CUDA's headers"
)
def test_stream_header_brings_the_names_of_the_runtime(tmp_path: Path) -> None:
    use = """
    #include <c10/cuda/CUDAGuard.h>
    void use(at::Tensor x, cudaStream_t);
    void guarded(const at::Tensor& x) {
      const at::cuda::OptionalCUDAGuard guard(x.device());
      use(x, at::cuda::getCurrentCUDAStream());
    }
    """
    parsed(
        "#include <ATen/core/Tensor.h>\n" + use,
        tmp_path,
        "-fsyntax-only",
        "-I/usr/local/cuda/include",
    )


@pytest.mark.slow
@pytest.mark.parametrize("header", ["torch/torch.h", "torch/script.h"])
def test_header_brings_the_standard_headers_that_programs_expect(tmp_path, header) -> None:
    use = """
    #include <vector>
    double last_sum(std::vector<double> x) {
      std::inclusive_scan(x.begin(), x.end(), x.begin());
      const std::set<double> seen(x.begin(), x.end());
      const auto held = std::make_unique<std::map<int, double>>();
      return std::accumulate(seen.begin(), seen.end(), std::max(x.back(), std::sqrt(2.0)));
    }
    """
    parsed(f"#include <{header}>\n" + use, tmp_path, "-fsyntax-only")


@pytest.mark.slow
def test_installed_headers_are_those_that_programs_see(tmp_path: Path) -> None:
    build = (Path(torch.__file__).parent / "lib" / "libtorch.so").resolve().parents[1]
    if not (build / "cmake_install.cmake").exists() or shutil.which("cmake") is None:
        pytest.skip("needs cmake and the folder that the library was built in")
    install = ["cmake", "--install", str(build), "--prefix", str(tmp_path)]
    done = subprocess.run(install, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    include = tmp_path / "include"
    seen = build / "gen" / "public"
    public = list(seen.rglob("*.h"))
    assert len(public) > 1000
    for path in public:
        installed = include / path.relative_to(seen)
        assert installed.read_bytes() == path.read_bytes(), installed
    names = [path.name for path in Path(torch.__file__).parent.glob("*.h")]
    assert set(names) <= {path.name for path in (include / "torch").glob("*.h")}
    assert (include / "torch" / "csrc" / "distributed" / "c10d" / "Backend.hpp").exists()


@pytest.mark.slow
def test_structs_of_operators_stand_beside_all_functions_in_any_order(tmp_path: Path) -> None:
    use = """
    at::Tensor twice(const at::Tensor& x) {
      const at::Tensor y = at::_ops::add_Tensor::call(x, x, 1);
      return at::_ops::mul_Tensor::redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU), y, y);
    }
    using Schema = at::_ops::add_Tensor::schema;
    at::Tensor thrice(const at::Tensor& x) { return at::add(torch::zeros({2}), x, 3); }
    """
    for order in (
        ["torch/torch.h", "ATen/ops/add.h", "ATen/ops/mul_ops.h"],
        ["ATen/ops/mul.h", "ATen/Operators.h", "torch/torch.h"],
    ):
        includes = "".join(f"#include <{name}>\n" for name in order)
        parsed(includes + use, tmp_path, "-fsyntax-only")


@pytest.mark.slow
def test_program_finds_lapack_beside_the_library_it_was_linked_with(tmp_path: Path) -> None:
    libraries = Path(torch.__file__).parent / "lib"
    source = """
    #include <ATen/ATen.h>
    int main() {
      const at::Tensor x = at::eye(3).mul_(4);
      return at::allclose(at::linalg_inv(x), at::eye(3).mul_(0.25)) ? 0 : 1;
    }
    """
    program = tmp_path / "inverse"
    link = [f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-Wl,--no-as-needed", "-ltorch"]
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    include = Path(torch.__file__).parent / "include"
    (tmp_path / "inverse.cpp").write_text(source)
    command = ["g++", "-std=c++17", "-O0", f"-I{include}", str(tmp_path / "inverse.cpp")]
    subprocess.run([*command, "-o", str(program), *link], check=True, capture_output=True)
    run = subprocess.run([str(program)], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
