"""FlexAttention as an operator of traces: results and gradients are those of the plain function,
the functions of scores and positions are graphs of one score, and tensors that these refer to are
operands. The plain function is compared with a loop over queries and keys."""

import math

import numpy as np
import pytest

import torch
from torch._functorch.aot_autograd import aot_function, make_boxed_func
from torch._higher_order_ops.flex_attention import flex_attention as operator
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention.flex_attention import (
    AuxRequest,
    _create_empty_block_mask,
    create_block_mask,
    flex_attention,
)

aten = torch.ops.aten


def tensors(heads=4, kv_heads=2, q=10, kv=14):
    shapes = ((2, heads, q, 8), (2, kv_heads, kv, 8), (2, kv_heads, kv, 6))
    return [torch.randn(s, dtype=torch.float64).requires_grad_() for s in shapes]


def biased(q, k, v, bias, shift):
    mask = create_block_mask(
        lambda b, h, q, kv: q + shift[b] >= kv, 2, None, 10, 14, device="cpu", BLOCK_SIZE=4
    )

    def score_mod(score, b, h, q, kv):
        return score * 0.5 + bias[h] * (q - kv)

    aux = AuxRequest(lse=True)
    out, found = flex_attention(q, k, v, score_mod, mask, enable_gqa=True, return_aux=aux)
    return out, found.lse


