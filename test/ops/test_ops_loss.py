"""Losses against plain float64 formulas and loops, their gradients against differences."""

import math

import numpy as np
import pytest
from tensor_support import numeric_gradient

import torch
import torch.nn.functional as F

aten = torch.ops.aten
TOLERANCE = {torch.float64: 1e-12, torch.float32: 3e-6, torch.float16: 5e-3, torch.bfloat16: 4e-2}
REDUCE = {"none": lambda v: v, "mean": lambda v: v.mean(), "sum": lambda v: v.sum()}


def smooth_l1(x, t, beta=0.7):
    d = np.abs(x - t)
    return np.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta)


def huber(x, t, delta=0.7):
    d = np.abs(x - t)
    return np.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta))


def log1p_exp(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


ELEMENTWISE = {
    "mse_loss": ({}, lambda x, t: (x - t) ** 2),
    "l1_loss": ({}, lambda x, t: np.abs(x - t)),
    "smooth_l1_loss": ({"beta": 0.7}, smooth_l1),
    "huber_loss": ({"delta": 0.7}, huber),
    "soft_margin_loss": ({}, lambda x, t: log1p_exp(-x * t)),
    "binary_cross_entropy_with_logits": ({}, lambda x, t: (1 - t) * x + log1p_exp(-x)),
    "kl_div": ({"log_target": True}, lambda x, t: np.exp(t) * (t - x)),
    "poisson_nll_loss": ({}, lambda x, t: np.exp(x) - t * x),
    "hinge_embedding_loss": (
        {},
        lambda x, t: np.where(t == 1, 0, np.maximum(1 - x, 0)) + np.where(t == -1, 0, x),
    ),
}


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
@pytest.mark.parametrize("reduction", list(REDUCE))
@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("name", sorted(ELEMENTWISE))
def test_elementwise_loss_matches_formula(name, dtype, reduction):
    torch.manual_seed(0)
    options, formula = ELEMENTWISE[name]
    x, t = torch.randn(5, 37).to(dtype), torch.randn(5, 37).to(dtype)
    got = getattr(F, name)(x, t, reduction=reduction, **options)
    want = REDUCE[reduction](formula(x.double().numpy(), t.double().numpy()))
    assert got.dtype == dtype and got.shape == want.shape
    tolerance = TOLERANCE[dtype] * (10 if reduction == "sum" else 1)
    np.testing.assert_allclose(got.double().numpy(), want, rtol=tolerance, atol=tolerance)
    meta = getattr(F, name)(x.to("meta"), t.to("meta"), reduction=reduction, **options)
    assert meta.shape == got.shape and meta.dtype == dtype


def test_elementwise_losses_broadcast_with_a_warning_and_promote():
    x, t = torch.randn(3, 4), torch.randn(4, dtype=torch.float64)
    with pytest.warns(UserWarning, match="different to the input size"):
        got = F.mse_loss(x, t)
    assert got.dtype == torch.float64 and torch.allclose(got, ((x - t) ** 2).mean())


BACKWARD = {
    "mse_loss": ({}, lambda g, x, t, r: aten.mse_loss_backward(g, x, t, r)),
    "smooth_l1_loss": (
        {"beta": 0.7},
        lambda g, x, t, r: aten.smooth_l1_loss_backward(g, x, t, r, 0.7),
    ),
    "huber_loss": ({"delta": 0.7}, lambda g, x, t, r: aten.huber_loss_backward(g, x, t, r, 0.7)),
    "soft_margin_loss": ({}, lambda g, x, t, r: aten.soft_margin_loss_backward(g, x, t, r)),
    "binary_cross_entropy": (
        {},
        lambda g, x, t, r: aten.binary_cross_entropy_backward(g, x, t, None, r),
    ),
}


@pytest.mark.parametrize("number, reduction", [(1, "mean"), (2, "sum")])
@pytest.mark.parametrize("name", sorted(BACKWARD))
def test_elementwise_gradients_match_differences(name, number, reduction):
    torch.manual_seed(1)
    options, backward = BACKWARD[name]
    x, t = torch.rand(3, 4, dtype=torch.float64), torch.rand(3, 4, dtype=torch.float64)
    got = backward(torch.tensor(2.0, dtype=torch.float64), x, t, number)
    want = numeric_gradient(lambda v: 2 * getattr(F, name)(v, t, reduction=reduction, **options), x)
    assert torch.allclose(got, want, rtol=1e-6, atol=1e-7)


def test_binary_cross_entropy_limits_logarithms_and_checks_its_range():
    got = F.binary_cross_entropy(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 0.0]))
    assert float(got) == 100
    for bad in (1.5, -0.1, math.nan):
        with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
            F.binary_cross_entropy(torch.tensor([0.5, bad]), torch.tensor([1.0, 0.0]))
    with pytest.raises(ValueError, match="Using a target size"):
        F.binary_cross_entropy(torch.rand(2), torch.rand(3))


