"""Loss modules: values against the textbook formula in NumPy, options, state and errors."""

import math

import numpy as np
import pytest

import torch
from torch import nn


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def log_softmax(x):
    shifted = x - x.max(1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(1, keepdims=True))


def huber(x, y, delta):
    d = np.abs(x - y)
    return np.where(d < delta, 0.5 * d * d, delta * (d - 0.5 * delta))


ELEMENTWISE = {
    "l1": (nn.L1Loss, {}, lambda x, y: np.abs(x - y)),
    "mse": (nn.MSELoss, {}, lambda x, y: (x - y) ** 2),
    "smooth_l1": (nn.SmoothL1Loss, {"beta": 0.5}, lambda x, y: huber(x, y, 0.5) / 0.5),
    "huber": (nn.HuberLoss, {"delta": 0.7}, lambda x, y: huber(x, y, 0.7)),
    "soft_margin": (nn.SoftMarginLoss, {}, lambda x, y: np.log1p(np.exp(-y * x))),
    "poisson": (nn.PoissonNLLLoss, {}, lambda x, y: np.exp(x) - y * x),
    "bce_logits": (
        nn.BCEWithLogitsLoss,
        {},
        lambda x, y: np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x))),
    ),
}


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_losses_follow_their_formula(name, reduction):
    kind, options, formula = ELEMENTWISE[name]
    x, y = draw(3, 4, seed=1), draw(3, 4, seed=2)
    reduce = {"none": lambda v: v, "mean": np.mean, "sum": np.sum}[reduction]
    loss = kind(reduction=reduction, **options)(torch.tensor(x), torch.tensor(y))
    np.testing.assert_allclose(loss.numpy(), reduce(formula(x, y)), rtol=1e-12)


def test_cross_entropy_weights_classes_and_ignores_an_index():
    x, target = draw(6, 3), np.array([0, 1, 2, 2, 1, 0])
    weight = np.array([1.0, 0.5, 2.0])
    picked = -log_softmax(x)[np.arange(6), target]
    kept = target != 1
    expected = (picked * weight[target])[kept].sum() / weight[target][kept].sum()
    loss = nn.CrossEntropyLoss(weight=torch.tensor(weight), ignore_index=1)
    assert loss(torch.tensor(x), torch.tensor(target)).item() == pytest.approx(expected)
    nll = nn.NLLLoss(weight=torch.tensor(weight), ignore_index=1)
    assert nll(torch.tensor(log_softmax(x)), torch.tensor(target)).item() == pytest.approx(expected)


def test_cross_entropy_smooths_labels():
    x, target = draw(5, 4), np.array([0, 3, 2, 1, 1])
    soft = np.full((5, 4), 0.1 / 4)
    soft[np.arange(5), target] += 0.9
    expected = -(soft * log_softmax(x)).sum(1).mean()
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)(torch.tensor(x), torch.tensor(target))
    assert loss.item() == pytest.approx(expected)


def test_bce_and_multilabel_soft_margin_agree_through_the_sigmoid():
    x, y = torch.tensor(draw(3, 4)), torch.tensor((draw(3, 4, seed=3) > 0).astype(float))
    whole = nn.BCELoss()(x.sigmoid(), y).item()
    assert nn.MultiLabelSoftMarginLoss()(x, y).item() == pytest.approx(whole)
    assert nn.BCEWithLogitsLoss()(x, y).item() == pytest.approx(whole)


def test_kl_div_batchmean_is_the_divergence_of_distributions():
    log_q, log_p = log_softmax(draw(3, 5, seed=1)), log_softmax(draw(3, 5, seed=2))
    expected = (np.exp(log_p) * (log_p - log_q)).sum() / 3
    loss = nn.KLDivLoss(reduction="batchmean")
    target = torch.tensor(np.exp(log_p))
    assert loss(torch.tensor(log_q), target).item() == pytest.approx(expected)
    logs = nn.KLDivLoss(reduction="batchmean", log_target=True)
    assert logs(torch.tensor(log_q), torch.tensor(log_p)).item() == pytest.approx(expected)


def test_gaussian_nll_full_is_the_log_density():
    x, y, var = draw(4, seed=1), draw(4, seed=2), np.abs(draw(4, seed=3)) + 0.1
    density = np.exp(-((x - y) ** 2) / (2 * var)) / np.sqrt(2 * math.pi * var)
    loss = nn.GaussianNLLLoss(full=True, reduction="none")
    got = loss(torch.tensor(x), torch.tensor(y), torch.tensor(var))
    np.testing.assert_allclose(got.numpy(), -np.log(density), rtol=1e-10)