def by_loops(q, k, v, bias, shift):
    q, k, v, bias = (t.detach().numpy() for t in (q, k, v, bias))
    out = np.zeros((2, 4, 10, 6))
    lse = np.full((2, 4, 10), -np.inf)
    for b, h, i in np.ndindex(2, 4, 10):
        keys = [j for j in range(14) if i + int(shift[b]) >= j]
        scores = [
            0.5 * (q[b, h, i] @ k[b, h // 2, j]) / math.sqrt(8) + bias[h] * (i - j) for j in keys
        ]
        weights = np.exp(scores)
        out[b, h, i] = (
            sum(w * v[b, h // 2, j] for w, j in zip(weights, keys, strict=True)) / weights.sum()
        )
        lse[b, h, i] = math.log(weights.sum())
    return out, lse


def compiled(function):
    graphs = []

    def keep(graph, inputs):
        graphs.append(graph)
        return make_boxed_func(graph.forward)

    return aot_function(function, keep), graphs


def test_traced_attention_equals_loops_and_has_gradients_of_the_plain_one():
    inputs = [*tensors(), torch.randn(4, dtype=torch.float64).requires_grad_()]
    shift = torch.tensor([3, 5])
    call, graphs = compiled(biased)
    got, want = call(*inputs, shift), biased(*inputs, shift)
    for a, b, c in zip(got, want, by_loops(*inputs, shift), strict=True):
        torch.testing.assert_close(a, b)
        torch.testing.assert_close(a.detach(), torch.from_numpy(c))
    found, plain = (
        torch.autograd.grad(sum((o * o).sum() for o in outputs), inputs) for outputs in (got, want)
    )
    for a, b in zip(found, plain, strict=True):
        torch.testing.assert_close(a, b)
    names = [n.target for g in graphs for n in g.graph.nodes if n.op == "call_function"]
    assert torch.ops.higher_order.flex_attention in names
    assert torch.ops.higher_order.flex_attention_backward in names
    assert aten.mm.default not in names and aten._softmax.default not in names


def test_functions_become_graphs_of_one_score_with_operands():
    inputs = [*tensors(), torch.randn(4, dtype=torch.float64)]
    graph = make_fx(biased, tracing_mode="fake")(*inputs, torch.tensor([3, 5]))
    (node,) = [n for n in graph.graph.nodes if n.target is operator]
    assert [n.name for n in node.args[7]] == ["bias_1"]
    assert [n.name for n in node.args[8]] == ["shift_1"]
    score = getattr(graph, node.args[3].target)
    values = [n.meta["val"] for n in score.graph.find_nodes(op="placeholder")]
    assert [tuple(v.shape) for v in values] == [()] * 5 + [(4,)]
    places = [torch.tensor(i, dtype=torch.int32) for i in (1, 2, 9, 4)]
    got = score(torch.tensor(3.0, dtype=torch.float64), *places, inputs[3])
    assert got.item() == pytest.approx(1.5 + float(inputs[3][2]) * 5)
    mask = getattr(graph, node.args[4][-1].target)
    assert bool(mask(*places, torch.tensor([3, 5]))) and not mask(*places, torch.tensor([0, -8]))


def test_attention_without_functions_is_traced_too():
    inputs = tensors(heads=2)
    call, _ = compiled(lambda q, k, v: flex_attention(q, k, v))
    want = torch.nn.functional.scaled_dot_product_attention(*inputs)
    got = call(*inputs)
    torch.testing.assert_close(got, want)
    found, plain = (torch.autograd.grad((o * o).sum(), inputs) for o in (got, want))
    for a, b in zip(found, plain, strict=True):
        torch.testing.assert_close(a, b)


def test_operator_returns_logarithms_to_base_two_and_largest_scores():
    q, k, v = (t.detach() for t in tensors(heads=2))
    mask = _create_empty_block_mask(q, k).as_tuple()
    out, sums, largest = operator(q, k, v, lambda s, b, h, q, kv: s, mask, 0.25, {}, (), ())
    scores = 0.25 * q @ k.transpose(-2, -1)
    torch.testing.assert_close(sums, torch.logsumexp(scores, -1) / math.log(2))
    torch.testing.assert_close(largest, scores.amax(-1))
    torch.testing.assert_close(out, scores.softmax(-1) @ v)


def test_operator_inside_vmap_equals_a_loop():
    q, k, v = (torch.stack([t.detach()] * 3) * torch.rand(3, 1, 1, 1, 1) for t in tensors(heads=2))
    mask = _create_empty_block_mask(q[0], k[0]).as_tuple()

    def attend(q, k, v):
        return operator(q, k, v, lambda s, b, h, i, j: s + (i > j), mask, 0.25, {}, (), ())[0]

    got = torch.vmap(attend)(q, k, v)
    torch.testing.assert_close(got, torch.stack([attend(*x) for x in zip(q, k, v, strict=True)]))


def test_operator_without_data_has_the_shapes_of_the_real_one():
    from torch._subclasses.fake_tensor import FakeTensorMode

    def attend(q, k, v):
        mask = _create_empty_block_mask(q, k).as_tuple()
        return operator(q, k, v, lambda s, b, h, i, j: s, mask, 0.25, {}, (), ())

    inputs = [t.detach().to(torch.bfloat16) for t in tensors()]
    real = attend(*inputs)
    with FakeTensorMode() as mode:
        fake = attend(*(mode.from_tensor(t) for t in inputs))
    for a, b in zip(real, fake, strict=True):
        assert (a.shape, a.stride(), a.dtype) == (b.shape, b.stride(), b.dtype)


def test_buffers_that_are_no_tensors_are_refused():
    q, k, v = (t.detach() for t in tensors(heads=2))
    mask = _create_empty_block_mask(q, k).as_tuple()
    with pytest.raises(RuntimeError, match="Other buffers must be tensors"):
        operator(q, k, v, lambda s, b, h, i, j: s, mask, 0.25, {}, ["x"], ())


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compiled_attention_is_one_graph_with_gradients_of_the_plain_one(backend):
    """Also of tensors that the functions refer to, and through the compiler's partitioner."""
    torch._dynamo.reset()
    bias = torch.randn(4, dtype=torch.float64).requires_grad_()
    shift = torch.tensor([0, 3])
    inputs = [*tensors(), bias, shift]
    wanted = [t for t in inputs if t.requires_grad]
    results = []
    for fn in (biased, torch.compile(biased, backend=backend)):
        out, lse = fn(*inputs)
        grads = torch.autograd.grad(out.sum() + lse.cos().sum(), wanted)
        results.append([out, lse, *grads])
    for want, got in zip(*results, strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_attention_serves_lengths_and_single_queries(backend):
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend(backend)
    compiled = torch.compile(flex_attention, backend=counter, fullgraph=True, dynamic=True)

    def relative(score, b, h, q, kv):
        return score + (q - kv) * 0.1

    for q, kv in ((5, 9), (7, 12), (3, 20), (1, 33)):
        given = [t.detach() for t in tensors(heads=2, kv_heads=2, q=q, kv=kv)]
        torch.testing.assert_close(
            compiled(*given, score_mod=relative), flex_attention(*given, score_mod=relative)
        )
    assert counter.frame_count <= 2
