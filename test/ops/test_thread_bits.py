"""The bits of a result do not depend on the number of threads. Every operator here runs on 1, 2 and
4 threads on inputs large enough to be cut into chunks, with odd sizes so that chunks end ragged,
and the results are compared byte by byte."""

import os

import pytest

import torch

N = 300_007
FLOATS = [torch.float32, torch.float64, torch.bfloat16]
INTS = [torch.int64, torch.int32, torch.uint8]


def values(shape, dtype, low=-3.0, high=3.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point:
        return (torch.rand(shape, generator=generator) * (high - low) + low).to(dtype)
    if dtype.is_complex:
        real = torch.rand((*shape, 2), generator=generator, dtype=torch.float64) * 2 - 1
        return torch.view_as_complex(real).to(dtype)
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) > 0.5
    return torch.randint(0, 7, shape, generator=generator).to(dtype)


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in flat(v)]
    return [torch.tensor(value)]


def same_bits(a, b):
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.numel() == 0:
        return True
    a, b = a.contiguous().view(-1).view(torch.uint8), b.contiguous().view(-1).view(torch.uint8)
    return torch.equal(a, b)


def check(call, *inputs):
    """The call on 1, 2 and 4 threads; its tensors are cloned, so it may write into them."""
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            results.append(flat(call(*[t.clone() for t in inputs])))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert len(other) == len(results[0])
        assert all(same_bits(x, y) for x, y in zip(results[0], other, strict=True))


def test_inputs_are_large_enough_to_be_shared_between_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        torch.exp(values((N,), torch.float32))
        assert len(os.listdir("/proc/self/task")) >= 4
    finally:
        torch.set_num_threads(before)


# ---- pointwise and activations -----------------------------------------------------------------
UNARY = (
    "abs neg exp exp2 expm1 log log1p log2 log10 sqrt rsqrt sin cos tan sinh cosh tanh asin acos "
    "atan asinh acosh atanh erf erfc erfinv lgamma digamma sigmoid floor ceil round trunc frac "
    "reciprocal square sign isnan isfinite isinf relu logit i0 sinc deg2rad positive"
).split()
BINARY = (
    "add sub mul div true_divide floor_divide remainder fmod pow maximum minimum fmax fmin atan2 "
    "hypot copysign eq ne lt le gt ge logical_and logical_or logaddexp xlogy nextafter"
).split()
BITWISE = "bitwise_and bitwise_or bitwise_xor gcd lcm bitwise_left_shift".split()
ACTIVATIONS = (
    "relu gelu silu mish elu selu celu leaky_relu hardtanh hardswish hardsigmoid softplus softsign "
    "logsigmoid tanhshrink softshrink hardshrink relu6"
).split()


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    for dtype in FLOATS:
        check(getattr(torch, name), values((N,), dtype, 0.05, 0.95))


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    for dtype in (torch.float32, torch.bfloat16):
        check(
            getattr(torch, name), values((701, 431), dtype, 0.5), values((431,), dtype, 0.5, seed=1)
        )


@pytest.mark.parametrize("name", [*BITWISE, "add", "mul", "eq", "maximum"])
@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_integer_binary(name, dtype):
    check(getattr(torch, name), values((701, 431), dtype), values((701, 1), dtype, seed=1))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name):
    for dtype in (torch.float32, torch.bfloat16):
        check(getattr(torch.nn.functional, name), values((N,), dtype))


POINTWISE = {
    "strided": lambda a, b: a.t() + b.t()[:, :1],
    "promotion": lambda a, b: a + b.to(torch.int32),
    "inplace": lambda a, b: a.mul_(b).add_(1, alpha=2),
    "out": lambda a, b: torch.add(a, b, out=torch.empty(0)),
    "addcmul": lambda a, b: torch.addcmul(a, a, b, value=0.3),
    "addcdiv": lambda a, b: torch.addcdiv(a, a, b, value=0.3),
    "lerp": lambda a, b: torch.lerp(a, b, 0.3),
    "where": lambda a, b: torch.where(a > b, a, b),
    "clamp": lambda a, b: torch.clamp(a, -1, b.max()),
    "nan_to_num": lambda a, b: torch.nan_to_num(a / (a - a)),
    "cast": lambda a, b: [
        a.to(d) for d in (torch.float64, torch.bfloat16, torch.float16, torch.int8)
    ],
    "copy": lambda a, b: torch.empty(431, 701).t().copy_(a),
    "complex": lambda a, b: torch.complex(a, b).exp(),
}


