"""Tools around models: torchmetrics, captum, tensordict, torchinfo, fvcore, opt_einsum, e3nn,
pytorch-metric-learning, torch_ema, stable-baselines3. Numbers are compared with the peer's."""

import pytest
from recorded import Recorded

import torch

recorded = Recorded("tools")


def small_net(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(16, 5),
    )


# ---- torchmetrics

CLASSES = {
    "Accuracy": {},
    "F1Score": {"average": "macro"},
    "Precision": {"average": None},
    "Recall": {"average": "weighted"},
    "AUROC": {},
    "AveragePrecision": {},
    "ConfusionMatrix": {},
    "CohenKappa": {},
    "MatthewsCorrCoef": {},
    "CalibrationError": {},
    "JaccardIndex": {},
    "Specificity": {},
    "ROC": {"thresholds": 5},
    "PrecisionRecallCurve": {"thresholds": 5},
    "HammingDistance": {},
}


def flat(value):
    if isinstance(value, (list, tuple)):
        return [number for part in value for number in flat(part)]
    return value.double().flatten().tolist()


@pytest.mark.parametrize("name", CLASSES)
def test_classification(name) -> None:
    import torchmetrics

    metric = getattr(torchmetrics, name)(task="multiclass", num_classes=5, **CLASSES[name])
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        logits = torch.randn(16, 5, generator=generator).softmax(1)
        metric.update(logits, torch.randint(0, 5, (16,), generator=generator))
    recorded.check(f"metric {name}", flat(metric.compute()))
    metric.reset()


REGRESSION = [
    "MeanSquaredError",
    "MeanAbsoluteError",
    "R2Score",
    "PearsonCorrCoef",
    "SpearmanCorrCoef",
    "KendallRankCorrCoef",
    "ExplainedVariance",
    "ConcordanceCorrCoef",
    "MeanAbsolutePercentageError",
    "TweedieDevianceScore",
]


@pytest.mark.parametrize("name", REGRESSION)
def test_regression(name) -> None:
    import torchmetrics

    metric = getattr(torchmetrics, name)()
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        x = torch.rand(16, generator=generator) + 0.5
        metric.update(x + 0.1 * torch.rand(16, generator=generator), x)
    recorded.check(f"metric {name}", flat(metric.compute()), rel=1e-3)


def test_image_and_text_metrics() -> None:
    import torchmetrics
    from torchmetrics import image, text

    generator = torch.Generator().manual_seed(0)
    a = torch.rand(2, 3, 32, 32, generator=generator)
    b = (a + 0.1 * torch.rand(2, 3, 32, 32, generator=generator)).clamp(0, 1)
    for metric in (
        image.PeakSignalNoiseRatio(data_range=1.0),
        image.StructuralSimilarityIndexMeasure(data_range=1.0),
        image.UniversalImageQualityIndex(),
        image.TotalVariation(),
    ):
        value = metric(a) if isinstance(metric, image.TotalVariation) else metric(b, a)
        recorded.check(f"metric {type(metric).__name__}", flat(value), rel=1e-3)
    for metric in (text.WordErrorRate(), text.CharErrorRate(), text.BLEUScore(n_gram=2)):
        targets = ["the cat is on the mat"]
        targets = [targets] if isinstance(metric, text.BLEUScore) else targets
        recorded.check(
            f"metric {type(metric).__name__}", flat(metric(["a cat on the mat"], targets))
        )
    retrieval = torchmetrics.RetrievalNormalizedDCG()
    score = retrieval(
        torch.tensor([0.2, 0.9, 0.4, 0.1]),
        torch.tensor([0, 1, 1, 0]),
        indexes=torch.tensor([0, 0, 1, 1]),
    )
    recorded.check("metric ndcg", flat(score))