def test_binary_cross_entropy_weights():
    x, t, w, p = torch.randn(4, 3), torch.rand(4, 3), torch.rand(4, 3), torch.rand(3)
    s = torch.sigmoid(x.double())
    want = -w * (p * t * torch.log(s) + (1 - t) * torch.log(1 - s))
    got = F.binary_cross_entropy_with_logits(x, t, w, reduction="none", pos_weight=p)
    assert torch.allclose(got.double(), want, atol=1e-6)
    plain = F.binary_cross_entropy(torch.sigmoid(x), t, w, reduction="sum")
    want = -w * (t * torch.log(s) + (1 - t) * torch.log(1 - s))
    assert torch.allclose(plain.double(), want.sum(), atol=1e-5)


# ---- classes
def nll(log_p, target, weight, ignore, reduction):
    """A loop over (N, C, ...)."""
    log_p = np.moveaxis(log_p, 1, -1)
    out, scale = np.zeros(target.shape), np.zeros(target.shape)
    for i in np.ndindex(target.shape):
        if target[i] != ignore:
            scale[i] = 1 if weight is None else weight[target[i]]
            out[i] = -log_p[i][target[i]] * scale[i]
    return out if reduction == "none" else out.sum() / (scale.sum() if reduction == "mean" else 1)


@pytest.mark.parametrize("reduction", list(REDUCE))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tail", [(), (6,), (2, 3), (2, 3, 2)])
@pytest.mark.parametrize("dtype", list(TOLERANCE))
def test_nll_and_cross_entropy_match_a_loop(dtype, tail, weighted, reduction):
    torch.manual_seed(2)
    x = torch.randn(4, 5, *tail).to(dtype)
    t = torch.randint(0, 5, (4, *tail))
    t.view(-1)[1] = -100
    w = torch.rand(5).to(dtype) if weighted else None
    plain = None if w is None else w.double().numpy()
    got = F.nll_loss(x, t, w, reduction=reduction)
    want = nll(x.double().numpy(), t.numpy(), plain, -100, reduction)
    np.testing.assert_allclose(
        got.double().numpy(), want, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
    )
    log_p = torch.log_softmax(x.double(), 1).numpy()
    want = nll(log_p, t.numpy(), plain, -100, reduction)
    got = F.cross_entropy(x, t, w, reduction=reduction)
    tolerance = TOLERANCE[dtype] * 4
    np.testing.assert_allclose(got.double().numpy(), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("number, reduction", [(0, "none"), (1, "mean"), (2, "sum")])
def test_nll_gradients_match_differences(number, reduction):
    torch.manual_seed(3)
    w = torch.rand(4, dtype=torch.float64)
    for shape, op in (((3, 4), "nll_loss"), ((2, 4, 2, 3), "nll_loss2d")):
        x = torch.randn(shape, dtype=torch.float64)
        t = torch.randint(0, 4, shape[:1] + shape[2:])
        t.view(-1)[0] = 2
        g = torch.rand(t.shape if number == 0 else (), dtype=torch.float64)
        _, total = getattr(aten, op + "_forward")(x, t, w, number, 2)
        got = getattr(aten, op + "_backward")(g, x, t, w, number, 2, total)
        want = numeric_gradient(
            lambda v, t=t, g=g: (
                F.nll_loss(v, t, w, ignore_index=2, reduction=reduction) * g
            ).sum(),
            x,
        )
        assert torch.allclose(got, want, atol=1e-7)


@pytest.mark.parametrize("reduction", list(REDUCE))
@pytest.mark.parametrize("weighted", [False, True])
def test_label_smoothing_equals_smoothed_probabilities(weighted, reduction):
    torch.manual_seed(4)
    x, t = torch.randn(6, 5, dtype=torch.float64), torch.randint(0, 5, (6,))
    w = torch.rand(5, dtype=torch.float64) if weighted else None
    one_hot = torch.zeros(6, 5, dtype=torch.float64)
    one_hot[torch.arange(6), t] = 1
    soft = one_hot * 0.8 + 0.2 / 5
    each = -(torch.log_softmax(x, 1) * soft * (1 if w is None else w)).sum(1)
    got = F.cross_entropy(x, t, w, reduction=reduction, label_smoothing=0.2)
    if reduction == "mean":
        assert torch.allclose(got, each.sum() / (6 if w is None else w[t].sum()))
    else:
        assert torch.allclose(got, REDUCE[reduction](each))
    by_probability = F.cross_entropy(x, one_hot, w, reduction=reduction, label_smoothing=0.2)
    assert torch.allclose(by_probability, REDUCE[reduction](each))


def test_cross_entropy_without_batch_and_with_everything_ignored():
    x = torch.randn(5)
    assert torch.allclose(F.cross_entropy(x, torch.tensor(3)), -torch.log_softmax(x, 0)[3])
    assert torch.isnan(F.cross_entropy(x[None], torch.tensor([-100])))
    assert float(F.cross_entropy(x[None], torch.tensor([-100]), reduction="sum")) == 0
    assert torch.isnan(F.nll_loss(torch.empty(0, 5), torch.empty(0, dtype=torch.int64)))


def test_margin_losses_match_loops():
    torch.manual_seed(5)
    x, t, w = torch.randn(3, 4), torch.tensor([0, 3, 1]), torch.rand(4)
    want = [
        sum(w[t[n]] * max(0, 1.0 - x[n, t[n]] + x[n, c]) ** 2 for c in range(4) if c != t[n]) / 4
        for n in range(3)
    ]
    got = F.multi_margin_loss(x, t, p=2, weight=w, reduction="none")
    assert torch.allclose(got, torch.stack(want))
    labels = torch.tensor([[0, 2, -1, 1], [3, -1, 0, 0], [-1, 1, 2, 3]])
    want = []
    for n, own in enumerate(([0, 2], [3], [])):
        others = [c for c in range(4) if c not in own]
        want.append(sum(max(0.0, float(1 - x[n, a] + x[n, b])) for a in own for b in others) / 4)
    got, is_target = aten.multilabel_margin_loss_forward(x, labels, 0)
    assert torch.allclose(got, torch.tensor(want))
    assert is_target[0].tolist() == [1, 0, 1, 0]


def test_margin_gradients_match_differences():
    torch.manual_seed(6)
    x, t = torch.randn(3, 4, dtype=torch.float64), torch.tensor([0, 3, 1])
    one = torch.tensor(1.0, dtype=torch.float64)
    got = aten.multi_margin_loss_backward(one, x, t, 2, 1, None, 1)
    assert torch.allclose(
        got, numeric_gradient(lambda v: F.multi_margin_loss(v, t, p=2), x), atol=1e-7
    )
    labels = torch.tensor([[0, 2, -1, 1], [3, -1, 0, 0], [-1, 1, 2, 3]])
    _, is_target = aten.multilabel_margin_loss_forward(x, labels, 1)
    got = aten.multilabel_margin_loss_backward(one, x, labels, 1, is_target)
    want = numeric_gradient(lambda v: F.multilabel_margin_loss(v, labels), x)
    assert torch.allclose(got, want, atol=1e-7)


def test_embedding_losses_match_formulas():
    torch.manual_seed(7)
    a, b, c = (torch.randn(4, 6, dtype=torch.float64) for _ in range(3))
    t = torch.tensor([1, -1, 1, -1])
    cosine = (a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1))
    want = torch.where(t == 1, 1 - cosine, torch.clamp_min(cosine - 0.1, 0))
    got = F.cosine_embedding_loss(a, b, t, margin=0.1, reduction="none")
    assert torch.allclose(got, want)
    near, far = (a - b + 1e-6).norm(dim=1), (a - c + 1e-6).norm(dim=1)
    got = F.triplet_margin_loss(a, b, c, reduction="none")
    assert torch.allclose(got, torch.clamp_min(near - far + 1, 0))
    swapped = torch.minimum(far, (b - c + 1e-6).norm(dim=1))
    got = F.triplet_margin_loss(a, b, c, swap=True)
    assert torch.allclose(got, torch.clamp_min(near - swapped + 1, 0).mean())
    got = F.margin_ranking_loss(
        a, b, t[:, None].double().expand(4, 6), margin=0.5, reduction="none"
    )
    assert torch.allclose(got, torch.clamp_min(-t[:, None] * (a - b) + 0.5, 0))


