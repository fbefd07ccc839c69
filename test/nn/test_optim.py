"""Optimizers against plain NumPy updates in float64, their saved states, and their errors."""

import copy
import math

import numpy as np
import pytest

import torch
from torch import nn, optim

STEPS = 5
START = np.linspace(-1.0, 1.5, 6).reshape(2, 3)


def gradient(x, i):
    """A gradient that changes sign here and there from step to step."""
    return np.cos(x * 3 + i) + 0.3 * x


def sgd(x, g, s, i, o):
    g = g + o["weight_decay"] * x
    s["buf"] = g if i == 1 else o["momentum"] * s["buf"] + g
    return x - o["lr"] * (g + o["momentum"] * s["buf"])


def adam(x, g, s, i, o):
    b1, b2 = 0.9, 0.999
    x = x * (1 - o["lr"] * o["weight_decay"])
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0) + (1 - b2) * g * g
    return x - o["lr"] * (s["m"] / (1 - b1**i)) / (np.sqrt(s["v"] / (1 - b2**i)) + 1e-8)


def adamax(x, g, s, i, o):
    g = g + o["weight_decay"] * x
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["u"] = np.maximum(0.999 * s.get("u", 0), np.abs(g) + 1e-8)
    return x - o["lr"] / (1 - 0.9**i) * s["m"] / s["u"]


def adagrad(x, g, s, i, o):
    g = g + o["weight_decay"] * x
    s["sum"] = s.get("sum", o["initial_accumulator_value"]) + g * g
    return x - o["lr"] / (1 + (i - 1) * o["lr_decay"]) * g / (np.sqrt(s["sum"]) + 1e-10)


def adadelta(x, g, s, i, o):
    rho, eps = o["rho"], 1e-6
    g = g + o["weight_decay"] * x
    s["v"] = rho * s.get("v", 0) + (1 - rho) * g * g
    delta = np.sqrt(s.get("u", 0) + eps) / np.sqrt(s["v"] + eps) * g
    s["u"] = rho * s.get("u", 0) + (1 - rho) * delta * delta
    return x - o["lr"] * delta


def asgd(x, g, s, i, o):
    eta = s.get("eta", o["lr"])
    g = g + o["weight_decay"] * x
    x = x * (1 - 1e-4 * eta) - eta * g
    s["ax"] = x if s.get("mu", 1) == 1 else s["ax"] + s["mu"] * (x - s["ax"])
    s["eta"] = o["lr"] / (1 + 1e-4 * o["lr"] * i) ** o["alpha"]
    s["mu"] = 1 / max(1, i - o["t0"])
    return x


def nadam(x, g, s, i, o):
    decay = o["momentum_decay"]
    mu = 0.9 * (1 - 0.5 * 0.96 ** (i * decay))
    following = 0.9 * (1 - 0.5 * 0.96 ** ((i + 1) * decay))
    s["prod"] = s.get("prod", 1) * mu
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["v"] = 0.999 * s.get("v", 0) + 0.001 * g * g
    mean = following * s["m"] / (1 - s["prod"] * following) + (1 - mu) * g / (1 - s["prod"])
    return x - o["lr"] * mean / (np.sqrt(s["v"] / (1 - 0.999**i)) + 1e-8)


def radam(x, g, s, i, o):
    b1, b2 = o["betas"]
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0) + (1 - b2) * g * g
    longest = 2 / (1 - b2) - 1
    length = longest - 2 * i * b2**i / (1 - b2**i)
    mean = s["m"] / (1 - b1**i)
    if length <= 5:
        return x - o["lr"] * mean
    trust = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
    scale = math.sqrt(1 - b2**i) / (np.sqrt(s["v"]) + 1e-8)
    return x - o["lr"] * mean * math.sqrt(trust) * scale


def rmsprop(x, g, s, i, o):
    alpha = 0.99
    g = g + o["weight_decay"] * x
    s["v"] = alpha * s.get("v", 0) + (1 - alpha) * g * g
    s["g"] = alpha * s.get("g", 0) + (1 - alpha) * g
    root = np.sqrt(s["v"] - (s["g"] ** 2 if o["centered"] else 0)) + 1e-8
    s["buf"] = o["momentum"] * s.get("buf", 0) + g / root
    return x - o["lr"] * s["buf"]


def rprop(x, g, s, i, o):
    sign = np.sign(g * s.get("prev", np.zeros_like(g)))
    factor = np.where(sign > 0, o["etas"][1], np.where(sign < 0, o["etas"][0], 1.0))
    s["size"] = np.clip(s.get("size", np.full_like(g, o["lr"])) * factor, 1e-6, 50)
    g = np.where(sign < 0, 0.0, g)
    s["prev"] = g
    return x - np.sign(g) * s["size"]


