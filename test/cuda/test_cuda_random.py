"""Random numbers on CUDA: Philox by the published vectors, distributions, seeds and states."""

import math

import numpy as np
import pytest
from cuda_support import cuda

import torch

N = 40000


def generator(seed):
    return torch.Generator(cuda).manual_seed(seed)


def words(seed, n, offset=0):
    """Raw 32-bit numbers: random integers below 2^32 are the words themselves."""
    g = generator(seed)
    if offset:
        state = g.get_state().clone()
        state[8:] = torch.tensor(list((offset).to_bytes(8, "little")), dtype=torch.uint8)
        g.set_state(state)
    return torch.randint(0, 2**32, (n,), device=cuda, generator=g).tolist()


def reference_philox(key, counter):
    """Philox4x32-10 in plain Python."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, (p0 >> 32) ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def test_reference_reproduces_the_published_vectors():
    ones = 0xFFFFFFFF
    assert reference_philox((0, 0), (0, 0, 0, 0)) == [
        0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]  # fmt: skip
    assert reference_philox((ones, ones), (ones, ones, ones, ones)) == [
        0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]  # fmt: skip
    assert reference_philox((0xA4093822, 0x299F31D0),
                            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)) == [
        0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]  # fmt: skip


def test_device_gives_philox_by_element():
    assert words(0, 4) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    seed = 0x299F31D0A4093822
    got = words(seed, 11)
    want = []
    for group in range(3):
        want += reference_philox((0xA4093822, 0x299F31D0), (0, 0, group, 0))
    assert got == want[:11]
    # Fewer elements, the same numbers; a later offset, the next counter.
    assert words(seed, 5) == want[:5]
    assert words(seed, 4, offset=8) == reference_philox((0xA4093822, 0x299F31D0), (2, 0, 0, 0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_uniform_and_normal_have_their_moments(dtype):
    g = generator(1)
    u = torch.empty(N, dtype=dtype, device=cuda).uniform_(-1, 3, generator=g).cpu().double()
    assert u.min() >= -1 and u.max() < 3
    assert abs(u.mean() - 1) < 0.03 and abs(u.var() - 16 / 12) < 0.03
    x = torch.empty(N, dtype=dtype, device=cuda).normal_(2, 3, generator=g).cpu().double()
    assert abs(x.mean() - 2) < 0.06 and abs(x.std() - 3) < 0.06
    kurtosis = (((x - x.mean()) / x.std()) ** 4).mean()
    assert abs(kurtosis - 3) < 0.2
    quantiles = torch.quantile((x - 2) / 3, torch.tensor([0.05, 0.5, 0.95], dtype=torch.float64))
    np.testing.assert_allclose(quantiles.numpy(), [-1.645, 0, 1.645], atol=0.05)


def test_other_distributions_have_their_moments():
    g = generator(2)
    empty = torch.empty(N, device=cuda)
    e = empty.clone().exponential_(2, generator=g).cpu()
    assert e.min() > 0 and abs(e.mean() - 0.5) < 0.02 and abs(e.var() - 0.25) < 0.02
    ln = empty.clone().log_normal_(0.5, 0.25, generator=g).cpu().log()
    assert abs(ln.mean() - 0.5) < 0.01 and abs(ln.std() - 0.25) < 0.01
    c = empty.clone().cauchy_(1, 2, generator=g).cpu()
    assert abs(c.median() - 1) < 0.1 and abs((c < 3).float().mean() - 0.75) < 0.02
    k = empty.clone().geometric_(0.3, generator=g).cpu()
    assert k.min() == 1 and abs(k.mean() - 1 / 0.3) < 0.1 and bool((k == k.floor()).all())
    b = torch.empty(N, dtype=torch.bool, device=cuda).bernoulli_(0.2, generator=g).cpu()
    assert abs(b.float().mean() - 0.2) < 0.01
    p = torch.tensor([0.0, 0.3, 1.0], device=cuda).expand(N // 4, 3)
    means = torch.bernoulli(p, generator=g).cpu().mean(0)
    assert means[0] == 0 and means[2] == 1 and abs(means[1] - 0.3) < 0.02


def test_integers_cover_their_range():
    g = generator(3)
    x = torch.randint(-5, 7, (N,), device=cuda, generator=g).cpu()
    counts = torch.bincount(x + 5, minlength=12)
    assert counts.numel() == 12 and bool((counts - N / 12).abs().max() < 5 * math.sqrt(N / 12))
    big = torch.randint(-(2**62), 2**62, (2000,), device=cuda, generator=g).cpu()
    assert big.min() < -(2**61) and big.max() > 2**61
    small = torch.empty(500, dtype=torch.uint8, device=cuda).random_(generator=g).cpu()
    assert small.max() > 200
    assert set(torch.empty(100, dtype=torch.bool, device=cuda).random_().tolist()) == {False, True}


@pytest.mark.parametrize("n", [0, 1, 10, 3000])
def test_randperm_is_a_permutation(n):
    g = generator(4)
    p = torch.randperm(n, device=cuda, generator=g)
    assert p.device.type == "cuda" and sorted(p.tolist()) == list(range(n))
    if n > 5:
        assert p.tolist() != torch.randperm(n, device=cuda, generator=g).tolist()
        assert p.tolist() == torch.randperm(n, device=cuda, generator=generator(4)).tolist()


def test_multinomial_follows_the_weights():
    w = torch.tensor([[1.0, 0, 3, 6], [5, 5, 0, 0]], device=cuda)
    got = torch.multinomial(w, 4000, True, generator=generator(5)).cpu()
    for row, p in enumerate(([0.1, 0, 0.3, 0.6], [0.5, 0.5, 0, 0])):
        share = torch.bincount(got[row], minlength=4) / 4000
        np.testing.assert_allclose(share.numpy(), p, atol=0.04)
    first = [torch.multinomial(w[0], 2, generator=generator(i)).tolist() for i in range(60)]
    assert all(a != b and 1 not in (a, b) for a, b in first)
    with pytest.raises(RuntimeError, match="inf"):
        torch.multinomial(torch.tensor([-1.0, 2], device=cuda), 1)
    with pytest.raises(RuntimeError, match="without replacement"):
        torch.multinomial(w, 5)


def test_seed_state_and_layout_decide_the_numbers():
    torch.cuda.manual_seed(11)
    a = torch.randn(100, device=cuda)
    state = torch.cuda.get_rng_state()
    b = torch.rand(7, 3, device=cuda)
    torch.cuda.set_rng_state(state)
    assert torch.rand(7, 3, device=cuda).tolist() == b.tolist()
    torch.manual_seed(11)
    assert torch.randn(100, device=cuda).tolist() == a.tolist()
    assert torch.randn(100, device=cuda).tolist() != a.tolist()
    strided = torch.empty(10, 2, device=cuda)[:, 0].normal_(generator=generator(6))
    dense = torch.empty(10, device=cuda).normal_(generator=generator(6))
    assert strided.tolist() == dense.tolist()
    with pytest.raises(RuntimeError, match="generator"):
        torch.empty(3, device=cuda).normal_(generator=torch.Generator())


def test_dropout_scales_what_it_keeps():
    torch.cuda.manual_seed(12)
    x = torch.ones(N, device=cuda, requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.25)
    values = set(y.detach().cpu().tolist())
    assert len(values) == 2 and 0.0 in values and max(values) == pytest.approx(1 / 0.75)
    assert abs(y.detach().cpu().mean() - 1) < 0.02
    y.sum().backward()
    assert torch.equal(x.grad.cpu(), y.detach().cpu())
    assert torch.nn.functional.dropout(x, 0.5, training=False) is x
    z = torch.nn.functional.dropout(
        torch.ones(30, 3, device=cuda, dtype=torch.bfloat16)[:, 1:], 0.5
    )
    assert set(z.cpu().flatten().tolist()) == {0.0, 2.0}
