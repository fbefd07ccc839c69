"""Printed forms, warnings and messages as PyTorch words them."""

import warnings

import pytest

import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: torch.ones(2, 2) @ torch.ones(2, 2, dtype=torch.float64),
            RuntimeError,
            "expected m1 and m2 to have the same dtype, but got: float != double",
        ),
        (
            lambda: torch.ones(2, 2) @ torch.ones(2, dtype=torch.int32),
            RuntimeError,
            "addmv input tensors must have the same dtype, but got Int, Float, and Int",
        ),
        (
            lambda: torch.addmm(*[torch.ones(2, 2)] * 2, torch.ones(2, 2).half()),
            RuntimeError,
            "self and mat2 must have the same dtype, but got Float and Half",
        ),
        (
            lambda: F.linear(torch.ones(2, 2), torch.ones(2, 2).bfloat16()),
            RuntimeError,
            "but got: float != c10::BFloat16",
        ),
        (
            lambda: F.linear(torch.ones(2, 3), torch.ones(4, 3), torch.ones(5)),
            RuntimeError,
            r"The expanded size of the tensor \(4\) must match the existing size \(5\) at "
            r"non-singleton dimension 1.  Target sizes: \[2, 4\].  Tensor sizes: \[5\]",
        ),
        (
            lambda: torch.ones(2, 3) + torch.ones(4, 4),
            RuntimeError,
            r"tensor a \(3\) must match the size of tensor b \(4\) at non-singleton dimension 1",
        ),
        (
            lambda: nn.Conv2d(1, 1, 1)(torch.ones(1, 1, 2, 2, dtype=torch.uint8)),
            RuntimeError,
            r"Input type \(unsigned char\) and bias type \(float\)",
        ),
        (
            lambda: torch.ones(2).masked_fill(torch.ones(2), 0.0),
            RuntimeError,
            "but got mask with dtype float",
        ),
        (
            lambda: F.nll_loss(torch.ones(3), torch.tensor([0, 1])),
            ValueError,
            "For 1D input, 1D target must have size 1, but got target size: 2",
        ),
        (lambda: nn.RNN(2, 3)(torch.ones(1, 2, 2, 2)), ValueError, "got 4D tensor instead"),
    ],
)
def test_messages_have_the_phrases_programs_look_for(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_unused_input_is_named_by_its_place():
    a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="The differentiated Tensor at index 1 appears to not"):
        torch.autograd.grad(a * 2, [a, b])


def test_keys_of_mappings_that_differ_are_listed_on_both_sides():
    with pytest.raises(AssertionError) as caught:
        assert_close({"x": 1}, {"x": 1, "y": 2})
    assert str(caught.value) == (
        "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['y']\n"
        "Additional keys in the actual mapping: []"
    )


class TestPrinted:
    def test_no_edge_items(self):
        torch.set_printoptions(edgeitems=0, threshold=2)
        try:
            assert repr(torch.arange(8.0)) == "tensor([...], size=(8,))"
            assert repr(torch.ones(3, 3)) == "tensor([...], size=(3, 3))"
            assert repr(torch.tensor(0.5)) == "tensor(0.5000, size=())"
        finally:
            torch.set_printoptions(profile="default")

    def test_inplace_that_is_not_said(self):
        assert repr(nn.Hardswish(True)) == "Hardswish()"
        assert repr(nn.Hardsigmoid(inplace=True)) == "Hardsigmoid()"
        assert repr(nn.ReLU(True)) == "ReLU(inplace=True)"

    def test_grad_mode(self):
        text = "torch.autograd.grad_mode.set_grad_enabled(mode=True)"
        assert repr(torch.set_grad_enabled(True)) == text


class TestWarnings:
    def test_grad_of_what_is_no_leaf(self):
        x = torch.ones(2, requires_grad=True)
        with pytest.warns(UserWarning, match="a Tensor that is not a leaf Tensor is being accesse"):
            assert (x * 2).grad is None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kept = x * 2
            kept.retain_grad()
            assert x.grad is None and kept.grad is None and x.detach().grad is None

    def test_no_degrees_of_freedom(self):
        for work, name in ((torch.std, "std"), (torch.var, "var"), (torch.std_mean, "std_mean")):
            with pytest.warns(UserWarning, match=rf"^{name}\(\): degrees of freedom is <= 0"):
                work(torch.ones(1))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            torch.ones(2, 2).std(0)
            torch.ones(1).std(correction=0)

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            ({}, "encoder_layer.self_attn.batch_first was not True"),
            ({"batch_first": True, "norm_first": True}, "encoder_layer.norm_first was True"),
            ({"batch_first": True, "nhead": 1}, "encoder_layer.self_attn.num_heads is odd"),
            ({"batch_first": True, "bias": False}, "encoder_layer.self_attn was passed bias=False"),
        ],
    )
    def test_encoders_that_keep_padding(self, options, reason):
        layer = nn.TransformerEncoderLayer(4, **{"nhead": 2, **options})
        with pytest.warns(UserWarning, match=f"use_nested_tensor is False because {reason}"):
            nn.TransformerEncoder(layer, 1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def test_dropout2d_of_three_dimensions(self):
        with pytest.warns(UserWarning, match="dropout2d: Received a 3D input to dropout2d"):
            F.dropout2d(torch.ones(2, 3, 4))