def adafactor(x, g, s, i, o):
    weight = i**-0.8
    eps = np.finfo(np.float64).eps
    rate = max(1e-3, np.sqrt((x**2).mean())) * min(o["lr"], 1 / math.sqrt(i))
    x = x * (1 - o["lr"] * o["weight_decay"])
    s["r"] = s.get("r", 0) * (1 - weight) + weight * (g**2).mean(1, keepdims=True)
    s["c"] = s.get("c", 0) * (1 - weight) + weight * (g**2).mean(0, keepdims=True)
    square = s["r"] @ s["c"] / max(s["r"].mean(), eps)
    update = g / np.sqrt(np.maximum(square, eps**2))
    return x - rate * update / max(1.0, np.sqrt((update**2).mean()))


CASES = [
    (optim.SGD, sgd, {"lr": 0.05, "momentum": 0.8, "nesterov": True, "weight_decay": 0.1}),
    (optim.AdamW, adam, {"lr": 0.05, "weight_decay": 0.1}),
    (optim.Adam, adam, {"lr": 0.05, "weight_decay": 0}),
    (optim.Adamax, adamax, {"lr": 0.05, "weight_decay": 0.1}),
    (
        optim.Adagrad,
        adagrad,
        {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.3},
    ),
    (optim.Adadelta, adadelta, {"lr": 0.7, "rho": 0.8, "weight_decay": 0.1}),
    (optim.ASGD, asgd, {"lr": 0.05, "alpha": 0.5, "t0": 2, "weight_decay": 0.1}),
    (optim.NAdam, nadam, {"lr": 0.05, "momentum_decay": 0.01}),
    (optim.RAdam, radam, {"lr": 0.05, "betas": (0.9, 0.99)}),
    (optim.RAdam, radam, {"lr": 0.05, "betas": (0.8, 0.6)}),
    (optim.RMSprop, rmsprop, {"lr": 0.02, "momentum": 0, "centered": False, "weight_decay": 0.1}),
    (optim.RMSprop, rmsprop, {"lr": 0.02, "momentum": 0.7, "centered": True, "weight_decay": 0}),
    (optim.Rprop, rprop, {"lr": 0.02, "etas": (0.4, 1.3)}),
    (optim.Adafactor, adafactor, {"lr": 0.05, "weight_decay": 0.1}),
]
IDS = [f"{case[0].__name__}-{i}" for i, case in enumerate(CASES)]


def parameter():
    return nn.Parameter(torch.from_numpy(START.copy()))


def advance(optimizer, param, steps):
    for i in steps:
        param.grad = torch.from_numpy(gradient(param.detach().numpy(), i))
        optimizer.step()


@pytest.mark.parametrize(("cls", "reference", "options"), CASES, ids=IDS)
def test_five_steps_agree_with_numpy(cls, reference, options):
    param = parameter()
    advance(cls([param], **options), param, range(1, STEPS + 1))
    x, kept = START.copy(), {}
    for i in range(1, STEPS + 1):
        x = reference(x, gradient(x, i), kept, i, options)
    np.testing.assert_allclose(param.detach().numpy(), x, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("cls", "reference", "options"), CASES, ids=IDS)
def test_maximize_is_descent_along_the_negative_gradient(cls, reference, options):
    up, down = parameter(), parameter()
    climber = cls([up], **{**options, "maximize": True})
    walker = cls([down], **options)
    for i in range(1, 4):
        grad = torch.from_numpy(gradient(START, i))
        up.grad, down.grad = grad, -grad
        climber.step()
        walker.step()
    assert torch.equal(up, down)


@pytest.mark.parametrize(("cls", "reference", "options"), CASES, ids=IDS)
def test_state_dict_resumes(cls, reference, options):
    param = parameter()
    optimizer = cls([param], **options)
    advance(optimizer, param, range(1, 3))
    saved = copy.deepcopy(optimizer.state_dict())
    other = nn.Parameter(param.detach().clone())
    resumed = cls([other], **options)
    resumed.load_state_dict(saved)
    advance(optimizer, param, range(3, STEPS + 1))
    advance(resumed, other, range(3, STEPS + 1))
    # Loading gives scalars such as ASGD's eta the parameter's dtype, hence not to the last bit.
    np.testing.assert_allclose(param.detach().numpy(), other.detach().numpy(), rtol=1e-6)
    assert list(saved["state"][0]) == list(resumed.state_dict()["state"][0])


