"""LARS and LAMB against the papers' formulas in float64 NumPy, and the ways of calling the step
functions that Adam and SGD share with programs that bring their own loops."""

import contextlib
import copy

import numpy as np
import pytest

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode


def trained(make, steps=4, dtype=torch.float64):
    """Two parameters after some steps along known gradients, and those gradients."""
    generator = torch.Generator().manual_seed(3)
    params = [
        nn.Parameter(torch.randn(4, 3, generator=generator, dtype=dtype)),
        nn.Parameter(torch.zeros(5, dtype=dtype)),
    ]
    start = [p.detach().numpy().copy() for p in params]
    optimizer = make(params)
    seen = []
    for _ in range(steps):
        for p in params:
            p.grad = torch.randn(p.shape, generator=generator, dtype=dtype)
        seen.append([p.grad.numpy().copy() for p in params])
        optimizer.step()
    return start, seen, [p.detach().numpy() for p in params], optimizer


def lars(p, grads, lr, momentum, decay, trust, eps=1e-8, nesterov=False):
    v = np.zeros_like(p)
    for g in grads:
        size, slope = np.linalg.norm(p), np.linalg.norm(g)
        rate = trust * size / (slope + decay * size + eps) if size > 0 and slope > 0 else 1.0
        change = lr * rate * (g + decay * p)
        v = momentum * v + change
        p = p - (change + momentum * v if nesterov else v)
    return p


def lamb(p, grads, lr, beta1, beta2, eps, decay, correct=True):
    m, v = np.zeros_like(p), np.zeros_like(p)
    for t, g in enumerate(grads, 1):
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        first, second = (m / (1 - beta1**t), v / (1 - beta2**t)) if correct else (m, v)
        r = first / (np.sqrt(second) + eps) + decay * p
        size, length = np.linalg.norm(p), np.linalg.norm(r)
        p = p - lr * (size / length if size > 0 and length > 0 else 1.0) * r
    return p


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_lars_follows_the_formula(nesterov, decay):
    settings = {"lr": 0.5, "momentum": 0.9, "weight_decay": decay, "trust_coefficient": 0.02}
    start, grads, got, _ = trained(lambda p: torch.optim.LARS(p, nesterov=nesterov, **settings))
    for i in (0, 1):
        want = lars(start[i], [g[i] for g in grads], 0.5, 0.9, decay, 0.02, nesterov=nesterov)
        np.testing.assert_allclose(got[i], want, rtol=1e-12)


@pytest.mark.parametrize("correct", [True, False])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_lamb_follows_the_formula(decay, correct):
    settings = {"lr": 0.05, "betas": (0.8, 0.95), "weight_decay": decay}
    start, grads, got, _ = trained(
        lambda p: torch.optim.LAMB(p, bias_correction=correct, **settings)
    )
    for i in (0, 1):
        want = lamb(start[i], [g[i] for g in grads], 0.05, 0.8, 0.95, 1e-6, decay, correct)
        np.testing.assert_allclose(got[i], want, rtol=1e-12)


@pytest.mark.parametrize("cls", [torch.optim.LARS, torch.optim.LAMB])
def test_layerwise_maximize_mirrors_minimize(cls):
    down = trained(lambda p: cls(p, lr=0.1))
    mirrored = nn.Parameter(torch.from_numpy(down[0][0].copy()))
    optimizer = cls([mirrored], lr=0.1, maximize=True)
    for grads in down[1]:
        mirrored.grad = -torch.from_numpy(grads[0])
        optimizer.step()
    np.testing.assert_allclose(mirrored.detach().numpy(), down[2][0], rtol=1e-12)


@pytest.mark.parametrize("cls", [torch.optim.LARS, torch.optim.LAMB])
def test_layerwise_state_dict_resumes_exactly(cls):
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    optimizer = cls(model.parameters(), lr=0.1)

    def step(model, optimizer):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).square().sum().backward()
        optimizer.step()

    step(model, optimizer)
    other = nn.Linear(4, 3)
    other.load_state_dict(model.state_dict())
    resumed = cls(other.parameters(), lr=0.7)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    step(model, optimizer)
    step(other, resumed)
    assert torch.equal(model.weight, other.weight)


