"""Random operators as functions of a seed and an offset: `functionalize_rng_ops` of AOTAutograd.
References are the same programs run eagerly from the same seed."""

import functools

import pytest
from cuda_support import cuda

import torch
import torch.nn.functional as F
from torch._functorch import config
from torch._functorch.aot_autograd import aot_function
from torch._functorch.partitioners import default_partition, min_cut_rematerialization_partition


@pytest.fixture(autouse=True)
def functionalised():
    with config.patch(functionalize_rng_ops=True):
        yield


def draws(module, inputs, expected):
    """A compiler that counts the random operators of its graph."""
    targets = [node.target for node in module.graph.nodes]
    assert targets.count(torch.ops.rngprims.philox_rand.default) == expected
    return module


def counting(expected):
    return functools.partial(draws, expected=expected)


class Noisy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.rand_like(x) * torch.rand_like(x) * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * torch.rand_like(grad) * x.cos()


def test_compiled_program_draws_the_numbers_of_the_eager_one_and_moves_the_generator():
    def program(x):
        return torch.rand_like(x) * x + torch.rand(x.shape, device=x.device)

    x = torch.ones(10, device=cuda)
    compiled = aot_function(program, counting(2))
    for seed in range(3):
        torch.cuda.manual_seed(seed)
        expected, state = [program(x), program(x)], torch.cuda.get_rng_state()
        torch.cuda.manual_seed(seed)
        found = [compiled(x), compiled(x)]
        assert all(map(torch.equal, found, expected))
        assert torch.equal(torch.cuda.get_rng_state(), state)


@pytest.mark.parametrize("partition", [default_partition, min_cut_rematerialization_partition])
def test_backward_graph_draws_from_where_the_forward_one_ended(partition):
    eager = torch.ones(4, 4, device=cuda, requires_grad=True)
    traced = eager.detach().clone().requires_grad_()
    torch.cuda.manual_seed(7)
    expected = Noisy.apply(eager)
    expected.sum().backward()
    torch.cuda.manual_seed(7)
    compiled = aot_function(Noisy.apply, counting(2), counting(1), partition_fn=partition)
    found = compiled(traced)
    found.sum().backward()
    assert torch.equal(found, expected) and torch.equal(traced.grad, eager.grad)


def test_program_that_restores_the_state_of_the_generator_draws_again():
    def program(x):
        state = torch.cuda.get_rng_state()
        first = torch.rand_like(x)
        torch.cuda.set_rng_state(state)
        return first, torch.rand_like(x)

    first, second = aot_function(program, counting(2))(torch.ones(5, device=cuda))
    assert torch.equal(first, second)


def test_dropout_scales_what_it_keeps():
    found = aot_function(lambda x: F.dropout(x, 0.75), counting(1))(torch.ones(400, device=cuda))
    kept = found[found != 0]
    assert kept.unique().tolist() == [4.0] and 50 < kept.numel() < 150


def test_random_operator_of_the_cpu_is_refused():
    with pytest.raises(RuntimeError, match="random operator on cpu"):
        aot_function(torch.rand_like, counting(1))(torch.ones(3))
