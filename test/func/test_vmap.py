"""Batching rules: every call in a list, mapped by vmap, against a loop over the samples. Each is
tried with every choice of batched arguments and with the batch in front and at the end."""

import itertools
import subprocess
import sys
import warnings

import pytest

import torch
import torch.nn.functional as F
from torch.func import grad, vmap

B = 3


def s(*shape):
    """A tensor argument of one sample."""
    return ("real", shape)


def pos(*shape):
    """One with positive elements."""
    return ("positive", shape)


def i(high, *shape):
    """One with integers below `high`."""
    return ("int", shape, high)


def b(*shape):
    return ("bool", shape)


def c(*shape):
    return ("complex", shape)


def spd(n):
    return ("spd", (n, n))


def _make(spec, batch, seed):
    g = torch.Generator().manual_seed(seed)
    kind, shape = spec[0], batch + spec[1]
    if kind == "int":
        return torch.randint(0, spec[2], shape, generator=g)
    if kind == "bool":
        return torch.rand(shape, generator=g) > 0.4
    if kind == "complex":
        return torch.complex(
            torch.randn(shape, generator=g, dtype=torch.float64),
            torch.randn(shape, generator=g, dtype=torch.float64),
        )
    out = torch.randn(shape, generator=g, dtype=torch.float64)
    if kind == "positive":
        return out.abs() + 0.5
    if kind == "spd":
        return out @ out.mT + 3 * torch.eye(shape[-1], dtype=out.dtype)
    return out


def _flat(result):
    if isinstance(result, torch.Tensor):
        return [result]
    return [t for item in result for t in _flat(item)]


