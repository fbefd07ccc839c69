"""What kernels report and the next call that waits raises: bad indices under the operator's own
name, divisions of integers by zero, inputs of binary_cross_entropy that are no probabilities. The
context lives on. And the two switches of how kernels get to the GPU: programs compiled at run time
although precompiled ones are there, and launches that overlap."""

import os

import pytest
from cuda_support import EMULATED, cuda, emulator_environment, run_python

import torch
from torch.nn import functional as F


def usable():
    x = torch.ones(3, device=cuda)
    torch.cuda.synchronize()
    return (x + 1).tolist() == [2, 2, 2]


@pytest.mark.parametrize("width", [4, 3])  # rows of whole 16 bytes, and others
def test_a_bad_embedding_index_names_embedding(width):
    table = torch.randn(5, width, device=cuda)
    F.embedding(torch.tensor([0, 7], device=cuda), table)
    with pytest.raises(IndexError, match=r"(?s)index 7 is out of.*size 5.*embedding on cuda"):
        torch.cuda.synchronize()
    assert usable()


def test_embedding_checks_its_arguments():
    table = torch.randn(5, 4, device=cuda)
    with pytest.raises(RuntimeError, match="'weight' must be 2-D"):
        F.embedding(torch.tensor([0], device=cuda), table[0])
    with pytest.raises(RuntimeError, match="Long, Int"):
        F.embedding(torch.tensor([0.5], device=cuda), table)
    index = torch.tensor([[1, 2], [3, 0]], device=cuda, dtype=torch.int32)
    assert torch.equal(F.embedding(index, table).cpu(), F.embedding(index.cpu(), table.cpu()))
    assert F.embedding(index[:0], table).shape == (0, 2, 4)
    assert torch.equal(F.embedding(index[0, 0], table).cpu(), table[1].cpu())


OPERATIONS = {
    "floor_divide": torch.floor_divide,
    "remainder": torch.remainder,
    "fmod": torch.fmod,
    "trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
}


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8])
@pytest.mark.parametrize("name", OPERATIONS)
def test_integer_division_by_zero_raises_at_the_next_wait(name, dtype):
    a = torch.tensor([6, 7, 9], device=cuda, dtype=dtype)
    b = torch.tensor([2, 0, 4], device=cuda, dtype=dtype)
    result = OPERATIONS[name](a, b)
    with pytest.raises(RuntimeError, match=r"(?s)ZeroDivisionError.*cuda:0"):
        result.cpu()
    expected = OPERATIONS[name](a.cpu()[::2], b.cpu()[::2])
    assert torch.equal(result.cpu()[::2], expected) and usable()


def test_integer_division_on_each_device():
    for device in range(torch.cuda.device_count()):
        a = torch.ones(3, dtype=torch.int64, device=f"cuda:{device}")
        a // 0
        with pytest.raises(RuntimeError, match=f"(?s)ZeroDivisionError.*cuda:{device}"):
            torch.cuda.synchronize(device)
        for other in range(torch.cuda.device_count()):
            torch.cuda.synchronize(other)


def test_division_of_floating_numbers_by_zero_does_not_raise():
    a = torch.ones(3, device=cuda)
    assert torch.floor_divide(a, 0).tolist() == [float("inf")] * 3
    assert all(v != v for v in torch.remainder(a, 0).tolist())


