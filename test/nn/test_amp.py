"""Autocast: the dtype each operator runs in, the cache of cast weights, nesting, gradients, custom
Functions; GradScaler: the whole protocol of a step, found infinities, growth and backoff, saving.
"""

import pickle
import warnings

import pytest

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch.amp import GradScaler, autocast, custom_bwd, custom_fwd


@pytest.fixture
def a():
    torch.manual_seed(0)
    return torch.randn(4, 4)


LOWER = {
    "mm": lambda a: torch.mm(a, a),
    "operator": lambda a: a @ a,
    "linear": lambda a: F.linear(a, a, a[0]),
    "addmm": lambda a: torch.addmm(a, a, a),
    "bmm": lambda a: torch.bmm(a[None], a[None]),
    "baddbmm": lambda a: torch.baddbmm(a[None], a[None], a[None]),
    "conv2d": lambda a: F.conv2d(a[None, None], a[None, None]),
    "conv_transpose1d": lambda a: F.conv_transpose1d(a[None], a[:, :, None]),
    "attention": lambda a: F.scaled_dot_product_attention(a[None], a[None], a[None]),
}
FLOAT32 = {
    "mse_loss": lambda a: F.mse_loss(a @ a, a @ a),
    "cross_entropy": lambda a: F.cross_entropy(a @ a, torch.arange(4)),
    "prod": lambda a: torch.prod(a @ a),
    "reflect": lambda a: F.pad((a @ a)[None], (1, 1), mode="reflect"),
    "bce": lambda a: F.binary_cross_entropy(
        torch.sigmoid(a @ a), torch.ones(4, 4, dtype=torch.bfloat16)
    ),
    "widest": lambda a: torch.cat([a, a @ a]),
}
UNCHANGED = {
    "softmax": lambda a: torch.softmax(a @ a, 0),
    "sum": lambda a: (a @ a).sum(),
    "layer_norm": lambda a: F.layer_norm(a @ a, [4]),
    "cat": lambda a: torch.cat([a @ a, a @ a]),
}


