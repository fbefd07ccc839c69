"""Layers: normalisation, padding, shapes, embeddings, lazy modules and backward hooks, against
NumPy or a plain loop."""

import pickle
import warnings

import numpy as np
import pytest

import torch
from torch import nn


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def lazy(make):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()


# ---- normalisation


def test_batch_norm_normalises_over_the_batch_and_tracks_what_it_saw():
    x = draw(4, 3, 5)
    norm = nn.BatchNorm1d(3).double()
    mean, var = x.mean((0, 2)), x.var((0, 2))
    expected = (x - mean[:, None]) / np.sqrt(var[:, None] + 1e-5)
    np.testing.assert_allclose(norm(torch.tensor(x)).detach().numpy(), expected, rtol=1e-9)
    unbiased = x.var((0, 2), ddof=1)
    np.testing.assert_allclose(norm.running_mean.numpy(), 0.1 * mean, rtol=1e-9)
    np.testing.assert_allclose(norm.running_var.numpy(), 0.9 + 0.1 * unbiased, rtol=1e-9)
    assert norm.num_batches_tracked.item() == 1
    norm.eval()
    expected = (x - 0.1 * mean[:, None]) / np.sqrt(0.9 + 0.1 * unbiased[:, None] + 1e-5)
    np.testing.assert_allclose(norm(torch.tensor(x)).detach().numpy(), expected, rtol=1e-9)


def test_batch_norm_without_momentum_keeps_the_plain_average():
    norm = nn.BatchNorm1d(2, momentum=None).double()
    batches = [draw(6, 2, seed=s) for s in range(3)]
    for x in batches:
        norm(torch.tensor(x))
    expected = np.mean([x.mean(0) for x in batches], 0)
    np.testing.assert_allclose(norm.running_mean.numpy(), expected, rtol=1e-9)