@pytest.mark.parametrize("bad", [1.5, -0.1, float("nan")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_binary_cross_entropy_refuses_what_is_no_probability(bad, dtype):
    x = torch.tensor([0.2, bad, 0.9], device=cuda, dtype=dtype)
    target = torch.tensor([0.0, 1.0, 1.0], device=cuda, dtype=dtype)
    loss = F.binary_cross_entropy(x, target)
    with pytest.raises(RuntimeError, match=r"(?s)between 0 and 1.*binary_cross_entropy on cuda"):
        loss.item()
    good = F.binary_cross_entropy(x[::2], target[::2])
    torch.testing.assert_close(good.cpu(), F.binary_cross_entropy(x[::2].cpu(), target[::2].cpu()))


def test_the_limits_are_probabilities():
    x = torch.tensor([0.0, 1.0], device=cuda)
    assert F.binary_cross_entropy(x, x).item() == 0
    with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
        F.binary_cross_entropy(torch.tensor([2.0]), torch.tensor([1.0]))


def test_ctc_loss_reads_lengths_on_the_device():
    log_probs = torch.randn(5, 2, 4, device=cuda).log_softmax(2)
    targets = torch.tensor([[1, 2], [3, 1]], device=cuda)
    lengths = torch.tensor([5, 4], device=cuda), torch.tensor([2, 1], device=cuda)
    loss = F.ctc_loss(log_probs, targets, *lengths)
    assert loss.item() == F.ctc_loss(log_probs, targets, [5, 4], [2, 1]).item()


def test_sparse_gradients_stay_on_the_device():
    table = torch.randn(5, 3, device=cuda, requires_grad=True)
    index = torch.zeros(2, 3, dtype=torch.int64, device=cuda)
    torch.gather(table, 0, index, sparse_grad=True).sum().backward()
    assert table.grad.is_sparse and table.grad.to_dense().cpu()[0].tolist() == [2.0, 2.0, 2.0]
    table.grad = None
    F.embedding(index, table, sparse=True).sum().backward()
    assert table.grad.is_sparse and table.grad.to_dense().cpu()[0].tolist() == [6.0, 6.0, 6.0]
    assert usable()


RUN_TIME = """
import os, torch
from torch.nn import functional as F
x = torch.linspace(-2, 2, 48, device="cuda").view(4, 12)
results = [
    x.exp(), x + x.mean(1, keepdim=True), x.softmax(1), x.cumsum(1), x.t() @ x, F.gelu(x),
    x.to(torch.bfloat16).float(), x.t().contiguous(), torch.where(x > 0, x, 0.0),
]
torch.manual_seed(0)
results.append(torch.rand(3, device="cuda"))
print([round(r.double().sum().item(), 4) for r in results])
folder = os.path.join(os.environ["CRESSET_CACHE_DIR"], "cuda")
print(len(os.listdir(folder)) if os.path.isdir(folder) else 0)
"""


def test_programs_compiled_at_run_time_give_the_same(tmp_path):
    base = emulator_environment() if EMULATED else dict(os.environ)
    answers, files = [], []
    for forced in ("0", "1", "1"):
        folder = tmp_path / forced
        settings = {"CRESSET_CUDA_JIT": forced, "CRESSET_CACHE_DIR": str(folder)}
        if not EMULATED:
            settings["CUDA_VISIBLE_DEVICES"] = "0"
        done = run_python(RUN_TIME, base | settings, timeout=300)
        assert done.returncode == 0, done.stderr
        *values, count = done.stdout.splitlines()
        answers.append(values)
        files.append(int(count))
    assert answers[0] == answers[1] == answers[2]
    # Every program was compiled once and read from the disk the next time.
    assert files[1] >= 8 and files[2] == files[1]


def test_launches_that_overlap_give_the_same():
    code = """
import torch
x = torch.zeros(1, device="cuda")
for _ in range(50):
    x.add_(1)
y = torch.arange(5000.0, device="cuda")
for _ in range(20):
    y = (y * 0.5 + 1).exp().log()
print(x.item(), round(y.sum().item(), 2))
"""
    base = emulator_environment() if EMULATED else dict(os.environ)
    if not EMULATED:
        base["CUDA_VISIBLE_DEVICES"] = "0"
    answers = [run_python(code, base | {"CRESSET_CUDA_OVERLAP": on}).stdout for on in ("0", "1")]
    assert answers[0].startswith("50.0 ") and answers[0] == answers[1]
