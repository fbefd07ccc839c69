"""Decompositions against the operators they stand for: every op record is run with each call that
has a decomposition replaced by it. Values are compared with the record's NumPy reference, results
and gradients with the operator in shape, dtype and value."""

import warnings

import numpy as np
import pytest

import torch
from torch._decomp import (
    core_aten_decompositions,
    decomposition_table,
    get_decompositions,
    register_decomposition,
    remove_decompositions,
)
from torch.testing._internal.opinfo import records
from torch.testing._internal.opinfo.core import flat_arrays, flat_tensors, to_numpy
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
DTYPES = (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64)

# The decomposition draws other numbers than the operator; test_random_* below look at those.
RANDOM = {aten.bernoulli.default, aten.bernoulli.p, aten.native_dropout.default}


class Decomposed(TorchDispatchMode):
    """Runs the decomposition of an operator in its place and compares it with the operator."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        writes = any(
            a.alias_info is not None and a.alias_info.is_write for a in func._schema.arguments
        )
        if func not in decomposition_table or func in RANDOM or writes:
            return func(*args, **kwargs)
        self.seen.add(func)
        found = decomposition_table[func](*args, **kwargs)
        expected = func(*args, **kwargs)
        for mine, real in zip(flat_tensors(found), flat_tensors(expected), strict=True):
            assert mine.shape == real.shape, f"{func}: {mine.shape}, expected {real.shape}"
            assert mine.dtype == real.dtype, f"{func}: {mine.dtype}, expected {real.dtype}"
            rtol, atol = TOLERANCE.get(real.dtype, (0, 0))
            np.testing.assert_allclose(
                to_numpy(mine), to_numpy(real), rtol, atol, err_msg=str(func)
            )
        return found


TOLERANCE = {
    torch.float16: (2e-3, 1e-3),
    torch.bfloat16: (1.6e-2, 1e-2),
    torch.float32: (2e-5, 1e-5),
    torch.float64: (1e-9, 1e-10),
    torch.complex64: (2e-5, 1e-5),
    torch.complex128: (1e-9, 1e-10),
}


def decomposable(record):
    """Whether an operator of the record's name, or its derivative, has a decomposition."""
    names = {op.overloadpacket.__name__ for op in decomposition_table}
    wanted = {
        record.aten_name,
        f"{record.aten_name}_backward",
        f"_{record.aten_name}",
        *record.covers,
    }
    plain = record.family != "sparse" and not record.is_random and record.ref is not None
    return plain and bool(names & wanted)


CHOSEN = [r for r in records() if decomposable(r)]


@pytest.mark.parametrize("record", CHOSEN, ids=lambda r: r.full_name)
def test_record_with_operators_decomposed_equals_the_reference(record):
    for dtype in DTYPES:
        if dtype not in record.dtypes or record.skip_reason("value", dtype):
            continue
        for sample in record.sample_inputs("cpu", dtype):
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                with Decomposed():
                    result = record.apply(sample)
                if dtype in (torch.int64, torch.bool):
                    continue  # references say nothing about rounding to integers
                plain = sample.numpy()
                expected = record.ref(plain.input, *plain.args, **plain.kwargs)
            for actual, array in zip(flat_tensors(result), flat_arrays(expected), strict=True):
                rtol, atol = record.tolerance(actual.dtype)
                np.testing.assert_allclose(to_numpy(actual), array, rtol, atol)


# igamma has no derivative by its first argument, with or without a decomposition.
WITH_GRADIENTS = [r for r in CHOSEN if r.supports_autograd and not r.name.startswith("igamma")]


@pytest.mark.parametrize("record", WITH_GRADIENTS, ids=lambda r: r.full_name)
def test_gradients_with_operators_decomposed_equal_the_operators(record):
    for sample in record.gradient_inputs("cpu", torch.float64):
        inputs = [t for t in sample.tensors() if t.requires_grad]
        if not inputs:
            continue
        op = record.grad_op or record.op
        with Decomposed():
            found = op(sample.input, *sample.args, **sample.kwargs)
            outputs = [t for t in flat_tensors(found) if t.requires_grad]
            total = sum(t.abs().sum() if t.is_complex() else t.sum() for t in outputs)
            if outputs:
                torch.autograd.grad(total, inputs, allow_unused=True)


# ---- the tables -----------------------------------------------------------------------------


def test_register_for_a_packet_enters_every_overload_and_refuses_a_second_time():
    table = {}
    register_decomposition(aten.mul, table)(torch.mul)
    assert {aten.mul.Tensor, aten.mul.Scalar, aten.mul.out} <= set(table)
    with pytest.raises(RuntimeError, match="duplicate registrations for aten"):
        register_decomposition(aten.mul.Tensor, table)(torch.mul)
    register_decomposition(aten.mul.Tensor, table, unsafe=True)(torch.add)
    assert table[aten.mul.Tensor] is torch.add


def test_register_what_is_no_operator_raises_type_error():
    with pytest.raises(TypeError, match="expected an operator"):
        register_decomposition(torch.sin)(torch.sin)


