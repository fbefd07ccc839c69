"""The C++ front end as a program outside of the tree uses it: found by CMake, compiled, run, and
compared with the same training in Python."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import torch

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "cpp"


def _python_twin(steps: int, start: dict[str, torch.Tensor]) -> tuple[list[float], torch.nn.Module]:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden = torch.nn.Linear(2, 8)
            self.output = torch.nn.Linear(8, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.output(torch.tanh(self.hidden(x)))

    net = Net()
    net.load_state_dict(start)
    x = torch.linspace(-1, 1, 32).view(16, 2)
    y = (x[:, 0] * x[:, 1]).unsqueeze(1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, net


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cmake") is None or shutil.which("c++") is None:
        pytest.skip("needs cmake and a C++ compiler")
    build = tmp_path_factory.mktemp("cpp")
    configure = ["cmake", "-S", str(EXAMPLES), "-B", str(build)]
    configure.append(f"-DCMAKE_PREFIX_PATH={torch.utils.cmake_prefix_path}")
    subprocess.run([*configure, "-DCMAKE_CXX_FLAGS=-O0"], check=True, capture_output=True)
    made = subprocess.run(["cmake", "--build", str(build)], capture_output=True, text=True)
    assert made.returncode == 0, made.stdout[-3000:] + made.stderr[-3000:]
    return build / "regression"


@pytest.mark.slow
def test_program_trains_as_python_does_and_exchanges_files(program: Path, tmp_path: Path) -> None:
    torch.manual_seed(5)
    start = {
        "hidden.weight": torch.randn(8, 2),
        "hidden.bias": torch.randn(8),
        "output.weight": torch.randn(1, 8),
        "output.bias": torch.randn(1),
    }
    torch.save(start, tmp_path / "start.pt")
    command = [str(program), str(tmp_path / "end.pt"), str(tmp_path / "start.pt"), "20"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    losses, net = _python_twin(20, start)
    torch.testing.assert_close(
        torch.tensor([float(line) for line in run.stdout.split()]), torch.tensor(losses)
    )
    saved = torch.load(tmp_path / "end.pt")
    for name, value in net.state_dict().items():
        layer, kind = name.split(".")
        torch.testing.assert_close(saved[layer][kind], value, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_program_given_a_damaged_file_says_so_and_ends(program: Path, tmp_path: Path) -> None:
    (tmp_path / "start.pt").write_bytes(b"not a zip file")
    command = [str(program), str(tmp_path / "end.pt"), str(tmp_path / "start.pt"), "1"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 1
    assert "not a zip file" in run.stderr


def test_headers_of_the_front_end_never_include_python() -> None:
    include = Path(torch.__file__).parent / "include"
    if not include.is_dir():
        pytest.skip("the headers are not laid out: run a build")
    public = ["torch", "ATen", "c10"]
    private = re.compile(r"torch/csrc/(python|dynamo|fx)/")
    for folder in public:
        for header in (include / folder).rglob("*.h"):
            name = header.relative_to(include).as_posix()
            if private.match(name):
                continue
            text = header.read_text()
            assert "Python.h" not in re.findall(r"#include *[<\"]([^>\"]+)", text), name