def test_gaussian_and_poisson_likelihoods():
    x, t, v = torch.randn(3, 4), torch.rand(3, 4) * 5, torch.rand(3, 4) + 0.1
    want = 0.5 * (torch.log(v) + (x - t) ** 2 / v + math.log(2 * math.pi))
    assert torch.allclose(F.gaussian_nll_loss(x, t, v, full=True), want.mean(), atol=1e-6)
    stirling = torch.where(
        t > 1, t * torch.log(t) - t + 0.5 * torch.log(2 * math.pi * t), torch.zeros(())
    )
    want = torch.exp(x) - t * x + stirling
    assert torch.allclose(F.poisson_nll_loss(x, t, full=True), want.mean(), atol=1e-5)
    with pytest.raises(ValueError, match="var has negative"):
        F.gaussian_nll_loss(x, t, -v)


@pytest.mark.parametrize(
    "call, error, phrase",
    [
        (lambda x, t: F.nll_loss(x, t + 3), IndexError, "Target 4 is out of bounds"),
        (lambda x, t: F.nll_loss(x, t - 5), IndexError, "Target -5 is out of bounds"),
        (
            lambda x, t: F.nll_loss(x, t[:2]),
            ValueError,
            r"Expected input batch_size \(3\) to match",
        ),
        (
            lambda x, t: F.nll_loss(x, t.float()),
            RuntimeError,
            "expected target dtype to be Long or Byte",
        ),
        (lambda x, t: F.nll_loss(x, t, torch.ones(3)), RuntimeError, "either for all 4 classes"),
        (
            lambda x, t: F.cross_entropy(x, t, label_smoothing=2),
            RuntimeError,
            "between 0.0 and 1.0",
        ),
        (
            lambda x, t: F.cross_entropy(x, x.long()),
            RuntimeError,
            "Expected floating point type for",
        ),
        (
            lambda x, t: F.mse_loss(x, x, reduction="product"),
            ValueError,
            "product is not a valid value",
        ),
        (lambda x, t: F.smooth_l1_loss(x, x, beta=-1), RuntimeError, "negative values for beta"),
        (lambda x, t: F.huber_loss(x, x, delta=0), RuntimeError, "non-positive values for delta"),
        (lambda x, t: F.multi_margin_loss(x, t + 9), RuntimeError, "target out of range"),
        (lambda x, t: F.multilabel_margin_loss(x, t), RuntimeError, "inconsistent target size"),
        (
            lambda x, t: F.mse_loss(x.long(), x.long()),
            NotImplementedError,
            "not implemented for 'Long'",
        ),
        (lambda x, t: aten.mse_loss(x, x, 7), RuntimeError, "expected reduction to be"),
    ],
)
def test_loss_errors(call, error, phrase):
    with pytest.raises(error, match=phrase):
        call(torch.randn(3, 4), torch.tensor([0, 1, 1]))


