"""Smaller libraries of research, an exercise each: second-order methods, flows, tensor networks,
privacy, optimizers, transport, wavelets, operators. Numbers are compared with the peer's."""

import pytest
from recorded import Recorded

import torch

recorded = Recorded("research")


def net(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))


def batch(count=16):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(count, 4, generator=generator)
    return x, torch.randint(0, 3, (count,), generator=generator)


def test_ignite() -> None:
    from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
    from ignite.handlers import EarlyStopping, ModelCheckpoint  # noqa: F401
    from ignite.metrics import Accuracy, Loss

    model, loss = net(), torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = create_supervised_trainer(model, optimizer, loss)
    losses = []
    trainer.add_event_handler(Events.ITERATION_COMPLETED, lambda e: losses.append(e.state.output))
    trainer.run([batch()] * 4, max_epochs=3)
    recorded.check("ignite", losses)
    metrics = {"acc": Accuracy(), "nll": Loss(loss)}
    state = create_supervised_evaluator(model, metrics=metrics).run([batch()])
    recorded.check("ignite metrics", [state.metrics["acc"], state.metrics["nll"]])


def test_higher() -> None:
    import higher

    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = batch()
    with higher.innerloop_ctx(model, optimizer, copy_initial_weights=False) as (inner, steps):
        for _ in range(3):
            steps.step(torch.nn.functional.cross_entropy(inner(x), y))
        torch.nn.functional.cross_entropy(inner(x), y).backward()
    recorded.check("higher", [p.grad.norm().item() for p in model.parameters()], rel=1e-3)


@pytest.mark.parametrize("name", ["BatchGrad", "BatchL2Grad", "Variance", "DiagGGNExact", "KFLR"])
def test_backpack(name) -> None:
    from backpack import backpack, extend, extensions

    model = extend(net())
    loss = extend(torch.nn.CrossEntropyLoss())
    x, y = batch()
    with backpack(getattr(extensions, name)()):
        loss(model(x), y).backward()
    field = {"BatchGrad": "grad_batch", "BatchL2Grad": "batch_l2", "Variance": "variance"}
    field = field.get(name, {"DiagGGNExact": "diag_ggn_exact", "KFLR": "kflr"}.get(name))
    value = getattr(model[0].weight, field)
    value = value[0] if isinstance(value, (list, tuple)) else value
    recorded.check(f"backpack {name}", value.double().abs().sum().item(), rel=1e-3)


def test_curvlinops() -> None:
    import curvlinops

    model, (x, y) = net(), batch()
    parameters = dict(model.named_parameters())
    values = [p for p in parameters.values() if p.requires_grad]
    for kind in ("HessianLinearOperator", "GGNLinearOperator"):
        operator = getattr(curvlinops, kind)(
            model, torch.nn.CrossEntropyLoss(), values, [(x, y)], check_deterministic=False
        )
        vector = torch.ones(operator.shape[1])
        recorded.check(f"curvlinops {kind}", (operator @ vector).norm().item(), rel=1e-3)


def test_zuko() -> None:
    import zuko

    torch.manual_seed(0)
    for name in ("MAF", "NSF", "NICE", "GMM"):
        flow = getattr(zuko.flows, name)(3, 2)
        made = flow(torch.ones(2))
        x = made.sample((5,)).detach()
        loss = -made.log_prob(x).mean()
        loss.backward()
        assert torch.isfinite(loss), name


def test_nflows() -> None:
    from nflows import distributions, flows, transforms

    torch.manual_seed(0)
    chain = transforms.CompositeTransform(
        [
            transforms.MaskedAffineAutoregressiveTransform(features=3, hidden_features=8),
            transforms.RandomPermutation(features=3),
        ]
    )
    flow = flows.Flow(chain, distributions.StandardNormal([3]))
    x = torch.randn(6, 3)
    loss = -flow.log_prob(x).mean()
    loss.backward()
    recorded.check("nflows", loss.item(), rel=1e-3)
    assert flow.sample(4).shape == (4, 3)


def test_torchcde() -> None:
    import torchcde

    torch.manual_seed(0)
    x = torch.randn(2, 6, 3)
    coefficients = torchcde.hermite_cubic_coefficients_with_backward_differences(x)
    path = torchcde.CubicSpline(coefficients)

    class Field(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 12)

        def forward(self, t, z):
            return self.linear(z).view(2, 4, 3)

    out = torchcde.cdeint(path, Field(), torch.zeros(2, 4), path.interval, method="rk4")
    out.sum().backward()
    recorded.check("torchcde", out.detach().flatten()[:4], rel=1e-3)


