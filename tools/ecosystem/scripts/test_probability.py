"""Gaussian processes, Bayesian optimisation, probabilistic programs and differential equations:
gpytorch, botorch, pyro, torchdiffeq, torchsde. Numbers are compared with the peer's."""

import pytest
from recorded import Recorded

import torch

recorded = Recorded("probability")


def line(count=20, dtype=torch.float64):
    x = torch.linspace(0, 1, count, dtype=dtype)
    return x, torch.sin(6 * x) + 0.1 * torch.cos(40 * x)


# ---- gpytorch


def exact_gp(kernel):
    import gpytorch

    class Model(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood) -> None:
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(kernel)

        def forward(self, x):
            mean, covariance = self.mean_module(x), self.covar_module(x)
            return gpytorch.distributions.MultivariateNormal(mean, covariance)

    x, y = line()
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    return Model(x, y, likelihood).double(), likelihood.double(), x, y


KERNELS = {
    "rbf": lambda k: k.RBFKernel(),
    "matern": lambda k: k.MaternKernel(nu=1.5),
    "periodic": lambda k: k.PeriodicKernel(),
    "rq": lambda k: k.RQKernel(),
    "linear": lambda k: k.LinearKernel() + k.RBFKernel(),
    "product": lambda k: k.RBFKernel() * k.PeriodicKernel(),
    "polynomial": lambda k: k.PolynomialKernel(2),
    "mixture": lambda k: k.SpectralMixtureKernel(num_mixtures=2),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_exact_gp(kernel) -> None:
    import gpytorch

    torch.manual_seed(0)
    model, likelihood, x, y = exact_gp(KERNELS[kernel](gpytorch.kernels))
    model.train()
    likelihood.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = -objective(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    recorded.check(f"gp losses {kernel}", losses, rel=1e-3)
    model.eval()
    likelihood.eval()
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        prediction = likelihood(model(torch.linspace(0, 1.2, 7, dtype=torch.float64)))
        low, high = prediction.confidence_region()
    recorded.check(f"gp mean {kernel}", prediction.mean, rel=1e-2, abs=1e-3)
    assert (low < high).all()


def test_variational_gp() -> None:
    import gpytorch

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self, points) -> None:
            distribution = gpytorch.variational.CholeskyVariationalDistribution(points.size(0))
            strategy = gpytorch.variational.VariationalStrategy(
                self, points, distribution, learn_inducing_locations=True
            )
            super().__init__(strategy)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    torch.manual_seed(0)
    x, y = line(40, torch.float32)
    model, likelihood = Model(x[::8].clone()), gpytorch.likelihoods.GaussianLikelihood()
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=40)
    parameters = [*model.parameters(), *likelihood.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.05)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = -objective(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    recorded.check("variational", losses, rel=1e-2)


def test_multitask_gp() -> None:
    import gpytorch

    class Model(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood) -> None:
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.MultitaskMean(
                gpytorch.means.ConstantMean(), num_tasks=2
            )
            self.covar_module = gpytorch.kernels.MultitaskKernel(
                gpytorch.kernels.RBFKernel(), num_tasks=2, rank=1
            )

        def forward(self, x):
            return gpytorch.distributions.MultitaskMultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    torch.manual_seed(0)
    x, y = line()
    targets = torch.stack([y, -y], -1)
    likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(num_tasks=2).double()
    model = Model(x, targets, likelihood).double()
    model.train()
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    loss = -objective(model(x), targets)
    loss.backward()
    model.eval()
    likelihood.eval()
    assert likelihood(model(x)).mean.shape == (20, 2)
    assert torch.isfinite(loss)


# ---- botorch


def fitted():
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.manual_seed(0)
    x = torch.rand(12, 2, dtype=torch.float64)
    y = -(x - 0.5).square().sum(1, keepdim=True)
    model = SingleTaskGP(x, y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model, x, y


ACQUISITIONS = {
    "LogEI": lambda a, m, y: a.LogExpectedImprovement(m, best_f=y.max()),
    "UCB": lambda a, m, y: a.UpperConfidenceBound(m, beta=0.2),
    "qLogEI": lambda a, m, y: a.qLogExpectedImprovement(m, best_f=y.max()),
    "qUCB": lambda a, m, y: a.qUpperConfidenceBound(m, beta=0.2),
    "PI": lambda a, m, y: a.ProbabilityOfImprovement(m, best_f=y.max()),
}


@pytest.mark.parametrize("name", ACQUISITIONS)
def test_botorch(name) -> None:
    import botorch
    from botorch.optim import optimize_acqf

    model, _, y = fitted()
    function = ACQUISITIONS[name](botorch.acquisition, model, y)
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    torch.manual_seed(1)
    point, value = optimize_acqf(function, bounds, q=1, num_restarts=3, raw_samples=16)
    assert point.shape == (1, 2)
    assert torch.isfinite(value).all()
    if name == "UCB":
        recorded.check("botorch point", point.flatten(), abs=2e-2)


def test_botorch_samplers() -> None:
    from botorch.sampling import SobolQMCNormalSampler
    from botorch.utils.sampling import draw_sobol_samples

    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    points = draw_sobol_samples(bounds, n=4, q=1, seed=3)
    recorded.check("sobol", points.flatten())
    model, x, _ = fitted()
    sampler = SobolQMCNormalSampler(torch.Size([8]), seed=2)
    assert sampler(model.posterior(x[:3])).shape == (8, 3, 1)


def test_botorch_multi_objective() -> None:
    from botorch.utils.multi_objective.hypervolume import Hypervolume
    from botorch.utils.multi_objective.pareto import is_non_dominated

    torch.manual_seed(0)
    y = torch.rand(20, 2, dtype=torch.float64)
    front = y[is_non_dominated(y)]
    recorded.check("hypervolume", Hypervolume(torch.zeros(2)).compute(front))


# ---- pyro


@pytest.fixture
def pyro():
    import pyro

    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    return pyro


def coin_model(data) -> None:
    import pyro
    import pyro.distributions as dist

    fairness = pyro.sample("fairness", dist.Beta(10.0, 10.0))
    with pyro.plate("data", len(data)):
        pyro.sample("obs", dist.Bernoulli(fairness), obs=data)


DATA = torch.tensor([1.0] * 6 + [0.0] * 4)


def test_svi(pyro) -> None:
    import pyro.distributions as dist

    from torch.distributions import constraints

    def guide(data) -> None:
        a = pyro.param("a", torch.tensor(15.0), constraint=constraints.positive)
        b = pyro.param("b", torch.tensor(15.0), constraint=constraints.positive)
        pyro.sample("fairness", dist.Beta(a, b))

    svi = pyro.infer.SVI(coin_model, guide, pyro.optim.Adam({"lr": 0.05}), pyro.infer.Trace_ELBO())
    losses = [svi.step(DATA) for _ in range(20)]
    recorded.check("svi", losses[:5], rel=1e-2)
    assert pyro.param("a").item() > 0


GUIDES = [
    "AutoDiagonalNormal",
    "AutoMultivariateNormal",
    "AutoLowRankMultivariateNormal",
    "AutoDelta",
    "AutoLaplaceApproximation",
    "AutoIAFNormal",
]


@pytest.mark.parametrize("name", GUIDES)
def test_autoguide(pyro, name) -> None:
    import pyro.distributions as dist
    from pyro.infer import autoguide

    def model(data) -> None:
        mean = pyro.sample("mean", dist.Normal(torch.zeros(3), 1.0).to_event(1))
        scale = pyro.sample("scale", dist.HalfCauchy(1.0))
        with pyro.plate("data", len(data)):
            pyro.sample("obs", dist.Normal(mean, scale).to_event(1), obs=data)

    guide = getattr(autoguide, name)(model)
    svi = pyro.infer.SVI(
        model, guide, pyro.optim.ClippedAdam({"lr": 0.02}), pyro.infer.Trace_ELBO()
    )
    data = torch.randn(8, 3) + 2
    losses = [svi.step(data) for _ in range(10)]
    assert all(torch.isfinite(torch.tensor(losses)))
    predictive = pyro.infer.Predictive(model, guide=guide, num_samples=5)
    assert predictive(data)["mean"].shape[0] == 5


@pytest.mark.parametrize("kernel", ["HMC", "NUTS"])
def test_mcmc(pyro, kernel) -> None:
    kernel = getattr(pyro.infer, kernel)(coin_model)
    chain = pyro.infer.MCMC(kernel, num_samples=20, warmup_steps=10, disable_progbar=True)
    chain.run(DATA)
    samples = chain.get_samples()["fairness"]
    assert samples.shape == (20,)
    assert 0.3 < samples.mean() < 0.8


def test_enumeration(pyro) -> None:
    import pyro.distributions as dist

    @pyro.infer.config_enumerate
    def model(data) -> None:
        weights = pyro.param("weights", torch.tensor([0.5, 0.5]))
        locations = pyro.param("locations", torch.tensor([-1.0, 1.0]))
        with pyro.plate("data", len(data)):
            kind = pyro.sample("kind", dist.Categorical(weights))
            pyro.sample("obs", dist.Normal(locations[kind], 1.0), obs=data)

    elbo = pyro.infer.TraceEnum_ELBO(max_plate_nesting=1)
    loss = elbo.loss(model, lambda data: None, torch.tensor([-1.0, 0.5, 2.0]))
    recorded.check("enumeration", loss)


def test_pyro_modules(pyro) -> None:
    import pyro.distributions as dist
    from pyro.nn import PyroModule, PyroSample

    layer = PyroModule[torch.nn.Linear](3, 1)
    layer.weight = PyroSample(dist.Normal(0.0, 1.0).expand([1, 3]).to_event(2))
    assert layer(torch.randn(4, 3)).shape == (4, 1)
    trace = pyro.poutine.trace(layer).get_trace(torch.randn(4, 3))
    assert "weight" in trace.nodes


def test_pyro_flows(pyro) -> None:
    import pyro.distributions as dist
    from pyro.distributions import transforms

    base = dist.Normal(torch.zeros(4), torch.ones(4)).to_event(1)
    for make in (transforms.affine_autoregressive, transforms.spline_coupling):
        flow = make(4)
        made = dist.TransformedDistribution(base, [flow])
        made.log_prob(torch.randn(3, 4)).sum().backward()


# ---- differential equations


@pytest.mark.parametrize(
    "method",
    [
        "dopri5",
        "dopri8",
        "bosh3",
        "adaptive_heun",
        "euler",
        "midpoint",
        "rk4",
        "fehlberg2",
        "explicit_adams",
        "implicit_adams",
    ],
)
def test_odeint(method) -> None:
    from torchdiffeq import odeint

    matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]], dtype=torch.float64, requires_grad=True)
    start = torch.tensor([[1.2, 0.0]], dtype=torch.float64)
    times = torch.linspace(0, 1, 6, dtype=torch.float64)
    path = odeint(lambda t, y: y**3 @ matrix, start, times, method=method)
    path.sum().backward()
    recorded.check(f"ode {method}", [*path[-1].flatten().tolist(), *matrix.grad.flatten().tolist()])


