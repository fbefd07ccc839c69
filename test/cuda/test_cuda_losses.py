"""Losses over classes and sequences on CUDA against plain loops: CTC by listing every alignment,
margin losses by their definitions."""

import itertools

import numpy as np
import pytest
from cuda_support import cuda

import torch
import torch.nn.functional as F


def likelihood(probs, target, blank=0):
    """The sum over all paths of labels that collapse to the target."""
    total = 0.0
    for path in itertools.product(range(probs.shape[1]), repeat=probs.shape[0]):
        merged = [c for c, _ in itertools.groupby(path)]
        if [c for c in merged if c != blank] == list(target):
            total += np.prod([probs[t, c] for t, c in enumerate(path)])
    return total


TARGETS = [[1, 2], [2, 2], [], [1]]
LENGTHS = [4, 4, 3, 2]


def ctc_inputs(dtype):
    torch.manual_seed(8)
    logits = torch.randn(4, len(TARGETS), 3, dtype=dtype)
    targets = torch.tensor([c for target in TARGETS for c in target])
    return logits, targets, [len(t) for t in TARGETS]


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_ctc_is_the_likelihood_of_all_alignments(dtype, tolerance):
    logits, targets, sizes = ctc_inputs(dtype)
    x = logits.to(cuda).requires_grad_()
    losses = F.ctc_loss(x.log_softmax(2), targets.to(cuda), LENGTHS, sizes, reduction="none")

    def want_of(logits):
        probs = np.exp(logits) / np.exp(logits).sum(2, keepdims=True)
        return np.array(
            [-np.log(likelihood(probs[:n, i], TARGETS[i])) for i, n in enumerate(LENGTHS)]
        )

    wide = logits.double().numpy()
    np.testing.assert_allclose(losses.detach().cpu().numpy(), want_of(wide), rtol=tolerance)
    weights = np.array([1.0, -0.5, 2.0, 0.3])
    losses.backward(torch.from_numpy(weights).to(cuda, dtype))
    step, change = 1e-5, np.random.default_rng(0).standard_normal(wide.shape)
    slope = (want_of(wide + step * change) - want_of(wide - step * change)) @ weights / (2 * step)
    got = (x.grad.cpu().double().numpy() * change).sum()
    assert got == pytest.approx(slope, rel=1e-4)


def test_ctc_means_and_infinite_losses():
    logits, targets, sizes = ctc_inputs(torch.float64)
    log_probs = logits.log_softmax(2)
    each = F.ctc_loss(log_probs.to(cuda), targets.to(cuda), LENGTHS, sizes, reduction="none").cpu()
    mean = F.ctc_loss(log_probs.to(cuda), targets.to(cuda), LENGTHS, sizes)
    assert mean.item() == pytest.approx((each / torch.tensor([2, 2, 1, 1])).mean().item())
    x = log_probs.to(cuda).requires_grad_()
    short = F.ctc_loss(x, targets.to(cuda), [4, 2, 3, 2], sizes, reduction="none")
    assert short[1].item() == float("inf")
    kept = F.ctc_loss(x, targets.to(cuda), [4, 2, 3, 2], sizes, reduction="sum", zero_infinity=True)
    kept.backward()
    assert torch.isfinite(x.grad).all() and not x.grad[:, 1].any()
    with pytest.raises(RuntimeError, match="outside"):
        F.ctc_loss(x, (targets + 5).to(cuda), LENGTHS, sizes)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("p, weighted", [(1, False), (2, True)])
def test_multi_margin_loss(p, weighted, reduction):
    torch.manual_seed(9)
    x, target = torch.randn(4, 5, dtype=torch.float64), torch.tensor([0, 4, 2, 2])
    weight = torch.rand(5, dtype=torch.float64) if weighted else None
    leaf = x.to(cuda).requires_grad_()
    scale = None if weight is None else weight.to(cuda)
    loss = F.multi_margin_loss(
        leaf, target.to(cuda), p=p, margin=0.7, weight=scale, reduction=reduction
    )
    want, slope = np.zeros(4), np.zeros((4, 5))
    for n, t in enumerate(target.tolist()):
        w = weight[t].item() if weighted else 1.0
        for c in range(5):
            z = 0.7 - x[n, t].item() + x[n, c].item()
            if c != t and z > 0:
                want[n] += w * z**p / 5
                slope[n, c] += w * p * z ** (p - 1) / 5
                slope[n, t] -= w * p * z ** (p - 1) / 5
    reduce = {"none": lambda v: v, "mean": np.mean, "sum": np.sum}[reduction]
    np.testing.assert_allclose(loss.detach().cpu().numpy(), reduce(want), rtol=1e-12)
    loss.sum().backward()
    factor = 0.25 if reduction == "mean" else 1.0
    np.testing.assert_allclose(leaf.grad.cpu().numpy(), slope * factor, rtol=1e-12)


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_multilabel_margin_loss(reduction):
    torch.manual_seed(10)
    x = torch.randn(3, 4, dtype=torch.float64)
    target = torch.tensor([[3, 0, -1, 1], [-1, 0, 0, 0], [2, 1, 0, 3]])
    leaf = x.to(cuda).requires_grad_()
    loss = F.multilabel_margin_loss(leaf, target.to(cuda), reduction=reduction)
    want, slope = np.zeros(3), np.zeros((3, 4))
    for n, row in enumerate(target.tolist()):
        own = row[: row.index(-1)] if -1 in row else row
        for t, c in itertools.product(own, range(4)):
            z = 1 - x[n, t].item() + x[n, c].item()
            if c not in own and z > 0:
                want[n] += z / 4
                slope[n, t] -= 0.25
                slope[n, c] += 0.25
    factor = 1 / 3 if reduction == "mean" else 1.0
    expected = want.mean() if reduction == "mean" else want
    np.testing.assert_allclose(loss.detach().cpu().numpy(), expected, rtol=1e-12)
    loss.sum().backward()
    np.testing.assert_allclose(leaf.grad.cpu().numpy(), slope * factor, rtol=1e-12, atol=1e-15)


def test_rrelu_draws_slopes_of_negative_elements():
    x = torch.linspace(-3, 3, 1000, device=cuda).requires_grad_()
    torch.manual_seed(11)
    out = F.rrelu(x, 0.1, 0.3, training=True)
    slopes = (out / x).detach()
    assert torch.equal(slopes[x > 0], torch.ones_like(slopes[x > 0]))
    below = slopes[x < 0]
    assert 0.1 <= below.min().item() <= below.max().item() <= 0.3 + 1e-6
    assert below.std().item() > 0.03
    out.sum().backward()
    torch.testing.assert_close(x.grad, slopes)
    torch.testing.assert_close(F.rrelu(x, 0.1, 0.3)[0].item(), -0.6)


def test_helpers_of_running_extremes_write_their_outputs():
    x = torch.tensor([[1.0, 3.0, 2.0], [5.0, 4.0, 6.0]], device=cuda)
    values, places = torch.empty_like(x), torch.empty(2, 3, dtype=torch.long, device=cuda)
    torch._cummax_helper(x, values, places, 1)
    assert values.tolist() == [[1, 3, 3], [5, 5, 6]] and places.tolist() == [[0, 1, 1], [0, 0, 2]]
    torch._cummin_helper(x, values, places, 1)
    assert values.tolist() == [[1, 1, 1], [5, 4, 4]] and places.tolist() == [[0, 0, 0], [0, 1, 1]]