@pytest.mark.parametrize("name", LOWER)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_products_run_in_the_lower_precision(name, dtype, a):
    exact = LOWER[name](a)
    with autocast("cpu", dtype=dtype):
        result = LOWER[name](a)
    assert result.dtype is dtype
    torch.testing.assert_close(result.float(), exact, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("name", FLOAT32)
def test_float32_operators(name, a):
    with autocast("cpu"):
        assert FLOAT32[name](a).dtype is torch.float32


@pytest.mark.parametrize("name", UNCHANGED)
def test_other_operators_keep_their_dtype(name, a):
    with autocast("cpu"):
        assert UNCHANGED[name](a).dtype is torch.bfloat16


def test_double_and_integers_are_left_alone(a):
    with autocast("cpu"):
        assert (a.double() @ a.double()).dtype is torch.float64
        whole = torch.ones(2, 2, dtype=torch.int64)
        assert (whole @ whole).dtype is torch.int64


def test_outside_a_region_nothing_is_cast(a):
    with autocast("cpu"):
        pass
    assert (a @ a).dtype is torch.float32
    assert not torch.is_autocast_enabled("cpu")


def test_nesting_and_disabling(a):
    with autocast("cpu", dtype=torch.bfloat16):
        with autocast("cpu", enabled=False):
            assert (a @ a).dtype is torch.float32
            with autocast("cpu", dtype=torch.float16):
                assert (a @ a).dtype is torch.float16
        assert (a @ a).dtype is torch.bfloat16
        assert torch.get_autocast_dtype("cpu") is torch.bfloat16


def test_the_state_is_restored_after_an_error():
    with pytest.raises(KeyError), autocast("cpu"):
        raise KeyError
    assert not torch.is_autocast_enabled("cpu")


def test_decorator(a):
    @autocast("cpu")
    def product(x):
        """Docs stay."""
        return x @ x

    assert product(a).dtype is torch.bfloat16
    assert product.__doc__ == "Docs stay."


def test_weights_are_cast_once_per_region(a):
    weight = torch.nn.Parameter(a.clone())
    with autocast("cpu"):
        first = F.linear(a, weight)
        second = F.linear(a, weight)
    casts = [
        {node for node, _ in out.grad_fn.next_functions if node and "Copy" in node.name()}
        for out in (first, second)
    ]
    assert casts[0] and casts[0] == casts[1]
    with autocast("cpu", cache_enabled=False):
        others = [F.linear(a, weight).grad_fn.next_functions for _ in range(2)]
    assert others[0] != others[1]


def test_a_changed_weight_is_cast_anew_in_the_next_region(a):
    weight = torch.nn.Parameter(torch.zeros(4, 4))
    with autocast("cpu"):
        assert F.linear(a, weight).abs().sum() == 0
    with torch.no_grad():
        weight += 1
    with autocast("cpu"):
        assert F.linear(a, weight).abs().sum() != 0


def test_gradients_arrive_in_the_weights_dtype(a):
    layer = torch.nn.Linear(4, 4)
    exact = torch.autograd.grad(layer(a).square().sum(), layer.weight)[0]
    with autocast("cpu"):
        loss = layer(a).square().sum()
    loss.backward()
    assert layer.weight.grad.dtype is torch.float32
    torch.testing.assert_close(layer.weight.grad, exact, rtol=0.1, atol=0.1)


def test_unsupported_dtype_disables_with_a_warning():
    with pytest.warns(UserWarning, match="target dtype is not supported"):
        region = autocast("cpu", dtype=torch.float32)
    assert not region._enabled


def test_bad_device_types():
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        autocast(3)
    with pytest.raises(RuntimeError, match="at start of device string: foo"):
        autocast("foo")
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'meta'"):
        autocast("meta")


def test_old_names_warn():
    with pytest.warns(DeprecationWarning, match="get_autocast_dtype"):
        assert torch.get_autocast_cpu_dtype() is torch.bfloat16
    with pytest.warns(FutureWarning, match="torch.cpu.amp.autocast"):
        torch.cpu.amp.autocast()


def test_custom_function_keeps_the_state_of_forward(a):
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu")
        def forward(ctx, x):
            seen.append((x @ x).dtype)
            return x * 2

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            seen.append((a @ a).dtype)
            return grad * 2

    x = a.clone().requires_grad_()
    with autocast("cpu"):
        out = Product.apply(x)
    out.sum().backward()
    assert seen == [torch.bfloat16, torch.bfloat16]


def test_custom_function_with_cast_inputs(a):
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, x, more):
            seen.extend([x.dtype, more["y"][0].dtype, (x @ x).dtype])
            return x.clone()

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            return grad, None

    half = a.bfloat16().requires_grad_()
    with autocast("cpu"):
        Product.apply(half, {"y": (half.detach(),)})
    assert seen == [torch.float32] * 3


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoint_recomputes_under_the_autocast_of_its_first_run(use_reentrant, a):
    seen = []

    def part(x):
        seen.append(torch.is_autocast_enabled("cpu"))
        return x @ x

    x = a.clone().requires_grad_()
    with autocast("cpu"):
        out = torch.utils.checkpoint.checkpoint(part, x, use_reentrant=use_reentrant)
    out.float().sum().backward()
    assert seen == [True, True]
    seen.clear()
    out = torch.utils.checkpoint.checkpoint(part, x, use_reentrant=use_reentrant)
    with autocast("cpu"):
        out.sum().backward()
    assert seen == [False, False]


# ---- GradScaler


def _model():
    weight = torch.nn.Parameter(torch.ones(3))
    return weight, torch.optim.SGD([weight], 0.5)


def test_a_step_of_the_scaler():
    weight, optimizer = _model()
    scaler = GradScaler("cpu", init_scale=8.0)
    scaler.scale((weight * 2).sum()).backward()
    assert weight.grad.tolist() == [16.0] * 3
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [0.0] * 3
    assert scaler.get_scale() == 8.0