def test_batch_norm_without_statistics_uses_the_batch_in_evaluation_too():
    norm = nn.BatchNorm2d(2, track_running_stats=False).double().eval()
    x = draw(2, 2, 2, 3)
    out = norm(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(out.mean((0, 2, 3)), 0, atol=1e-12)
    assert list(norm.state_dict()) == ["weight", "bias"]


def test_batch_norm_loads_files_that_did_not_count_batches():
    norm = nn.BatchNorm1d(2)
    state = norm.state_dict()
    del state["num_batches_tracked"]
    state._metadata = {}
    assert norm.load_state_dict(state).missing_keys == []


@pytest.mark.parametrize("batched", [True, False])
def test_instance_norm_normalises_each_sample(batched):
    x = draw(2, 3, 7)
    expected = (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5)
    norm = nn.InstanceNorm1d(3)
    given, wanted = (x, expected) if batched else (x[0], expected[0])
    np.testing.assert_allclose(norm(torch.tensor(given)).numpy(), wanted, rtol=1e-8)
    assert list(norm.state_dict()) == []


def test_group_norm_normalises_groups_of_channels():
    x = draw(2, 6, 4)
    groups = x.reshape(2, 2, -1)
    expected = (groups - groups.mean(2, keepdims=True)) / np.sqrt(
        groups.var(2, keepdims=True) + 1e-5
    )
    out = nn.GroupNorm(2, 6).double()(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(out, expected.reshape(2, 6, 4), rtol=1e-8)
    with pytest.raises(ValueError, match="must be divisible by num_groups"):
        nn.GroupNorm(4, 6)


def test_local_response_norm_looks_at_neighbouring_channels():
    x = draw(1, 5, 2, 2)
    square = np.pad(x * x, ((0, 0), (1, 1), (0, 0), (0, 0)))
    mean = sum(square[:, i : i + 5] for i in range(3)) / 3
    expected = x / (2 + 0.5 * mean) ** 0.75
    out = nn.LocalResponseNorm(3, 0.5, k=2)(torch.tensor(x)).numpy()
    np.testing.assert_allclose(out, expected, rtol=1e-9)


def test_cross_map_norm_also_keeps_the_first_channel_in_view():
    x = draw(1, 5, 2, 2)
    expected = np.empty_like(x)
    for channel in range(5):
        seen = {0, channel - 1, channel, channel + 1} & set(range(5))
        total = sum(x[:, i] ** 2 for i in seen)
        expected[:, channel] = x[:, channel] / (2 + 0.5 / 3 * total) ** 0.75
    out = nn.CrossMapLRN2d(3, 0.5, k=2)(torch.tensor(x)).numpy()
    np.testing.assert_allclose(out, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("norm", "shape", "message"),
    [
        (lambda: nn.BatchNorm1d(3), (2, 3, 4, 5), "expected 2D or 3D input"),
        (lambda: nn.BatchNorm2d(3), (2, 3), "expected 4D input"),
        (lambda: nn.BatchNorm3d(3), (2, 3), "expected 5D input"),
        (lambda: nn.BatchNorm1d(3), (1, 3), "more than 1 value per channel"),
        (lambda: nn.InstanceNorm2d(3, affine=True), (2, 4, 2, 2), "match num_features"),
    ],
)
def test_norms_refuse_inputs_of_other_shapes(norm, shape, message):
    with pytest.raises(ValueError, match=message):
        norm()(torch.zeros(shape))


# ---- padding and shapes


@pytest.mark.parametrize(
    ("kind", "mode"),
    [("ReflectionPad", "reflect"), ("ReplicationPad", "edge"), ("CircularPad", "wrap")],
)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_pads_agree_with_numpy(kind, mode, dims):
    x = draw(2, 3, *(4, 5, 3)[:dims])
    layer = getattr(nn, f"{kind}{dims}d")(2)
    expected = np.pad(x, [(0, 0), (0, 0)] + [(2, 2)] * dims, mode=mode)
    np.testing.assert_array_equal(layer(torch.tensor(x)).numpy(), expected)


def test_constant_pads_fill_and_crop():
    x = draw(1, 3, 3)
    expected = np.pad(x[:, :, 1:], [(0, 0), (0, 1), (0, 1)], constant_values=2.0)
    out = nn.ConstantPad2d((-1, 1, 0, 1), 2.0)(torch.tensor(x))
    np.testing.assert_array_equal(out.numpy(), expected)
    assert repr(nn.ZeroPad1d(2)) == "ZeroPad1d((2, 2))"
    assert repr(nn.ConstantPad1d(2, 3.5)) == "ConstantPad1d(padding=(2, 2), value=3.5)"


def test_flatten_and_unflatten_are_inverse():
    x = torch.arange(24).reshape(2, 3, 4)
    assert torch.equal(nn.Unflatten(1, (3, 4))(nn.Flatten()(x)), x)
    with pytest.raises(TypeError, match="tuple of ints"):
        nn.Unflatten(1, 4)


def test_shuffles_move_what_they_say():
    x = torch.arange(16).reshape(1, 4, 2, 2)
    out = nn.PixelShuffle(2)(x)
    for channel, row, col in np.ndindex(4, 2, 2):
        found = out[0, 0, 2 * row + channel // 2, 2 * col + channel % 2]
        assert found == x[0, channel, row, col]
    assert torch.equal(nn.PixelUnshuffle(2)(out), x)
    assert nn.ChannelShuffle(2)(x)[0, :, 0, 0].tolist() == [0, 8, 4, 12]


def test_distances_follow_their_formula():
    a, b = draw(3, 4, seed=1), draw(3, 4, seed=2)
    out = nn.PairwiseDistance(p=1.5, keepdim=True)(torch.tensor(a), torch.tensor(b))
    expected = (np.abs(a - b + 1e-6) ** 1.5).sum(1, keepdims=True) ** (1 / 1.5)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-10)
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    out = nn.CosineSimilarity()(torch.tensor(a), torch.tensor(b))
    np.testing.assert_allclose(out.numpy(), cosine, rtol=1e-10)
    assert nn.CosineSimilarity()(torch.zeros(1, 3), torch.ones(1, 3)).item() == 0


# ---- embeddings


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag_reduces_each_bag(mode):
    bag = nn.EmbeddingBag(6, 3, mode=mode)
    index, starts = [1, 2, 4, 5, 0], [0, 3]
    rows = bag.weight.detach().numpy()
    reduce = getattr(np, mode)
    expected = np.stack([reduce(rows[[1, 2, 4]], 0), reduce(rows[[5, 0]], 0)])
    out = bag(torch.tensor(index), torch.tensor(starts))
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-6)
    flat = bag(torch.tensor([[1, 2], [3, 0]]))
    np.testing.assert_allclose(flat[0].detach().numpy(), reduce(rows[[1, 2]], 0), rtol=1e-6)


def test_embedding_bag_weights_samples_and_passes_gradients():
    bag = nn.EmbeddingBag(4, 2, mode="sum")
    scale = torch.tensor([2.0, 3.0, 1.0])
    bag(torch.tensor([1, 3, 1]), torch.tensor([0]), scale).sum().backward()
    assert bag.weight.grad[:, 0].tolist() == [0, 3, 0, 3]


def test_embedding_bag_refuses_what_it_cannot_do():
    bag = nn.EmbeddingBag(4, 3)
    index = torch.tensor([1, 2])
    with pytest.raises(ValueError, match="offsets has to be a 1D Tensor but got None"):
        bag(index)
    with pytest.raises(NotImplementedError, match="only supported for mode='sum'"):
        bag(index, torch.tensor([0]), torch.ones(2))
    with pytest.raises(ValueError, match="max mode does not support sparse weights"):
        nn.EmbeddingBag(4, 3, mode="max", sparse=True)(index, torch.tensor([0]))


def test_adaptive_softmax_gives_the_probabilities_it_scores_with():
    torch.manual_seed(0)
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7]).double()
    x, target = torch.tensor(draw(5, 8)), torch.tensor([0, 4, 11, 7, 2])
    whole = layer.log_prob(x)
    np.testing.assert_allclose(whole.exp().sum(1).detach().numpy(), 1, rtol=1e-12)
    output, loss = layer(x, target)
    picked = whole[torch.arange(5), target]
    np.testing.assert_allclose(output.detach().numpy(), picked.detach().numpy(), rtol=1e-12)
    assert loss.item() == pytest.approx(-picked.mean().item())
    assert layer.predict(x).tolist() == whole.argmax(1).tolist()
    with pytest.raises(RuntimeError, match=r"Target values should be in \[0, 11\]"):
        layer(x, target + 1)


