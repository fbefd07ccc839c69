"""The dtypes that operators over elements compute in, against torch's own results."""

import pytest

import torch
from torch._prims_common import (
    ELEMENTWISE_TYPE_PROMOTION_KIND as KIND,
)
from torch._prims_common import check_all_strides, check_significant_strides, elementwise_dtypes

ARGUMENTS = [
    (torch.ones(2, dtype=torch.int32), 2.5),
    (torch.ones(2, dtype=torch.float16), torch.tensor(1.0)),
    (torch.ones(2, dtype=torch.bool), True),
    (torch.ones(2, dtype=torch.bfloat16), 1j),
    (torch.ones(2, dtype=torch.uint8), torch.tensor(3)),
    (torch.tensor(1), torch.tensor(2.0, dtype=torch.float64)),
]


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_result_has_the_dtype_of_a_product(arguments):
    expected = torch.mul(*arguments).dtype
    for kind in (KIND.DEFAULT, KIND.NO_OPMATH):
        assert elementwise_dtypes(*arguments, type_promotion_kind=kind)[1] is expected


def test_half_precision_is_computed_in_single():
    half = torch.ones(2, dtype=torch.float16)
    kinds = {
        KIND.DEFAULT: (torch.float32, torch.float16),
        KIND.NO_OPMATH: (torch.float16, torch.float16),
        KIND.ALWAYS_BOOL: (torch.float32, torch.bool),
    }
    for kind, expected in kinds.items():
        assert elementwise_dtypes(half, type_promotion_kind=kind) == expected


def test_integers_bools_and_complex_numbers_have_kinds_of_their_own():
    assert elementwise_dtypes(3, type_promotion_kind=KIND.INT_TO_FLOAT)[1] is torch.float32
    assert elementwise_dtypes(True, type_promotion_kind=KIND.BOOL_TO_LONG)[1] is torch.int64
    got = elementwise_dtypes(
        torch.ones(1, dtype=torch.complex64), type_promotion_kind=KIND.COMPLEX_TO_FLOAT
    )
    assert got == (torch.complex64, torch.float32)


def test_strides_of_single_elements_are_not_significant():
    plain, odd = torch.empty(1, 3), torch.empty(9).as_strided((1, 3), (7, 1))
    assert check_significant_strides(plain, odd, only_cuda=False) == (True, None)
    assert check_all_strides(plain, odd, only_cuda=False) == (False, 0)
    assert check_all_strides(plain, odd) == (True, None)