def test_infinite_gradients_skip_the_step_and_lower_the_scale():
    weight, optimizer = _model()
    scaler = GradScaler("cpu", init_scale=8.0, backoff_factor=0.25)
    scaler.scale(weight.sum() * float("inf")).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [1.0] * 3
    assert scaler.get_scale() == 2.0


def test_the_scale_grows_after_the_interval():
    weight, optimizer = _model()
    scaler = GradScaler("cpu", init_scale=2.0, growth_factor=4.0, growth_interval=2)
    scales = []
    for _ in range(4):
        optimizer.zero_grad()
        scaler.scale(weight.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [2.0, 8.0, 8.0, 32.0]


def test_protocol_errors():
    weight, optimizer = _model()
    scaler = GradScaler("cpu")
    with pytest.raises(AssertionError, match="Attempted update but _scale is None"):
        scaler.update()
    with pytest.raises(AssertionError, match="Attempted step but _scale is None"):
        scaler.step(optimizer)
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)
    assert weight.grad.tolist() == [1.0] * 3
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"called after step\(\)"):
        scaler.unscale_(optimizer)
    with pytest.raises(AssertionError, match="may only be pickled"):
        pickle.dumps(scaler)


def test_constructor_errors_and_disabling():
    with pytest.raises(AssertionError, match="growth factor must be > 1"):
        GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match="backoff factor must be < 1"):
        GradScaler("cpu", backoff_factor=1.0)
    scaler = GradScaler("cpu", enabled=False)
    one = torch.ones(())
    assert scaler.scale(one) is one
    assert scaler.state_dict() == {} and scaler.get_scale() == 1.0


def test_scaling_nested_outputs():
    scaler = GradScaler("cpu", init_scale=4.0)
    one = torch.ones(())
    first, (second,) = scaler.scale([one, (one,)])
    assert first.item() == second.item() == 4.0


def test_state_dict_and_pickle():
    weight, optimizer = _model()
    scaler = GradScaler("cpu", init_scale=4.0, growth_interval=7)
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    state = scaler.state_dict()
    assert state == {
        "scale": 4.0,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 7,
        "_growth_tracker": 1,
    }
    other = GradScaler("cpu")
    other.load_state_dict(state)
    assert other.state_dict() == state
    assert pickle.loads(pickle.dumps(scaler)).state_dict() == state
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        other.load_state_dict({})


def test_update_with_a_given_scale():
    weight, _ = _model()
    scaler = GradScaler("cpu")
    scaler.scale(weight.sum())
    scaler.update(3.0)
    assert scaler.get_scale() == 3.0
    with pytest.raises(AssertionError, match="1-element"):
        scaler.update(torch.ones(3))


def test_no_warning_inside_a_plain_region(a):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with autocast("cpu"):
            a @ a


def test_an_optimizer_that_scales_itself_finds_the_scale_and_the_infinities():
    seen = []

    class Own(torch.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure=None):
            seen.append((float(self.grad_scale), float(self.found_inf)))

    p = torch.nn.Parameter(torch.ones(1))
    scaler = GradScaler("cpu", init_scale=4.0)
    optimizer = Own([p], lr=1.0)
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    assert seen == [(4.0, 0.0)]
    assert p.grad.item() == 4.0  # not unscaled
    assert not hasattr(optimizer, "grad_scale")
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.step(optimizer)


def test_an_optimizer_of_the_old_form_gets_the_scaler_with_a_warning():
    class Old(torch.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure=None, *, grad_scaler=None):
            self.scaler = grad_scaler

    p = torch.nn.Parameter(torch.ones(1))
    scaler = GradScaler("cpu")
    optimizer = Old([p], lr=1.0)
    scaler.scale(p.sum()).backward()
    with pytest.warns(FutureWarning, match="stop passing itself"):
        scaler.step(optimizer)
    assert optimizer.scaler is scaler
