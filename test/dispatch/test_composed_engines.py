"""Operators of torch.ops.aten that are named after kernels and engines: recurrent cells, attention,
nested tensors, learned rounding, and those of devices that are not here."""

import warnings

import numpy as np
import pytest

import torch

aten = torch.ops.aten


def rand(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def differences(function, arguments, grads, h=1e-6):
    """The gradients of <function(arguments), grads> by central differences."""
    found = []
    for position, argument in enumerate(arguments):
        out = np.zeros(argument.shape)
        for place in np.ndindex(*argument.shape):
            values = []
            for step in (h, -h):
                moved = [np.array(a) for a in arguments]
                moved[position][place] += step
                results = function(*moved)
                values.append(sum((r * g).sum() for r, g in zip(results, grads, strict=True)))
            out[place] = (values[0] - values[1]) / (2 * h)
        found.append(out)
    return found


# ---- recurrent cells
def lstm(given, held, cell, given_bias, held_bias):
    i, f, g, o = np.split(given + given_bias + held + held_bias, 4, -1)
    new = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(new), new


def gru(given, held, state, given_bias, held_bias):
    gr, gz, gn = np.split(given + given_bias, 3, -1)
    hr, hz, hn = np.split(held + held_bias, 3, -1)
    z = sigmoid(gz + hz)
    return ((1 - z) * np.tanh(gn + sigmoid(gr + hr) * hn) + z * state,)


def test_lstm_cell_and_its_gradients_follow_the_gates():
    arguments = [
        rand(2, 8, seed=1),
        rand(2, 8, seed=2),
        rand(2, 2, seed=3),
        rand(8),
        rand(8, seed=4),
    ]
    grads = [rand(2, 2, seed=5), rand(2, 2, seed=6)]
    hy, cy, workspace = aten._thnn_fused_lstm_cell(*arguments)
    plain = [a.numpy() for a in arguments]
    for got, expected in zip((hy, cy), lstm(*plain), strict=True):
        np.testing.assert_allclose(got, expected)
    expected = differences(lstm, plain, [g.numpy() for g in grads])
    given, held, cell, given_bias, held_bias = arguments
    fused = aten._thnn_fused_lstm_cell_backward(*grads, cell, cy, workspace, True)
    whole = aten._thnn_differentiable_lstm_cell_backward(
        *grads, given, held, given_bias, held_bias, cell, cy
    )
    for found in (fused, whole):
        for got, want in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, want, atol=1e-7)
    assert aten._thnn_fused_lstm_cell_backward_impl(*grads, cell, cy, workspace, False)[2] is None
    assert (
        aten._thnn_fused_lstm_cell_backward_impl(None, None, cell, cy, workspace, True)[0] is None
    )


def test_gru_cell_and_its_gradients_follow_the_gates():
    arguments = [
        rand(2, 6, seed=1),
        rand(2, 6, seed=2),
        rand(2, 2, seed=3),
        rand(6),
        rand(6, seed=4),
    ]
    grad = rand(2, 2, seed=5)
    hy, workspace = aten._thnn_fused_gru_cell(*arguments)
    plain = [a.numpy() for a in arguments]
    np.testing.assert_allclose(hy, gru(*plain)[0])
    expected = differences(gru, plain, [grad.numpy()])
    given, held, state, given_bias, held_bias = arguments
    fused = aten._thnn_fused_gru_cell_backward(grad, workspace, True)
    whole = aten._thnn_differentiable_gru_cell_backward(
        grad, given, held, state, given_bias, held_bias
    )
    for found in (fused, whole):
        for got, want in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, want, atol=1e-7)


# ---- attention
def attention(query, key, value, bias=None, seen=None):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores = scores if bias is None else scores + bias
    scores = scores if seen is None else np.where(seen, scores, -np.inf)
    weights = np.exp(scores)
    total = weights.sum(-1, keepdims=True)
    return weights / total @ value, np.log(total[..., 0])


def test_flash_attention_returns_values_and_logarithms_of_sums():
    q, k, v = rand(1, 2, 3, 4), rand(1, 2, 3, 4, seed=1), rand(1, 2, 3, 4, seed=2)
    found = aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True)
    output, logsumexp = attention(q.numpy(), k.numpy(), v.numpy(), seen=np.tri(3, dtype=bool))
    np.testing.assert_allclose(found[0], output)
    np.testing.assert_allclose(found[1], logsumexp)
    assert found[2:6] == (None, None, 3, 3)
    rows_first = aten._flash_attention_forward(
        *(t.transpose(1, 2) for t in (q, k, v)), None, None, 3, 3, 0.0, True, False
    )
    np.testing.assert_allclose(rows_first[0].transpose(1, 2), output)


