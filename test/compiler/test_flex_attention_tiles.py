"""Compiled FlexAttention on the CPU computes tile by tile: results and gradients are those of the
matrix of all scores in double precision, whatever the functions, masks, sizes and types, and
that matrix is never in memory."""

from __future__ import annotations

import importlib.util
import math
import pathlib
import subprocess
import sys

import pytest

import torch
from torch._inductor import flex, metrics
from torch.nn.attention.flex_attention import (
    AuxRequest,
    create_block_mask,
    flex_attention,
)


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    torch.manual_seed(7)
    yield
    torch._dynamo.reset()


def inputs(batch=2, heads=4, kv_heads=4, q=100, kv=150, depth=16, width=24, dtype=torch.float32):
    shapes = ((batch, heads, q, depth), (batch, kv_heads, kv, depth), (batch, kv_heads, kv, width))
    return [torch.randn(s).to(dtype).requires_grad_() for s in shapes]


def dense(q, k, v, score_mod, mask_mod, scale=None):
    """softmax over all scores at once, in double precision."""
    q, k, v = (t.double() for t in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = (t.repeat_interleave(group, 1) for t in (k, v))
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = scale * (q @ k.transpose(-1, -2))
    sizes = scores.shape
    b, h, i, j = (
        torch.arange(n).view([-1 if d == at else 1 for d in range(4)]) for at, n in enumerate(sizes)
    )
    scores = score_mod(scores, b, h, i, j)
    allowed = mask_mod(b, h, i, j).expand(sizes)
    scores = scores.masked_fill(~allowed, -math.inf)
    top = scores.amax(-1, keepdim=True).clamp(min=-1e300)
    weights = (scores - top).exp()
    total = weights.sum(-1, keepdim=True)
    out = torch.where(total > 0, weights / total.clamp(min=1e-300), 0) @ v
    return out, (top + total.log()).squeeze(-1)


def close(got, want, dtype=torch.float32):
    tolerance = {torch.float64: 1e-11, torch.float32: 2e-5}.get(dtype, 3e-2)
    torch.testing.assert_close(got.double(), want, rtol=tolerance, atol=tolerance)


def everything(b, h, q, kv):
    return torch.ones_like(q, dtype=torch.bool)


def causal(b, h, q, kv):
    return q >= kv


def window(b, h, q, kv):
    return (q - kv).abs() <= 20 + h


MODS = {
    "none": lambda score, b, h, q, kv: score,
    "relative": lambda score, b, h, q, kv: score + (q - kv) * 0.01,
    "capped": lambda score, b, h, q, kv: 3 * torch.tanh(score / 3),
    "by head": lambda score, b, h, q, kv: score * (h + 1) / 4 - b,
    "squared": lambda score, b, h, q, kv: torch.where(score > 0, score * score, score),
}
MASKS = {"everything": everything, "causal": causal, "window": window}


def compiled_call(mask, mod, gqa=False):
    call = torch.compile(flex_attention, fullgraph=True)

    def run(q, k, v):
        aux = AuxRequest(lse=True)
        out, found = call(q, k, v, mod, mask, enable_gqa=gqa, return_aux=aux)
        return out, found.lse

    return run


def count_tiles(monkeypatch):
    """Calls of attention by tiles, forward and backward."""
    calls = []
    for name in ("flex_forward", "flex_backward"):
        plain = getattr(torch._C._inductor, name)

        def note(*args, plain=plain, name=name):
            calls.append(name)
            return plain(*args)

        monkeypatch.setattr(torch._C._inductor, name, note)
    return calls


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("mod", MODS)
def test_results_and_gradients_are_those_of_all_scores(mask, mod, monkeypatch):
    calls = count_tiles(monkeypatch)
    q, k, v = inputs()
    blocks = None
    if mask != "everything":
        heads = 4 if mask == "window" else None
        blocks = create_block_mask(MASKS[mask], None, heads, 100, 150, device="cpu", BLOCK_SIZE=32)
    got = compiled_call(blocks, MODS[mod])(q, k, v)
    want = dense(q, k, v, MODS[mod], MASKS[mask])
    to = [torch.randn_like(t) for t in got]
    found = torch.autograd.grad(got, (q, k, v), to)
    plain = torch.autograd.grad(want, (q, k, v), [t.double() for t in to])
    for a, b in zip((*got, *found), (*want, *plain), strict=True):
        close(a, b.double())
    assert calls == ["flex_forward", "flex_backward"]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_types(dtype, monkeypatch):
    calls = count_tiles(monkeypatch)
    q, k, v = inputs(dtype=dtype)
    mask = create_block_mask(causal, None, None, 100, 150, device="cpu")
    got = compiled_call(mask, MODS["capped"])(q, k, v)
    want = dense(q, k, v, MODS["capped"], causal)
    assert got[0].dtype == dtype
    to = torch.randn_like(got[0])
    found = torch.autograd.grad(got[0], (q, k, v), to)
    plain = torch.autograd.grad(want[0], (q, k, v), to.double())
    for a, b in zip((*got, *found), (*want, *plain), strict=True):
        close(a, b.double(), dtype)
    assert [g.dtype for g in found] == [dtype] * 3 and len(calls) == 2


@pytest.mark.parametrize("q_len", [1, 3, 8])
@pytest.mark.parametrize("kv_heads", [1, 2, 8])
def test_few_queries_divide_the_keys(q_len, kv_heads, monkeypatch):
    calls = count_tiles(monkeypatch)
    q, k, v = inputs(batch=1, heads=8, kv_heads=kv_heads, q=q_len, kv=2300)
    mask = create_block_mask(
        lambda b, h, q, kv: kv <= q + 2000, None, None, q_len, 2300, device="cpu"
    )
    with torch.no_grad():
        got = compiled_call(mask, MODS["by head"], gqa=True)(q, k, v)
    want = dense(q, k, v, MODS["by head"], lambda b, h, q, kv: kv <= q + 2000)
    for a, b in zip(got, want, strict=True):
        close(a, b)
    assert calls == ["flex_forward"]


def test_few_queries_with_blocks_by_head():
    q, k, v = inputs(batch=2, heads=4, kv_heads=2, q=2, kv=700)

    def near(b, h, q, kv):
        return kv < 100 * (h + 1) + b

    mask = create_block_mask(near, 2, 4, 2, 700, device="cpu", BLOCK_SIZE=64)
    with torch.no_grad():
        got = compiled_call(mask, MODS["relative"], gqa=True)(q, k, v)
    for a, b in zip(got, dense(q, k, v, MODS["relative"], near), strict=True):
        close(a, b)


@pytest.mark.parametrize("q_len", [2, 90])
def test_heads_share_keys_and_their_gradients_are_summed(q_len):
    q, k, v = inputs(heads=6, kv_heads=2, q=q_len)
    got = compiled_call(None, MODS["by head"], gqa=True)(q, k, v)
    want = dense(q, k, v, MODS["by head"], everything)
    to = torch.randn_like(got[0])
    found = torch.autograd.grad(got[0], (q, k, v), to)
    plain = torch.autograd.grad(want[0], (q, k, v), to.double())
    for a, b in zip((*got, *found), (*want, *plain), strict=True):
        close(a, b.double())


def test_one_batch_of_keys_serves_all():
    q, k, v = inputs(batch=3)
    k, v = (t.detach()[:1].requires_grad_() for t in (k, v))
    mask = create_block_mask(causal, None, None, 100, 150, device="cpu", BLOCK_SIZE=64)
    got = compiled_call(mask, MODS["relative"])(q, k, v)
    wide = [t.expand(3, -1, -1, -1) for t in (k, v)]
    want = dense(q, *wide, MODS["relative"], causal)
    to = torch.randn_like(got[0])
    found = torch.autograd.grad(got[0], (q, k, v), to)
    plain = torch.autograd.grad(want[0], (q, k, v), to.double())
    for a, b in zip((*got, *found), (*want, *plain), strict=True):
        close(a, b.double())


def test_tensors_that_functions_refer_to_get_gradients():
    q, k, v = inputs()
    table = torch.randn(4, 400, requires_grad=True)
    square = torch.randn(100, 150, requires_grad=True)
    slope = torch.tensor(0.3, requires_grad=True)
    starts = torch.tensor([3, 40])

    def mod(score, b, h, q, kv):
        return score * slope + table[h, q - kv + 200] + square[q, kv] * square[q, kv]

    def mask_mod(b, h, q, kv):
        return kv >= starts[b]

    mask = create_block_mask(mask_mod, 2, None, 100, 150, device="cpu", BLOCK_SIZE=32)
    got = compiled_call(mask, mod)(q, k, v)
    leaves = (q, k, v, table, square, slope)
    want = dense(q, k, v, mod, mask_mod)
    to = torch.randn_like(got[0])
    found = torch.autograd.grad(got[0], leaves, to)
    plain = torch.autograd.grad(want[0], leaves, to.double())
    for a, b in zip((*got, *found), (*want, *plain), strict=True):
        torch.testing.assert_close(a.double(), b.double(), rtol=1e-4, atol=1e-4)


def test_gradients_nobody_wants_are_not_computed():
    q, k, v = inputs()
    bias = torch.randn(100, 150)
    asked = []
    plain = flex._gradient_graphs

    def note(call, layout, dtype, wanted):
        asked.append(wanted)
        return plain(call, layout, dtype, wanted)

    flex._gradient_graphs = note
    try:
        mod = lambda score, b, h, q, kv: score + bias[q, kv]
        compiled_call(None, mod)(q, k, v)[0].sum().backward()
    finally:
        flex._gradient_graphs = plain
    assert asked == [(False,)]


def test_queries_without_any_key_give_zeros():
    q, k, v = inputs()

    def late(b, h, q, kv):
        return (kv < 10) & (q >= 50)

    mask = create_block_mask(late, None, None, 100, 150, device="cpu", BLOCK_SIZE=16)
    out, lse = compiled_call(mask, MODS["relative"])(q, k, v)
    want = dense(q, k, v, MODS["relative"], late)[0]
    close(out, want)
    assert out[:, :, :50].eq(0).all() and lse[:, :, :50].eq(-math.inf).all()
    grads = torch.autograd.grad(out.sum(), (q, k, v))
    assert grads[0][:, :, :50].eq(0).all() and all(g.isfinite().all() for g in grads)


def test_blocks_that_are_left_out_are_not_read():
    """NaN in keys and values of blocks outside of the mask touches nothing."""
    q, k, v = (t.detach() for t in inputs(q=128, kv=256))
    k[:, :, 128:], v[:, :, 128:] = math.nan, math.nan
    mask = create_block_mask(causal, None, None, 128, 256, device="cpu", BLOCK_SIZE=64)
    out, _ = compiled_call(mask, MODS["none"])(q, k, v)
    assert out.isfinite().all()


@pytest.mark.parametrize("block", [(1, 1), (7, 13), (16, 200), (128, 8)])
def test_blocks_of_any_size(block):
    q, k, v = inputs(q=45, kv=61)
    mask = create_block_mask(causal, None, None, 45, 61, device="cpu", BLOCK_SIZE=block)
    got = compiled_call(mask, MODS["relative"])(q, k, v)
    want = dense(q, k, v, MODS["relative"], causal)
    found = torch.autograd.grad(got[0].sum(), (q, k, v))
    plain = torch.autograd.grad(want[0].sum(), (q, k, v))
    for a, b in zip((*got, *found), (*want, *plain), strict=True):
        close(a, b.double())


def test_lists_of_blocks_need_not_be_in_order_or_valid():
    q, k, v = (t.detach() for t in inputs(q=64, kv=96))
    count = torch.full((1, 1, 2), 3, dtype=torch.int32)
    order = torch.tensor([[2, 0, 0], [7, 1, -4]], dtype=torch.int32).view(1, 1, 2, 3)

    def listed(b, h, q, kv):
        row, column = q // 32, kv // 32
        return ((row == 0) & (column != 1)) | ((row == 1) & (column == 1))

    operands = (q, k, v, 1 / math.sqrt(q.shape[-1]), count, order, None, None, 32, 32)
    got = torch._C._inductor.flex_forward(operands, None, None, [])[0]
    close(got, dense(q, k, v, MODS["none"], listed)[0])


@pytest.mark.parametrize(
    "change",
    [
        {"key": torch.randn(2, 3, 150, 16)},
        {"key": torch.randn(2, 4, 150, 17)},
        {"value": torch.randn(2, 4, 149, 24)},
        {"value": torch.randn(2, 4, 150, 24).double()},
        {"count": torch.zeros(1, 1, 1, dtype=torch.int64)},
        {"count": torch.zeros(3, 1, 4, dtype=torch.int32)},
        {"count": torch.zeros(1, 1, 0, dtype=torch.int32)},
        {"rows": 0},
        {"columns": -5},
        {"query": torch.randn(2, 4, 100)},
    ],
)
def test_operands_that_do_not_fit_are_refused(change):
    q, k, v = (t.detach() for t in inputs())
    given = {"query": q, "key": k, "value": v, "scale": 1.0}
    given["count"] = torch.ones(1, 1, 1, dtype=torch.int32)
    given["indices"] = torch.zeros(1, 1, 1, 1, dtype=torch.int32)
    given |= {"full_count": None, "full_indices": None, "rows": 128, "columns": 256} | change
    with pytest.raises((RuntimeError, TypeError), match="flex_attention"):
        torch._C._inductor.flex_forward(tuple(given.values()), None, None, [])


def test_other_sizes_and_empty_ones():
    call = torch.compile(flex_attention, dynamic=True)
    for q_len, kv in ((40, 40), (70, 33), (1, 5), (9, 1), (0, 4)):
        q, k, v = (t.detach() for t in inputs(q=q_len, kv=kv))
        got = call(q, k, v, MODS["relative"])
        close(got, dense(q, k, v, MODS["relative"], everything)[0])
    q, k, v = (t.detach() for t in inputs(q=5, kv=0))
    assert call(q, k, v, MODS["relative"]).eq(0).all()


def test_strides_of_operands_are_free():
    q, k, v = (t.detach() for t in inputs())
    q = q.transpose(1, 2).contiguous().transpose(1, 2)
    k = k.transpose(2, 3).contiguous().transpose(2, 3)
    v = torch.cat([v, v], -1)[..., ::2]
    got, _ = compiled_call(None, MODS["capped"])(q, k, v)
    close(got, dense(q, k, v, MODS["capped"], everything)[0])


def test_function_that_answers_with_a_buffer_leaves_it_alone():
    q, k, v = (t.detach() for t in inputs(q=64, kv=128))
    bias = torch.randn(64, 128)
    kept = bias.clone()
    mod = lambda score, b, h, q, kv: bias[q, kv]
    got, _ = compiled_call(None, mod)(q, k, v)
    close(got, dense(q, k, v, lambda s, b, h, q, kv: bias[q, kv].double() + 0 * s, everything)[0])
    assert torch.equal(bias, kept)


def test_threads_do_not_change_bits():
    q, k, v = inputs(batch=1, heads=2, kv_heads=2, q=300, kv=300)
    bias = torch.randn(2, 600, requires_grad=True)
    mod = lambda score, b, h, q, kv: score + bias[h, q - kv + 300]
    run = compiled_call(None, mod)
    threads, found = torch.get_num_threads(), []
    try:
        for n in (1, 4):
            torch.set_num_threads(n)
            out, _ = run(q, k, v)
            found.append([out, *torch.autograd.grad(out.square().sum(), (q, k, v, bias))])
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_function_that_no_plan_holds_is_computed_all_the_same():
    q, k, v = (t.detach() for t in inputs())
    metrics.reset()
    mod = lambda score, b, h, q, kv: score + torch.sort(torch.stack([q, kv])).values[0]
    got = torch.compile(flex_attention)(q, k, v, mod)
    want = dense(q, k, v, lambda s, b, h, q, kv: s + torch.minimum(q, kv), everything)
    close(got, want[0])


def test_random_calls_equal_the_matrix_of_all_scores():
    path = pathlib.Path(__file__).parents[2] / "tools" / "fuzz" / "flex_attention.py"
    spec = importlib.util.spec_from_file_location("fuzz_flex_attention", path)
    fuzz = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzz)
    assert [found for seed in range(12) if (found := fuzz.difference(seed))] == []


MEMORY = """
import resource, torch
from torch.nn.attention.flex_attention import flex_attention
call = torch.compile(flex_attention)
def mod(score, b, h, q, kv):
    return score - (q - kv).abs() * 0.001
def run(n):
    q, k, v = (torch.randn(1, 2, n, 16, requires_grad=True) for _ in range(3))
    call(q, k, v, mod).sum().backward()
run(256)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
run(8192)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_square_of_the_length():
    done = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 100  # MiB; the scores alone are 512