def check(function, specs, *, allow_fallback=False):
    """vmap(function) equals the loop for every choice of batched arguments."""
    for chosen in itertools.product((None, 0, -1), repeat=len(specs)):
        if all(d is None for d in chosen):
            continue
        args, samples = [], []
        for k, (spec, d) in enumerate(zip(specs, chosen, strict=True)):
            value = _make(spec, () if d is None else (B,), 11 * k + 5)
            args.append(value if d is None else value.movedim(0, d))
            samples.append([value if d is None else value[n] for n in range(B)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if allow_fallback else "error")
            got = _flat(vmap(function, in_dims=chosen)(*(a.clone() for a in args)))
        want = [_flat(function(*(x[n].clone() for x in samples))) for n in range(B)]
        assert len(got) == len(want[0])
        for g, w in zip(got, zip(*want, strict=True), strict=True):
            torch.testing.assert_close(g, torch.stack(w), equal_nan=True)


UNARY = (
    "abs acos acosh asin asinh atan ceil cos cosh digamma erf erfc erfinv exp exp2 expm1 floor "
    "frac lgamma log log10 log1p log2 neg reciprocal round rsqrt sigmoid sign sin sinh sqrt "
    "square tan tanh trunc isnan isinf isfinite logical_not i0 sinc relu sgn signbit "
    "positive nan_to_num angle deg2rad logit"
).split()
BINARY = (
    "add sub mul div atan2 maximum minimum fmax fmin hypot copysign eq ne lt le gt ge logaddexp "
    "logaddexp2 nextafter remainder fmod floor_divide heaviside xlogy logical_and logical_or pow"
).split()


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    check(getattr(torch, name), [pos(2, 3)])
    check(getattr(torch, name), [s()])


@pytest.mark.parametrize("name", BINARY)
def test_binary_broadcasts_samples(name):
    check(getattr(torch, name), [pos(2, 3), pos(3)])
    check(getattr(torch, name), [pos(), pos(2)])
    check(lambda x: getattr(torch, name)(x, torch.tensor(2.0, dtype=torch.float64)), [pos(2)])


@pytest.mark.parametrize(
    "name",
    "relu silu mish hardswish hardsigmoid elu selu celu leaky_relu hardtanh softplus hardshrink "
    "softshrink gelu logsigmoid softsign tanhshrink relu6 threshold_".split(),
)
def test_activation(name):
    if name == "threshold_":
        check(lambda x: F.threshold(x, 0.1, 20.0), [s(2, 3)])
        return
    check(getattr(F, name), [s(2, 3)])


CALLS = {
    # -- pointwise with more operands
    "where": (torch.where, [b(2, 3), s(3), s(2, 1)]),
    "lerp": (torch.lerp, [s(2, 3), s(3), s(2, 1)]),
    "addcmul": (lambda x, y, z: torch.addcmul(x, y, z, value=2), [s(2, 3), s(3), s(2, 1)]),
    "addcdiv": (lambda x, y, z: torch.addcdiv(x, y, z, value=2), [s(2, 3), s(3), pos(2, 1)]),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), [s(2, 3)]),
    "clamp_tensor": (lambda x, lo: x.clamp(min=lo), [s(2, 3), s(3)]),
    "masked_fill": (lambda x, m: x.masked_fill(m, 7.0), [s(2, 3), b(3)]),
    "masked_fill_tensor": (lambda x, m, v: x.masked_fill(m, v), [s(2, 3), b(3), s()]),
    "prelu": (F.prelu, [s(2, 3, 4), s(3)]),
    "glu": (lambda x: F.glu(x, 0), [s(4, 3)]),
    "complex": (torch.complex, [s(2), s(2)]),
    "conj": (lambda x: x.conj() * 1j, [c(2, 3)]),
    "real_imag": (lambda x: (x.real, x.imag), [c(2, 3)]),
    "view_as_real": (torch.view_as_real, [c(2, 3)]),
    "bitwise_and": (torch.bitwise_and, [i(9, 4), i(9, 4)]),
    "promote_scalar_sample": (lambda x, n: x + n, [s(2, 3), i(5)]),
    "divide_integers": (lambda x, y: x / (y + 1), [i(5, 3), i(5)]),
    # -- reductions
    "sum": (lambda x: x.sum(), [s(2, 3)]),
    "sum_dim": (lambda x: x.sum(-1), [s(2, 3)]),
    "sum_dims_keep": (lambda x: x.sum((0, -1), keepdim=True), [s(2, 3, 4)]),
    "sum_scalar": (lambda x: x.sum(0), [s()]),
    "sum_dtype": (lambda x: x.sum(dtype=torch.float32), [s(2, 3)]),
    "mean": (lambda x: (x.mean(), x.mean(0)), [s(2, 3)]),
    "prod": (lambda x: (x.prod(), x.prod(1, True)), [s(2, 3)]),
    "amax": (lambda x: (x.amax(), x.amin(0), x.amax((0, 1))), [s(2, 3)]),
    "max": (lambda x: (x.max(), x.min()), [s(2, 3)]),
    "max_dim": (lambda x: (*x.max(0), *x.min(-1, True)), [s(2, 3)]),
    "argmax": (lambda x: (x.argmax(), x.argmin(0), x.argmax(-1, True)), [s(2, 3)]),
    "argmax_keepdim": (lambda x: torch.argmax(x, keepdim=True), [s(2, 3)]),
    "all_any": (lambda x: (x.all(), x.any(0), x.all(1, True)), [b(2, 3)]),
    "var": (lambda x: (x.var(), x.std(0), x.var((0, 1), correction=0)), [s(2, 3)]),
    "var_mean": (lambda x: torch.var_mean(x, 0), [s(2, 3)]),
    "logsumexp": (lambda x: torch.logsumexp(x, 0), [s(2, 3)]),
    "norm": (lambda x: (x.norm(), x.norm(1, 0), torch.linalg.vector_norm(x)), [s(2, 3)]),
    "nansum": (lambda x: x.nansum(0), [s(2, 3)]),
    "count_nonzero": (lambda x: (x.count_nonzero(), x.count_nonzero(0)), [i(2, 3, 4)]),
    "median": (lambda x: (x.median(), *x.median(0), x.nanmedian()), [s(3, 3)]),
    "mode": (lambda x: x.mode(0).values, [i(3, 5)]),
    "kthvalue": (lambda x: x.kthvalue(2, 0), [s(4, 3)]),
    "aminmax": (lambda x: (*x.aminmax(), *x.aminmax(dim=0)), [s(2, 3)]),
    "trace": (torch.trace, [s(3, 3)]),
    "cumsum": (lambda x: (x.cumsum(0), x.cumprod(-1), x.logcumsumexp(0)), [s(2, 3)]),
    "cummax": (lambda x: (*x.cummax(0), *x.cummin(-1)), [s(2, 3)]),
    "softmax": (lambda x: (x.softmax(0), x.log_softmax(-1)), [s(2, 3)]),
    "softmax_scalar": (lambda x: x.softmax(0), [s()]),
    "renorm": (lambda x: x.renorm(2, 0, 0.7), [s(2, 3)]),
    "dist": (lambda x, y: torch.dist(x, y), [s(2, 3), s(2, 3)]),
    "cdist_like": (lambda x, y: (x[:, None] - y).norm(dim=-1), [s(2, 3), s(4, 3)]),
    "diff": (lambda x: x.diff(dim=0), [s(4, 3)]),
    # -- sorting
    "sort": (lambda x: (*x.sort(0), *x.sort(-1, descending=True)), [s(3, 4)]),
    "argsort": (lambda x: x.argsort(0), [s(3, 4)]),
    "topk": (lambda x: x.topk(2, 0), [s(4, 3)]),
    "searchsorted": (lambda q, v: torch.searchsorted(q.cumsum(-1), v), [pos(5), s(2, 3)]),
    "bucketize": (lambda v: torch.bucketize(v, torch.arange(3.0)), [s(4)]),
    "isin": (lambda x: torch.isin(x, torch.tensor([1, 2])), [i(5, 4)]),
    "quantile": (lambda x: x.quantile(0.3, dim=0), [s(4, 3)]),
    # -- shapes
    "view": (lambda x: x.reshape(2, 3).view(3, 2), [s(6)]),
    "reshape_infer": (lambda x: x.reshape(-1), [s(2, 3)]),
    "flatten": (lambda x: x.flatten(), [s(2, 3, 2)]),
    "unflatten": (lambda x: x.unflatten(0, (2, 3)), [s(6, 2)]),
    "transpose": (lambda x: (x.transpose(0, -1), x.t().contiguous(), x.mT), [s(2, 3)]),
    "permute": (lambda x: x.permute(2, 0, 1), [s(2, 3, 4)]),
    "movedim": (lambda x: x.movedim(0, -1), [s(2, 3, 4)]),
    "squeeze": (lambda x: (x.squeeze(), x.squeeze(0), x.squeeze((0, 2))), [s(1, 3, 1)]),
    "unsqueeze": (lambda x: (x.unsqueeze(0), x.unsqueeze(-1)), [s(2, 3)]),
    "unsqueeze_scalar": (lambda x: x.unsqueeze(0), [s()]),
    "expand": (lambda x: (x.expand(2, 4, 3), x.expand(4, -1)), [s(1, 3)]),
    "broadcast_to": (lambda x: x.broadcast_to(2, 3), [s(3)]),
    "repeat": (lambda x: (x.repeat(2, 2), x.tile(3)), [s(3)]),
    "repeat_interleave": (lambda x: x.repeat_interleave(2, 0), [s(2, 3)]),
    "flip": (lambda x: (x.flip(0), x.flip(0, 1), x.fliplr(), x.rot90()), [s(2, 3)]),
    "roll": (lambda x: (x.roll(1), x.roll(1, 0)), [s(2, 3)]),
    "select": (lambda x: (x[0], x[-1, 1], x.select(1, 2)), [s(2, 3)]),
    "slice": (lambda x: (x[1:], x[:, ::2], x[..., :2]), [s(2, 4)]),
    "narrow": (lambda x: x.narrow(1, 1, 2), [s(2, 4)]),
    "diagonal": (lambda x: (x.diagonal(), x.diag(), x.diagonal(1)), [s(3, 3)]),
    "diag_embed": (lambda x: (x.diag_embed(), x.diag_embed(1), x.diag()), [s(3)]),
    "unfold": (lambda x: x.unfold(0, 2, 1), [s(4, 2)]),
    "unbind": (lambda x: (*x.unbind(0), *x.unbind(1)), [s(2, 3)]),
    "split": (lambda x: (*x.split(2), *x.split([1, 3]), *x.chunk(2)), [s(4, 2)]),
    "tensor_split": (lambda x: torch.tensor_split(x, 3), [s(4, 2)]),
    "cat": (lambda x, y: (torch.cat([x, y]), torch.cat([x, y], -1)), [s(2, 3), s(2, 3)]),
    "stack": (lambda x, y: (torch.stack([x, y]), torch.stack([x, y], -1)), [s(2, 3), s(2, 3)]),
    "hstack": (lambda x, y: (torch.hstack([x, y]), torch.vstack([x, y])), [s(3), s(3)]),
    "tril": (lambda x: (x.tril(), x.triu(1)), [s(3, 3)]),
    "pad": (lambda x: (F.pad(x, (1, 2)), F.pad(x, (1, 1, 0, 2), value=3.0)), [s(2, 3)]),
    "pad_reflect": (lambda x: F.pad(x, (1, 1), mode="reflect"), [s(2, 4)]),
    "pad_replicate": (lambda x: F.pad(x, (1, 1, 2, 0), mode="replicate"), [s(2, 3, 4)]),
    "pad_circular": (lambda x: F.pad(x, (1, 1), mode="circular"), [s(2, 3, 4)]),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), [s(2, 4, 2, 2)]),
    "meshgrid": (lambda x, y: torch.meshgrid(x, y, indexing="ij"), [s(2), s(3)]),
    "kron": (torch.kron, [s(2, 2), s(2, 3)]),
    "to": (lambda x: (x.to(torch.float32), x.float(), x.clone()), [s(2, 3)]),
    "like": (lambda x: (torch.zeros_like(x), torch.full_like(x, 2), x.new_ones(2)), [s(2, 3)]),
    "as_strided": (lambda x: x.contiguous().as_strided((2, 2), (1, 2)), [s(6)]),
    # -- indexing
    "index_int": (lambda x, n: x[n], [s(4, 3), i(4, 2)]),
    "index_two": (lambda x, n, m: x[n, m], [s(4, 3), i(4, 2), i(3, 2)]),
    "index_later": (lambda x, n: x[:, n], [s(4, 3, 2), i(3, 2, 2)]),
    "index_apart": (lambda x, n, m: x[n, :, m], [s(4, 3, 2), i(4, 5), i(2, 5)]),
    "index_none": (lambda x, n: x[None, n, None], [s(4, 3), i(4, 2)]),
    "index_mask_shared": (lambda x: x[torch.tensor([True, False, True])], [s(3, 2)]),
    "index_put": (
        lambda x, n, v: x.index_put((n,), v, accumulate=True),
        [s(4, 3), i(4, 2), s(2, 3)],
    ),
    "index_put_apart": (
        lambda x, n, v: x.index_put((n, torch.arange(3)), v),
        [s(4, 3), i(4, 1), s(3)],
    ),
    "index_select": (lambda x, n: x.index_select(1, n), [s(2, 4), i(4, 3)]),
    "index_add": (
        lambda x, n, v: x.index_add(0, n, v, alpha=2),
        [s(4, 3), i(4, 2), s(2, 3)],
    ),
    "index_copy": (
        lambda x, v: x.index_copy(0, torch.tensor([2, 0]), v),
        [s(4, 3), s(2, 3)],
    ),
    "index_fill": (lambda x: x.index_fill(0, torch.tensor([1]), 3.0), [s(4, 3)]),
    "gather": (lambda x, n: x.gather(1, n), [s(2, 4), i(4, 2, 3)]),
    "take_along_dim": (lambda x, n: x.take_along_dim(n, 0), [s(4, 2), i(4, 3, 2)]),
    "scatter": (lambda x, n, v: x.scatter(1, n[:, :1], v[:, :1]), [s(2, 4), i(4, 2, 3), s(2, 3)]),
    "scatter_add": (lambda x, n, v: x.scatter_add(1, n, v), [s(2, 4), i(4, 2, 3), s(2, 3)]),
    "scatter_value": (lambda x, n: x.scatter(0, n, 2.0), [s(4, 2), i(4, 1, 2)]),
    "scatter_reduce": (
        lambda x, n, v: x.scatter_reduce(1, n, v, "amax"),
        [s(2, 4), i(4, 2, 3), s(2, 3)],
    ),
    "take": (lambda x, n: x.take(n), [s(2, 4), i(8, 3)]),
    "embedding": (F.embedding, [i(5, 2, 3), s(5, 4)]),
    "one_hot": (lambda n: F.one_hot(n, 5), [i(5, 3)]),
    "select_scatter": (lambda x, v: x.select_scatter(v, 0, 1), [s(3, 2), s(2)]),
    # -- products
    "mm": (torch.mm, [s(2, 3), s(3, 4)]),
    "bmm": (torch.bmm, [s(2, 2, 3), s(2, 3, 4)]),
    "mv": (torch.mv, [s(2, 3), s(3)]),
    "dot": (torch.dot, [s(3), s(3)]),
    "vdot": (torch.vdot, [c(3), c(3)]),
    "outer": (torch.outer, [s(2), s(3)]),
    "matmul_vector": (torch.matmul, [s(4, 2, 3), s(3)]),
    "matmul": (torch.matmul, [s(4, 2, 3), s(3, 5)]),
    "addmm": (
        lambda x, m, n: torch.addmm(x, m, n, beta=2, alpha=3),
        [s(4), s(2, 3), s(3, 4)],
    ),
    "addmv": (torch.addmv, [s(2), s(2, 3), s(3)]),
    "baddbmm": (torch.baddbmm, [s(2, 2, 4), s(2, 2, 3), s(2, 3, 4)]),
    "addbmm": (torch.addbmm, [s(2, 4), s(3, 2, 3), s(3, 3, 4)]),
    "addr": (torch.addr, [s(2, 3), s(2), s(3)]),
    "einsum": (lambda x, y: torch.einsum("ij,kj->ik", x, y), [s(2, 3), s(4, 3)]),
    "tensordot": (lambda x, y: torch.tensordot(x, y, 1), [s(2, 3), s(3, 4)]),
    "linear": (F.linear, [s(2, 3), s(4, 3), s(4)]),
    "linear_vector": (F.linear, [s(3), s(4, 3), s(4)]),
    "linear_deep": (F.linear, [s(2, 2, 3), s(4, 3)]),
    "bilinear": (F.bilinear, [s(2, 3), s(2, 4), s(5, 3, 4)]),
    # -- networks
    "layer_norm": (lambda x, w, v: F.layer_norm(x, (3,), w, v), [s(2, 3), s(3), s(3)]),
    "rms_norm": (lambda x, w: F.rms_norm(x, (3,), w), [s(2, 3), s(3)]),
    "group_norm": (lambda x, w, v: F.group_norm(x, 2, w, v), [s(2, 4, 3), s(4), s(4)]),
    "batch_norm": (
        lambda x, w: F.batch_norm(x, None, None, w, training=True),
        [s(4, 3, 2), s(3)],
    ),
    "batch_norm_eval": (
        lambda x, m, v: F.batch_norm(x, m, v, training=False),
        [s(4, 3, 2), s(3), pos(3)],
    ),
    "instance_norm": (F.instance_norm, [s(2, 3, 4)]),
    "conv1d": (lambda x, w, v: F.conv1d(x, w, v, padding=1), [s(2, 3, 5), s(4, 3, 3), s(4)]),
    "conv2d": (F.conv2d, [s(2, 3, 4, 4), s(4, 3, 2, 2)]),
    "conv2d_groups": (
        lambda x, w: F.conv2d(x, w, groups=2, stride=2),
        [s(2, 4, 4, 4), s(6, 2, 2, 2)],
    ),
    "conv_transpose2d": (F.conv_transpose2d, [s(2, 3, 3, 3), s(3, 4, 2, 2)]),
    "conv2d_single": (F.conv2d, [s(3, 4, 4), s(4, 3, 2, 2)]),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), [s(2, 3, 4, 4)]),
    "max_pool2d_single": (lambda x: F.max_pool2d(x, 2), [s(3, 4, 4)]),
    "max_pool1d": (lambda x: F.max_pool1d(x, 2), [s(2, 3, 4)]),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), [s(2, 3, 4, 4)]),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 2), [s(2, 3, 4, 4)]),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 2), [s(2, 3, 4, 4)]),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2), [s(2, 3, 4, 4, 4)]),
    "unfold_image": (lambda x: F.unfold(x, 2), [s(2, 3, 4, 4)]),
    "fold_image": (lambda x: F.fold(x, (3, 3), 2), [s(2, 12, 4)]),
    "attention": (
        F.scaled_dot_product_attention,
        [s(2, 2, 3, 4), s(2, 2, 5, 4), s(2, 2, 5, 4)],
    ),
    "normalize": (F.normalize, [s(2, 3)]),
    "cosine_similarity": (F.cosine_similarity, [s(2, 3), s(2, 3)]),
    # -- matrices
    "solve": (torch.linalg.solve, [spd(3), s(3, 2)]),
    "solve_vector": (torch.linalg.solve, [spd(3), s(3)]),
    "inv": (torch.linalg.inv, [spd(3)]),
    "det": (torch.linalg.det, [spd(3)]),
    "cholesky": (lambda a: torch.linalg.cholesky(a @ a.mT), [spd(3)]),
    "qr": (lambda a: torch.linalg.qr(a).R.abs(), [spd(3)]),
    "svdvals": (torch.linalg.svdvals, [s(3, 2)]),
    "cross": (torch.linalg.cross, [s(2, 3), s(2, 3)]),
    "cdist": (torch.cdist, [s(4, 3), s(2, 3)]),
    "fft": (lambda x: torch.fft.rfft(x, dim=0).abs(), [s(5, 2)]),
    # -- losses
    "mse": (
        lambda x, y: (F.mse_loss(x, y), F.mse_loss(x, y, reduction="none")),
        [s(2, 3), s(2, 3)],
    ),
    "l1": (F.l1_loss, [s(2, 3), s(2, 3)]),
    "smooth_l1": (F.smooth_l1_loss, [s(2, 3), s(2, 3)]),
    "huber": (lambda x, y: F.huber_loss(x, y, reduction="sum"), [s(2, 3), s(2, 3)]),
    "bce": (lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()), [s(4), s(4)]),
    "bce_logits": (
        lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid()),
        [s(4), s(4)],
    ),
    "kl_div": (
        lambda x, y: F.kl_div(x.log_softmax(0), y.softmax(0), reduction="sum"),
        [s(4), s(4)],
    ),
    "nll": (F.nll_loss, [s(4, 5), i(5, 4)]),
    "cross_entropy": (F.cross_entropy, [s(4, 5), i(5, 4)]),
    "cross_entropy_weight": (
        lambda x, y, w: F.cross_entropy(x, y, w, ignore_index=1),
        [s(6, 3), i(3, 6), pos(3)],
    ),
    "cross_entropy_single": (F.cross_entropy, [s(5), i(5)]),
    "cross_entropy_image": (F.cross_entropy, [s(2, 3, 4), i(3, 2, 4)]),
    "cross_entropy_probabilities": (
        lambda x, y: F.cross_entropy(x, y.softmax(1)),
        [s(4, 5), s(4, 5)],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_call_equals_loop(name):
    check(*CALLS[name])


# ---- gradients -----------------------------------------------------------------------------

# Without gradients, or with results of integer type.
NO_GRADIENT = (
    "bitwise_and divide_integers argmax argmax_keepdim all_any count_nonzero mode argsort "
    "bucketize isin searchsorted one_hot like"
).split()
DIFFERENTIABLE = [name for name in CALLS if name not in NO_GRADIENT]


def _loss(function):
    """A scalar of all results that have gradients."""

    def loss(*args):
        total = 0
        for k, out in enumerate(_flat(function(*args))):
            if out.is_complex():
                out = torch.view_as_real(out)
            if out.is_floating_point():
                total = total + (out * (k + 1)).sin().sum().double()
        return total

    return loss


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_in_any_nesting(name):
    function, specs = CALLS[name]
    args = [_make(spec, (B,), 11 * k + 5) for k, spec in enumerate(specs)]
    which = tuple(k for k, a in enumerate(args) if a.is_floating_point() or a.is_complex())
    if not which:
        return
    loss = _loss(function)
    each = []
    for n in range(B):
        leaves = [a[n].clone() for a in args]
        for k in which:
            leaves[k].requires_grad_()
        wanted = [leaves[k] for k in which]
        each.append(torch.autograd.grad(loss(*leaves), wanted, materialize_grads=True))
    want = tuple(torch.stack(column) for column in zip(*each, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inside = vmap(grad(loss, argnums=which))(*args)
        outside = grad(lambda *a: vmap(loss)(*a).sum(), argnums=which)(*args)
    torch.testing.assert_close(inside, want)
    torch.testing.assert_close(outside, want)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_batch_of_gradients_is_each_gradient(name):
    function, specs = CALLS[name]
    args = [_make(spec, (), 11 * k + 5) for k, spec in enumerate(specs)]
    leaves = [a.requires_grad_() for a in args if a.is_floating_point() or a.is_complex()]
    outputs = [o for o in _flat(function(*args)) if o.requires_grad]
    if not leaves or not outputs:
        return
    rows = [torch.stack([torch.ones_like(o), torch.full_like(o, 2.5)]) for o in outputs]
    got = torch.autograd.grad(
        outputs, leaves, rows, is_grads_batched=True, retain_graph=True, allow_unused=True
    )
    for n in range(2):
        single = [r[n] for r in rows]
        want = torch.autograd.grad(outputs, leaves, single, retain_graph=True, allow_unused=True)
        for g, w in zip(got, want, strict=True):
            assert (g is None) == (w is None)
            if w is not None:
                torch.testing.assert_close(g[n], w)


INPLACE = {
    "add_": lambda x, y: x.add_(y),
    "mul_scalar": lambda x, y: x.mul_(3).sub_(y),
    "relu_": lambda x, y: F.relu_(x).add_(y),
    "copy_": lambda x, y: x.copy_(y),
    "fill_": lambda x, y: x.fill_(2.0).add_(y),
    "fill_tensor": lambda x, y: x.fill_(y[0]),
    "zero_": lambda x, y: x.zero_().add_(y),
    "clamp_": lambda x, y: x.clamp_(-0.1, 0.1).add_(y),
    "index_assign": lambda x, y: _assign(x, 0, y),
    "slice_assign": lambda x, y: _assign(x, (slice(None), slice(1, 3)), y[1:3]),
    "masked_fill_": lambda x, y: x.masked_fill_(x > 0, 1.0).add_(y),
    "cumsum_": lambda x, y: x.cumsum_(0).add_(y),
    "tril_": lambda x, y: x.tril_().add_(y),
    "index_add_": lambda x, y: x.index_add_(0, torch.tensor([1]), y[None]),
    "scatter_": lambda x, y: x.scatter_(0, torch.zeros(1, 3, dtype=torch.long), y[None]),
    "index_put_": lambda x, y: _assign(x, torch.tensor([1, 0]), y),
    "unsqueeze_": lambda x, y: x.clone().unsqueeze_(0).add_(y),
    "transpose_": lambda x, y: x.clone().transpose_(0, 1).mul_(2) + y[0],
    "through_view": lambda x, y: (x[0].mul_(y), x)[1],
}


def _assign(x, key, value):
    x[key] = value
    return x


@pytest.mark.parametrize("name", INPLACE)
def test_inplace_equals_loop(name):
    function = INPLACE[name]
    x, y = _make(s(2, 3), (B,), 1), _make(s(3), (B,), 2)
    for dims in ((0, 0), (1, 0), (0, None)):
        shared = y if dims[1] == 0 else y[0]
        batch = x.movedim(0, dims[0]).clone()
        got = vmap(function, in_dims=dims)(batch, shared)
        want = torch.stack(
            [function(x[n].clone(), y[n] if dims[1] == 0 else y[0]) for n in range(B)]
        )
        torch.testing.assert_close(got, want)


def test_inplace_writes_reach_the_input():
    x = torch.zeros(2, 3)
    vmap(lambda a, b: a.add_(b))(x, torch.ones(2, 3))
    assert x.sum() == 6


def test_inplace_on_unbatched_self_is_refused():
    y = torch.zeros(2)
    with pytest.raises(RuntimeError, match="more elements than `self`"):
        vmap(lambda x: y.add_(x))(torch.ones(3, 2))


# ---- what cannot be batched ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x.sum().item(), r"calling .item\(\) on a Tensor"),
        (lambda x: x if x.sum() > 0 else -x, "data-dependent control flow"),
        (lambda x: x.nonzero(), "dynamic shape"),
        (lambda x: x[x > 0], "boolean mask"),
        (lambda x: torch.masked_select(x, x > 0), "dynamic shape"),
        (lambda x: torch.add(x, x, out=torch.empty(2)), "out= or view ops"),
        (lambda x: torch.rand(2), "randomness error mode"),
        (lambda x: F.dropout(x), "randomness error mode"),
        (lambda x: x.requires_grad_(), r"Tensor.requires_grad_\(\)"),
    ],
)
def test_refused(function, message):
    with pytest.raises(RuntimeError, match=message):
        vmap(function)(torch.randn(3, 2))


def test_fallback_warns_once_and_is_right():
    # The warning is once per process, and other tests may have used it up: a process of its own.
    code = """
import warnings, torch
x = torch.arange(12.0).reshape(3, 4) / 3
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for _ in range(2):
        got = torch.vmap(lambda t: torch.histc(t, 4, 0, 4))(x)
assert torch.equal(got, torch.stack([torch.histc(t, 4, 0, 4) for t in x]))
print(*(str(w.message) for w in seen), sep="\\n")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("batching rule for aten::histc") == 1


def test_escaped_tensor_is_noticed():
    kept = []
    vmap(lambda x: kept.append(x) or x)(torch.arange(3.0))
    with pytest.raises(RuntimeError, match="escaped"):
        kept[0] + 1


# ---- arguments -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda x: vmap(torch.sin)(3), ValueError, "cannot vmap over non-Tensor"),
        (lambda x: vmap(torch.sin)(), ValueError, "got no inputs"),
        (lambda x: vmap(torch.sin, in_dims=2)(x), ValueError, "expected in_dim to satisfy"),
        (lambda x: vmap(torch.sin, in_dims="a")(x), ValueError, "expected `in_dims` to be int"),
        (lambda x: vmap(torch.sin, in_dims=(0, 0))(x), ValueError, "not compatible"),
        (lambda x: vmap(torch.add)(x, torch.ones(4)), ValueError, "same size in the mapped"),
        (lambda x: vmap(lambda t: 1)(x), ValueError, "must only return Tensors"),
        (lambda x: vmap(torch.sin, out_dims=(0, 1))(x), ValueError, "not compatible"),
        (lambda x: vmap(torch.sin, out_dims=5)(x), IndexError, "Dimension out of range"),
        (lambda x: vmap(torch.sin, randomness="no"), RuntimeError, "Only allowed values"),
        (lambda x: vmap(torch.sin, chunk_size=0), ValueError, "chunk_size"),
    ],
)
def test_wrong_arguments(call, kind, message):
    with pytest.raises(kind, match=message):
        call(torch.ones(3, 2))


def test_nested_inputs_and_outputs():
    def function(pair, scale):
        return {"a": pair[0] * scale, "b": (pair[1].sum(), pair[0])}

    x, y = torch.randn(3, 2), torch.randn(2, 3)
    out = vmap(function, in_dims=((0, 1), None), out_dims={"a": 1, "b": (0, 0)})((x, y), 2.0)
    torch.testing.assert_close(out["a"], (x * 2).T)
    torch.testing.assert_close(out["b"][0], y.sum(0))


def test_out_dims_none_and_constant_output():
    out = vmap(lambda x: torch.ones(2))(torch.zeros(3))
    assert out.shape == (3, 2)
    value = vmap(lambda x: (x, "label"), out_dims=(0, None))(torch.zeros(3))
    assert value[1] == "label"


def test_chunks_give_the_same():
    x = torch.randn(7, 3)
    whole = vmap(lambda t: t.cumsum(0))(x)
    for size in (1, 2, 3, 7, 100):
        torch.testing.assert_close(vmap(lambda t: t.cumsum(0), chunk_size=size)(x), whole)


def test_nested_levels():
    x, y = torch.randn(2, 3), torch.randn(4, 3)
    got = vmap(lambda a: vmap(lambda c: torch.dot(a, c))(y))(x)
    torch.testing.assert_close(got, x @ y.T)
    deep = vmap(vmap(vmap(torch.sum)))(torch.ones(2, 3, 4, 5))
    assert deep.shape == (2, 3, 4) and (deep == 5).all()


def test_batch_of_none_and_empty_samples():
    assert vmap(lambda x: x * 2 + x.sum())(torch.zeros(0, 3)).shape == (0, 3)
    assert vmap(lambda x: x.sum())(torch.zeros(3, 0)).tolist() == [0, 0, 0]


def test_repr_shows_level_and_value():
    seen = []
    vmap(lambda x: seen.append(repr(x)) or x)(torch.arange(2.0))
    assert seen[0] == "BatchedTensor(lvl=1, bdim=0, value=\n    tensor([0., 1.])\n)"


def test_torch_vmap_is_the_same():
    assert torch.vmap(torch.sin)(torch.zeros(2)).tolist() == [0, 0]


# ---- randomness ----------------------------------------------------------------------------

RANDOM = {
    "rand": lambda x: torch.rand(4),
    "randn": lambda x: torch.randn(4),
    "randint": lambda x: torch.randint(1000, (4,)),
    "normal": lambda x: torch.normal(0.0, 1.0, (4,)),
    "randperm": lambda x: torch.randperm(50),
    "rand_like": lambda x: torch.rand_like(x),
    "uniform_": lambda x: torch.empty_like(x).uniform_(),
    "bernoulli_": lambda x: torch.empty_like(x).bernoulli_(0.5),
    "dropout": lambda x: F.dropout(torch.ones_like(x)),
}


@pytest.mark.parametrize("name", RANDOM)
def test_randomness(name):
    torch.manual_seed(0)
    x = torch.ones(3, 64)
    different = vmap(RANDOM[name], randomness="different")(x)
    assert different.shape[0] == 3 and not torch.equal(different[0], different[1])
    same = vmap(RANDOM[name], randomness="same")(x)
    assert torch.equal(same[0], same[1]) and torch.equal(same[0], same[2])


def test_different_randomness_depends_on_values():
    p = torch.tensor([[0.0] * 8, [1.0] * 8])
    assert torch.equal(vmap(torch.bernoulli, randomness="different")(p), p)
    with pytest.raises(RuntimeError, match="same randomness with a batched"):
        vmap(torch.bernoulli, randomness="same")(p)


def test_different_inplace_randomness_needs_a_batch():
    with pytest.raises(RuntimeError, match="inplace randomness on an unbatched"):
        vmap(lambda x: torch.empty(4).normal_(), randomness="different")(torch.ones(3))


def test_nested_randomness():
    outer = vmap(vmap(lambda x: torch.rand(2), randomness="same"), randomness="different")
    out = outer(torch.zeros(2, 3))
    assert out.shape == (2, 3, 2)
    assert torch.equal(out[0, 0], out[0, 1]) and not torch.equal(out[0, 0], out[1, 0])


@pytest.mark.parametrize("name", ["inv", "cholesky", "qr", "eig", "svdvals", "lu_factor", "det"])
def test_matrix_function_of_vectors_is_refused_inside_vmap(name):
    # The batch must not pass for a dimension of the matrix.
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        torch.vmap(getattr(torch.linalg, name))(torch.eye(3))