@pytest.mark.parametrize("name", POINTWISE)
def test_pointwise_forms(name):
    check(
        POINTWISE[name],
        values((701, 431), torch.float32),
        values((701, 431), torch.float32, seed=1),
    )


# ---- reductions and scans ----------------------------------------------------------------------
REDUCTIONS = "sum mean prod std var amax amin argmax argmin logsumexp norm nansum nanmean".split()
WITH_DIM = "cumsum cumprod logcumsumexp softmax log_softmax".split()


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_reduction(name, dtype):
    x = values((701, 431), dtype, 0.9, 1.1)
    call = getattr(torch, name)
    if name != "logsumexp":
        check(call, x)
    for dim in (0, 1):
        check(lambda t, dim=dim: call(t, dim=dim), x)
        check(lambda t, dim=dim: call(t.t(), dim=dim), x)
    check(lambda t: call(t.view(7, -1), dim=1), values((7 * 43003,), dtype, 0.9, 1.1))


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "argmin", "all", "any", "count_nonzero"])
@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_integer_reduction(name, dtype):
    x = values((701, 431), dtype)
    call = getattr(torch, name)
    check(call, x)
    check(lambda t: call(t, dim=0), x)


@pytest.mark.parametrize("name", WITH_DIM)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_scan_and_softmax(name, dtype):
    call = getattr(torch, name)
    for dim in (0, 1):
        check(lambda t, dim=dim: call(t, dim), values((701, 431), dtype, 0.9, 1.1))


SELECTIONS = {
    "max_dim": lambda a: tuple(a.max(0)),
    "min_all": lambda a: a.min(),
    "median": lambda a: (a.median(), tuple(a.median(1))),
    "sort": lambda a: tuple(a.sort(0)),
    "sort_stable": lambda a: tuple(a.round().sort(dim=1, stable=True)),
    "argsort": lambda a: a.argsort(1),
    "topk": lambda a: tuple(a.topk(17, 1)),
    "kthvalue": lambda a: tuple(a.kthvalue(9, 1)),
    "unique": lambda a: torch.unique(a.round(), return_inverse=True, return_counts=True),
    "aminmax": lambda a: tuple(torch.aminmax(a)),
    "var_mean": lambda a: torch.var_mean(a, 0),
    "cummax": lambda a: tuple(a.cummax(1)),
    "trapz": lambda a: torch.trapz(a),
    "dist": lambda a: torch.dist(a, a.flip(0), 3),
    "renorm": lambda a: a.renorm(2, 0, 3.0),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_selection(name):
    check(SELECTIONS[name], values((701, 431), torch.float32))


# ---- shapes and indices ------------------------------------------------------------------------
def index(*shape, high):
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(3))


MOVES = {
    "cat": lambda a: torch.cat([a, a.flip(1)], 1),
    "stack": lambda a: torch.stack([a, a], 1),
    "flip": lambda a: a.flip(0, 1),
    "roll": lambda a: a.roll((3, 5), (0, 1)),
    "repeat": lambda a: a.repeat(2, 3),
    "tile_transposed": lambda a: a.t().tile(2, 1),
    "contiguous": lambda a: a.t().contiguous(),
    "channels_last": lambda a: (
        a[:700].view(7, 4, 25, 431).contiguous(memory_format=torch.channels_last)
    ),
    "tril": lambda a: a.tril(3),
    "repeat_interleave": lambda a: a.repeat_interleave(2, 0),
    "index_select": lambda a: a.index_select(0, index(900, high=701)),
    "advanced_index": lambda a: a[index(300_000, high=701), index(300_000, high=431)],
    "mask": lambda a: a[a > 0],
    "masked_fill": lambda a: a.masked_fill(a > 0, 3),
    "nonzero": lambda a: (a > 0).nonzero(),
    "gather": lambda a: a.gather(0, index(701, 431, high=701)),
    "scatter": lambda a: a.scatter(0, index(701, 431, high=701), 2.0),
    "scatter_add": lambda a: a.scatter_add(0, index(701, 431, high=701), a * 1.1),
    "scatter_reduce": lambda a: a.scatter_reduce(1, index(701, 431, high=431), a, "mean"),
    "index_add": lambda a: a.index_add(0, index(701, high=701), a * 1.1),
    "index_put_accumulate": lambda a: a.index_put(
        (index(300_000, high=701), index(300_000, high=431)),
        values((300_000,), a.dtype),
        accumulate=True,
    ),
    "index_copy": lambda a: a.index_copy(0, torch.arange(700, -1, -1), a),
    "take": lambda a: a.take(index(300_000, high=701 * 431)),
    "put_accumulate": lambda a: a.put(
        index(300_000, high=99), values((300_000,), a.dtype), accumulate=True
    ),
    "bucketize": lambda a: torch.bucketize(a, torch.linspace(-3, 3, 77, dtype=a.dtype)),
    "embedding": lambda a: torch.nn.functional.embedding(index(3000, high=701), a),
}


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_move(name, dtype):
    check(MOVES[name], values((701, 431), dtype))