def test_torchquad() -> None:
    from torchquad import Boole, MonteCarlo, Simpson

    for rule in (Simpson(), Boole()):
        value = rule.integrate(
            lambda x: torch.sin(x[:, 0]),
            dim=1,
            N=101,
            integration_domain=[[0, 3.0]],
            backend="torch",
        )
        assert value.item() == pytest.approx(1.98999, abs=1e-3)
    MonteCarlo().integrate(lambda x: x[:, 0], dim=1, N=50, backend="torch", seed=1)


def test_xitorch() -> None:
    from xitorch import LinearOperator, linalg, optimize

    torch.manual_seed(0)
    matrix = torch.randn(5, 5, dtype=torch.float64)
    matrix = (matrix @ matrix.T + 5 * torch.eye(5, dtype=torch.float64)).requires_grad_()
    operator = LinearOperator.m(matrix, is_hermitian=True)
    values, _ = linalg.symeig(operator, neig=2)
    values.sum().backward()
    recorded.check("xitorch", values)
    root = optimize.rootfinder(lambda y: y**3 - 2.0, torch.tensor([1.0], dtype=torch.float64))
    assert root.item() == pytest.approx(2 ** (1 / 3), abs=1e-5)


def test_quanto() -> None:
    from optimum.quanto import freeze, qfloat8, qint8, quantize

    for weights in (qint8, qfloat8):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.ReLU())
        x = torch.randn(2, 128)
        expected = model(x)
        quantize(model, weights=weights)
        freeze(model)
        assert (model(x) - expected).abs().max() < 0.5
        model.load_state_dict(model.state_dict())


@pytest.mark.parametrize("name", ["FNO", "TFNO"])
def test_neuraloperator(name) -> None:
    from neuralop import models

    torch.manual_seed(0)
    options = {"in_channels": 1, "out_channels": 1, "hidden_channels": 8, "n_layers": 3}
    options["n_modes"] = (4, 4)
    model = getattr(models, name)(**options)
    out = model(torch.randn(2, 1, 16, 16))
    out.square().mean().backward()
    assert out.shape == (2, 1, 16, 16)


def test_opacus() -> None:
    from opacus import PrivacyEngine

    from torch.utils.data import DataLoader, TensorDataset

    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(*batch(32)), batch_size=8)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        assert model._module[0].weight.grad_sample.shape[0] == len(x)
        optimizer.step()
    assert engine.get_epsilon(1e-5) > 0


OPTIMIZERS = [
    ("schedulefree", "AdamWScheduleFree"),
    ("prodigyopt", "Prodigy"),
    ("dadaptation", "DAdaptAdam"),
    ("lion_pytorch", "Lion"),
    ("adabelief_pytorch", "AdaBelief"),
    ("came_pytorch", "CAME"),
    ("torch_optimizer", "RAdam"),
    ("torch_optimizer", "AdaBound"),
    ("torch_optimizer", "Shampoo"),
    ("torch_optimizer", "Yogi"),
]


@pytest.mark.parametrize("package,name", OPTIMIZERS)
def test_optimizer(package, name) -> None:
    import importlib

    model, (x, y) = net(), batch()
    optimizer = getattr(importlib.import_module(package), name)(model.parameters(), lr=1e-2)
    if hasattr(optimizer, "train"):
        optimizer.train()
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    recorded.check(f"optimizer {name}", losses, rel=2e-3)
    optimizer.load_state_dict(optimizer.state_dict())


def test_entmax() -> None:
    from entmax import entmax15, entmax_bisect, sparsemax

    x = torch.tensor([[1.0, 2.0, 0.5, -1.0]], requires_grad=True)
    for function in (entmax15, sparsemax):
        recorded.check(f"entmax {function.__name__}", function(x, dim=-1).detach().flatten())
    entmax_bisect(x, 1.3).square().sum().backward()
    recorded.check("entmax gradient", x.grad.flatten(), rel=1e-3)


def test_transport() -> None:
    import geomloss
    import ot

    torch.manual_seed(0)
    a, b = torch.rand(10, 2, requires_grad=True), torch.rand(12, 2)
    loss = geomloss.SamplesLoss("sinkhorn", p=2, blur=0.1)(a, b)
    loss.backward()
    recorded.check("geomloss", loss.item(), rel=1e-3)
    weights = torch.full((10,), 0.1), torch.full((12,), 1 / 12)
    plan = ot.sinkhorn(*weights, ot.dist(a.detach(), b), 0.1)
    recorded.check("sinkhorn", plan.flatten()[:4], rel=1e-3)