# ---- sequences
def ctc_by_enumeration(log_p, labels, blank):
    """Sums over every path of frames that collapses to the labels."""
    frames, classes = log_p.shape
    total = 0.0
    for path in np.ndindex(*[classes] * frames):
        merged = [c for i, c in enumerate(path) if i == 0 or c != path[i - 1]]
        if [c for c in merged if c != blank] == labels:
            total += math.exp(sum(log_p[t, c] for t, c in enumerate(path)))
    return -math.log(total) if total else math.inf


@pytest.mark.parametrize("blank", [0, 2])
def test_ctc_loss_equals_the_sum_over_paths(blank):
    torch.manual_seed(8)
    log_p = torch.randn(5, 4, 3, dtype=torch.float64).log_softmax(2)
    labels = [[1, 1], [1 if blank == 0 else 0], [1, 2 - blank], []]
    padded = torch.tensor([(own + [7, 7])[:2] for own in labels])
    padded[padded == 7] = 99  # never read
    frames, lengths = [5, 3, 4, 2], [len(own) for own in labels]
    want = [
        ctc_by_enumeration(log_p[: frames[n], n].numpy(), own, blank)
        for n, own in enumerate(labels)
    ]
    want = torch.tensor(want, dtype=torch.float64)
    got = F.ctc_loss(log_p, padded, frames, lengths, blank, "none")
    assert torch.allclose(got, want)
    flat = torch.tensor([c for own in labels for c in own])
    tensors = torch.tensor(frames), torch.tensor(lengths)
    assert torch.allclose(F.ctc_loss(log_p, flat, *tensors, blank, "sum"), want.sum())
    each = want / torch.tensor(lengths, dtype=torch.float64).clamp_min(1)
    assert torch.allclose(F.ctc_loss(log_p, padded, *tensors, blank), each.mean())
    single = F.ctc_loss(log_p[:, 0], padded[0], (5,), (2,), blank, "none")
    assert single.shape == () and torch.allclose(single, want[0])