def test_metric_collections() -> None:
    import copy
    import pickle

    import torchmetrics

    metrics = torchmetrics.MetricCollection(
        {
            "acc": torchmetrics.Accuracy(task="binary"),
            "f1": torchmetrics.F1Score(task="binary"),
        },
        prefix="train/",
    )
    metrics(torch.tensor([0.2, 0.8]), torch.tensor([0, 1]))
    assert set(metrics.compute()) == {"train/acc", "train/f1"}
    again = pickle.loads(pickle.dumps(copy.deepcopy(metrics)))
    assert again.compute() == metrics.compute()
    tracker = torchmetrics.MetricTracker(torchmetrics.MeanMetric(), maximize=True)
    for value in (1.0, 3.0):
        tracker.increment()
        tracker.update(value)
    assert tracker.best_metric() == 3.0
    boot = torchmetrics.BootStrapper(torchmetrics.MeanSquaredError(), num_bootstraps=4)
    boot.update(torch.randn(20), torch.randn(20))
    assert set(boot.compute()) == {"mean", "std"}


# ---- captum

METHODS = [
    "IntegratedGradients",
    "Saliency",
    "InputXGradient",
    "DeepLift",
    "GuidedBackprop",
    "Deconvolution",
    "FeatureAblation",
    "Occlusion",
    "GradientShap",
    "ShapleyValueSampling",
]


@pytest.mark.parametrize("name", METHODS)
def test_captum(name) -> None:
    from captum import attr

    net = small_net().eval()
    method = getattr(attr, name)(net)
    torch.manual_seed(1)
    x = torch.randn(2, 3, 4, 4)
    options = {}
    if name == "Occlusion":
        options["sliding_window_shapes"] = (3, 2, 2)
    if name == "GradientShap":
        options["baselines"] = torch.zeros(4, 3, 4, 4)
    if name == "ShapleyValueSampling":
        options["n_samples"] = 2
        options["feature_mask"] = torch.arange(16).view(1, 1, 4, 4) // 4
    found = method.attribute(x.requires_grad_(), target=1, **options)
    assert found.shape == x.shape
    if name not in ("GradientShap", "ShapleyValueSampling"):
        recorded.check(f"captum {name}", found.detach().flatten()[:6], rel=1e-3)


def test_captum_layers() -> None:
    from captum import attr

    net = small_net().eval()
    x = torch.randn(2, 3, 4, 4)
    for method in (attr.LayerIntegratedGradients, attr.LayerGradCam, attr.LayerConductance):
        assert method(net, net[0]).attribute(x, target=1).shape[0] == 2
    assert attr.NeuronGradient(net, net[0]).attribute(x, (0, 1, 1)).shape == x.shape


# ---- tensordict


def test_tensordict(tmp_path) -> None:
    from tensordict import TensorDict

    data = TensorDict({"a": torch.arange(6).view(3, 2), "b": {"c": torch.ones(3, 4)}}, [3])
    assert data["b", "c"].shape == (3, 4)
    assert data[1:].shape == torch.Size([2])
    assert torch.stack([data, data]).shape == torch.Size([2, 3])
    assert torch.cat([data, data], 0).shape == torch.Size([6])
    assert data.to(torch.float64)["a"].dtype == torch.float64
    assert data.reshape(3, 1).unsqueeze(0).shape == torch.Size([1, 3, 1])
    data.apply_(lambda x: x + 1)
    assert data["a"][0, 0] == 1
    flat = data.flatten_keys(".")
    assert set(flat.keys()) == {"a", "b.c"}
    data.memmap(tmp_path)
    assert (TensorDict.load_memmap(tmp_path) == data).all()
    assert (data.select("a").set("d", torch.zeros(3)) != 0).any()
    with data.unlock_():
        del data["a"]


