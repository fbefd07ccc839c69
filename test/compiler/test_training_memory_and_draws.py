"""What a compiled function that is trained must not share: draws of random numbers, memory that an
operator writes, and the memory of what it returns."""

from collections.abc import Callable, Iterator

import pytest

import torch
from torch.nn import functional as F

BACKENDS = ("aot_eager_decomp_partition", "inductor")


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def _run(function: Callable, given: torch.Tensor) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
    x = given.clone().requires_grad_()
    torch.manual_seed(7)
    out = function(x)
    total = sum(t.double().sum() for t in out if t.requires_grad)
    return out, torch.autograd.grad(total, x)[0]


def _assert_as_eager(function: Callable, backend: str) -> tuple[torch.Tensor, ...]:
    given = torch.linspace(-2, 3, 60).view(5, 12)
    wanted, wanted_grad = _run(function, given)
    got, grad = _run(torch.compile(function, backend=backend, fullgraph=True), given)
    for i, (a, b) in enumerate(zip(got, wanted, strict=True)):
        assert torch.equal(a, b), i
    assert torch.equal(grad, wanted_grad)
    return got


DRAWS = {
    "uniform_": lambda t: t.uniform_(),
    "normal_": lambda t: t.normal_(),
    "exponential_": lambda t: t.exponential_(),
    "cauchy_": lambda t: t.cauchy_(),
    "log_normal_": lambda t: t.log_normal_(),
    "random_": lambda t: t.random_(0, 1000),
    "geometric_": lambda t: t.geometric_(0.1),
    "bernoulli_": lambda t: t.bernoulli_(0.4),
    "randint_like": lambda t: torch.randint_like(t, 1000),
    "poisson": lambda t: torch.poisson(t * 50),
    "gamma": lambda t: torch._standard_gamma(t),
    "dirichlet": lambda t: torch._sample_dirichlet(t),
}


@pytest.mark.parametrize("name", DRAWS)
def test_two_equal_draws_beside_a_gradient_are_two_draws(name: str) -> None:
    draw = DRAWS[name]

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x * 2, draw(torch.ones(64)), draw(torch.ones(64))

    _, first, second = _assert_as_eager(function, "inductor")
    assert not torch.equal(first, second)


@pytest.mark.parametrize("backend", BACKENDS)
def test_noise_that_an_operator_writes_is_kept_for_the_gradient(backend: str) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return F.rrelu(x, training=True), F.rrelu(x * 2, training=True)

    _assert_as_eager(function, backend)


@pytest.mark.parametrize("budget", [0.0, 0.5])
def test_noise_is_kept_under_a_memory_budget(budget: float) -> None:
    from torch._functorch import config

    with config.patch(activation_memory_budget=budget):
        _assert_as_eager(lambda x: (F.rrelu(x.sin(), training=True).cos(),), "inductor")


RETURNED = {
    "constants": lambda x: (x * 2, torch.zeros(3), torch.zeros(3)),
    "sums": lambda x: (x + 1, x + 1),
    "views of equal values": lambda x: (x.sin(), x.sin().view(-1), x.sin()[0]),
    "copies": lambda x: (x.t().reshape(-1), x.t().flatten()),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", RETURNED)
def test_equal_results_have_memory_of_their_own(name: str, backend: str) -> None:
    out = _assert_as_eager(RETURNED[name], backend)
    before = [t.detach().clone() for t in out]
    for i, t in enumerate(out):
        with torch.no_grad():
            t.detach().add_(1)
        for j in range(i + 1, len(out)):
            assert torch.equal(out[j], before[j]), (i, j)


LAYOUTS = {
    "transposed": lambda: torch.ones(6, 4).t(),
    "channels last": lambda: torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "expanded": lambda: torch.ones(1, 6).expand(4, 6),
    "every other": lambda: torch.ones(8, 12)[::2, ::2],
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", LAYOUTS)
def test_dropout_drops_the_same_elements_whatever_lies_where(name: str, dynamic: bool) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return F.dropout(x, 0.5), F.alpha_dropout(x, 0.3, True)

    x = LAYOUTS[name]()
    torch.manual_seed(3)
    wanted = function(x)
    torch.manual_seed(3)
    got = torch.compile(function, dynamic=dynamic, fullgraph=True)(x)
    for a, b in zip(got, wanted, strict=True):
        assert torch.equal(a, b)
