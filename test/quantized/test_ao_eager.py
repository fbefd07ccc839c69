"""torch.ao.quantization in eager mode: grids that observers propose, swaps of modules, training."""

import io

import pytest

import torch
from torch import nn
from torch.ao import quantization as tq
from torch.ao.nn import intrinsic, quantized


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = tq.QuantStub(), tq.DeQuantStub()
        self.conv, self.bn, self.relu = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()
        self.fc = nn.Linear(8, 4)
        self.sum = quantized.FloatFunctional()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu(self.bn(self.conv(self.quant(x)))).mean((2, 3))
        y = self.fc(x)
        return self.dequant(self.sum.add(y, y))


def seeded(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("options", "scale", "zero_point"),
    [
        ({}, 8 / 255, round(3 / (8 / 255))),
        ({"reduce_range": True}, 8 / 127, round(3 / (8 / 127))),
        ({"dtype": torch.qint8, "qscheme": torch.per_tensor_symmetric}, 5 / 127.5, 0),
        ({"qscheme": torch.per_tensor_symmetric}, 5 / 127.5, 128),
        ({"quant_min": 0, "quant_max": 15}, 8 / 15, round(3 / (8 / 15))),
    ],
)
def test_minmax_observer_range_gives_the_grid_that_covers_it(
    options: dict, scale: float, zero_point: int
) -> None:
    watcher = tq.MinMaxObserver(**options)
    for values in (torch.tensor([-3.0, 1.0]), torch.tensor([5.0])):
        assert watcher(values) is values
    found, zero = watcher.calculate_qparams()
    assert float(found) == pytest.approx(scale) and int(zero) == zero_point


def test_moving_average_observer_moves_towards_new_extremes() -> None:
    watcher = tq.MovingAverageMinMaxObserver(averaging_constant=0.5)
    watcher(torch.tensor([-1.0, 1.0]))
    watcher(torch.tensor([-3.0, 5.0]))
    assert (float(watcher.min_val), float(watcher.max_val)) == (-2.0, 3.0)


def test_per_channel_observer_keeps_extremes_of_each_slice() -> None:
    watcher = tq.PerChannelMinMaxObserver(
        ch_axis=1, dtype=torch.qint8, qscheme=torch.per_channel_symmetric
    )
    watcher(torch.tensor([[1.0, -4.0], [2.0, 3.0]]))
    scale, zero = watcher.calculate_qparams()
    assert scale.tolist() == pytest.approx([2 / 127.5, 4 / 127.5]) and zero.tolist() == [0, 0]


def test_histogram_observer_one_outlier_gets_a_smaller_error_than_its_range() -> None:
    values = torch.cat([seeded(10000), torch.tensor([60.0])])
    watcher = tq.HistogramObserver()
    watcher(values[:5000])
    watcher(values[5000:])
    assert float(watcher.histogram.sum()) == 10001

    def error(scale: torch.Tensor, zero: torch.Tensor) -> float:
        made = torch.quantize_per_tensor(values, float(scale), int(zero), torch.quint8)
        return float((made.dequantize() - values).square().sum())

    wide = tq.MinMaxObserver()
    wide(values)
    assert error(*watcher.calculate_qparams()) <= error(*wide.calculate_qparams())


def test_prepare_and_convert_give_a_model_close_to_the_float_one() -> None:
    torch.manual_seed(0)
    model, x = Small().eval(), seeded(4, 3, 8, 8)
    expected = model(x)
    fused = tq.fuse_modules(model, [["conv", "bn", "relu"]])
    assert isinstance(fused.conv, intrinsic.ConvReLU2d) and isinstance(fused.bn, nn.Identity)
    assert torch.allclose(fused(x), expected, atol=1e-5)
    fused.qconfig = tq.get_default_qconfig("x86")
    observed = tq.prepare(fused)
    observed(x)
    made = tq.convert(observed)
    assert isinstance(made.conv, intrinsic.quantized.ConvReLU2d) and isinstance(
        made.fc, quantized.Linear
    )
    assert isinstance(made.sum, quantized.QFunctional) and made.fc.weight().dtype is torch.qint8
    assert (made(x) - expected).abs().max() < 0.05 * expected.abs().max()
    assert not any(isinstance(m, tq.ObserverBase) for m in made.modules())
    # A model made of the same parts takes its state.
    file = io.BytesIO()
    torch.save(made.state_dict(), file)
    file.seek(0)
    other = tq.convert(tq.prepare(fused))
    other.load_state_dict(torch.load(file))
    assert torch.equal(other(x), made(x))


@pytest.mark.parametrize(("dtype", "bound"), [(torch.qint8, 0.03), (torch.float16, 1e-3)])
def test_quantize_dynamic_linear_layers_are_swapped(dtype: torch.dtype, bound: float) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    made = tq.quantize_dynamic(model, {nn.Linear}, dtype=dtype)
    assert isinstance(made[0], quantized.dynamic.Linear) and isinstance(model[0], nn.Linear)
    x = seeded(5, 16)
    assert (made(x) - model(x)).abs().max() < bound
    keys = list(made.state_dict())
    assert keys[:4] == [
        "0.scale",
        "0.zero_point",
        "0._packed_params.dtype",
        "0._packed_params._packed_params",
    ]


def test_quantize_dynamic_names_choose_modules() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    made = tq.quantize_dynamic(model, {"1"})
    assert type(made[0]) is nn.Linear and isinstance(made[1], quantized.dynamic.Linear)


