"""Hooks on a single tensor that a node saved, and hooks that change while a backward pass runs."""

import weakref

import pytest

import torch


def test_pack_and_unpack_hooks_replace_a_saved_input():
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    y = a * a
    y.grad_fn._raw_saved_self.register_hooks(lambda x: 2 * x, lambda x: x)
    assert y.grad_fn._saved_self.tolist() == [2.0, 4.0]
    y.sum().backward()
    assert a.grad.tolist() == [3.0, 6.0]  # one factor is twice as large


def test_hooks_on_a_saved_output_keep_its_history():
    a = torch.tensor([0.5], requires_grad=True)
    y = a.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda x: x, lambda x: x)
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn
    y.backward()
    assert a.grad.item() == pytest.approx(y.item())


def test_register_hooks_refuses_what_it_cannot_pack():
    a = torch.ones(2, 2, requires_grad=True)
    indexed = a[:, torch.tensor([0, 1])]
    with pytest.raises(RuntimeError, match="None is forbidden"):
        indexed.grad_fn._raw_saved_indices[0].register_hooks(lambda x: x, lambda x: x)
    y = a.exp()
    saved = y.grad_fn._raw_saved_result
    with pytest.raises(TypeError, match="incompatible function arguments"):
        saved.register_hooks(1, 1)

    def write(x):
        x += 1
        return x

    with pytest.raises(RuntimeError, match="modifying its input in place"):
        saved.register_hooks(write, lambda x: x)


def test_register_hooks_twice_or_after_the_tensor_was_freed_raises():
    a = torch.ones(2, requires_grad=True)
    y = a.exp()
    saved = y.grad_fn._raw_saved_result
    saved.register_hooks(lambda x: x, lambda x: x)
    with pytest.raises(RuntimeError, match="already been set"):
        saved.register_hooks(lambda x: x, lambda x: x)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after it has been freed"):
        saved.register_hooks(lambda x: x, lambda x: x)
    with pytest.raises(RuntimeError, match="from Python is forbidden"):
        torch.autograd.SavedTensor()


def test_saved_tensors_of_a_function_have_objects_until_they_are_freed():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            x, _ = ctx.saved_tensors
            return 2 * x * grad

    a = torch.tensor([3.0], requires_grad=True)
    y = Square.apply(a)
    first, second = y.grad_fn._raw_saved_tensors
    first.register_hooks(lambda x: x.numpy().copy(), torch.from_numpy)
    with pytest.raises(RuntimeError, match="None is forbidden"):
        second.register_hooks(lambda x: x, lambda x: x)
    y.backward()
    assert a.grad.tolist() == [6.0]
    with pytest.raises(RuntimeError, match="already been freed"):
        _ = y.grad_fn._raw_saved_tensors


def test_hooks_popped_during_backward_are_there_after_it():
    def unpack(x):
        inner.__exit__()
        return x

    inner = torch.autograd.graph.saved_tensors_hooks(lambda x: x, unpack)
    inner.__enter__()
    torch.randn(3, requires_grad=True).sin().sum().backward()
    inner.__exit__()
    y = torch.tensor(1.0, requires_grad=True).exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda x: x, lambda x: x)  # no hooks left


def test_hooks_pushed_during_backward_go_with_it():
    def scope():
        def unpack(x):
            context().__enter__()
            return x

        hooks = torch.autograd.graph.saved_tensors_hooks(lambda x: x, unpack)
        context = weakref.ref(hooks)
        x = torch.randn(3, requires_grad=True)
        with hooks:
            x.sin().sum().backward()
        return weakref.ref(unpack)

    assert scope()() is None


def test_a_post_hook_registered_while_the_node_runs_is_called():
    def unpack(x):
        node = torch._C._current_autograd_node()
        node.register_hook(lambda outs, ins: tuple(o / 2 for o in outs))
        return x

    a = torch.tensor([0.3, 0.7], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, unpack):
        y = a.sin()
    y.sum().backward()
    assert torch.allclose(a.grad, a.detach().cos() / 2)
