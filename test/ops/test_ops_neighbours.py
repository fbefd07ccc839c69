"""A result depends on its own element alone: not on where it lies, nor on the extreme values that
share a vector register with it."""

import pytest

import torch

EXTREME = [float("nan"), float("inf"), -float("inf"), -1e30, 9000.0, -2e5, 1e7, 0.0]
NAMES = ["sin", "cos", "tan", "exp", "log", "tanh", "sinh", "cosh", "atan", "erf", "sigmoid"]


def parts_of(x):
    return torch.view_as_real(x) if x.is_complex() else x


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
@pytest.mark.parametrize("name", NAMES)
def test_result_beside_extreme_values_equals_the_result_alone(name, dtype):
    if name == "erf" and dtype.is_complex:
        pytest.skip("erf is not defined for complex numbers")
    torch.manual_seed(3)
    x = torch.randn(403, dtype=torch.float64) * 6
    x[::5] = torch.tensor(EXTREME, dtype=torch.float64).repeat(11)[: len(x[::5])]
    if dtype.is_complex:
        x = torch.complex(x, torch.randn(403, dtype=torch.float64) * 3)
    x = x.to(dtype)
    function = getattr(torch, name)
    together = function(x)
    alone = torch.cat([function(x[i : i + 1].clone()) for i in range(len(x))])
    assert torch.equal(parts_of(together).nan_to_num(), parts_of(alone).nan_to_num())