def test_get_and_remove_take_packets_and_pass_over_what_is_not_there():
    table = get_decompositions([aten.silu, aten.convolution.default])
    assert aten.silu.default in table and aten.convolution.default not in table
    remove_decompositions(table, [aten.silu, aten.relu])
    assert table == {}


def test_core_table_keeps_core_operators_and_reaches_composite_ones():
    table = core_aten_decompositions()
    assert aten.addcmul.default in table and aten.std.correction in table
    for kept in (aten.addmm.default, aten.sin.default, aten._softmax.default, aten.relu.default):
        assert kept not in table
    table.pop(aten.addcmul.default)
    assert aten.addcmul.default in core_aten_decompositions()


def test_out_and_inplace_forms_follow_from_the_functional_one():
    x = torch.linspace(-2, 2, 5)
    out = torch.empty(0)
    rule = decomposition_table[aten.silu.out]
    assert rule(x, out=out) is out
    np.testing.assert_allclose(out.numpy(), x.numpy() / (1 + np.exp(-x.numpy())), rtol=1e-6)
    y = x.clone()
    assert decomposition_table[aten.silu_.default](y) is y and torch.equal(y, out)


def test_half_precision_is_computed_in_single_and_rounded_once():
    x = torch.linspace(-3, 3, 64, dtype=torch.bfloat16)
    found = decomposition_table[aten.gelu_backward.default](torch.ones_like(x), x)
    wide = decomposition_table[aten.gelu_backward.default](torch.ones(64), x.float())
    assert found.dtype is torch.bfloat16 and torch.equal(found, wide.to(torch.bfloat16))


def test_batch_norm_in_training_moves_the_running_statistics():
    x = torch.arange(24.0).reshape(2, 3, 4)
    mean, var = torch.zeros(3), torch.ones(3)
    decomposition_table[aten.native_batch_norm.default](x, None, None, mean, var, True, 0.5, 1e-5)
    rows = x.numpy().transpose(1, 0, 2).reshape(3, 8)
    np.testing.assert_allclose(mean.numpy(), 0.5 * rows.mean(1), rtol=1e-6)
    np.testing.assert_allclose(var.numpy(), 0.5 + 0.5 * rows.var(1, ddof=1), rtol=1e-6)


def test_random_decompositions_follow_the_distribution():
    torch.manual_seed(0)
    drawn = decomposition_table[aten.bernoulli.p](torch.empty(40_000), 0.3)
    assert abs(drawn.mean().item() - 0.3) < 0.02 and set(drawn.unique().tolist()) == {0.0, 1.0}
    out, mask = decomposition_table[aten.native_dropout.default](torch.ones(40_000), 0.25, True)
    assert abs(mask.float().mean().item() - 0.75) < 0.02
    assert torch.equal(out, mask / 0.75)


# ---- promotion and primitives ---------------------------------------------------------------


def test_common_dtype_of_arguments_equals_result_type_without_making_tensors():
    from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

    dtypes = [torch.bool, torch.uint8, torch.int32, torch.float16, torch.float64, torch.complex64]
    values = [torch.ones(shape, dtype=d) for d in dtypes for shape in ((), (2,))]
    kind = ELEMENTWISE_TYPE_PROMOTION_KIND.NO_OPMATH
    for a in values:
        for b in [*values, True, 3, 2.5, 1j]:
            assert elementwise_dtypes(a, b, type_promotion_kind=kind)[1] is torch.result_type(a, b)


def test_references_decompose_into_primitives_alone():
    from torch._prims.context import TorchRefsMode

    class Names(TorchDispatchMode):
        seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            Names.seen.append(func.namespace)
            return func(*args, **(kwargs or {}))

    x = torch.tensor([0.5, 2.0])
    with TorchRefsMode(), Names():
        found = aten.sigmoid.default(aten.digamma.default(x))
    assert set(Names.seen) == {"prims"}
    digamma = np.array([-1.9635100260214235, 0.42278433509846714])
    np.testing.assert_allclose(found.numpy(), 1 / (1 + np.exp(-digamma)), rtol=1e-5)


def test_collapse_view_of_strided_memory_raises_value_error():
    from torch import _prims

    x = torch.rand(2, 2, 2)
    assert _prims.collapse_view(x, 0, 1)._is_view() and not _prims.collapse(x, 0, 1)._is_view()
    with pytest.raises(ValueError, match="no such view exists"):
        _prims.collapse_view(x.transpose(0, 1), 0, 2)
    with pytest.raises(AssertionError):
        _prims.collapse(x, 0, 3)


def test_saved_state_of_the_generator_repeats_a_draw():
    from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state

    state, first = run_and_save_rng_state(torch.rand, 5)
    torch.rand(3)
    before = torch.get_rng_state()
    assert torch.equal(run_with_rng_state(state, torch.rand, 5), first)
    assert torch.equal(torch.get_rng_state(), before)


def test_reference_factories_take_sizes_one_by_one_or_as_a_sequence():
    from torch import _refs

    assert _refs.ones(2, 3).tolist() == [[1, 1, 1], [1, 1, 1]]
    assert _refs.zeros([2], dtype=torch.int8).dtype is torch.int8