STATE_KEYS = {
    "ASGD": ["step", "eta", "mu", "ax"],
    "Adadelta": ["step", "square_avg", "acc_delta"],
    "Adafactor": ["step", "row_var", "col_var"],
    "Adagrad": ["step", "sum"],
    "Adamax": ["step", "exp_avg", "exp_inf"],
    "Muon": ["momentum_buffer"],
    "NAdam": ["step", "mu_product", "exp_avg", "exp_avg_sq"],
    "RAdam": ["step", "exp_avg", "exp_avg_sq"],
    "RMSprop": ["step", "square_avg"],
    "Rprop": ["step", "prev", "step_size"],
}


@pytest.mark.parametrize("name", STATE_KEYS)
def test_state_has_the_layout_of_saved_checkpoints(name):
    param = nn.Parameter(torch.ones(2, 3))
    optimizer = getattr(optim, name)([param])
    param.grad = torch.ones(2, 3)
    optimizer.step()
    assert list(optimizer.state_dict()["state"][0]) == STATE_KEYS[name]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ASGD", {"lr": -1}, "Invalid learning rate: -1"),
        ("Adadelta", {"rho": 2}, "Invalid rho value: 2"),
        ("Adafactor", {"d": 0.5}, "Clipping threshold d should be >= 1 but is: 0.5"),
        ("Adagrad", {"lr_decay": -1}, "Invalid lr_decay value: -1"),
        ("Adamax", {"betas": (0, 2)}, "Invalid beta parameter at index 1: 2"),
        ("NAdam", {"momentum_decay": -1}, "Invalid momentum_decay value: -1"),
        ("RAdam", {"eps": -1}, "Invalid epsilon value: -1"),
        ("RMSprop", {"alpha": -1}, "Invalid alpha value: -1"),
        ("RMSprop", {"lr": torch.ones(2)}, "Tensor lr must be 1-element"),
        ("Rprop", {"etas": (2, 2)}, "Invalid eta values: 2, 2"),
        ("Muon", {"adjust_lr_fn": "x"}, "Adjust learning rate function x is not supported"),
        ("SparseAdam", {"lr": -1}, "Invalid learning rate: -1"),
    ],
)
def test_bad_settings_are_refused(name, options, message):
    with pytest.raises(ValueError) as caught:
        getattr(optim, name)([torch.zeros(2, 2)], **options)
    assert str(caught.value) == message


def test_muon_takes_only_matrices():
    with pytest.raises(ValueError, match="Muon only supports 2D parameters"):
        optim.Muon([nn.Parameter(torch.ones(3))])


def test_muon_without_decay_steps_along_a_nearly_orthogonal_matrix():
    param = nn.Parameter(torch.zeros(3, 5))
    param.grad = torch.from_numpy(np.random.default_rng(0).normal(size=(3, 5))).float()
    optim.Muon([param], lr=1.0, weight_decay=0.0).step()
    singular = np.linalg.svd(param.detach().numpy(), compute_uv=False)
    assert singular.min() > 0.6 and singular.max() < 1.3


def test_sparse_adam_refuses_dense_gradients():
    param = nn.Parameter(torch.ones(2))
    param.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        optim.SparseAdam([param]).step()


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_finds_the_minimum_of_a_quadratic(search):
    matrix = torch.tensor([[3.0, 1.0], [1.0, 2.0]], dtype=torch.float64)
    target = torch.tensor([1.0, -2.0], dtype=torch.float64)
    point = nn.Parameter(torch.zeros(2, dtype=torch.float64))
    optimizer = optim.LBFGS([point], lr=0.5 if search is None else 1, line_search_fn=search)

    def closure():
        optimizer.zero_grad()
        offset = point - target
        loss = (offset * (matrix @ offset)).sum()
        loss.backward()
        return loss

    for _ in range(5):
        optimizer.step(closure)
    np.testing.assert_allclose(point.detach().numpy(), target.numpy(), atol=1e-4)
    assert optimizer.state_dict()["state"][0]["n_iter"] > 0


def test_lbfgs_refuses_groups_and_unknown_searches():
    with pytest.raises(ValueError, match="doesn't support per-parameter options"):
        optim.LBFGS([{"params": [torch.ones(1)]}, {"params": [torch.ones(1)]}])
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optim.LBFGS([torch.ones(1)], line_search_fn="x").step(lambda: None)


def test_clip_grad_norm_scales_all_gradients_together():
    params = [nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))]
    params[0].grad, params[1].grad = torch.tensor([2.0, 3.0]), torch.tensor([6.0])
    total = nn.utils.clip_grad_norm_(params, 3.5)
    assert total.item() == pytest.approx(7.0)
    assert params[1].grad.item() == pytest.approx(3.0, rel=1e-5)
    nn.utils.clip_grad_value_(params, 1.25)
    assert params[1].grad.item() == 1.25
    with pytest.raises(RuntimeError, match="is non-finite"):
        params[0].grad[0] = math.nan
        nn.utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)


