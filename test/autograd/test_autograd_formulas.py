"""Gradients against finite differences: each row of the tables calls one operator on small float64
(and, where it takes them, complex128) tensors; first and second derivatives of a random combination
of its results are compared with central differences, tangents of forward mode with the gradient.
"""

import math
import pathlib
import sys
import unittest

import torch
from torch.autograd import forward_ad

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

STEP = 1e-6
_generator = torch.Generator()
F = torch.nn.functional
L = torch.ops.aten


def values(shape, low, high, dtype):
    """Random values in [low, high) that stay clear of each other: order statistics have no ties."""
    count = math.prod(shape)
    order = torch.randperm(count, generator=_generator).to(torch.float64)
    noise = torch.rand(count, generator=_generator, dtype=torch.float64)
    x = (low + (high - low) * (order + 0.2 + 0.6 * noise) / max(count, 1)).reshape(shape)
    if dtype.is_complex:
        y = torch.rand(shape, generator=_generator, dtype=torch.float64) * (high - low) + low
        x = torch.complex(x, y)
    return x


def combine(results, weights):
    """A real number that depends on every result."""
    total = 0.0
    for r, w in zip(results, weights, strict=True):
        product = r * w
        total = total + (torch.real(product) if product.is_complex() else product).sum()
    return total


def differentiable(results):
    results = [results] if isinstance(results, torch.Tensor) else list(results)
    return [r for r in results if r.requires_grad]


def random_like(r):
    w = torch.randn(r.shape, generator=_generator, dtype=torch.float64)
    if r.is_complex():
        w = torch.complex(w, torch.randn(r.shape, generator=_generator, dtype=torch.float64))
    return w


def numeric(f, inputs, i):
    """The gradient of the number f(*inputs) with respect to inputs[i], by central differences."""
    x = inputs[i].detach()
    flat = x.reshape(-1)
    out = torch.zeros(flat.shape, dtype=x.dtype)
    for k in range(flat.numel()):
        for unit in (1, 1j) if x.is_complex() else (1,):
            ends = []
            for sign in (1, -1):
                moved = flat.clone()
                moved[k] += sign * STEP * unit
                trial = list(inputs)
                trial[i] = moved.reshape(x.shape).requires_grad_(True)
                ends.append(f(*trial).detach())
            out[k] += unit * (ends[0] - ends[1]) / (2 * STEP)
    return out.reshape(x.shape)


def unary(name, low=-0.9, high=0.9, complex_too=True, **kwargs):
    return (name, lambda x: getattr(torch, name)(x, **kwargs), [(2, 3)], low, high, complex_too)


def act(name, *args, low=-2.5, high=2.5, **kwargs):
    return (name, lambda x: getattr(F, name)(x, *args, **kwargs), [(2, 3)], low, high, False)