def test_gradients_of_attention_equal_differences():
    q, k, v = rand(1, 1, 2, 3), rand(1, 1, 4, 3, seed=1), rand(1, 1, 4, 3, seed=2)
    bias, grad = rand(1, 1, 2, 4, seed=3), rand(1, 1, 2, 3, seed=4)
    out, lse, seed, offset = aten._scaled_dot_product_efficient_attention(q, k, v, bias, True)
    assert lse.shape == (1, 1, 32) and out.transpose(1, 2).is_contiguous()
    found = aten._scaled_dot_product_efficient_attention_backward(
        grad, q, k, v, bias, out, lse.double(), seed, offset, 0.0, [True] * 4
    )
    plain = [t.numpy() for t in (q, k, v, bias)]
    expected = differences(lambda *a: attention(*a)[:1], plain, [grad.numpy()])
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-6)
    none = torch.empty(0)
    same = aten._scaled_dot_product_cudnn_attention_backward(
        *(grad, q, k, v, out, lse[..., :2, None].double(), seed, offset, bias),
        *(none, none, 2, 4, 0.0, False),
    )
    np.testing.assert_allclose(same[0], expected[0], atol=1e-6)


def test_attention_with_the_last_row_at_the_last_key_sees_what_precedes():
    q, k, v = (rand(1, n, 1, 3, seed=n) for n in (2, 4, 4))
    found = aten._efficient_attention_forward(q, k, v, None, None, None, None, None, 0.0, 2, True)
    seen = np.array([[1, 1, 1, 0], [1, 1, 1, 1]], dtype=bool)
    moved = [t.transpose(1, 2).numpy() for t in (q, k, v)]
    np.testing.assert_allclose(found[0].transpose(1, 2), attention(*moved, seen=seen)[0])
    assert found[4:] == (2, 4)


def test_attention_kernels_with_dropout_are_not_implemented():
    q = rand(1, 1, 2, 2)
    with pytest.raises(NotImplementedError, match="is not implemented for torch"):
        aten._scaled_dot_product_flash_attention(q, q, q, 0.5)


def test_encoder_layer_with_norms_first_adds_both_blocks():
    x = rand(1, 2, 4)
    weights = [rand(12, 4, seed=1), rand(12, seed=2), rand(4, 4, seed=3), rand(4, seed=4)]
    norms = [rand(4, seed=s) for s in (5, 6, 7, 8)]
    feed = [rand(3, 4, seed=9), rand(3, seed=10), rand(4, 3, seed=11), rand(4, seed=12)]
    found = aten._transformer_encoder_layer_fwd(x, 4, 2, *weights, False, True, 1e-5, *norms, *feed)

    def norm(a, weight, bias):
        centred = a - a.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight + bias

    a, (qkv, qkv_b, proj, proj_b) = x.numpy(), [w.numpy() for w in weights]
    joined = norm(a, norms[0].numpy(), norms[1].numpy()) @ qkv.T + qkv_b
    heads = [p.reshape(1, 2, 2, 2).swapaxes(1, 2) for p in np.split(joined, 3, -1)]
    attended = attention(*heads)[0].swapaxes(1, 2).reshape(1, 2, 4) @ proj.T + proj_b
    a = a + attended
    w1, b1, w2, b2 = (f.numpy() for f in feed)
    hidden = np.maximum(norm(a, norms[2].numpy(), norms[3].numpy()) @ w1.T + b1, 0)
    np.testing.assert_allclose(found, a + hidden @ w2.T + b2)


# ---- nested tensors
def test_parts_of_a_strided_nested_tensor_are_tables_of_its_components():
    nested = torch.nested.nested_tensor([torch.zeros(2, 3), torch.ones(4, 3)])
    assert aten._nested_tensor_size(nested).tolist() == [[2, 3], [4, 3]]
    assert aten._nested_tensor_strides(nested).tolist() == [[3, 1], [3, 1]]
    assert aten._nested_tensor_storage_offsets(nested).tolist() == [0, 6]
    out = torch.empty(0, dtype=torch.int64)
    assert aten._nested_tensor_size.out(nested, out=out) is out and out.shape == (2, 2)
    strides, offsets = aten._nested_compute_contiguous_strides_offsets(
        torch.tensor([[2, 3, 5]] * 2)
    )
    assert strides.tolist() == [[15, 5, 1]] * 2 and offsets.tolist() == [0, 30]
    with pytest.raises(NotImplementedError, match="_nested_tensor_size"):
        aten._nested_tensor_size(torch.ones(2))


def test_nested_tensor_from_a_mask_takes_the_marked_rows():
    rows = torch.arange(12.0).reshape(2, 3, 2)
    mask = torch.tensor([[True, False, False], [True, True, True]])
    parts = aten._nested_tensor_from_mask(rows, mask).unbind()
    assert [p.tolist() for p in parts] == [[[0.0, 1.0]], rows[1].tolist()]
    gaps = torch.tensor([[True, False, True], [True, True, True]])
    assert not aten._nested_tensor_from_mask_left_aligned(rows, gaps)
    with pytest.raises(RuntimeError, match="left-aligned"):
        aten._nested_tensor_from_mask(rows, gaps)