def test_parameters_to_vector_and_back():
    layer = nn.Linear(3, 2)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    assert vector.shape == (8,)
    nn.utils.vector_to_parameters(torch.arange(8.0), layer.parameters())
    assert layer.weight[1, 2].item() == 5.0 and layer.bias[1].item() == 7.0


def test_averaged_model_keeps_the_mean_and_the_moving_average():
    model = nn.Linear(1, 1)
    mean = optim.swa_utils.AveragedModel(model)
    moving = optim.swa_utils.AveragedModel(
        model, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.75)
    )
    for value in (1.0, 2.0, 6.0):
        nn.init.constant_(model.weight, value)
        mean.update_parameters(model)
        moving.update_parameters(model)
    assert mean.module.weight.item() == pytest.approx(3.0)
    assert moving.module.weight.item() == pytest.approx((1 * 0.75 + 2 * 0.25) * 0.75 + 6 * 0.25)
    assert mean.n_averaged.item() == 3


def test_update_bn_interrupted_restores_mode_and_momentum():
    norm = torch.nn.BatchNorm1d(2, momentum=0.3).eval()

    def batches():
        yield torch.randn(4, 2)
        raise KeyError("no more")

    with pytest.raises(KeyError):
        optim.swa_utils.update_bn(batches(), norm)
    assert norm.momentum == 0.3
    assert not norm.training


@pytest.mark.parametrize("fused", [None, True])
def test_adam_loading_a_plain_step_makes_it_a_tensor_as_a_new_one(fused):
    param = torch.nn.Parameter(torch.ones(2))
    param.grad = torch.ones(2)
    torch.set_default_dtype(torch.float64)
    try:
        optimizer = optim.Adam([param], fused=fused)
        optimizer.step()
        fresh = optimizer.state[param]["step"].dtype
        saved = optimizer.state_dict()
        saved["state"][0]["step"] = 3
        optimizer.load_state_dict(saved)
    finally:
        torch.set_default_dtype(torch.float32)
    loaded = optimizer.state[param]["step"]
    assert loaded.item() == 3
    assert loaded.dtype == fresh == (torch.float32 if fused else torch.float64)


def test_update_bn_measures_the_mean_over_all_batches():
    model = nn.Sequential(nn.BatchNorm1d(2))
    batches = [torch.tensor([[0.0, 1.0], [2.0, 3.0]]), torch.tensor([[4.0, 0.0], [6.0, 0.0]])]
    optim.swa_utils.update_bn(batches, model)
    np.testing.assert_allclose(model[0].running_mean.numpy(), [3.0, 1.0])
    assert model[0].momentum == 0.1 and model.training


@pytest.mark.parametrize("cls", [optim.SGD, optim.Adam, optim.AdamW, optim.Adagrad])
def test_fused_refuses_parameters_without_memory(cls):
    param = nn.Parameter(torch.empty(2, device="meta"))
    param.grad = torch.empty(2, device="meta")
    optimizer = cls([param], fused=True)
    with pytest.raises(RuntimeError, match="`fused=True` requires all the params to be floating"):
        optimizer.step()


def test_groups_with_and_without_names_do_not_mix():
    first, second = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    named = optim.SGD([("a", first)], lr=0.1)
    with pytest.raises(ValueError, match="cannot add param group without names"):
        named.add_param_group({"params": [second]})
    plain = optim.SGD([first], lr=0.1)
    with pytest.raises(ValueError, match="cannot add param group with names"):
        plain.add_param_group({"params": [("b", second)]})


def test_lbfgs_at_a_stationary_point_returns_the_loss():
    optimizer = optim.LBFGS([torch.ones(3)], 0.01, tolerance_grad=-math.inf)
    assert optimizer.step(lambda: torch.tensor([10])).item() == 10


def test_nadam_is_differentiable_in_its_product_of_momenta():
    def stepped(product):
        param = torch.tensor([1.0], dtype=torch.float64).requires_grad_()
        held = param.clone()
        optimizer = torch.optim.NAdam([held], lr=0.1, differentiable=True)
        held.grad = torch.tensor([0.5], dtype=torch.float64)
        optimizer.state[held] = {
            "step": torch.tensor(3.0, dtype=torch.float64),
            "mu_product": product.clone(),
            "exp_avg": torch.tensor([0.2], dtype=torch.float64),
            "exp_avg_sq": torch.tensor([0.3], dtype=torch.float64),
        }
        optimizer.step()
        return held

    product = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(stepped, (product,))


def test_one_cycle_keeps_its_limits_when_the_caller_changes_the_tensors_given():
    rate = torch.tensor(0.1)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1, momentum=0.9)
    torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=rate, total_steps=10)
    rate.mul_(0.5)
    assert float(optimizer.param_groups[0]["max_lr"]) == pytest.approx(0.1)
