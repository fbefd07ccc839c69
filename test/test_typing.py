"""The types that editors and checkers see: mypy accepts the examples, finds mistakes in calls, and
knows what the common functions return. Needs the stubs that the build writes."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

import torch

pytest.importorskip("mypy")

ROOT = pathlib.Path(torch.__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"

PROGRAM = """\
import torch
import torch.nn.functional as F
from torch import Tensor, nn

x = torch.ones(2, 3, dtype=torch.float32)
reveal_type(x)  # Tensor
reveal_type(torch.relu(x) + 1)  # Tensor
reveal_type(x.shape)  # Size
reveal_type(x.max(dim=0).values)  # Tensor
reveal_type(torch.float32)  # dtype
layer = nn.Linear(3, 4)
reveal_type(layer.weight)  # Tensor
reveal_type(layer.to("cpu").train())  # Linear
reveal_type(next(layer.parameters()))  # Parameter
reveal_type(F.softmax(x, dim=1))  # Tensor
reveal_type(nn.init.zeros_(x))  # Tensor
reveal_type(torch.optim.AdamW(layer.parameters(), lr=0.1))  # AdamW
reveal_type(torch.manual_seed(0))  # Generator
reveal_type(torch.device("cpu"))  # device


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 4)

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        return F.relu(self.layer(x)) * scale


loss = F.mse_loss(Net()(x), torch.zeros(2, 4))
loss.backward()
"""

MISTAKES = """\
import torch
from torch import nn

torch.ones(2, dtype="float32")
torch.ones(2).no_such_method()
nn.Linear("three", 4)
nn.Linear(3)
nn.Conv2d(3, 4, 5, colour="red")
torch.optim.SGD(nn.Linear(1, 1).parameters(), lr="fast")
torch.manual_seed("zero")
"""


def check(*arguments, cwd):
    """Lines that mypy prints about some files."""
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", "--cache-dir", str(cwd)]
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    result = subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, env=environment
    )
    return (result.stdout + result.stderr).splitlines()


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("mypy")


def test_package_says_that_it_is_typed():
    assert (ROOT / "torch" / "py.typed").exists()


@pytest.mark.parametrize("folder", sorted(p.name for p in EXAMPLES.iterdir() if p.is_dir()))
def test_mypy_accepts_the_example(folder, cache):
    files = sorted((EXAMPLES / folder).glob("*.py"))
    lines = check("--check-untyped-defs", *files, cwd=cache)
    assert not [line for line in lines if ": error:" in line]


def test_common_calls_have_the_types_they_should(cache):
    (cache / "program.py").write_text(PROGRAM)
    lines = check("program.py", cwd=cache)
    assert not [line for line in lines if ": error:" in line]
    revealed = {
        int(match[1]): match[2].replace("torch._tensor.", "").replace("torch.nn.parameter.", "")
        for line in lines
        if (match := re.match(r'program.py:(\d+): note: Revealed type is "(.*)"', line))
    }
    for number, text in enumerate(PROGRAM.splitlines(), 1):
        if "# " in text and text.startswith("reveal_type"):
            want = text.split("# ")[1]
            got = revealed[number]
            assert want == got or got.endswith("." + want), (text, got)


def test_mistakes_are_found(cache):
    (cache / "mistakes.py").write_text(MISTAKES)
    lines = check("mistakes.py", cwd=cache)
    found = {int(match[1]) for line in lines if (match := re.match(r"mistakes.py:(\d+): er", line))}
    wrong = [i for i, line in enumerate(MISTAKES.splitlines(), 1) if i > 3 and line]
    assert found == set(wrong), "\n".join(lines)