def test_tensordict_modules() -> None:
    from tensordict import TensorDict, from_module
    from tensordict.nn import (
        ProbabilisticTensorDictModule,
        ProbabilisticTensorDictSequential,
        TensorDictModule,
        TensorDictSequential,
    )

    torch.manual_seed(0)
    first = TensorDictModule(torch.nn.Linear(3, 4), in_keys=["x"], out_keys=["h"])
    second = TensorDictModule(torch.nn.Linear(4, 2), in_keys=["h"], out_keys=["loc"])
    chain = TensorDictSequential(first, second)
    data = TensorDict({"x": torch.randn(5, 3)}, [5])
    assert chain(data)["loc"].shape == (5, 2)
    scale = TensorDictModule(lambda loc: loc.exp(), in_keys=["loc"], out_keys=["scale"])
    actor = ProbabilisticTensorDictSequential(
        TensorDictSequential(first, second, scale),
        ProbabilisticTensorDictModule(
            in_keys=["loc", "scale"],
            out_keys=["y"],
            distribution_class=torch.distributions.Normal,
            return_log_prob=True,
        ),
    )
    assert actor(data)["y"].shape == (5, 2)
    net = torch.nn.Linear(3, 4)
    parameters = from_module(net)
    with parameters.data.apply(torch.zeros_like).to_module(net):
        assert (net(torch.randn(2, 3)) == 0).all()
    stacked = torch.stack([parameters, parameters * 2], 0).data

    def run(p, x):
        with p.to_module(net):
            return net(x)

    assert torch.vmap(run, (0, None))(stacked, torch.randn(2, 3)).shape == (2, 2, 4)


def test_tensorclass() -> None:
    from tensordict import tensorclass

    @tensorclass
    class Batch:
        image: torch.Tensor
        label: torch.Tensor

    batch = Batch(torch.zeros(4, 3), torch.arange(4), batch_size=[4])
    assert batch[2].label == 2
    assert torch.stack([batch, batch]).batch_size == torch.Size([2, 4])


# ---- summaries and counters


def test_torchinfo() -> None:
    import torchinfo

    summary = torchinfo.summary(
        small_net(), (2, 3, 8, 8), verbose=0, col_names=("output_size", "num_params", "mult_adds")
    )
    recorded.check(
        "torchinfo", [summary.total_params, summary.trainable_params, summary.total_mult_adds]
    )
    assert "Conv2d" in str(summary)


def test_torchsummary(capsys) -> None:
    import torchsummary

    torchsummary.summary(small_net(), (3, 8, 8), device="cpu")
    assert "Total params: 197" in capsys.readouterr().out


def test_fvcore() -> None:
    from fvcore import nn

    net = small_net()
    assert nn.parameter_count(net)[""] == 197
    assert "Linear" in str(net)
    x = torch.randn(4, 5)
    loss = nn.sigmoid_focal_loss_jit(x, (x > 0).float(), reduction="mean")
    assert torch.isfinite(loss)
    assert nn.smooth_l1_loss(x, x + 1, beta=0.5, reduction="mean") == 0.75
    assert nn.giou_loss(torch.tensor([[0.0, 0, 2, 2]]), torch.tensor([[0.0, 0, 2, 2]])).item() == 0


def test_fvcore_flops() -> None:
    from fvcore.nn import FlopCountAnalysis

    assert FlopCountAnalysis(small_net(), torch.randn(1, 3, 8, 8)).total() > 0


def test_opt_einsum() -> None:
    import opt_einsum

    torch.manual_seed(0)
    a, b, c = torch.randn(4, 5), torch.randn(5, 6), torch.randn(6, 3)
    expected = a @ b @ c
    torch.testing.assert_close(opt_einsum.contract("ij,jk,kl->il", a, b, c), expected)
    path = opt_einsum.contract_expression("ij,jk,kl->il", (4, 5), (5, 6), (6, 3))
    torch.testing.assert_close(path(a, b, c), expected)


# ---- e3nn