# name, function, shapes of the inputs, range of values, also complex
POINTWISE = [
    *[unary(n) for n in "sin cos tan asin acos atan sinh cosh tanh asinh atanh exp expm1".split()],
    *[unary(n, 0.3, 2.0) for n in "log log2 log10 log1p sqrt rsqrt reciprocal".split()],
    unary("acosh", 1.3, 3.0),
    *[unary(n) for n in "neg sigmoid square conj_physical sgn".split()],
    unary("abs", 0.2, 1.0),
    unary("angle", 0.2, 1.0),
    unary("sinc", 0.3, 1.4),
    *[unary(n, complex_too=False) for n in "deg2rad rad2deg erf erfc erfinv i0 frac exp2".split()],
    *[unary(n, complex_too=False) for n in "floor ceil trunc round sign".split()],
    unary("lgamma", 0.4, 3.0, False),
    unary("digamma", 0.4, 3.0, False),
    ("digamma left", torch.digamma, [(2, 3)], -1.8, -1.2, False),
    unary("logit", 0.2, 0.8, False),
    ("logit eps", lambda x: torch.logit(x, 0.3), [(2, 3)], 0.1, 0.9, False),
    ("nan_to_num", torch.nan_to_num, [(2, 3)], -1, 1, False),
    *[
        (f"special.{n}", getattr(torch.special, n), [(2, 3)], low, high, False)
        for n, low, high in [
            ("entr", 0.2, 2.0),
            ("ndtri", 0.1, 0.9),
            ("log_ndtr", -2, 2),
            ("erfcx", -1, 1),
            ("i0e", 0.2, 2),
            ("i1", 0.2, 2),
            ("i1e", 0.2, 2),
            ("bessel_j0", 0.2, 2),
        ]
    ],
    ("add", lambda a, b: torch.add(a, b, alpha=2), [(2, 3), (3,)], -1, 1, True),
    ("sub", lambda a, b: torch.sub(a, b, alpha=2), [(2, 3), (2, 1)], -1, 1, True),
    ("rsub", lambda a, b: torch.rsub(a, b, alpha=2), [(2, 3), (3,)], -1, 1, True),
    ("mul", torch.mul, [(2, 3), (3,)], -1, 1, True),
    ("mul same", lambda a: a * a, [(3,)], -1, 1, True),
    ("div", torch.div, [(2, 3), (3,)], 0.4, 1.4, True),
    ("div floor", lambda a, b: torch.div(a, b, rounding_mode="floor"), [(3,), (3,)], 1, 2, False),
    ("div scalar", lambda a: a / 3.0 + a * 2.5 - 1.0, [(2, 3)], -1, 1, True),
    ("rsub scalar", lambda a: 2 - a, [(2, 3)], -1, 1, True),
    ("maximum", torch.maximum, [(2, 3), (3,)], -1, 1, False),
    ("minimum", torch.minimum, [(2, 3), (3,)], -1, 1, False),
    ("fmax", torch.fmax, [(2, 3), (3,)], -1, 1, False),
    ("fmin", torch.fmin, [(2, 3), (3,)], -1, 1, False),
    ("remainder", torch.remainder, [(2, 3), (3,)], 0.3, 2.2, False),
    ("fmod", torch.fmod, [(2, 3), (3,)], 0.3, 2.2, False),
    ("hypot", torch.hypot, [(2, 3), (3,)], 0.3, 1, False),
    ("copysign", torch.copysign, [(2, 3), (3,)], -1, 1, False),
    ("atan2", torch.atan2, [(2, 3), (3,)], 0.2, 1, False),
    ("logaddexp", torch.logaddexp, [(2, 3), (3,)], -1, 1, False),
    ("logaddexp2", torch.logaddexp2, [(2, 3), (3,)], -1, 1, False),
    ("xlogy", torch.xlogy, [(2, 3), (3,)], 0.3, 1, False),
    ("xlog1py", torch.special.xlog1py, [(2, 3), (3,)], 0.3, 1, False),
    ("clamp", lambda x: torch.clamp(x, -0.4, 0.5), [(2, 3)], -1, 1, False),
    ("clamp tensor", torch.clamp, [(2, 3), (3,), (3,)], -1, 1, False),
    ("clamp_min", lambda x: torch.clamp_min(x, 0.1), [(2, 3)], -1, 1, False),
    (
        "addcmul",
        lambda a, b, c: torch.addcmul(a, b, c, value=2),
        [(2, 3), (3,), (2, 1)],
        -1,
        1,
        True,
    ),
    (
        "addcdiv",
        lambda a, b, c: torch.addcdiv(a, b, c, value=2),
        [(2, 3), (3,), (2, 1)],
        0.4,
        1,
        True,
    ),
    ("pow scalar", lambda x: x**3 + x**2 + x**0.5, [(2, 3)], 0.3, 1.5, True),
    ("pow", torch.pow, [(2, 3), (3,)], 0.4, 1.5, True),
    ("rpow", lambda x: torch.pow(2.5, x), [(2, 3)], -1, 1, True),
    ("lerp", lambda a, b: torch.lerp(a, b, 0.3), [(2, 3), (3,)], -1, 1, True),
    ("lerp tensor", torch.lerp, [(2, 3), (3,), (2, 1)], -1, 1, True),
    ("complex", torch.complex, [(2, 3), (2, 3)], -1, 1, False),
    ("polar", torch.polar, [(2, 3), (2, 3)], 0.3, 1, False),
    ("float_power", lambda x: torch.float_power(x, 2.5), [(2, 3)], 0.3, 1, False),
    ("where", lambda a, b: torch.where(MASK, a, b), [(2, 3), (3,)], -1, 1, True),
]
MASK = torch.tensor([[True, False, True], [False, False, True]])
REDUCE = [
    ("sum", lambda x: torch.sum(x), [(2, 3)], -1, 1, True),
    ("sum dim", lambda x: x.sum((0, 2)), [(2, 3, 2)], -1, 1, True),
    ("sum keep", lambda x: x.sum(-1, keepdim=True), [(2, 3)], -1, 1, True),
    ("nansum", lambda x: x.nansum(1), [(2, 3)], -1, 1, False),
    ("mean", torch.mean, [(2, 3)], -1, 1, True),
    ("mean dim", lambda x: x.mean(1), [(2, 3)], -1, 1, True),
    ("prod", torch.prod, [(2, 3)], 0.3, 1, True),
    ("prod zero", lambda x: torch.prod(x * (MASK | (x > 9))), [(2, 3)], 0.3, 1, False),
    ("prod dim", lambda x: x.prod(1), [(2, 3)], 0.3, 1, True),
    ("prod dim zero", lambda x: (x * ONE_ZERO).prod(1), [(2, 3)], 0.3, 1, False),
    *[(n, getattr(torch, n), [(2, 3)], -1, 1, False) for n in "amax amin max min median".split()],
    *[
        (f"{n} dim", lambda x, n=n: getattr(torch, n)(x, 1), [(2, 3)], -1, 1, False)
        for n in "amax amin max min median mode logcumsumexp cummax cummin".split()
    ],
    ("aminmax", lambda x: torch.aminmax(x, dim=1), [(2, 3)], -1, 1, False),
    ("kthvalue", lambda x: torch.kthvalue(x, 2, 1), [(2, 3)], -1, 1, False),
    *[(n, getattr(torch, n), [(2, 3)], -1, 1, False) for n in "var std var_mean std_mean".split()],
    *[
        (f"{n} dim", lambda x, n=n: getattr(torch, n)(x, 1, correction=0), [(2, 3)], -1, 1, False)
        for n in "var std var_mean std_mean".split()
    ],
    ("logsumexp", lambda x: x.logsumexp(1), [(2, 3)], -1, 1, False),
    *[
        (f"norm {p}", lambda x, p=p: torch.linalg.vector_norm(x, p, dim=1), [(2, 3)], 0.2, 1, True)
        for p in (0.5, 1, 1.5, 2, 3, float("inf"))
    ],
    ("norm", lambda x: x.norm(), [(2, 3)], 0.2, 1, True),
    ("dist", lambda a, b: torch.dist(a, b, 3), [(2, 3), (3,)], -1, 1, False),
    ("trace", torch.trace, [(3, 2)], -1, 1, True),
    ("cumsum", lambda x: x.cumsum(1), [(2, 3)], -1, 1, True),
    ("cumprod", lambda x: x.cumprod(1), [(2, 3)], 0.3, 1, True),
    ("cumprod zero", lambda x: (x * ONE_ZERO).cumprod(1), [(2, 3)], 0.3, 1, False),
    ("softmax", lambda x: x.softmax(1), [(2, 3)], -1, 1, False),
    ("log_softmax", lambda x: x.log_softmax(1), [(2, 3)], -1, 1, False),
    ("renorm", lambda x: torch.renorm(x, 2, 0, 0.8), [(2, 3)], 0.1, 1, False),
    ("sort", lambda x: torch.sort(x, 1), [(2, 3)], -1, 1, False),
    ("topk", lambda x: torch.topk(x, 2, 1), [(2, 3)], -1, 1, False),
]
ONE_ZERO = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]], dtype=torch.float64)
INDEX = torch.tensor([[0, 1, 1], [2, 0, 2]])
ROWS = torch.tensor([1, 0, 1])
SHAPE = [
    ("view", lambda x: x.view(3, 2), [(2, 3)], -1, 1, True),
    ("reshape", lambda x: x.t().reshape(-1), [(2, 3)], -1, 1, True),
    ("expand", lambda x: x.expand(4, 2, 3), [(2, 1)], -1, 1, True),
    ("permute", lambda x: x.permute(2, 0, 1), [(2, 3, 2)], -1, 1, True),
    ("transpose", lambda x: x.transpose(0, -1), [(2, 3, 2)], -1, 1, True),
    ("squeeze", lambda x: x.squeeze(), [(2, 1, 3)], -1, 1, True),
    ("squeeze dim", lambda x: x.squeeze(1), [(2, 1, 3)], -1, 1, True),
    ("unsqueeze", lambda x: x.unsqueeze(-1), [(2, 3)], -1, 1, True),
    ("select", lambda x: x[1], [(2, 3)], -1, 1, True),
    ("slice", lambda x: x[:, 0:4:2], [(2, 4)], -1, 1, True),
    ("diagonal", lambda x: x.diagonal(1), [(3, 3)], -1, 1, True),
    ("unfold", lambda x: x.unfold(0, 2, 1), [(4,)], -1, 1, True),
    ("as_strided", lambda x: x.as_strided((2, 2), (1, 2), 1), [(2, 3)], -1, 1, True),
    ("unbind", lambda x: x.unbind(1), [(2, 3)], -1, 1, True),
    ("split", lambda x: x.split(2, 1), [(2, 3)], -1, 1, True),
    ("split sizes", lambda x: x.split([1, 2], 1), [(2, 3)], -1, 1, True),
    ("chunk one", lambda x: x.chunk(2, 1)[1], [(2, 3)], -1, 1, True),
    ("cat", lambda a, b: torch.cat([a, b], 1), [(2, 3), (2, 1)], -1, 1, True),
    ("stack", lambda a, b: torch.stack([a, b], 1), [(2, 3), (2, 3)], -1, 1, True),
    ("block_diag", lambda a, b: torch.block_diag(a, b), [(2, 3), (2,)], -1, 1, True),
    ("flip", lambda x: x.flip(0, 1), [(2, 3)], -1, 1, True),
    ("roll", lambda x: x.roll(1, 1), [(2, 3)], -1, 1, True),
    ("rot90", lambda x: x.rot90(1), [(2, 3)], -1, 1, True),
    ("repeat", lambda x: x.repeat(2, 1, 2), [(2, 3)], -1, 1, True),
    ("repeat_interleave", lambda x: x.repeat_interleave(2, 1), [(2, 3)], -1, 1, True),
    ("tril", lambda x: x.tril(), [(3, 3)], -1, 1, True),
    ("triu", lambda x: x.triu(1), [(3, 3)], -1, 1, True),
    ("diag_embed", torch.diag_embed, [(2, 3)], -1, 1, True),
    ("pad", lambda x: F.pad(x, (1, 2, -1, 0), value=3.0), [(2, 3)], -1, 1, True),
    ("pad reflect", lambda x: F.pad(x, (1, 2), mode="reflect"), [(1, 2, 3)], -1, 1, True),
    ("pad replicate", lambda x: F.pad(x, (1, 2), mode="replicate"), [(1, 2, 3)], -1, 1, True),
    ("pad circular", lambda x: F.pad(x, (1, 2), mode="circular"), [(1, 2, 3)], -1, 1, True),
    ("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), [(1, 4, 1, 2)], -1, 1, False),
    ("conj", lambda x: x.conj() * x, [(2, 3)], -1, 1, True),
    ("real imag", lambda x: (x * 1j).real + (x * (1 + 2j)).imag, [(2, 3)], -1, 1, True),
    ("view_as_real", lambda x: torch.view_as_real(x * 1j), [(2, 3)], -1, 1, True),
    ("view_as_complex", lambda x: torch.view_as_complex(x), [(3, 2)], -1, 1, False),
    ("to", lambda x: x.to(torch.complex128), [(2, 3)], -1, 1, False),
    ("clone", lambda x: x.clone(), [(2, 3)], -1, 1, True),
    ("contiguous", lambda x: x.t().contiguous(), [(2, 3)], -1, 1, True),
    ("index", lambda x: x[ROWS], [(2, 3)], -1, 1, True),
    ("index two", lambda x: x[ROWS, :, ROWS], [(2, 2, 2)], -1, 1, True),
    ("index mask", lambda x: x[MASK], [(2, 3)], -1, 1, True),
    ("index_put", lambda x, v: x.index_put((ROWS[:2],), v), [(2, 3), (3,)], -1, 1, True),
    ("index_put add", lambda x, v: x.index_put((ROWS,), v, True), [(2, 3), (3, 3)], -1, 1, True),
    ("index_select", lambda x: x.index_select(0, ROWS), [(2, 3)], -1, 1, True),
    ("index_add", lambda x, s: x.index_add(0, ROWS, s, alpha=2), [(2, 3), (3, 3)], -1, 1, True),
    ("index_copy", lambda x, s: x.index_copy(0, ROWS[:2], s), [(2, 3), (2, 3)], -1, 1, True),
    ("index_fill", lambda x: x.index_fill(1, ROWS, 2.0), [(2, 3)], -1, 1, True),
    ("gather", lambda x: x.gather(0, INDEX.clamp(max=1)), [(2, 3)], -1, 1, True),
    ("scatter", lambda x, s: x.scatter(1, INDEX[:, :2], s), [(2, 3), (2, 2)], -1, 1, True),
    ("scatter value", lambda x: x.scatter(1, INDEX, 2.0), [(2, 3)], -1, 1, True),
    ("scatter_add", lambda x, s: x.scatter_add(1, INDEX, s), [(2, 3), (2, 3)], -1, 1, True),
    *[
        (
            f"scatter_reduce {how} {own}",
            lambda x, s, how=how, own=own: x.scatter_reduce(1, INDEX, s, how, include_self=own),
            [(2, 3), (2, 3)],
            0.3,
            1.5,
            False,
        )
        for how in ("sum", "prod", "mean", "amax", "amin")
        for own in (True, False)
    ],
    *[
        (
            f"index_reduce {how}",
            lambda x, s, how=how: x.index_reduce(0, ROWS, s, how),
            [(2, 3), (3, 3)],
            0.3,
            1.5,
            False,
        )
        for how in ("prod", "mean", "amax", "amin")
    ],
    ("masked_fill", lambda x: x.masked_fill(MASK, 2.0), [(2, 3)], -1, 1, True),
    ("masked_fill tensor", lambda x, v: x.masked_fill(MASK, v), [(2, 3), ()], -1, 1, True),
    ("masked_scatter", lambda x, s: x.masked_scatter(MASK, s), [(2, 3), (4,)], -1, 1, True),
    ("masked_select", lambda x: x.masked_select(MASK), [(2, 3)], -1, 1, True),
    ("take", lambda x: x.take(INDEX), [(2, 3)], -1, 1, True),
    ("put", lambda x, s: x.put(ROWS[:2], s), [(2, 3), (2,)], -1, 1, True),
    ("take_along_dim", lambda x: x.take_along_dim(INDEX, 1), [(2, 3)], -1, 1, True),
    ("select_scatter", lambda x, s: x.select_scatter(s, 0, 1), [(2, 3), (3,)], -1, 1, True),
    ("slice_scatter", lambda x, s: x.slice_scatter(s, 1, 0, 2), [(2, 3), (2, 2)], -1, 1, True),
    ("diagonal_scatter", lambda x, s: x.diagonal_scatter(s), [(2, 3), (2,)], -1, 1, True),
    ("embedding", lambda w: F.embedding(INDEX, w), [(3, 2)], -1, 1, False),
]
MATMUL = [
    ("mm", torch.mm, [(2, 3), (3, 2)], -1, 1, True),
    ("bmm", torch.bmm, [(2, 2, 3), (2, 3, 1)], -1, 1, True),
    (
        "addmm",
        lambda a, b, c: torch.addmm(a, b, c, beta=2, alpha=3),
        [(2,), (2, 3), (3, 2)],
        -1,
        1,
        True,
    ),
    (
        "addmv",
        lambda a, b, c: torch.addmv(a, b, c, beta=2, alpha=3),
        [(2,), (2, 3), (3,)],
        -1,
        1,
        True,
    ),
    (
        "addbmm",
        lambda a, b, c: torch.addbmm(a, b, c, beta=2, alpha=3),
        [(2, 2), (2, 2, 3), (2, 3, 2)],
        -1,
        1,
        True,
    ),
    (
        "baddbmm",
        lambda a, b, c: torch.baddbmm(a, b, c, beta=2, alpha=3),
        [(2, 2), (2, 2, 3), (2, 3, 2)],
        -1,
        1,
        True,
    ),
    (
        "addr",
        lambda a, b, c: torch.addr(a, b, c, beta=2, alpha=3),
        [(2, 3), (2,), (3,)],
        -1,
        1,
        True,
    ),
    ("dot", torch.dot, [(3,), (3,)], -1, 1, True),
    ("vdot", torch.vdot, [(3,), (3,)], -1, 1, True),
    ("mv", torch.mv, [(2, 3), (3,)], -1, 1, True),
    ("matmul", torch.matmul, [(2, 2, 3), (3, 2)], -1, 1, True),
    ("linear", F.linear, [(2, 2, 3), (4, 3), (4,)], -1, 1, True),
    ("linear plain", lambda x, w: F.linear(x, w), [(2, 3), (4, 3)], -1, 1, True),
    ("einsum", lambda a, b: torch.einsum("ij,kj->ik", a, b), [(2, 3), (2, 3)], -1, 1, True),
    ("outer", torch.outer, [(2,), (3,)], -1, 1, True),
]
TARGET = torch.tensor([[0.3, -0.2, 0.7], [0.1, 0.9, -0.4]], dtype=torch.float64)
NN = [
    *[act(n) for n in "relu silu mish hardswish hardsigmoid elu celu selu leaky_relu".split()],
    *[act(n) for n in "relu6 softplus hardshrink softshrink logsigmoid gelu hardtanh".split()],
    act("gelu", approximate="tanh"),
    act("threshold", 0.5, 2.0),
    act("elu", 1.7),
    ("glu", lambda x: F.glu(x, 1), [(2, 4)], -1, 1, False),
    ("prelu", F.prelu, [(2, 3), (3,)], -1, 1, False),
    *[
        (
            f"{n} {how}",
            lambda x, n=n, how=how: getattr(F, n)(x, TARGET, reduction=how),
            [(2, 3)],
            -2,
            2,
            False,
        )
        for n in ("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss", "soft_margin_loss")
        for how in ("none", "mean", "sum")
    ],
    ("mse target", F.mse_loss, [(2, 3), (2, 3)], -1, 1, False),
    ("bce", lambda x: F.binary_cross_entropy(x, TARGET.abs()), [(2, 3)], 0.2, 0.8, False),
    ("bce target", F.binary_cross_entropy, [(2, 3), (2, 3)], 0.2, 0.8, False),
    ("bce logits", F.binary_cross_entropy_with_logits, [(2, 3), (2, 3)], 0.2, 0.8, False),
    (
        "bce logits weighted",
        lambda x: F.binary_cross_entropy_with_logits(
            x, TARGET.abs(), TARGET.abs(), pos_weight=TARGET[0].abs()
        ),
        [(2, 3)],
        -1,
        1,
        False,
    ),
    ("cross_entropy", lambda x: F.cross_entropy(x, ROWS[:2]), [(2, 3)], -1, 1, False),
    ("nll", lambda x: F.nll_loss(x, ROWS[:2], reduction="sum"), [(2, 3)], -1, 1, False),
    ("layer_norm", lambda x, w, b: F.layer_norm(x, (3,), w, b), [(2, 3), (3,), (3,)], -1, 1, False),
    ("layer_norm plain", lambda x: F.layer_norm(x, (2, 3)), [(2, 2, 3)], -1, 1, False),
    ("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), [(2, 4, 2), (4,), (4,)], -1, 1, False),
    (
        "batch_norm",
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        [(3, 2, 2), (2,), (2,)],
        -1,
        1,
        False,
    ),
    (
        "batch_norm eval",
        lambda x, w, b: F.batch_norm(x, TARGET[0, :2], TARGET[1, :2].abs(), w, b),
        [(3, 2, 2), (2,), (2,)],
        -1,
        1,
        False,
    ),
    ("rms_norm", lambda x, w: F.rms_norm(x, (3,), w), [(2, 3), (3,)], -1, 1, False),
    (
        "attention",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
        [(1, 1, 2, 3), (1, 1, 2, 3), (1, 1, 2, 3)],
        -1,
        1,
        False,
    ),
]
# Their second derivative is not offered.
FIRST_ONLY = {"attention"}


class FormulaTest(unittest.TestCase):
    def run_row(self, row, dtype):
        name, function, shapes, low, high, _ = row
        _generator.manual_seed(7)
        inputs = [values(s, low, high, dtype).requires_grad_(True) for s in shapes]
        results = differentiable(function(*inputs))
        self.assertTrue(results, f"{name}: no differentiable result")
        weights = [random_like(r) for r in results]

        def first(*args):
            return combine(differentiable(function(*args)), weights)

        grads = torch.autograd.grad(first(*inputs), inputs, create_graph=True, allow_unused=True)
        for i, grad in enumerate(grads):
            expected = numeric(first, inputs, i)
            grad = torch.zeros_like(inputs[i]) if grad is None else grad
            self.assertEqual(grad.shape, inputs[i].shape, name)
            self.close(grad.detach(), expected, f"{name} input {i} {dtype}")
        if name in FIRST_ONLY:
            return
        self.check_forward(row, inputs, grads, first)
        which = [i for i, g in enumerate(grads) if g is not None and g.requires_grad]
        if not which:
            return
        seconds = [random_like(grads[i]) for i in which]

        def slope(*args):
            got = torch.autograd.grad(first(*args), args, create_graph=True, allow_unused=True)
            return combine([got[i] for i in which], seconds)

        twice = torch.autograd.grad(slope(*inputs), inputs, allow_unused=True)
        for i, grad in enumerate(twice):
            grad = torch.zeros_like(inputs[i]) if grad is None else grad
            self.close(grad, numeric(slope, inputs, i), f"{name} second, input {i} {dtype}")

    def check_forward(self, row, inputs, grads, first):
        """The tangent of the number is the product of its gradient with the tangents."""
        with forward_ad.dual_level():
            tangents = [random_like(x).to(x.dtype) for x in inputs]
            duals = [forward_ad.make_dual(x, t) for x, t in zip(inputs, tangents, strict=True)]
            tangent = forward_ad.unpack_dual(first(*duals)).tangent
        expected = 0.0
        for grad, t in zip(grads, tangents, strict=True):
            if grad is not None:
                product = (grad.conj() if grad.is_complex() else grad) * t
                expected += (torch.real(product) if product.is_complex() else product).sum().item()
        got = 0.0 if tangent is None else tangent.item()
        self.assertAlmostEqual(got, expected, 7, f"{row[0]} forward")

    def close(self, got, expected, message):
        error = (got - expected).abs().max().item() if got.numel() else 0.0
        bound = 1e-5 * (1 + expected.abs().max().item()) if got.numel() else 0.0
        self.assertLessEqual(error, bound, f"{message}:\n{got}\n{expected}")

    def run_table(self, table):
        for row in table:
            with self.subTest(row[0]):
                self.run_row(row, torch.float64)
            if row[5]:
                with self.subTest(row[0] + " complex"):
                    self.run_row(row, torch.complex128)

    def test_pointwise(self):
        self.run_table(POINTWISE)

    def test_reduce(self):
        self.run_table(REDUCE)

    def test_shape(self):
        self.run_table(SHAPE)

    def test_matmul(self):
        self.run_table(MATMUL)

    def test_nn(self):
        self.run_table(NN)

    def test_nothing_is_forgotten(self):
        """Every operator has a formula, or is listed as nondifferentiable."""
        from torchgen import derivatives, model

        ops = model.load(str(ROOT / "aten/src/ATen/native/native_functions.yaml"))
        found = derivatives.load(str(ROOT / "tools/autograd/derivatives.yaml"), ops)
        missing = {op.schema.full_name for op in found.missing}
        self.assertEqual(missing, set())


if __name__ == "__main__":
    unittest.main()
