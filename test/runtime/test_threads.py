"""Tensors that another thread changes while an operator runs on them. The result may be that of the
old content, of the new, or of a mixture, or the call may raise; it never reads or writes memory
that is not the tensor's. The operators run in one thread of another process, one after the other
and each for a fraction of a second, the change in a second thread; what the process wrote last
names the one that it did not survive."""

import subprocess
import sys

import pytest

START = """
import threading, time, torch
import torch.nn.functional as F
torch.set_num_threads(2)
done = False
def change_for_ever():
    while not done:
        change()
n = 60_000
"""
END = """
thread = threading.Thread(target=change_for_ever)
thread.start()
for name, use in uses.items():
    print(name, flush=True)
    code, end = compile(use, name, "exec"), time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            exec(code)
        except (RuntimeError, IndexError, ValueError):
            pass
done = True
thread.join()
"""


def run(body, uses, seconds=0.2):
    code = f"{START}{body}\nuses, seconds = {uses!r}, {seconds}\n{END}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout.split()[-1:]
    assert done.stdout.splitlines() == list(uses)


# The index is right, then far outside, then right again. `index_fill_` of a large tensor lets the
# other thread run in the middle.
INDEX = """
index = torch.zeros(n, dtype=torch.int64)
x = torch.rand(n)
table = torch.rand(10, 8)
def change():
    index.fill_(1 << 40)
    index.fill_(3)
"""
INDEXED = {
    "gather": "x.gather(0, index)",
    "scatter": "torch.zeros(10).scatter(0, index, x)",
    "scatter_add": "torch.zeros(10, 2).scatter_add_(0, index.view(-1, 2), x.view(-1, 2))",
    "index": "x[index]",
    "index_put": "x.clone().index_put_((index,), x)",
    "index_select": "table.index_select(0, index)",
    "index_add": "torch.zeros(10).index_add_(0, index, x)",
    "index_reduce": "torch.zeros(10).index_reduce_(0, index, x, 'mean')",
    "take": "table.take(index)",
    "put": "torch.zeros(10).put_(index, x)",
    "embedding": "F.embedding(index, table)",
    "embedding_bag": "F.embedding_bag(index, table, index[:1] * 0)",
    "embedding_backward": "F.embedding(index, table.requires_grad_()).sum().backward()",
    "nll_loss": "F.nll_loss(torch.rand(n, 10), index)",
    "cross_entropy": "F.cross_entropy(torch.rand(n, 10), index)",
    "multi_margin_loss": "F.multi_margin_loss(torch.rand(n, 10), index)",
    "multilabel_margin_loss": "F.multilabel_margin_loss(x.view(-1, 10), index.view(-1, 10))",
    "max_unpool": "F.max_unpool2d(x.view(1, 1, 200, 300), index.view(1, 1, 200, 300), 2)",
    "ctc_loss": "F.ctc_loss(torch.rand(50, 5, 12), index[:20].view(5, 4), [50] * 5, [4] * 5)",
    "bincount": "(index % 7).bincount(); index.clamp(0, 9).bincount(); index[:100].bincount()",
    "repeat_interleave": "torch.repeat_interleave(index[:1000] & 7)",
    "one_hot": "F.one_hot(index, 10)",
    "unique": "index.unique(return_inverse=True)",
    "unique_consecutive": "index.unique_consecutive(return_inverse=True)",
    "take_along_dim": "x.take_along_dim(index)",
    "sparse": "torch.sparse_coo_tensor(index[None], x, (10,), check_invariants=True).to_dense()",
    "segment_reduce": "torch.segment_reduce(x, 'sum', lengths=index[:10])",
    "sort": "index.sort()",
    "topk": "index.topk(5)",
}


def test_index_that_changes_during_a_call_is_checked_as_it_is_used():
    run(INDEX, INDEXED)


MASK = """
mask = torch.zeros(n, dtype=torch.bool)
x = torch.rand(n)
def change():
    mask.fill_(True)
    mask.fill_(False)
"""
MASKED = {
    "masked_select": "x.masked_select(mask)",
    "index": "x[mask]",
    "nonzero": "mask.nonzero()",
    "masked_scatter": "x.clone().masked_scatter_(mask, x)",
    "index_put": "x.clone().index_put_((mask,), torch.tensor(1.0))",
    "unique": "mask.unique_consecutive(return_inverse=True)",
    "where": "torch.where(mask)",
}


def test_mask_that_changes_during_a_call_writes_no_further_than_it_counted():
    run(MASK, MASKED)


# A large tensor whose memory goes back to the system when it is freed.
GEOMETRY = """
n = 1_500_000
x = torch.rand(1000, 1500)
y = torch.rand(1500, 1000)
"""
CHANGES = {
    "t_": "x.t_()",
    "resize_": "x.resize_(10, 10); x.untyped_storage().resize_(0); x.resize_(1000, 1500)",
    "set_": "x.set_(torch.rand(3)); x.set_(torch.rand(1000, 1500))",
    "data": "x.data = torch.rand(3); x.data = torch.rand(1000, 1500)",
    "as_strided_": "x.as_strided_((1000, 1500), (1, 1)); x.as_strided_((1000, 1500), (1500, 1))",
    "six dimensions": "x.resize_(1, 1, 1, 1, 1000, 1500); x.resize_(1000, 1500)",
}
COMPUTATIONS = {
    "add": "x + 1",
    "add_": "x.add_(1)",
    "sum": "x.sum(0); x.sum()",
    "matmul": "x @ y",
    "sort": "x.sort()",
    "copy": "x.contiguous(); x.clone(); torch.empty(1000, 1500).copy_(x)",
    "transposed copy": "x.t().contiguous()",
    "softmax": "x.softmax(1)",
    "cat": "torch.cat([x, x])",
    "index": "x[torch.arange(500)]",
    "cumsum": "x.cumsum(0)",
    "roll": "x.roll((3, 5), (0, 1))",
    "unique": "x[:300].unique()",
    "nonzero": "x.nonzero()",
    "layer_norm": "F.layer_norm(x, x.shape[-1:])",
    "conv": "F.conv2d(x[None, None], torch.rand(1, 1, 3, 3))",
    "backward": "w = torch.ones((), requires_grad=True); (w * x).sum().backward()",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_tensor_that_changes_its_memory_during_a_call_is_not_computed_on_when_gone(change):
    body = f"""
def change():
    try:
        {change}
    except RuntimeError:
        pass
    time.sleep(0.0005)
"""
    run(GEOMETRY + body, COMPUTATIONS, 0.15)


HEADS = """
x = torch.rand(2, 8, 256, 64)
def change():
    try:
        x.resize_(10)
        x.resize_(2, 8, 256, 64)
        x.transpose_(1, 2)
        x.transpose_(1, 2)
    except RuntimeError:
        pass
    time.sleep(0.0002)
"""


def test_heads_that_change_their_shape_during_attention_are_attended_to_as_they_were():
    uses = {
        "attention": "F.scaled_dot_product_attention(x, x, x)",
        "masked": "F.scaled_dot_product_attention(x, x, x, torch.ones(256, 256).tril() > 0)",
    }
    run(HEADS, uses, 1.5)