def test_e3nn() -> None:
    from e3nn import o3

    torch.manual_seed(0)
    vectors = torch.randn(4, 3)
    harmonics = o3.spherical_harmonics([0, 1, 2], vectors, normalize=True)
    recorded.check("harmonics", harmonics[0])
    rotation = o3.rand_matrix()
    turned = o3.spherical_harmonics(2, vectors @ rotation.T, normalize=True)
    wigner = o3.Irreps("1x2e").D_from_matrix(rotation)
    torch.testing.assert_close(
        turned, o3.spherical_harmonics(2, vectors, normalize=True) @ wigner.T, rtol=1e-3, atol=1e-4
    )
    recorded.check("wigner 3j", o3.wigner_3j(1, 1, 2).flatten(), abs=1e-4)


def test_e3nn_layers() -> None:
    from e3nn import nn, o3

    torch.manual_seed(0)
    product = o3.FullyConnectedTensorProduct("4x0e+2x1o", "1x0e+1x1o", "3x0e+1x1o")
    out = product(torch.randn(5, 10), torch.randn(5, 4))
    out.sum().backward()
    assert out.shape == (5, 6)
    linear = o3.Linear("4x0e+2x1o", "2x0e+1x1o")
    assert linear(torch.randn(5, 10)).shape == (5, 5)
    gate = nn.Gate("2x0e", [torch.tanh], "1x0e", [torch.sigmoid], "1x1o")
    assert gate(torch.randn(3, 6)).shape == (3, 5)
    norm = nn.BatchNorm("2x0e+1x1o")
    assert norm(torch.randn(6, 5)).shape == (6, 5)


# ---- metric learning and averages


@pytest.mark.parametrize(
    "name",
    [
        "TripletMarginLoss",
        "ContrastiveLoss",
        "NTXentLoss",
        "CircleLoss",
        "MultiSimilarityLoss",
        "SupConLoss",
        "AngularLoss",
        "NPairsLoss",
    ],
)
def test_metric_learning(name) -> None:
    from pytorch_metric_learning import losses, miners

    torch.manual_seed(0)
    embeddings = torch.randn(12, 8, requires_grad=True)
    labels = torch.arange(12) % 4
    loss = getattr(losses, name)()(embeddings, labels)
    loss.backward()
    recorded.check(f"metric learning {name}", loss.item(), rel=1e-3)
    miners.MultiSimilarityMiner()(embeddings, labels)


def test_ema() -> None:
    from torch_ema import ExponentialMovingAverage

    net = small_net()
    average = ExponentialMovingAverage(net.parameters(), decay=0.9)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(1.0)
    average.update()
    before = [parameter.detach().clone() for parameter in net.parameters()]
    with average.average_parameters():
        moved = [not torch.equal(*pair) for pair in zip(before, net.parameters(), strict=True)]
        assert all(moved)
    torch.testing.assert_close(before, list(net.parameters()))


# ---- stable-baselines3


@pytest.mark.parametrize("name", ["PPO", "A2C", "DQN"])
def test_baselines_discrete(name, tmp_path) -> None:
    import stable_baselines3

    options = {"n_steps": 32} if name != "DQN" else {"learning_starts": 20, "buffer_size": 500}
    if name == "PPO":
        options["batch_size"] = 16
    algorithm = getattr(stable_baselines3, name)
    model = algorithm("MlpPolicy", "CartPole-v1", seed=0, device="cpu", **options)
    model.learn(100)
    model.save(tmp_path / "model")
    again = algorithm.load(tmp_path / "model", device="cpu")
    observation = model.get_env().reset()
    left = model.predict(observation, deterministic=True)[0]
    assert (left == again.predict(observation, deterministic=True)[0]).all()


@pytest.mark.parametrize("name", ["SAC", "TD3", "DDPG"])
def test_baselines_continuous(name) -> None:
    import stable_baselines3

    model = getattr(stable_baselines3, name)(
        "MlpPolicy", "Pendulum-v1", seed=0, device="cpu", learning_starts=20, buffer_size=500
    )
    model.learn(60)
    assert model.predict(model.get_env().reset())[0].shape == (1, 1)