@pytest.mark.parametrize(
    ("cls", "settings", "text"),
    [
        (torch.optim.LARS, {"lr": -1.0}, "Invalid learning rate"),
        (torch.optim.LARS, {"momentum": 0, "nesterov": True}, "Nesterov momentum requires"),
        (torch.optim.LARS, {"trust_coefficient": -1}, "Invalid trust_coefficient"),
        (torch.optim.LAMB, {"betas": (1.0, 0.9)}, "Invalid beta parameter at index 0"),
        (torch.optim.LAMB, {"eps": -1.0}, "Invalid epsilon value"),
        (torch.optim.Adam, {"lr": torch.ones(2)}, "Tensor lr must be 1-element"),
        (torch.optim.SGD, {"lr": torch.ones(2)}, "Tensor lr must be 1-element"),
        (
            torch.optim.AdamW,
            {"lr": torch.tensor(0.1), "foreach": True},
            "lr as a Tensor is not supported for capturable=False and foreach=True",
        ),
        (
            torch.optim.Adam,
            {"betas": (torch.tensor(0.9), 0.99)},
            "betas must be either both floats or both Tensors",
        ),
    ],
)
def test_wrong_settings_are_value_errors(cls, settings, text):
    with pytest.raises(ValueError, match=text):
        cls([nn.Parameter(torch.ones(2))], **settings)


@pytest.mark.parametrize("cls", [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD])
def test_foreach_and_fused_together_are_refused(cls):
    with pytest.raises(RuntimeError, match="`fused` and `foreach` cannot be `True` together"):
        cls([nn.Parameter(torch.ones(2))], foreach=True, fused=True)


@pytest.mark.parametrize("cls", [torch.optim.Adam, torch.optim.SGD, torch.optim.AdamW])
def test_complex_parameters_step_like_their_parts(cls):
    value = torch.randn(3, dtype=torch.complex128)
    whole = nn.Parameter(value.clone())
    parts = nn.Parameter(torch.view_as_real(value).clone())
    optimizers = cls([whole], lr=0.1), cls([parts], lr=0.1)
    for _ in range(3):
        whole.grad = value * (1 + 2j)
        parts.grad = torch.view_as_real(whole.grad).clone()
        for optimizer in optimizers:
            optimizer.step()
    torch.testing.assert_close(torch.view_as_real(whole.detach()), parts.detach())


CASES = [
    ("SGD", {"lr": 0.1, "weight_decay": 0.2}),
    ("Adam", {"lr": 0.1, "amsgrad": True}),
    ("AdamW", {"lr": 0.1}),
    ("Adamax", {"lr": 0.1}),
    ("NAdam", {"lr": 0.1}),
    ("RAdam", {"lr": 0.1, "betas": (0.5, 0.6)}),
    ("Adagrad", {"lr": 0.1}),
    ("Adadelta", {"lr": 0.1}),
    ("RMSprop", {"lr": 0.1, "centered": True, "momentum": 0.5}),
    ("ASGD", {"lr": 0.1}),
]


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_differentiable_step_has_the_gradient_of_finite_differences(name, settings):
    def after(weight, slope):
        param = weight.clone()
        optimizer = getattr(torch.optim, name)([param], differentiable=True, **settings)
        for k in range(3):
            param.grad = slope * (k + 1)
            optimizer.step()
        return param

    weight = torch.tensor([0.3, 0.8, 1.2], dtype=torch.float64, requires_grad=True)
    slope = torch.tensor([0.5, -0.7, 0.9], dtype=torch.float64, requires_grad=True)
    # The correction factors come from step counts, so the numbers are the same each time.
    assert torch.autograd.gradcheck(after, (weight, slope), eps=1e-6, atol=1e-5)


def test_differentiable_and_foreach_are_refused_at_the_step():
    param = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adamax([param], differentiable=True, foreach=True)
    param.grad = torch.ones(2)
    with pytest.raises(AssertionError, match="_foreach ops don't support autograd"):
        optimizer.step()


def test_differentiable_step_on_leaves_is_an_error():
    param = nn.Parameter(torch.ones(2))
    for cls in (torch.optim.SGD, torch.optim.Adam):
        param.grad = torch.ones(2)
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            cls([param], differentiable=True).step()


