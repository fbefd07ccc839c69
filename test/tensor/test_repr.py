"""What printing a tensor gives. The expected texts are written out: they are what users compare and
doctests hold."""

import copy

import pytest

import torch

inf, nan = float("inf"), float("nan")
t = torch.tensor


@pytest.fixture(autouse=True)
def default_options():
    yield
    torch.set_printoptions(profile="default")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: t(3.5), "tensor(3.5000)"),
        (lambda: t(-7), "tensor(-7)"),
        (lambda: t(True), "tensor(True)"),
        (lambda: t(1 - 2j), "tensor(1.-2.j)"),
        (lambda: t([1.0, 2.5, -3.0]), "tensor([ 1.0000,  2.5000, -3.0000])"),
        (lambda: t([1.0, 100.0, -3.0]), "tensor([  1., 100.,  -3.])"),
        (lambda: t([100000.0, 1.0]), "tensor([1.0000e+05, 1.0000e+00])"),
        (lambda: t([1e-5, 1.0]), "tensor([1.0000e-05, 1.0000e+00])"),
        (lambda: t([nan, 1.0]), "tensor([nan, 1.])"),
        (lambda: t([nan, 0.5, inf]), "tensor([   nan, 0.5000,    inf])"),
        (lambda: t([-0.0, 0.0]), "tensor([-0., 0.])"),
        (lambda: t([2**62, -1]), "tensor([4611686018427387904,                  -1])"),
        (
            lambda: t([[True, False], [False, False]]),
            "tensor([[ True, False],\n        [False, False]])",
        ),
        (lambda: t([1 + 2j, -0.5j]), "tensor([1.+2.0000j, -0.-0.5000j])"),
        (
            lambda: t([1.5, 0.1], dtype=torch.bfloat16),
            "tensor([1.5000, 0.1001], dtype=torch.bfloat16)",
        ),
        (lambda: t([1, 255], dtype=torch.uint8), "tensor([  1, 255], dtype=torch.uint8)"),
        (lambda: t([65504.0], dtype=torch.float16), "tensor([65504.], dtype=torch.float16)"),
    ],
)
def test_repr_of_small_tensors_is_as_documented(make, text):
    assert repr(make()) == str(make()) == text


@pytest.mark.parametrize(
    ("shape", "kwargs", "text"),
    [
        ((0,), {}, "tensor([])"),
        ((0, 3), {}, "tensor([], size=(0, 3))"),
        ((2, 0), {"dtype": torch.int64}, "tensor([], size=(2, 0), dtype=torch.int64)"),
        ((0,), {"dtype": torch.bool}, "tensor([], dtype=torch.bool)"),
        ((2, 3), {"device": "meta"}, "tensor(..., device='meta', size=(2, 3))"),
        (
            (2,),
            {"device": "meta", "dtype": torch.int64},
            "tensor(..., device='meta', size=(2,), dtype=torch.int64)",
        ),
    ],
)
def test_repr_of_tensors_without_elements_gives_size_and_dtype(shape, kwargs, text):
    assert repr(torch.empty(shape, **kwargs)) == text


def test_repr_of_higher_dimensions_separates_blocks_with_blank_lines():
    block = "[[[0., 0.],\n          [0., 0.]]]"
    text = f"tensor([{block},\n\n\n        {block}])"
    assert repr(torch.zeros(2, 1, 2, 2)) == text


def test_repr_of_many_elements_shows_the_ends():
    assert repr(torch.arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"
    lines = repr(torch.zeros(50, 50)).splitlines()
    assert lines[0] == "tensor([[0., 0., 0.,  ..., 0., 0., 0.],"
    assert lines[3] == "        ..." + ","
    assert len(lines) == 7


def test_repr_of_exactly_threshold_elements_is_complete():
    assert "..." not in repr(torch.arange(1000))


def test_repr_wraps_rows_at_the_line_width():
    lines = repr(torch.arange(40.0).view(2, 20)).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].startswith("         14.")


def test_repr_of_tensors_with_gradients_names_the_function():
    x = t([1.0, 2.0], requires_grad=True)
    assert repr(x) == "tensor([1., 2.], requires_grad=True)"
    assert repr(x.detach()) == "tensor([1., 2.])"


def test_repr_of_views_shows_the_logical_order():
    assert (
        repr(torch.arange(6).view(2, 3).t()) == "tensor([[0, 3],\n        [1, 4],\n        [2, 5]])"
    )
    assert repr(t([1, 2]).expand(2, 2)) == "tensor([[1, 2],\n        [1, 2]])"


def test_set_printoptions_precision_and_mode():
    x = t([1 / 3, 1234.5, 1e-6])
    torch.set_printoptions(precision=2)
    assert repr(x) == "tensor([3.33e-01, 1.23e+03, 1.00e-06])"
    torch.set_printoptions(sci_mode=False)
    assert repr(x) == "tensor([   0.33, 1234.50,    0.00])"
    torch.set_printoptions(profile="default")
    assert repr(x) == "tensor([3.3333e-01, 1.2345e+03, 1.0000e-06])"


def test_set_printoptions_edgeitems_and_threshold():
    torch.set_printoptions(threshold=5, edgeitems=1)
    assert repr(torch.arange(8.0)) == "tensor([0.,  ..., 7.])"
    assert repr(torch.arange(8).view(4, 2)) == "tensor([[0, 1],\n        ...,\n        [6, 7]])"


def test_set_printoptions_full_profile_shows_everything():
    torch.set_printoptions(profile="full")
    assert "..." not in repr(torch.arange(2000))


def test_printoptions_context_restores_the_options():
    before = copy.copy(torch.get_printoptions())
    with torch._tensor_str.printoptions(precision=1):
        assert repr(t(0.25)) == "tensor(0.2)"
    assert torch.get_printoptions() == before


def test_default_dtype_decides_which_dtype_is_shown():
    torch.set_default_dtype(torch.float64)
    try:
        assert repr(torch.ones(2)) == "tensor([1., 1.])"
        assert repr(torch.ones(2, dtype=torch.float32)) == "tensor([1., 1.], dtype=torch.float32)"
    finally:
        torch.set_default_dtype(torch.float32)


def test_format_of_scalars_follows_python_and_of_others_the_repr():
    assert f"{t(3.14159):.3f}" == "3.142"
    assert f"{t(7):>4d}" == "   7"
    assert f"{t([1, 2])}" == "tensor([1, 2])"
    with pytest.raises(TypeError):
        f"{t([1, 2]):.2f}"


def test_repr_of_a_subclass_has_its_name():
    class Named(torch.Tensor):
        pass

    assert repr(torch.ones(2).as_subclass(Named)) == "Named([1., 1.])"


def test_repr_of_conjugate_views_shows_resolved_values():
    z = t([1 + 2j]).conj()
    assert repr(z) == "tensor([1.-2.j])"
    assert repr(z.imag) == "tensor([-2.])"


def test_dual_tensor_shows_its_tangent_inside_its_level_only():
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(t([1.0, 2.0]), t([3.0, 4.0]))
        assert repr(dual) == "tensor([1., 2.], tangent=tensor([3., 4.]))"
        assert repr(torch.autograd.forward_ad.unpack_dual(dual).primal) == "tensor([1., 2.])"
    assert repr(dual) == "tensor([1., 2.])"