def test_wavelets() -> None:
    import ptwt

    torch.manual_seed(0)
    x = torch.randn(2, 32, dtype=torch.float64, requires_grad=True)
    parts = ptwt.wavedec(x, "db2", level=2)
    torch.testing.assert_close(ptwt.waverec(parts, "db2"), x)
    sum(part.square().sum() for part in parts).backward()
    recorded.check("wavelets", parts[0][0][:4])
    image = torch.randn(1, 16, 16, dtype=torch.float64)
    torch.testing.assert_close(ptwt.waverec2(ptwt.wavedec2(image, "haar", level=2), "haar"), image)


def test_tensor_networks() -> None:
    import tensorly
    import tntorch

    tensorly.set_backend("pytorch")
    torch.manual_seed(0)
    x = torch.randn(4, 5, 6, dtype=torch.float64)
    core, factors = tensorly.decomposition.tucker(x, rank=[4, 5, 6])
    torch.testing.assert_close(tensorly.tucker_to_tensor((core, factors)), x)
    weights = tensorly.decomposition.parafac(x, rank=3, init="random", random_state=1)
    assert tensorly.cp_to_tensor(weights).shape == x.shape
    train = tntorch.Tensor(x, ranks_tt=6)
    assert train.torch().shape == x.shape


def test_geotorch_and_pruning() -> None:
    import geotorch
    import torch_pruning

    torch.manual_seed(0)
    layer = torch.nn.Linear(5, 5)
    geotorch.orthogonal(layer, "weight")
    layer(torch.randn(2, 5)).sum().backward()
    torch.testing.assert_close(layer.weight @ layer.weight.T, torch.eye(5), atol=1e-5, rtol=1e-5)
    model = net()
    graph = torch_pruning.DependencyGraph().build_dependency(model, torch.randn(1, 4))
    graph.get_pruning_group(model[0], torch_pruning.prune_linear_out_channels, idxs=[1, 2]).prune()
    assert model[2].in_features == 6


def test_crf() -> None:
    from torchcrf import CRF

    torch.manual_seed(0)
    crf = CRF(4)
    scores, tags = torch.randn(5, 2, 4, requires_grad=True), torch.randint(0, 4, (5, 2))
    loss = -crf(scores, tags)
    loss.backward()
    recorded.check("crf", loss.item())
    assert len(crf.decode(scores)) == 2


def test_tabnet() -> None:
    from pytorch_tabnet.tab_model import TabNetClassifier

    x, y = batch(64)
    model = TabNetClassifier(verbose=0, seed=0, device_name="cpu")
    model.fit(x.numpy(), y.numpy(), max_epochs=2, batch_size=32, virtual_batch_size=16)
    assert model.predict_proba(x.numpy()).shape == (64, 3)


def test_nufft() -> None:
    import torchkbnufft

    torch.manual_seed(0)
    image = torch.randn(1, 1, 8, 8, dtype=torch.complex64)
    places = torch.rand(2, 20) * 6 - 3
    forward = torchkbnufft.KbNufft(im_size=(8, 8))(image, places)
    recorded.check("nufft", torch.view_as_real(forward).flatten()[:6], rel=1e-2, abs=1e-3)


def test_sequence_models() -> None:
    from mambapy.mamba import Mamba, MambaConfig
    from performer_pytorch import PerformerLM
    from rotary_embedding_torch import RotaryEmbedding

    torch.manual_seed(0)
    mamba = Mamba(MambaConfig(d_model=8, n_layers=2))
    out = mamba(torch.randn(2, 12, 8))
    out.sum().backward()
    recorded.check("mamba", out.detach().flatten()[:4], rel=1e-3)
    model = PerformerLM(num_tokens=20, max_seq_len=16, dim=16, depth=1, heads=2, causal=False)
    assert model(torch.randint(0, 20, (1, 16))).shape == (1, 16, 20)
    rotated = RotaryEmbedding(dim=8).rotate_queries_or_keys(torch.randn(1, 2, 6, 8))
    assert rotated.shape == (1, 2, 6, 8)


def test_multi_objective_gradients() -> None:
    from torchjd.aggregation import Mean
    from torchjd.autojac import backward, jac_to_grad

    model, (x, _) = net(), batch()
    out = model(x)
    losses = torch.stack([out[:, 0].square().mean(), (out[:, 1] - 1).square().mean()])
    backward(losses)
    jac_to_grad(model.parameters(), Mean())
    recorded.check("torchjd", [p.grad.norm().item() for p in model.parameters()], rel=1e-3)