# ---- lazy modules


def test_lazy_linear_becomes_linear_with_the_same_values():
    layer = lazy(lambda: nn.LazyLinear(3))
    assert repr(layer) == "LazyLinear(in_features=0, out_features=3, bias=True)"
    torch.manual_seed(1)
    layer(torch.zeros(2, 5))
    torch.manual_seed(1)
    plain = nn.Linear(5, 3)
    assert type(layer) is nn.Linear
    assert torch.equal(layer.weight, plain.weight)
    assert torch.equal(layer.bias, plain.bias)


def test_lazy_modules_take_shapes_from_what_they_load():
    layer = lazy(lambda: nn.LazyLinear(3))
    plain = nn.Linear(4, 3)
    layer.load_state_dict(plain.state_dict())
    assert torch.equal(layer(torch.ones(2, 4)), plain(torch.ones(2, 4)))
    assert layer.in_features == 4


def test_lazy_norms_find_their_channels():
    norm = lazy(nn.LazyBatchNorm1d)
    norm(torch.randn(4, 3))
    assert type(norm) is nn.BatchNorm1d
    assert norm.running_mean.shape == (3,)
    unbatched = lazy(nn.LazyInstanceNorm1d)
    unbatched(torch.randn(3, 6))
    assert unbatched.num_features == 3


def test_uninitialized_parameters_have_no_shape():
    with pytest.raises(RuntimeError, match="Can't access the shape"):
        _ = lazy(lambda: nn.LazyLinear(3)).weight.shape


# ---- backward hooks


def test_full_backward_hooks_see_the_gradients_of_inputs_and_outputs():
    layer = nn.Linear(3, 2)
    nn.init.constant_(layer.weight, 0.5)
    seen = []
    layer.register_full_backward_pre_hook(lambda m, go: seen.append(("pre", go[0].clone())))
    layer.register_full_backward_hook(lambda m, gi, go: seen.append(("full", gi[0], go[0])))
    x = torch.ones(4, 3, requires_grad=True)
    layer(x).sum().backward()
    assert [entry[0] for entry in seen] == ["pre", "full"]
    assert torch.equal(seen[1][1], torch.ones(4, 3))
    assert torch.equal(seen[1][2], torch.ones(4, 2))


def test_full_backward_hooks_replace_gradients():
    layer = nn.Linear(3, 2)
    nn.init.constant_(layer.weight, 0.5)
    layer.register_full_backward_pre_hook(lambda m, go: (go[0] * 2,))
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
    x = torch.ones(4, 3, requires_grad=True)
    layer(x).sum().backward()
    assert torch.equal(x.grad, torch.full((4, 3), 20.0))
    assert layer.bias.grad.tolist() == [8, 8]


def test_full_backward_hooks_run_when_no_input_wants_a_gradient():
    layer = nn.Linear(3, 2)
    seen = []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append(gi))
    layer(torch.ones(4, 3)).sum().backward()
    assert seen == [(None,)]


def test_full_backward_hooks_check_how_many_gradients_they_get_back():
    layer = nn.Linear(3, 2)
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2"):
        layer(torch.ones(4, 3, requires_grad=True)).sum().backward()


# ---- the rest


def test_layers_pickle():
    net = nn.Sequential(nn.BatchNorm1d(3), nn.Hardtanh(-2, 2), nn.RReLU(), nn.GroupNorm(1, 3))
    again = pickle.loads(pickle.dumps(net))
    assert repr(again) == repr(net)


def test_factory_kwargs_refuses_unknown_names():
    assert nn.factory_kwargs({"dtype": 1}) == {"dtype": 1}
    assert nn.factory_kwargs({"device": 2, "factory_kwargs": {"dtype": 1}}) == {
        "device": 2,
        "dtype": 1,
    }
    with pytest.raises(TypeError, match="unexpected kwargs"):
        nn.factory_kwargs({"dtyp": 1})
