"""The default device: functions that make a tensor from nothing follow it, functions of tensors
compute where their arguments are."""

import pytest

import torch
from torch.distributions import Normal

MADE = {
    "zeros": lambda: torch.zeros(2),
    "tensor": lambda: torch.tensor([1.0]),
    "normal of numbers": lambda: torch.normal(0.0, 1.0, (2,)),
    "arange": lambda: torch.arange(3),
    "hann_window": lambda: torch.hann_window(4),
    "eye": lambda: torch.eye(2),
}


@pytest.mark.parametrize("name", MADE)
def test_function_that_makes_a_tensor_follows_the_default_device(name):
    with torch.device("meta"):
        assert MADE[name]().device.type == "meta"
    assert MADE[name]().device.type == "cpu"


def test_normal_of_tensors_draws_where_they_are():
    mean, deviation = torch.zeros(3), torch.ones(3)
    with torch.device("meta"):
        for drawn in (
            torch.normal(mean, deviation),
            torch.normal(mean, 1.0),
            torch.normal(0.0, deviation),
            torch.normal(mean=mean, std=deviation),
        ):
            assert drawn.device.type == "cpu" and drawn.shape == (3,)


def test_functions_of_tensors_ignore_the_default_device():
    x = torch.tensor([1.0, 2.0, 3.0])
    with torch.device("meta"):
        assert torch.complex(x, x).tolist() == [1 + 1j, 2 + 2j, 3 + 3j]
        assert torch.vander(x, 2).tolist() == [[1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]


def test_distribution_on_the_default_device_draws_samples():
    before = torch.get_default_device()
    torch.set_default_device("cpu")
    try:
        drawn = Normal(torch.zeros(4), torch.ones(4)).sample((2,))
    finally:
        torch.set_default_device(before if before.type != "cpu" else None)
    assert drawn.shape == (2, 4)
