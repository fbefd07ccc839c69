"""Operators over lists equal the operators on single tensors: values, in-place and out forms,
mixed lists, gradients; and the fused optimizer and loss-scaling steps."""

import math

import pytest

import torch

UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 "
    "neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
).split()
BINARY = "add sub mul div clamp_max clamp_min maximum minimum".split()


def tensors(seed=0, dtype=torch.float32):
    """Small, large, empty, 0-dim, transposed and strided ones."""
    generator = torch.Generator().manual_seed(seed)

    def rand(*shape):
        return (torch.rand(shape, generator=generator) * 0.8 + 0.1).to(dtype)

    return [rand(3), rand(50, 701), rand(0, 2), rand(), rand(4, 5).t(), rand(12)[::3], rand(2, 3)]


def foreach(name):
    return getattr(torch, "_foreach_" + name)


def same(got, expected):
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == b.dtype
        torch.testing.assert_close(a, b, equal_nan=True)


def check(name, plain, *args, **kwargs):
    """Functional, in-place and out= forms against `plain` on each tensor."""
    lists = tensors()
    expected = [
        plain(t, *[a[i] if isinstance(a, list) else a for a in args], **kwargs)
        for i, t in enumerate(lists)
    ]
    got = foreach(name)(lists, *args, **kwargs)
    assert isinstance(got, tuple)
    same(got, expected)
    copies = [t.clone() for t in lists]
    assert foreach(name + "_")(copies, *args, **kwargs) is copies
    same(copies, expected)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    check(name, getattr(torch, name))


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    plain = {"maximum": torch.clamp_min, "minimum": torch.clamp_max}.get(name, getattr(torch, name))
    check(name, plain, tensors(1))
    check(name, plain, 0.5)
    check(name, plain, [0.1 * i + 0.2 for i in range(7)])
    if name in ("add", "mul", "div"):
        check(name, plain, torch.tensor(0.3))
        check(name, plain, torch.tensor(3))
    if name in ("add", "sub"):
        check(name, plain, tensors(1), alpha=2.5)


@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
def test_three_lists(name):
    def plain(t, a, b, value=1):
        return getattr(torch, name)(t, a, b, value=value)

    a, b = tensors(1), tensors(2)
    check(name, plain, a, b)
    check(name, plain, a, b, value=-2)
    numbers = [0.5 * i for i in range(7)]
    check(name, plain, a, b, numbers)
    same(foreach(name)(tensors(), a, b, torch.tensor(numbers)),
         foreach(name)(tensors(), a, b, numbers))  # fmt: skip


def test_lerp_and_pow():
    check("lerp", torch.lerp, tensors(1), 0.25)
    check("lerp", torch.lerp, tensors(1), tensors(2))
    check("lerp", torch.lerp, tensors(1), [0.1 * i for i in range(7)])
    check("pow", torch.pow, 2)
    check("pow", torch.pow, tensors(1))
    check("pow", torch.pow, [0.5 * i for i in range(7)])
    same(torch._foreach_pow(2.0, tensors()), [torch.pow(2.0, t) for t in tensors()])


def test_norms_maxima_copies_and_products():
    lists = tensors()
    for order in (1, 2, math.inf):
        kept = [t for t in lists if t.numel()]
        same(torch._foreach_norm(kept, order), [torch.linalg.vector_norm(t, order) for t in kept])
    same(torch._foreach_norm(lists, 2, torch.float64),
         [torch.linalg.vector_norm(t, dtype=torch.float64) for t in lists])  # fmt: skip
    same(torch._foreach_powsum(lists, 3), [t.abs().pow(3).sum() for t in lists])
    same(torch._foreach_max([t for t in lists if t.numel()]),
         [t.max() for t in lists if t.numel()])  # fmt: skip
    copies = torch._foreach_clone(lists)
    same(copies, lists)
    assert all(a is not b for a, b in zip(copies, lists, strict=True))
    targets = [torch.zeros_like(t) for t in lists]
    torch._foreach_copy_(targets, lists)
    same(targets, lists)
    torch._foreach_zero_(targets)
    assert all(t.eq(0).all() for t in targets)
    same(torch._foreach_mm([torch.ones(2, 3)], [torch.ones(3, 2)]), [torch.full((2, 2), 3.0)])


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int64, torch.complex64])
def test_other_dtypes_and_mixed_lists(dtype):
    a = [t.to(dtype) + 1 for t in tensors(dtype=torch.float64)]
    same(torch._foreach_mul(a, a), [t * t for t in a])
    same(torch._foreach_add(a, 2), [t + 2 for t in a])
    same(torch._foreach_sqrt(a), [t.sqrt() for t in a])
    mixed = [torch.ones(3), torch.ones(2, dtype=torch.int32), torch.ones(2, dtype=torch.float64)]
    same(torch._foreach_div(mixed, 2), [t / 2 for t in mixed])
    assert torch._foreach_add([torch.ones(2, device="meta"), torch.ones(2)], 1)[0].is_meta


def test_lists_that_share_memory_are_taken_in_order():
    base = torch.ones(40_000)
    first, second = base[:30_000], base[10_000:]
    expected = base.clone()
    expected[:30_000] *= 2
    expected[10_000:] *= 2
    torch._foreach_mul_([first, second], 2.0)
    assert base.equal(expected)
    x, y = torch.ones(40_000), torch.full((40_000,), 2.0)
    torch._foreach_add_([x, y], [y, x])
    assert x[0].item() == 3 and y[0].item() == 5 and x.eq(3).all() and y.eq(5).all()


