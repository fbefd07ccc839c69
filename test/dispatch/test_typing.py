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

# Everyday code, which a strict checker accepts: nothing that it calls is without types.
STRICT = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import Categorical, Normal, kl_divergence
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, Dataset, TensorDataset


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
        self.head = nn.Linear(16, 4)
        self.memory = nn.LSTM(4, 8, batch_first=True)
        self.more = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        x = self.head(self.layers(x))
        for layer in self.more:
            x = layer(x)
        return F.log_softmax(x * self.scale, dim=1)


class Ones(Dataset[Tensor]):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Tensor:
        return torch.ones(2)


net = Net().to("cpu")
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
schedule = CosineAnnealingLR(optimizer, T_max=10)
pairs = TensorDataset(torch.ones(4, 1, 4, 4), torch.zeros(4, dtype=torch.long))
scaler = torch.amp.GradScaler("cpu")
for x, y in DataLoader(pairs, batch_size=2, shuffle=True):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.cross_entropy(net(x), y)
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
schedule.step()
print(len(DataLoader(Ones(), batch_size=2)), net.eval().training)
torch.save(net.state_dict(), "x.pt")
net.load_state_dict(torch.load("x.pt", weights_only=True))
p, q = Normal(torch.zeros(2), torch.ones(2)), Categorical(logits=torch.zeros(3))
print(kl_divergence(p, p), p.rsample((3,)), q.log_prob(q.sample()))
values, places = torch.ones(2, 3).max(dim=1)
u, s, vh = torch.linalg.svd(torch.ones(3, 3))
parts: list[Tensor] = list(torch.ones(4).split(2))
product = torch.einsum("ij,jk->ik", torch.ones(2, 2), torch.stack(parts, dim=0))
noise = torch.randn(2, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
(slope,) = torch.autograd.grad(noise.sum(), [noise])
noise.grad = None
noise.data[:, None, ..., 0:1][0] = 1
masked = ~(noise > 0) & (noise < 1)
sizes: tuple[int, ...] = noise.shape
rows: int = noise.size(0)
out, (hidden, cell) = net.memory(torch.ones(1, 2, 4))
for name, module in net.named_modules():
    if isinstance(module, (nn.Linear, nn.Conv2d)):
        nn.init.xavier_uniform_(module.weight)


@torch.no_grad()
def evaluate(model: nn.Module, x: Tensor) -> float:
    return float(model(x).mean())


if torch.cuda.is_available():
    torch.cuda.synchronize()
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


@pytest.mark.parametrize("folder", sorted({p.parent.name for p in EXAMPLES.glob("*/*.py")}))
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


def test_strict_checking_of_everyday_code_finds_nothing(cache):
    (cache / "strict.py").write_text(STRICT)
    lines = check("--strict", "strict.py", cwd=cache)
    assert not [line for line in lines if ": error:" in line]


def test_mistakes_are_found(cache):
    (cache / "mistakes.py").write_text(MISTAKES)
    lines = check("mistakes.py", cwd=cache)
    found = {int(match[1]) for line in lines if (match := re.match(r"mistakes.py:(\d+): er", line))}
    wrong = [i for i, line in enumerate(MISTAKES.splitlines(), 1) if i > 3 and line]
    assert found == set(wrong), "\n".join(lines)