def test_padded_heads_are_joined_into_the_rows_of_nested_components():
    padded = torch.arange(12.0).reshape(1, 2, 3, 2)
    (part,) = aten._nested_from_padded(padded, torch.tensor([[2, 4]]), True).unbind()
    assert part.tolist() == [[0.0, 1.0, 6.0, 7.0], [2.0, 3.0, 8.0, 9.0]]


def test_softmax_of_padded_scores_is_zero_beyond_the_lengths_of_the_queries():
    query = torch.nested.nested_tensor([torch.zeros(1, 2), torch.zeros(2, 2)])
    found = aten._nested_tensor_softmax_with_shape(torch.zeros(2, 1, 2, 2), query)
    assert found.tolist() == [[[[1.0, 0.0], [0.0, 0.0]]], [[[0.5, 0.5], [0.5, 0.5]]]]


def test_gradients_of_nested_selection_and_sum_reach_their_elements():
    nested = torch.nested.nested_tensor([torch.zeros(2, 2), torch.zeros(1, 2)])
    picked = aten._nested_select_backward(torch.ones(1, 2), nested, 0, 1)
    assert [p.tolist() for p in picked.unbind()] == [[[0.0, 0.0]] * 2, [[1.0, 1.0]]]
    grad = torch.nested.nested_tensor([torch.tensor([1.0, 2.0]), torch.tensor([3.0])])
    spread = aten._nested_sum_backward(grad, nested, [-1])
    assert [p.tolist() for p in spread.unbind()] == [[[1.0, 1.0], [2.0, 2.0]], [[3.0, 3.0]]]


def test_jagged_nested_tensor_is_taken_apart_and_put_together():
    values, offsets = torch.arange(6.0).reshape(3, 2), torch.tensor([0, 1, 3])
    nested = torch.nested.nested_tensor_from_jagged(values, offsets)
    dummy = aten._nested_get_jagged_dummy(nested)
    assert torch.equal(aten._nested_get_values(nested), values)
    assert aten._nested_get_offsets(nested) is offsets
    assert aten._nested_get_lengths(nested) is None and aten._nested_get_ragged_idx(nested) == 1
    assert aten._nested_get_max_seqlen(nested).shape == (2, 0)
    again = aten._nested_view_from_jagged(values, offsets, dummy)
    assert again.values().data_ptr() == values.data_ptr()
    assert aten._nested_view_from_jagged_copy(values, offsets, dummy).values() is not values
    padded = torch.arange(8.0).reshape(2, 2, 2)
    parts = aten._nested_from_padded_tensor(padded, offsets, dummy).unbind()
    assert [p.tolist() for p in parts] == [[[0.0, 1.0]], [[4.0, 5.0], [6.0, 7.0]]]


# ---- engines
def test_operators_of_onednn_compute_on_plain_tensors():
    x, w, g = rand(3, 4), rand(2, 4, seed=1), rand(3, 2, seed=2)
    to_x, to_w, to_b = aten.mkldnn_linear_backward(x, g, w, [True, True, True])
    np.testing.assert_allclose(to_x, g.numpy() @ w.numpy())
    np.testing.assert_allclose(to_w, g.numpy().T @ x.numpy())
    np.testing.assert_allclose(to_b, g.numpy().sum(0))
    image = torch.arange(16.0).reshape(1, 1, 4, 4)
    pooled = aten.mkldnn_max_pool2d(image, [2, 2], [2, 2])
    assert pooled.tolist() == [[[[5.0, 7.0], [13.0, 15.0]]]]
    grad = aten.mkldnn_max_pool2d_backward(pooled, pooled, image, [2, 2], [2, 2])
    assert grad.flatten().nonzero().flatten().tolist() == [5, 7, 13, 15]
    ones = torch.ones(1, 1, 2, 2)
    assert aten.mkldnn_convolution(image, ones, None, [0, 0], [2, 2], [1, 1], 1).tolist() == [
        [[[10.0, 18.0], [42.0, 50.0]]]
    ]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: aten.cudnn_convolution(x, x, [0, 0], [1, 1], [1, 1], 1, False, False, False),
        lambda x: aten.miopen_convolution_relu(x, x, None, [1, 1], [0, 0], [1, 1], 1),
        lambda x: aten._mps_convolution(x, x, None, [0, 0], [1, 1], [1, 1], 1),
        lambda x: aten.to_mkldnn(x),
        lambda x: aten._to_sparse_semi_structured(x),
    ],
)
def test_operator_of_an_absent_engine_names_itself_dtype_and_device(call):
    with pytest.raises(NotImplementedError, match="Could not run 'aten::") as caught:
        call(torch.ones(1, 1, 2, 2, dtype=torch.float64))
    assert "float64" in str(caught.value) and "cpu" in str(caught.value)


