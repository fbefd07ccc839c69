"""Loops over numbers, and calls that run on other threads."""

import math

import pytest

import torch


def test_loops_that_swap_carried_values_keep_both():
    def f(n: int):
        a, b = 1, 2
        for _ in range(n):
            a, b = b, a
        return a, b

    compiled = torch.jit.script(f)
    assert [compiled(n) for n in range(3)] == [(1, 2), (2, 1), (1, 2)]


def test_loop_values_that_depend_on_each_other_are_all_of_one_round():
    def f(n: int):
        a, b, c = 0, 1, 0.5
        for i in range(n):
            c = c * 0.5 + a
            a, b = b, a + b + i
        return a, b, c

    compiled = torch.jit.script(f)
    for n in (0, 1, 5, 30):
        assert compiled(n) == f(n)


def test_while_loops_with_branches_and_integer_division_match_python():
    def f(n: int):
        s, i = 0, -n
        while i < n:
            if i % 3 == 0 and i != 5:
                s += i // 2
            elif i >= 4:
                s -= 1
            else:
                s = s * 2 - 7 % (abs(i) + 1)
            s = s % 100003
            i += 1
        return s

    compiled = torch.jit.script(f)
    assert [compiled(n) for n in (0, 1, 7, 60)] == [f(n) for n in (0, 1, 7, 60)]


def test_only_integers_are_not_divided_by_zero():
    def f(a: int, b: int, c: float):
        return a // b, a / c

    compiled = torch.jit.script(f)
    assert compiled(-7, -1, 2.0) == (7, -3.5)
    with pytest.raises(RuntimeError, match="division"):
        compiled(1, 0, 1.0)
    assert compiled(1, 1, 0.0) == (1, math.inf)


def test_loop_carried_tensors_have_gradients():
    @torch.jit.script
    def f(x, n: int):
        y = x
        for _ in range(n):
            y = y * x
        return y

    x = torch.tensor([2.0, 3.0], requires_grad=True)
    f(x, 3).sum().backward()
    assert torch.equal(x.grad, 4 * x.detach() ** 3)


def test_indices_outside_of_a_list_raise():
    def f(x: list[int], i: int) -> int:
        return x[i]

    compiled = torch.jit.script(f)
    assert compiled([1, 2, 3], -3) == 1
    with pytest.raises(RuntimeError, match="out of range"):
        compiled([1, 2, 3], 3)


@torch.jit.script
def _power(x, n: int):
    for _ in range(n):
        x = x @ x * 0.01
    return x


@torch.jit.script
def _forked(x, k: int):
    futures = [torch.jit.fork(_power, x, 2) for _ in range(k)]
    out = torch.zeros_like(x)
    for future in futures:
        out = out + torch.jit.wait(future)
    return out


def test_forked_calls_give_the_results_and_gradients_of_plain_calls():
    x = torch.rand(64, 64, requires_grad=True)
    out = _forked(x, 5)
    torch.testing.assert_close(out, 5 * _power(x, 2))
    (grad,) = torch.autograd.grad(out.sum(), x)
    (plain,) = torch.autograd.grad(5 * _power(x, 2).sum(), x)
    torch.testing.assert_close(grad, plain)


def test_forked_calls_run_in_the_gradient_mode_of_the_caller():
    x = torch.rand(8, 8, requires_grad=True)
    with torch.no_grad():
        assert not _forked(x, 3).requires_grad
    assert _forked(x, 3).requires_grad


def test_waiting_inside_of_forked_calls_does_not_starve():
    @torch.jit.script
    def level(x, n: int):
        futures = [torch.jit.fork(_forked, x, 3) for _ in range(n)]
        out = torch.zeros_like(x)
        for future in futures:
            out = out + torch.jit.wait(future)
        return out

    x = torch.rand(16, 16)
    torch.testing.assert_close(level(x, 40), 120 * _power(x, 2))


def test_error_of_a_forked_call_names_fork_and_place():
    @torch.jit.script
    def f(x):
        future = torch.jit.fork(_power, x, 1)
        return torch.jit.wait(future)

    with pytest.raises(RuntimeError, match=r"torch\.jit\.fork\(_power[\s\S]*cannot be multiplied"):
        f(torch.rand(3, 4))
