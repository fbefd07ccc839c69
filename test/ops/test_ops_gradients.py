"""First and second derivatives of every op record that claims to be differentiable, in reverse and
forward mode, float64 and complex128, against finite differences on small inputs. What is left out
stands in EXCEPTIONS with its reason and is counted by a test."""

import warnings

import pytest

import torch
from torch.autograd.gradcheck import gradcheck, gradgradcheck
from torch.testing._internal.opinfo import records
from torch.testing._internal.opinfo.core import flat_tensors

RECORDS = [r for r in records() if r.supports_autograd]

# (record, order) -> why it is not checked. order: first, forward or second.
_ORDER = "the derivative by the order is no elementary function; PyTorch has none either"
_AIRY = "needs the derivative of Ai, which is not an operator; PyTorch gives no gradient at all"
_SERIES = "PyTorch treats it as constant; here asking for its gradient raises NotImplementedError"
_RANDOM = "draws random numbers: the tangent would need the same draw; raises NotImplementedError"
_STEPS = "its gradient kernel has no gradient; raises NotImplementedError, as PyTorch does"
_TWICE = {
    "nn.functional.ctc_loss": _STEPS,
    "nn.functional.embedding_bag": _STEPS,
    "nn.functional.multi_margin_loss": _STEPS,
    "nn.functional.multilabel_margin_loss": _STEPS,
    "nn.functional.scaled_dot_product_attention": _STEPS,
    "segment_reduce": _STEPS,
}
_NEVER = {
    "igamma": _ORDER,
    "igammac": _ORDER,
    "special.gammainc": _ORDER,
    "special.gammaincc": _ORDER,
    "special.zeta": _ORDER,
    "special.airy_ai": _AIRY,
    **{
        f"special.{name}": _SERIES
        for name in (
            "chebyshev_polynomial_u",
            "chebyshev_polynomial_v",
            "chebyshev_polynomial_w",
            "shifted_chebyshev_polynomial_u",
            "shifted_chebyshev_polynomial_v",
            "shifted_chebyshev_polynomial_w",
            "laguerre_polynomial_l",
            "legendre_polynomial_p",
        )
    },
}
_SPARSE = "sparse tensors carry no tangents, nor gradients of gradients; raises NotImplementedError"
EXCEPTIONS = {
    **{
        (r.full_name, order): _SPARSE
        for r in RECORDS
        if r.family == "sparse"
        for order in ("forward", "second")
    },
    **{
        (name, order): why
        for name, why in _NEVER.items()
        for order in ("first", "forward", "second")
    },
    **{(name, order): why for name, why in _TWICE.items() for order in ("forward", "second")},
    ("special.chebyshev_polynomial_t", "second"): "its derivative is the series of kind u",
    ("special.shifted_chebyshev_polynomial_t", "second"): "its derivative is the series of kind u",
    ("bernoulli", "forward"): _RANDOM,
    ("nn.functional.rrelu", "forward"): _RANDOM,
}


def each(order, quick=6):
    """One test per record without an exception for this order; all but every quick-th slow."""
    chosen = [r for r in RECORDS if (r.full_name, order) not in EXCEPTIONS]
    return pytest.mark.parametrize(
        "record",
        [
            pytest.param(r, id=r.full_name, marks=[pytest.mark.slow] if i % quick else [])
            for i, r in enumerate(chosen)
        ],
    )


def differentiable_call(record, sample):
    """The operator as a function of the tensors that require gradients, and those tensors."""
    inputs = []
    sample.transform(lambda t: inputs.append(t) or t if t.requires_grad else t)

    def function(*tensors):
        left = iter(tensors)
        call = sample.transform(lambda t: next(left) if t.requires_grad else t)
        torch.manual_seed(0)
        op = record.grad_op or record.op
        found = flat_tensors(op(*([call.input, *call.args]), **call.kwargs))[: record.grad_outputs]
        return tuple(t for t in found if t.is_floating_point() or t.is_complex())

    return function, tuple(t.detach().clone().requires_grad_() for t in inputs)


def check(record, dtype, order, thin):
    failures = []
    for sample in record.gradient_inputs("cpu", dtype)[:thin]:
        function, inputs = differentiable_call(record, sample)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if order == "second":
                    gradgradcheck(function, inputs, atol=1e-4, fast_mode=True)
                else:
                    forward = order == "forward"
                    gradcheck(
                        function,
                        inputs,
                        atol=1e-5,
                        check_forward_ad=forward,
                        check_backward_ad=not forward,
                        check_undefined_grad=False,
                        check_batched_grad=False,
                    )
        except Exception as error:
            text = str(error).strip()[:500]
            failures.append(f"{dtype} ({sample.summary()}): {type(error).__name__}: {text}")
    return failures


def run(record, order, thin):
    failures = [f for dtype in record.grad_dtypes for f in check(record, dtype, order, thin)]
    if failures:
        pytest.fail(
            f"{record.full_name}: {len(failures)} failures\n" + "\n".join(failures[:4]), False
        )


@each("first")
def test_reverse_gradient_equals_finite_differences(record):
    run(record, "first", 4)


@each("forward")
def test_forward_gradient_equals_finite_differences(record):
    run(record, "forward", 2)


@each("second", quick=12)
def test_second_gradient_equals_finite_differences(record):
    run(record, "second", 2)


def test_every_differentiable_record_has_an_input_to_check():
    for record in RECORDS:
        for dtype in record.grad_dtypes:
            assert record.gradient_inputs("cpu", dtype), f"{record.full_name} {dtype}"


def test_exceptions_name_records_and_have_reasons():
    names = {r.full_name for r in RECORDS}
    for (name, order), reason in EXCEPTIONS.items():
        assert name in names and order in ("first", "forward", "second") and reason