def test_margin_losses_follow_their_formula():
    a, b = draw(5, seed=1), draw(5, seed=2)
    sign = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    ranking = np.maximum(0, -sign * (a - b) + 0.3).mean()
    got = nn.MarginRankingLoss(margin=0.3)(*(torch.tensor(v) for v in (a, b, sign)))
    assert got.item() == pytest.approx(ranking)
    hinge = np.where(sign == 1, a, np.maximum(0, 0.8 - a)).mean()
    got = nn.HingeEmbeddingLoss(margin=0.8)(torch.tensor(a), torch.tensor(sign))
    assert got.item() == pytest.approx(hinge)


def test_multi_margin_compares_with_every_other_class():
    x, target = draw(3, 4), np.array([1, 0, 3])
    expected = np.mean(
        [
            sum(max(0, 0.5 - x[i, t] + x[i, j]) ** 2 for j in range(4) if j != t) / 4
            for i, t in enumerate(target)
        ]
    )
    loss = nn.MultiMarginLoss(p=2, margin=0.5)(torch.tensor(x), torch.tensor(target))
    assert loss.item() == pytest.approx(expected)


def test_triplet_losses_agree_and_swap_takes_the_nearer_pair():
    a, p, n = (draw(4, 3, seed=s) for s in (1, 2, 3))

    def distance(u, v):
        return np.linalg.norm(u - v + 1e-6, axis=1)

    far = np.minimum(distance(a, n), distance(p, n))
    expected = np.maximum(0, distance(a, p) - far + 1.5).mean()
    inputs = [torch.tensor(v) for v in (a, p, n)]
    assert nn.TripletMarginLoss(1.5, swap=True)(*inputs).item() == pytest.approx(expected)
    own = nn.TripletMarginWithDistanceLoss(margin=1.5, swap=True)
    assert own(*inputs).item() == pytest.approx(expected)


def test_cosine_embedding_treats_the_two_labels_apart():
    a, b = draw(4, 3, seed=1), draw(4, 3, seed=2)
    sign = np.array([1.0, -1.0, -1.0, 1.0])
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    expected = np.where(sign == 1, 1 - cosine, np.maximum(0, cosine - 0.1)).mean()
    loss = nn.CosineEmbeddingLoss(margin=0.1)(*(torch.tensor(v) for v in (a, b, sign)))
    assert loss.item() == pytest.approx(expected)


def test_ctc_sums_over_all_alignments():
    frames, classes = 4, 3
    log_probs = log_softmax(draw(frames, classes))
    label = [1, 2]
    total = 0.0
    for path in np.ndindex(*(classes,) * frames):
        squeezed = [c for i, c in enumerate(path) if c and (i == 0 or path[i - 1] != c)]
        if squeezed == label:
            total += np.exp(sum(log_probs[t, c] for t, c in enumerate(path)))
    loss = nn.CTCLoss(reduction="sum")(
        torch.tensor(log_probs).unsqueeze(1),
        torch.tensor([label]),
        torch.tensor([frames]),
        torch.tensor([2]),
    )
    assert loss.item() == pytest.approx(-math.log(total))


def test_weights_are_buffers_and_are_saved():
    loss = nn.CrossEntropyLoss(weight=torch.ones(3))
    assert list(loss.state_dict()) == ["weight"]
    assert list(loss.parameters()) == []
    assert list(nn.BCEWithLogitsLoss(pos_weight=torch.ones(2)).state_dict()) == ["pos_weight"]
    assert repr(loss) == "CrossEntropyLoss()"


def test_old_flags_choose_the_reduction():
    with pytest.warns(UserWarning, match="size_average and reduce"):
        assert nn.L1Loss(size_average=False).reduction == "sum"
    with pytest.warns(UserWarning, match="size_average and reduce"):
        assert nn.MSELoss(reduce=False).reduction == "none"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.TripletMarginLoss(margin=-1), "expected margin to be greater than 0"),
        (lambda: nn.TripletMarginWithDistanceLoss(margin=0), "expected margin to be greater"),
        (lambda: nn.MultiMarginLoss(p=3), "only p == 1 and p == 2 supported"),
        (lambda: nn.MultiMarginLoss(weight=torch.ones(1, 1)), "1D tensor, got 2D"),
    ],
)
def test_impossible_options_raise(make, message):
    with pytest.raises(ValueError, match=message):
        make()