def test_step_functions_do_what_the_classes_do():
    from torch.optim.adamw import adamw
    from torch.optim.sgd import sgd

    grads = [torch.full((3,), 0.5), torch.full((2, 2), -0.5)]
    for how in ("adamw", "sgd"):
        loose = [torch.ones(3), torch.ones(2, 2)]
        owned = [nn.Parameter(t.clone()) for t in loose]
        if how == "adamw":
            optimizer = torch.optim.AdamW(owned, lr=0.1, weight_decay=0.1)
            means, squares = ([torch.zeros_like(t) for t in loose] for _ in range(2))
            steps = [torch.tensor(0.0), torch.tensor(0.0)]
        else:
            optimizer = torch.optim.SGD(owned, lr=0.1, momentum=0.9, weight_decay=0.1)
            buffers = [None, None]
        for _ in range(3):
            for param, grad in zip(owned, grads, strict=True):
                param.grad = grad.clone()
            optimizer.step()
            if how == "adamw":
                adamw(
                    loose,
                    grads,
                    means,
                    squares,
                    [],
                    steps,
                    amsgrad=False,
                    beta1=0.9,
                    beta2=0.999,
                    lr=0.1,
                    weight_decay=0.1,
                    eps=1e-8,
                    maximize=False,
                )
            else:
                sgd(
                    loose,
                    grads,
                    buffers,
                    weight_decay=0.1,
                    momentum=0.9,
                    lr=0.1,
                    dampening=0,
                    nesterov=False,
                    maximize=False,
                )
        for ours, theirs in zip(loose, owned, strict=True):
            assert torch.equal(ours, theirs.detach())


def test_repeated_parameter_in_a_group_is_a_warning():
    param = nn.Parameter(torch.ones(2))
    with pytest.warns(UserWarning, match="duplicate parameters"):
        torch.optim.SGD([param, param], lr=0.1)


def test_names_for_some_parameters_only_are_refused():
    params = [("a", nn.Parameter(torch.ones(2))), nn.Parameter(torch.ones(2))]
    with pytest.raises(ValueError, match="Some param names are missing"):
        torch.optim.SGD(params, lr=0.1)


def test_repr_separates_groups_by_an_empty_line():
    groups = [{"params": [nn.Parameter(torch.ones(1))]}, {"params": [nn.Parameter(torch.ones(1))]}]
    assert "weight_decay: 0\n\nParameter Group 1\n" in repr(torch.optim.SGD(groups, lr=0.1))


def test_warm_restarts_resumed_far_along_start_within_a_cycle():
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    optimizer.param_groups[0]["initial_lr"] = 0.1
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2, 2, last_epoch=9)
    seen = []
    for _ in range(5):
        seen.append((schedule.T_cur, schedule.T_i, schedule.last_epoch))
        optimizer.step()
        schedule.step()
    assert seen == [(0, 4, 10), (1, 4, 11), (2, 4, 12), (3, 4, 13), (0, 8, 14)]


def test_lbfgs_takes_sparse_gradients():
    torch.manual_seed(0)
    table = nn.Embedding(6, 3, sparse=True)
    optimizer = torch.optim.LBFGS(table.parameters(), max_iter=3)
    untouched = table.weight[0].detach().clone()

    def closure():
        optimizer.zero_grad()
        loss = table(torch.tensor([1, 3])).square().sum()
        loss.backward()
        return loss

    first = optimizer.step(closure)
    assert closure() < first
    assert torch.equal(table.weight[0], untouched)


# ---- steps that a captured graph can repeat: nothing is read back from the device

CAPTURABLE = [
    ("Adam", {"amsgrad": True, "weight_decay": 0.1}),
    ("Adam", {"lr": torch.tensor(0.01)}),
    ("AdamW", {}),
    ("Adamax", {"weight_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"betas": (0.5, 0.6)}),
    ("ASGD", {"t0": 2}),
    ("Adadelta", {}),
    ("RMSprop", {"momentum": 0.5, "centered": True, "lr": torch.tensor(0.01)}),
    ("Rprop", {}),
]


class ReadsNothing(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert "local_scalar" not in str(func), func
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("name", "settings"), CAPTURABLE)
def test_capturable_steps_read_nothing_and_agree(name, settings):
    found = []
    for capturable in (False, True):
        generator = torch.Generator().manual_seed(0)
        params = [
            nn.Parameter(torch.randn(3, 2, dtype=torch.float64, generator=generator)),
            nn.Parameter(torch.randn(2, dtype=torch.float64, generator=generator)),
        ]
        optimizer = getattr(torch.optim, name)(params, capturable=capturable, **settings)
        for k in range(7):
            for param in params:
                param.grad = torch.sin(param.detach() * (k + 1))
            with ReadsNothing() if capturable and k else contextlib.nullcontext():
                optimizer.step()
        found.append([param.detach() for param in params])
    # Steps are counted in float32, as saved states have them.
    for plain, captured in zip(*found, strict=True):
        torch.testing.assert_close(plain, captured, rtol=1e-4, atol=1e-5)