def test_odeint_adjoint() -> None:
    from torchdiffeq import odeint_adjoint, odeint_event

    class Field(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = torch.nn.Sequential(
                torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)
            )

        def forward(self, t, y):
            return self.net(y)

    torch.manual_seed(0)
    field = Field()
    times = torch.linspace(0, 1, 4)
    path = odeint_adjoint(field, torch.tensor([[1.0, -1.0]]), times)
    path[-1].square().sum().backward()
    recorded.check("adjoint", [p.grad.norm().item() for p in field.parameters()], rel=1e-3)
    moment, _ = odeint_event(
        lambda t, y: torch.ones_like(y),
        torch.tensor([0.0]),
        torch.tensor(0.0),
        event_fn=lambda t, y: y.sum() - 0.75,
    )
    assert moment.item() == pytest.approx(0.75, abs=1e-4)


@pytest.mark.parametrize("method", ["euler", "milstein", "srk"])
def test_sdeint(method) -> None:
    import torchsde

    class Process(torch.nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def __init__(self) -> None:
            super().__init__()
            self.rate = torch.nn.Parameter(torch.tensor(0.5))

        def f(self, t, y):
            return -self.rate * y

        def g(self, t, y):
            return 0.1 * y + 0.2

    torch.manual_seed(0)
    process = Process()
    times = torch.linspace(0, 1, 5)
    motion = torchsde.BrownianInterval(
        0.0, 1.0, size=(4, 3), entropy=7, levy_area_approximation="space-time"
    )
    path = torchsde.sdeint(process, torch.ones(4, 3), times, bm=motion, dt=0.05, method=method)
    path[-1].sum().backward()
    recorded.check(f"sde {method}", [path[-1].mean().item(), process.rate.grad.item()], rel=1e-3)
