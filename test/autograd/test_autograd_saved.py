"""What a graph keeps: views and in-place writes, saved tensors and hooks on them, anomaly mode."""

import warnings

import pytest

import torch
from torch.autograd import Function


def leaf(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


# ---- views and in-place writes ----------------------------------------------------------


def test_write_to_leaf_raises():
    with pytest.raises(
        RuntimeError, match="a leaf Variable that requires grad is being used in an in-place"
    ):
        leaf(3).add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        leaf(3)[0].add_(1)


def test_write_to_view_goes_through_the_base():
    a = leaf(4)
    b = a * 1
    b[:2].mul_(10)
    b.sum().backward()
    assert a.grad.tolist() == [10, 10, 1, 1]


def test_write_to_base_goes_through_earlier_view():
    a = leaf(4)
    b = a * 1
    view = b[1:3]
    b.mul_(torch.arange(4.0, dtype=torch.float64))
    view.sum().backward()
    assert a.grad.tolist() == [0, 1, 2, 0]


def test_view_made_before_its_base_had_a_history_follows_it():
    a = leaf(2)
    base = torch.zeros(4, dtype=torch.float64)
    flat = base.view(2, 2)
    assert not flat.requires_grad
    base[:2].copy_(a)
    assert flat.requires_grad
    (flat * 3).sum().backward()
    assert a.grad.tolist() == [3, 3]


def test_write_to_one_view_reaches_another():
    a = leaf(2)
    base = torch.zeros(4, dtype=torch.float64)
    left, middle = base[:2], base[1:3]
    left.copy_(a)
    middle.mul_(5)
    (base.sum() + left.sum()).backward()
    assert a.grad.tolist() == [2, 10]


def test_chain_of_views_and_writes_matches_out_of_place():
    a = leaf(3, 4)
    b = a * 2
    t = b.t()
    t[1:3].mul_(3)
    b.view(-1)[::2].add_(a.view(-1)[::2])
    (b * b).sum().backward()
    x = a.detach().clone().requires_grad_()
    mask = torch.ones(3, 4, dtype=torch.float64)
    mask[:, 1:3] = 3
    add = torch.zeros(12, dtype=torch.float64)
    add[::2] = 1
    y = x * 2 * mask + x * add.view(3, 4)
    (y * y).sum().backward()
    assert torch.allclose(a.grad, x.grad)


def test_setitem_on_view_is_differentiated():
    a = leaf(2)
    out = torch.zeros(3, 2, dtype=torch.float64)
    out[1] = a
    out[2, 0] = a[1] * 7
    out.sum().backward()
    assert a.grad.tolist() == [1, 8]


def test_write_to_real_part_of_complex():
    c = torch.randn(3, dtype=torch.complex128, requires_grad=True)
    y = c * 1
    y.real.mul_(2)
    torch.view_as_real(y).sum().backward()
    assert torch.equal(c.grad, torch.full((3,), 2 + 1j, dtype=torch.complex128))


def test_write_to_saved_input_raises_and_names_the_ops():
    a = leaf(3)
    b = a * 2
    c = b * b
    b.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as info:
        c.sum().backward()
    text = str(info.value)
    assert "is at version 1; expected version 0" in text
    assert "AddBackward" in text and "MulBackward0" in text


def test_write_to_saved_output_raises():
    a = leaf(3)
    b = a.exp()
    b.add_(1)
    with pytest.raises(RuntimeError, match="output 0 of Exp"):
        b.sum().backward()


def test_write_to_one_of_several_views_raises():
    a = leaf(4) * 1
    with pytest.raises(RuntimeError, match="function that returns multiple views"):
        a.unbind()[0].mul_(2)


def test_write_to_view_made_without_grad_raises():
    a = leaf(4) * 1
    with torch.no_grad():
        view = a[:2]
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        view.mul_(2)


# ---- saved tensors ----------------------------------------------------------------------


def test_saved_tensors_hooks_pack_and_unpack():
    a = leaf(3)
    packed = []

    def pack(t):
        packed.append(t)
        return t * 2

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t / 2):
        y = (a * a).sum()
    y.backward()
    assert packed and torch.allclose(a.grad, 2 * a.detach())


def test_saved_tensors_hooks_allow_second_derivatives():
    a = leaf(3)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().numpy(), torch.from_numpy):
        y = (a.exp() * a).sum()
        (g,) = torch.autograd.grad(y, a, create_graph=True)
        (gg,) = torch.autograd.grad(g.sum(), a)
    assert torch.allclose(gg, (a.exp() * (2 + a)).detach())


def test_save_on_cpu():
    a = leaf(3)
    with torch.autograd.graph.save_on_cpu():
        y = (a * a).sum()
    y.backward()
    assert torch.allclose(a.grad, 2 * a.detach())


def test_saved_tensors_hooks_can_be_disabled():
    with (
        torch.autograd.graph.disable_saved_tensors_hooks("not here"),
        pytest.raises(RuntimeError, match="not here"),
        torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    ):
        pass
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        pass


def test_pack_hook_must_not_write():
    a = leaf(3)
    b = a * 1
    with (
        torch.autograd.graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t),
        pytest.raises(RuntimeError, match="modifying its input in place"),
    ):
        b * b


def test_mutation_on_saved_tensors_can_be_allowed():
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        a = leaf(3)
        b = a * 1
        y = (b * b).sum()
        expected = 2 * b.detach().clone()
        with torch.no_grad():
            b.mul_(100)
        y.backward()
    assert torch.allclose(a.grad, expected)


# ---- anomaly mode -----------------------------------------------------------------------


def test_anomaly_mode_shows_the_forward_line():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly():
            a = torch.zeros(1, requires_grad=True)
            y = (a * float("nan")).sqrt()  # this very line
            with pytest.raises(RuntimeError, match="returned nan values in its 0th output"):
                y.sum().backward()
    text = "".join(str(w.message) for w in caught)
    assert "Error detected in SqrtBackward0" in text and "# this very line" in text
    assert not torch.is_anomaly_enabled()


def test_anomaly_mode_shows_the_line_of_an_exception():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise ValueError("no")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.autograd.set_detect_anomaly(True), pytest.raises(ValueError, match="no"):
            Fails.apply(leaf(3)).sum().backward()
    assert "Fails.apply(leaf(3))" in "".join(str(w.message) for w in caught)


def test_anomaly_mode_shows_both_lines_of_a_forbidden_write():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.set_detect_anomaly(True):
            a = leaf(3) * 1
            y = a * a  # the op that saves
            a.add_(1)  # the op that writes
            with pytest.raises(RuntimeError, match="modified by an inplace operation") as info:
                y.sum().backward()
    text = str(info.value)
    assert "saved by MulBackward0" in text and "# the op that saves" in text
    assert "written by AddBackward0" in text and "# the op that writes" in text


def test_node_shows_what_it_saved():
    a, b = leaf(3), leaf(3)
    fn = (a * b).grad_fn
    assert torch.equal(fn._saved_self, a) and torch.equal(fn._saved_other, b)
    y = a.exp()
    assert torch.equal(y.grad_fn._saved_result, y)
    assert not hasattr(fn, "_saved_result")
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        y.grad_fn._saved_result  # noqa: B018


def test_module_of_the_hooks_can_be_imported():
    import torch._C._autograd as module

    assert module is torch._C._autograd and module.SavedTensor