# ---- products ----------------------------------------------------------------------------------
PRODUCTS = {
    "mm": (lambda a, b: a @ b, (257, 391), (391, 203)),
    "mm_transposed": (lambda a, b: a.t() @ b.t(), (391, 257), (203, 391)),
    "mm_deep": (lambda a, b: a @ b, (3, 100_003), (100_003, 5)),
    "mv": (lambda a, b: a @ b, (701, 431), (431,)),
    "dot": (lambda a, b: a.dot(b), (N,), (N,)),
    "bmm": (lambda a, b: torch.bmm(a, b), (9, 65, 77), (9, 77, 51)),
    "addmm": (lambda a, b: torch.addmm(b[0], a, b, beta=0.5, alpha=2), (257, 391), (391, 203)),
    "linear": (lambda a, b: torch.nn.functional.linear(a, b), (31, 17, 391), (203, 391)),
    "outer": (lambda a, b: torch.outer(a, b), (701,), (503,)),
    "einsum": (lambda a, b: torch.einsum("bij,bjk->ik", a, b), (9, 65, 77), (9, 77, 51)),
    "baddbmm": (lambda a, b: torch.baddbmm(b[:, :1], a, b), (9, 65, 77), (9, 77, 51)),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.complex64], ids=str)
def test_product(name, dtype):
    call, left, right = PRODUCTS[name]
    if not dtype.is_floating_point:
        left = tuple(min(s, 999) for s in left)
        right = tuple(min(s, 999) for s in right)
    check(call, values(left, dtype), values(right, dtype, seed=1))


# ---- random numbers, norms ---------------------------------------------------------------------
def seeded(call):
    def run():
        torch.manual_seed(5)
        return call()

    return run


RANDOM = {
    "rand": lambda: torch.rand(N),
    "randn": lambda: (torch.randn(N), torch.randn(7), torch.randn(N, dtype=torch.float64)),
    "randint": lambda: torch.randint(0, 1000, (N,)),
    "randperm": lambda: torch.randperm(N),
    "bernoulli": lambda: torch.bernoulli(torch.full((N,), 0.3)),
    "exponential": lambda: torch.empty(N).exponential_(),
    "normal_transposed": lambda: torch.empty(701, 431).t().normal_(),
    "multinomial": lambda: torch.multinomial(torch.rand(701), 5000, replacement=True),
    "dropout": lambda: torch.nn.functional.dropout(torch.ones(N), 0.4),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random(name):
    check(seeded(RANDOM[name]))


NORMS = {
    "layer_norm": lambda a: torch.nn.functional.layer_norm(a, (431,)),
    "group_norm": lambda a: torch.nn.functional.group_norm(a[:700].view(7, 100, 431), 10),
    "batch_norm": lambda a: torch.nn.functional.batch_norm(a, None, None, training=True),
    "rms_norm": lambda a: torch.nn.functional.rms_norm(a, (431,)),
    "cross_entropy": lambda a: torch.nn.functional.cross_entropy(a, index(701, high=431)),
    "mse_loss": lambda a: torch.nn.functional.mse_loss(a, a.flip(0)),
}


@pytest.mark.parametrize("name", NORMS)
def test_norm(name):
    check(NORMS[name], values((701, 431), torch.float32))