def test_schema_of_an_absent_engine_can_be_read():
    schema = aten.miopen_convolution_relu.default._schema
    assert [a.name for a in schema.arguments][:3] == ["self", "weight", "bias"]


# ---- learned rounding
def test_learned_rounding_gives_scale_the_error_and_bounds_to_what_is_outside():
    x, grad = torch.tensor([[0.3, 9.0], [-9.0, 0.6]]), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    scale, zero = torch.tensor([0.5, 0.25]), torch.tensor([1.0, -1.0])
    leaves = [t.clone().requires_grad_() for t in (x, scale, zero)]
    y = aten._fake_quantize_learnable_per_channel_affine(*leaves, 0, -4, 3, 0.5)
    assert y.tolist() == [[0.5, 1.0], [-0.75, 0.5]]
    y.backward(grad)
    assert leaves[0].grad.tolist() == [[1.0, 0.0], [0.0, 4.0]]
    by_scale = [0.5 * (1.0 * (1 - 0.6) + 2.0 * 2), 0.5 * (3.0 * -3 + 4.0 * (2 - 2.4))]
    np.testing.assert_allclose(leaves[1].grad, by_scale, rtol=1e-6)
    np.testing.assert_allclose(leaves[2].grad, [0.5 * -1.0, 0.5 * -0.75])


# ---- the rest
def test_products_of_groups_take_the_rows_of_their_group():
    a, b = rand(5, 3), rand(2, 3, 4, seed=1)
    found = aten._grouped_mm(a, b, torch.tensor([2, 5], dtype=torch.int32))
    expected = np.concatenate([a[:2].numpy() @ b[0].numpy(), a[2:].numpy() @ b[1].numpy()])
    np.testing.assert_allclose(found, expected)
    summed = aten._grouped_mm(a.T, rand(5, 4, seed=2), torch.tensor([2, 5], dtype=torch.int32))
    assert summed.shape == (2, 3, 4)


def test_out_overloads_of_sparse_operators_write_places_and_values():
    matrix = torch.tensor([[1.0, 0.0], [0.0, 2.0]]).to_sparse()
    out = torch.zeros(2, 2).to_sparse()
    assert aten._sparse_sparse_matmul.out(matrix, matrix, out=out) is out
    assert out.to_dense().tolist() == [[1.0, 0.0], [0.0, 4.0]]
    with pytest.raises(RuntimeError, match=r"size \[2, 2\].*got \[3, 3\]"):
        aten._to_sparse.out(matrix.to_dense(), out=torch.zeros(3, 3).to_sparse())


def test_out_overload_of_a_step_leaves_the_parameters_alone():
    parameter, out = torch.ones(2), torch.zeros(2)
    momentum = torch.zeros(2)
    aten._fused_sgd.out(
        [parameter],
        [torch.ones(2)],
        [momentum],
        weight_decay=0.0,
        momentum=0.9,
        lr=0.5,
        dampening=0.0,
        nesterov=False,
        maximize=False,
        is_first_step=True,
        out=[out],
    )
    assert parameter.tolist() == [1.0, 1.0] and out.tolist() == [0.5, 0.5]


def test_operators_for_tests_do_what_their_names_say():
    assert aten._test_optional_intlist(torch.tensor([1, 2]), [3, 4]).tolist() == [4, 6]
    assert aten._test_ambiguous_defaults.b(torch.ones(1)).item() == 2
    leaf = torch.ones(2, requires_grad=True)
    aten._test_autograd_multiple_dispatch.fullcoverage(leaf).sum().backward()
    assert leaf.grad.tolist() == [2.0, 2.0]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        aten._test_warn_in_autograd(leaf).sum().backward()
    assert "Warn from backward" in str(seen[0].message)


def test_rows_that_are_pruned_have_no_number():
    rows, numbers = aten._rowwise_prune(
        torch.arange(6.0).reshape(3, 2), torch.tensor([True, False, True]), torch.int32
    )
    assert rows.tolist() == [[0.0, 1.0], [4.0, 5.0]] and numbers.tolist() == [0, -1, 1]


def test_default_of_a_list_of_known_length_is_a_list():
    arguments = {a.name: a for a in aten.max_pool2d_with_indices.default._schema.arguments}
    assert arguments["padding"].default_value == [0, 0]
    assert arguments["stride"].default_value == [] and arguments["ceil_mode"].default_value is False


def test_schemas_of_all_operators_can_be_listed():
    schemas = torch._C._jit_get_all_schemas()
    assert "aten::add.Tensor(" in " ".join(str(s) for s in schemas if s.name == "aten::add")
