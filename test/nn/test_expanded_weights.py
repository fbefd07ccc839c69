"""ExpandedWeight: gradients of each sample by themselves, against a loop over the samples."""

import pytest

import torch
from torch.nn import functional as F
from torch.nn.utils._expanded_weights import ExpandedWeight
from torch.nn.utils._expanded_weights.expanded_weights_utils import (
    forward_helper,
    set_grad_sample_if_exists,
    standard_kwargs,
    sum_over_all_but_batch_and_last_n,
    unpack_expanded_weight_or_tensor,
)

_CASES = {
    "linear": (F.linear, (3, 2, 4), [(5, 4), (5,)], {}),
    "conv1d": (F.conv1d, (3, 2, 6), [(4, 2, 3), (4,)], {"padding": 1}),
    "conv2d": (F.conv2d, (3, 2, 5, 5), [(4, 1, 3, 3), (4,)], {"groups": 2, "stride": 2}),
    "layer_norm": (F.layer_norm, (3, 2, 4), [(4,), (4,)], {"normalized_shape": (4,)}),
    "group_norm": (F.group_norm, (3, 4, 5), [(4,), (4,)], {"num_groups": 2}),
    "instance_norm": (F.instance_norm, (3, 4, 5), [(4,), (4,)], {}),
}


def _call(func, x, weights, extra):
    if func is F.layer_norm:
        return func(x, extra["normalized_shape"], *weights)
    if func is F.group_norm:
        return func(x, extra["num_groups"], *weights)
    if func is F.instance_norm:
        return func(x, weight=weights[0], bias=weights[1])
    return func(x, *weights, **extra)


@pytest.mark.parametrize("name", _CASES)
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_grad_sample_equals_a_loop_over_samples(name, reduction):
    func, shape, sizes, extra = _CASES[name]
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=torch.float64)
    weights = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in sizes]
    join = torch.sum if reduction == "sum" else torch.mean
    expanded = [ExpandedWeight(w, shape[0], reduction) for w in weights]
    join(_call(func, x, expanded, extra)).backward()
    for k, weight in enumerate(weights):
        rows = []
        for sample in x:
            out = join(_call(func, sample.unsqueeze(0), weights, extra))
            rows.append(torch.autograd.grad(out, weights)[k])
        assert torch.allclose(weight.grad_sample, torch.stack(rows))


def test_embedding_leaves_the_rows_of_each_sample():
    table = torch.randn(4, 2, requires_grad=True)
    ids = torch.tensor([[0, 1], [1, 1]])
    F.embedding(ids, ExpandedWeight(table, 2, "sum")).sum().backward()
    expected = torch.zeros(2, 4, 2)
    expected[0, 0] = expected[0, 1] = 1
    expected[1, 1] = 2
    assert torch.equal(table.grad_sample, expected)


def test_functions_without_a_rule_are_refused():
    weight = ExpandedWeight(torch.ones(4, requires_grad=True), 3, "sum")
    with pytest.raises(RuntimeError, match="cannot handle function add"):
        torch.add(torch.ones(3, 4), weight)
    with pytest.raises(RuntimeError, match="requires_grad"):
        ExpandedWeight(torch.ones(4), 3, "sum")
    with pytest.raises(RuntimeError, match="of Tensors, got int"):
        ExpandedWeight(3, 3, "sum")


def test_inputs_without_a_batch_are_refused():
    weight = ExpandedWeight(torch.ones(2, 4, requires_grad=True), 3, "sum")
    for shape, words in (((4,), "batch dimension"), ((0, 4), "0 is not a valid batch size")):
        with pytest.raises(RuntimeError, match=words):
            F.linear(torch.ones(shape), weight)
    with pytest.raises(RuntimeError, match="batch size matching input"):
        F.linear(torch.ones(2, 4), weight)


def test_helpers_take_the_weight_out_and_keep_gradients_of_samples():
    plain = torch.ones(4, requires_grad=True)
    weight = ExpandedWeight(plain, 3, "mean")
    set_grad_sample_if_exists(weight, lambda t: torch.ones(3))
    assert plain.grad_sample.tolist() == [3.0] * 3  # scaled back to the sum
    assert unpack_expanded_weight_or_tensor(weight) is plain
    assert unpack_expanded_weight_or_tensor(4) is None
    with pytest.raises(RuntimeError, match="mixture of ExpandedWeight"):
        unpack_expanded_weight_or_tensor(plain)
    assert sum_over_all_but_batch_and_last_n(torch.ones(2, 3, 4, 5), 1).shape == (2, 5)
    args, kwargs = standard_kwargs(("bias",), (torch.ones(3, 4), torch.ones(2, 4), None))
    assert forward_helper(F.linear, args, kwargs).tolist() == [[4.0, 4.0]] * 3