def test_ctc_gradient_is_that_of_logits():
    torch.manual_seed(9)
    logits = torch.randn(4, 2, 3, dtype=torch.float64)
    targets, frames, lengths = torch.tensor([[1, 2], [1, 1]]), [4, 3], [2, 1]

    def loss(x):
        return F.ctc_loss(x.log_softmax(2), targets, frames, lengths, reduction="sum")

    log_p = logits.log_softmax(2)
    each, alpha = aten._ctc_loss(log_p, targets, frames, lengths)
    got = aten._ctc_loss_backward(
        torch.ones(2, dtype=torch.float64), log_p, targets, frames, lengths, each, alpha, 0
    )
    assert torch.allclose(got, numeric_gradient(loss, logits), atol=1e-7)


def test_ctc_impossible_targets_and_errors():
    log_p = torch.randn(2, 1, 3).log_softmax(2)
    targets = torch.tensor([[1, 1]])
    assert float(F.ctc_loss(log_p, targets, [2], [2], reduction="sum")) == math.inf
    assert float(F.ctc_loss(log_p, targets, [2], [2], zero_infinity=True)) == 0
    for arguments, phrase in (
        ((targets, [3], [2]), "input_lengths to have value at most 2"),
        ((targets, [2], [3]), "size at least 3"),
        ((targets, [2, 2], [2]), "input_lengths must be of size batch_size"),
        ((targets, [2], [-1]), "target_lengths to have value at least 0"),
        ((targets + 5, [2], [2]), "is outside"),
        ((targets, [2], [2], 3), "blank must be in label range"),
    ):
        with pytest.raises(RuntimeError, match=phrase):
            F.ctc_loss(log_p, *arguments)
