"""Operators on the meta device that no op record reaches: optimizer steps, gradients of embeddings
and of the CTC loss."""

import pytest

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode


def meta(*shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device="meta")


OPTIMIZERS = [torch.optim.AdamW, torch.optim.Adam, torch.optim.SGD, torch.optim.Adagrad]


def _step_twice(model, make, kind, **options):
    arguments = {"momentum": 0.9} if kind is torch.optim.SGD else {}
    optimizer = kind(model.parameters(), lr=0.1, **arguments, **options)
    for _ in range(2):
        model(make(4, 3)).sum().backward()
        before = [p._version for p in model.parameters()]
        optimizer.step()
        assert all(p._version > v for p, v in zip(model.parameters(), before, strict=True))


@pytest.mark.parametrize("foreach", [True, False])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_optimizer_step_on_meta_writes_every_parameter(kind, foreach):
    _step_twice(nn.Linear(3, 2, device="meta"), meta, kind, foreach=foreach)


@pytest.mark.parametrize("kind", OPTIMIZERS[:3])
def test_fused_optimizer_step_on_fakes_writes_every_parameter(kind):
    with FakeTensorMode():
        _step_twice(nn.Linear(3, 2), torch.empty, kind, fused=True)


def test_fused_step_on_meta_refuses_a_state_of_another_shape():
    steps = [torch.ones((), device="meta")]
    with pytest.raises(RuntimeError, match="does not fit a parameter of shape"):
        torch._fused_adamw_(
            [meta(3)], [meta(3)], [meta(2)], [meta(3)], [], steps,
            lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=1e-8, amsgrad=False,
            maximize=False,
        )  # fmt: skip


def test_fused_adagrad_on_meta_writes_parameters_and_sums():
    param, total, steps = meta(3), meta(3), [torch.ones((), device="meta")]
    options = {"lr_decay": 0.0, "weight_decay": 0.0, "eps": 1e-8, "maximize": False}
    torch._fused_adagrad_([param], [meta(3)], [total], steps, lr=0.1, **options)
    assert param._version == total._version == 1


def test_native_dropout_on_meta_gives_result_and_mask():
    out, mask = torch.native_dropout(meta(2, 3), 0.5, True)
    assert (out.shape, out.dtype, mask.shape, mask.dtype) == (
        (2, 3),
        torch.float32,
        (2, 3),
        torch.bool,
    )


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag_on_meta_has_gradients(mode):
    bag = nn.EmbeddingBag(10, 4, mode=mode, device="meta")
    weights = meta(6).requires_grad_() if mode == "sum" else None
    index = meta(6, dtype=torch.long), meta(2, dtype=torch.long)
    bag(*index, per_sample_weights=weights).sum().backward()
    assert bag.weight.grad.shape == (10, 4)
    assert weights is None or weights.grad.shape == (6,)


def test_ctc_loss_on_meta_has_a_gradient():
    x = meta(5, 2, 4).requires_grad_()
    loss = nn.functional.ctc_loss(x, meta(2, 3, dtype=torch.long), (5, 4), (3, 2))
    loss.backward()
    assert loss.shape == () and x.grad.shape == x.shape
    values, alpha = torch._ctc_loss(x, meta(2, 3, dtype=torch.long), (5, 4), (3, 2))
    assert (values.shape, alpha.shape) == ((2,), (2, 5, 7))


def test_renormalised_embedding_on_meta_writes_the_weight():
    weight = meta(5, 2)
    out = torch.embedding_renorm_(weight, meta(3, dtype=torch.long), 1.0, 2.0)
    assert out is weight and weight._version == 1


def test_scan_helpers_on_meta_check_their_outputs():
    values, places = meta(2, 3), meta(2, 3, dtype=torch.long)
    torch._cummax_helper(meta(2, 3), values, places, 1)
    assert values._version == places._version == 1
    with pytest.raises(RuntimeError, match="must be contiguous tensors"):
        torch._cummin_helper(meta(2, 4), values, places, 1)


def test_loss_of_rows_on_meta_has_the_form_of_the_fused_kernel():
    rows, classes = meta(4, 7, dtype=torch.half), meta(4, dtype=torch.long)
    out, sums, total = torch.ops.aten._cross_entropy_rows(rows, classes, None, 1, -100, True)
    assert (out.shape, out.dtype, sums.shape, total.shape) == ((), torch.float32, (4,), ())
    each = torch.ops.aten._cross_entropy_rows(rows, classes, None, 0, -100)[0]
    assert (each.shape, each.dtype) == ((4,), torch.half)
    grad = torch.ops.aten._cross_entropy_rows_backward(
        out, rows, classes, None, 1, -100, sums, total
    )
    assert (grad.shape, grad.dtype) == ((4, 7), torch.half)


def test_gradient_scaler_operators_on_meta_write_their_state():
    scale, tracker = meta(1), meta(1, dtype=torch.int32)
    found, grads = meta(1), [meta(3), meta(2, 2)]
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, meta(1))
    assert [g._version for g in grads] == [1, 1] and found._version == 1
    assert torch._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 3) is scale
    assert torch._fused_clip_grad_norm(grads, 1.0, 2.0).shape == ()


def test_writing_to_masked_places_on_meta_needs_no_data():
    x, mask = meta(3, 4), meta(3, dtype=torch.bool)
    assert x.index_put_((mask,), meta()) is x and x._version == 1
    assert torch.index_put(x, (mask, None), meta(2, 4)).shape == (3, 4)
    with FakeTensorMode():
        y = torch.zeros(3, 4)
        y[y[:, 0] > 0] = torch.ones(4)
        assert y._version > 0


def test_layer_norm_without_parameters_has_no_gradients_of_them():
    for make in (meta, torch.ones):
        x, row = make(2, 3), make(2, 1)
        grads = torch.ops.aten.native_layer_norm_backward(
            make(2, 3), x, [3], row, row, None, None, [True, True, True]
        )
        assert grads[0].shape == (2, 3) and grads[1] is None and grads[2] is None


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_gradients_of_batch_norm_lie_like_the_input_with_and_without_data(layout):
    found = []
    for device in ("cpu", "meta"):
        x = torch.ones(2, 3, 4, 5, device=device).to(memory_format=layout).requires_grad_()
        y = nn.functional.batch_norm(x, None, None, training=True)
        (dx,) = torch.autograd.grad(y, x, torch.ones(2, 3, 4, 5, device=device))
        found.append((y.stride(), dx.stride()))
    assert found[0] == found[1]