def test_same_bits_on_any_number_of_threads():
    lists = [torch.randn(n) for n in (10, 70_001, 5, 33_333, 100)]
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            results.append(torch._foreach_exp(lists))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_gradients_and_versions():
    a = [torch.rand(3, dtype=torch.float64, requires_grad=True), torch.rand(2, dtype=torch.float64)]
    b = [torch.rand(3, dtype=torch.float64, requires_grad=True), torch.rand(2, dtype=torch.float64)]
    out = torch._foreach_mul(a, b)
    assert out[0].requires_grad and not out[1].requires_grad
    (grad,) = torch.autograd.grad(out[0].sum(), a[0])
    assert grad.equal(b[0])
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        torch._foreach_add_(a, 1)
    copies = [t.clone() for t in a]
    torch._foreach_exp_(copies)
    (grad,) = torch.autograd.grad(copies[0].sum(), a[0])
    torch.testing.assert_close(grad, a[0].exp())
    t = torch.ones(2)
    before = t._version
    torch._foreach_add_([t], 1)
    assert t._version == before + 1


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: torch._foreach_add([torch.ones(2)] * 2, [torch.ones(2)]), "got 2 and 1"),
        (lambda: torch._foreach_exp([]), "at least one tensor"),
        (lambda: torch._foreach_add([torch.ones(2)], [1.0, 2.0]), "number of elements as scalar"),
        (lambda: torch._foreach_mul([torch.ones(2)], torch.ones(2)), "expected to be 0 dim"),
        (lambda: torch._foreach_add_([torch.ones(2).long()], 1.5), "can't be cast"),
        (
            lambda: torch._foreach_sub([torch.tensor([True])], [torch.tensor([True])]),
            "two bool tensors",
        ),
        (
            lambda: torch._foreach_addcmul([torch.ones(2)], [torch.ones(2)], [torch.ones(2)],
                                           torch.ones(2)),
            "Expected length of scalars",
        ),
    ],
)  # fmt: skip
def test_errors(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


def test_out_variants_of_the_dispatcher():
    outs = [torch.empty(0), torch.empty(2, 2)]
    torch.ops.aten._foreach_add.Scalar_out([torch.ones(3), torch.ones(2, 2)], 1, out=outs)
    same(outs, [torch.full((3,), 2.0), torch.full((2, 2), 2.0)])


def test_unscale_finds_what_is_not_finite():
    grads = [torch.tensor([2.0, 4.0]), torch.tensor([6.0], dtype=torch.float16)]
    found = torch.zeros(1)
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.tensor([0.5]))
    assert found.item() == 0 and grads[0].tolist() == [1, 2] and grads[1].item() == 3
    grads[1].fill_(float("inf"))
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.tensor([1.0]))
    assert found.item() == 1


def test_scale_grows_and_backs_off():
    scale, tracker = torch.tensor([4.0]), torch.tensor([0], dtype=torch.int32)
    for expected_scale, expected_tracker in ((4.0, 1), (8.0, 0)):
        torch._amp_update_scale_(scale, tracker, torch.zeros(1), 2.0, 0.5, 2)
        assert (scale.item(), tracker.item()) == (expected_scale, expected_tracker)
    torch._amp_update_scale_(scale, tracker, torch.ones(1), 2.0, 0.5, 2)
    assert (scale.item(), tracker.item()) == (4.0, 0)


def test_fused_adagrad_matches_its_formula():
    p, g = torch.tensor([1.0, -2.0]), torch.tensor([0.5, 0.25])
    total, step = torch.zeros(2), torch.tensor(2.0)
    torch._fused_adagrad_([p], [g], [total], [step], lr=0.1, lr_decay=0.5, weight_decay=0.0,
                          eps=1e-10, maximize=False)  # fmt: skip
    torch.testing.assert_close(total, g * g)
    torch.testing.assert_close(p, torch.tensor([1.0, -2.0]) - 0.1 / 1.5 * g / (g.abs() + 1e-10))


def test_list_and_empty_list_raise_for_the_numbers_they_may_have_been():
    with pytest.raises(RuntimeError, match=r"same number of elements as scalar list. Got 1 and 0"):
        torch._foreach_add([torch.ones(1)], [])
    with pytest.raises(RuntimeError, match="the same number of tensors, got 1 and 2"):
        torch._foreach_add([torch.ones(1)], [torch.ones(1)] * 2)


def test_error_of_a_list_is_the_text_of_the_operator_on_one_tensor():
    with pytest.raises(RuntimeError) as many:
        torch._foreach_sqrt_([torch.ones(2, dtype=torch.int64)])
    with pytest.raises(RuntimeError) as one:
        torch.ones(2, dtype=torch.int64).sqrt_()
    assert str(one.value).startswith(str(many.value))


def test_packed_numbers_are_one_contiguous_row_of_the_right_length():
    lists = [[torch.ones(1)] * 3 for _ in range(3)]
    wrong = {
        "Expected scalars to be contiguous": torch.arange(6.0)[::2],
        "to be of dimension 1. Got 0 instead": torch.tensor(1.0),
        "to match input of length 3 but got 2 instead": torch.ones(2),
    }
    for text, scalars in wrong.items():
        with pytest.raises(RuntimeError, match=text):
            torch._foreach_addcmul(*lists, scalars=scalars)