def test_prepare_qat_gradients_reach_weights_and_convert_keeps_levels() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(tq.QuantStub(), nn.Linear(16, 8), nn.Linear(8, 2), tq.DeQuantStub())
    model.train().qconfig = tq.get_default_qat_qconfig("qnnpack")
    trained, x = tq.prepare_qat(model), seeded(64, 16)
    optimizer = torch.optim.SGD(trained.parameters(), 0.05)
    losses = []
    for _ in range(30):
        loss = (trained(x) - 0.3).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    assert losses[-1] < losses[0]
    trained.eval().apply(tq.disable_observer)
    made = tq.convert(trained)
    step = made[2].scale
    assert isinstance(made[1], quantized.Linear)
    assert (made(x) - trained(x)).abs().max() <= 2 * step


def test_fake_quantize_switches_turn_rounding_and_observing_off() -> None:
    fake = tq.default_fake_quant()
    x = torch.tensor([0.0, 0.123, 1.0])
    rounded = fake(x)
    assert not torch.equal(rounded, x) or float(fake.scale) == 1.0
    fake.disable_observer()
    scale = fake.scale.clone()
    fake(x * 100)
    assert torch.equal(fake.scale, scale)
    fake.disable_fake_quant()
    assert torch.equal(fake(x), x)


def test_qconfig_of_observer_instances_is_refused() -> None:
    with pytest.raises(ValueError, match="observer instance"):
        tq.QConfig(tq.MinMaxObserver(), tq.MinMaxObserver())


def test_old_names_are_the_same_classes() -> None:
    import torch.nn.quantized as old

    assert old.Linear is quantized.Linear and torch.quantization.QuantStub is tq.QuantStub


def test_engine_unknown_name_is_refused() -> None:
    before = torch.backends.quantized.engine
    assert before in torch.backends.quantized.supported_engines
    with pytest.raises(RuntimeError, match="not a valid value"):
        torch.backends.quantized.engine = "none of these"
    assert torch.backends.quantized.engine == before


def test_bag_of_embeddings_with_wrong_scheme_is_named_in_the_error() -> None:
    bag = nn.EmbeddingBag(4, 2)
    bag.qconfig = tq.get_default_qat_qconfig("fbgemm")
    with pytest.raises(AssertionError, match="Embedding Bag weights requires a qscheme"):
        torch.ao.nn.qat.EmbeddingBag.from_float(bag)


def test_product_of_levels_per_channel_is_refused_by_name() -> None:
    x = torch.quantize_per_channel(
        torch.randn(2, 2), torch.ones(2), torch.zeros(2, dtype=torch.int64), 0, torch.qint8
    )
    with pytest.raises(RuntimeError, match="per-tensor"):
        torch.ops.quantized.matmul(x, x, 1.0, 0)


def test_histogram_observer_forgets_what_it_counted():
    observer = tq.HistogramObserver()
    observer(torch.randn(50))
    observer.reset_histogram()
    assert not observer.histogram.any() and observer.min_val == float("inf")
    observer(torch.tensor([0.0, 1.0]))
    assert observer.max_val == 1 and observer.histogram.sum() == 2


def test_narrow_weight_fake_quantizers_leave_out_the_lowest_level():
    for make in (
        tq.fused_wt_fake_quant_range_neg_127_to_127,
        tq.fused_per_channel_wt_fake_quant_range_neg_127_to_127,
    ):
        quantizer = make()
        assert (quantizer.quant_min, quantizer.quant_max) == (-127, 127)
        assert quantizer(torch.tensor([[-1.0, 1.0]])).tolist() == [[-1, 1]]


def test_prepared_model_does_not_observe_what_leaves_the_quantized_part():
    model = nn.Sequential(tq.QuantStub(), nn.Linear(3, 3), tq.DeQuantStub())
    model.qconfig = tq.get_default_qconfig("x86")
    observed = [n for n, _ in tq.prepare(model.eval()).named_modules() if n.endswith("process")]
    assert observed == ["0.activation_post_process", "1.activation_post_process"]
    model.qconfig = tq.get_default_qat_qconfig("x86")
    trained = tq.prepare_qat(model.train())
    assert not hasattr(trained[2], "activation_post_process")


def test_histogram_observer_spreads_counts_over_the_bins_of_a_wider_range():
    observer = tq.HistogramObserver(bins=3)
    for values in ([1.0] * 4, [0.0] * 4, [0.0] * 4, [2.0, 3.0, 4.0, 5.0], [5.0, 6.0, 7.0, 8.0]):
        observer(torch.tensor(values))
    # Of the bin from 5/3 to 10/3, which has two values, 10 of 16 parts lie below 8/3.
    assert observer.histogram.tolist() == [13.25, 3.75, 3.0]
    assert (observer.min_val.item(), observer.max_val.item()) == (0.0, 8.0)


def test_histogram_observer_gives_up_a_single_value_far_outside():
    observer = tq.HistogramObserver(bins=64, qscheme=torch.per_tensor_affine)
    observer(torch.cat([torch.linspace(-1, 1, 100_001), torch.tensor([100.0])]))
    scale, _ = observer.calculate_qparams()
    assert scale.item() < 101 / 255


def test_states_of_older_versions_load():
    observer = tq.PerChannelMinMaxObserver()
    low, high = torch.tensor([-1.0, -2.0]), torch.tensor([1.0, 3.0])
    observer.load_state_dict({"min_vals": low, "max_vals": high, "eps": observer.eps})
    assert torch.equal(observer.min_val, low) and torch.equal(observer.max_val, high)
    layer, other = (torch.ao.nn.quantized.Linear(3, 2) for _ in range(2))
    layer.set_weight_bias(torch.quantize_per_tensor(torch.randn(2, 3), 0.1, 0, torch.qint8), low)
    state = layer.state_dict()
    state["_packed_params.weight"], state["_packed_params.bias"] = layer._weight_bias()
    del state["_packed_params._packed_params"]
    other.load_state_dict(state)
    assert torch.equal(other.weight(), layer.weight()) and torch.equal(other.bias(), low)
