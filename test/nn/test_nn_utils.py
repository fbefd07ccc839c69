"""Helpers of torch.nn.utils: parametrizations, packed sequences, stateless calls and fusion."""

import copy
import warnings

import numpy as np
import pytest

import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune, rnn, stateless


class Double(nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, x):
        return x / 2


class Crop(nn.Module):
    def forward(self, x):
        return x[:1]


def test_a_parametrized_weight_keeps_its_value_and_trains_its_original():
    layer = nn.Linear(3, 2)
    weight = layer.weight
    value = weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Double())
    assert torch.equal(layer.weight, value)
    assert layer.parametrizations.weight.original is weight
    layer(torch.ones(1, 3)).sum().backward()
    np.testing.assert_allclose(weight.grad.numpy(), 2.0)
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]


def test_assignment_goes_through_the_right_inverse():
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Double())
    layer.weight = torch.full((2, 2), 3.0)
    np.testing.assert_allclose(layer.parametrizations.weight.original.detach().numpy(), 1.5)


def test_removal_restores_the_class_and_a_copy_is_not_disturbed():
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Double())
    twin = copy.deepcopy(layer)
    value = layer.weight.detach().clone()
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and torch.equal(layer.weight, value)
    assert parametrize.is_parametrized(twin, "weight") and torch.equal(twin.weight, value)


def test_cached_computes_once():
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Double())
    assert layer.weight is not layer.weight
    with parametrize.cached():
        assert layer.weight is layer.weight


def test_a_parametrization_may_not_change_the_shape():
    with pytest.raises(ValueError, match="may not change the shape"):
        parametrize.register_parametrization(nn.Linear(2, 2), "weight", Crop())
    with pytest.raises(ValueError, match="does not have a parameter"):
        parametrize.register_parametrization(nn.Linear(2, 2), "missing", Double())


def test_weight_norm_splits_length_and_direction():
    layer = nn.Linear(3, 2)
    value = layer.weight.detach().clone()
    parametrizations.weight_norm(layer)
    parts = layer.parametrizations.weight
    np.testing.assert_allclose(
        parts.original0.detach().numpy().ravel(), np.linalg.norm(value.numpy(), axis=1), rtol=1e-6
    )
    np.testing.assert_allclose(layer.weight.detach().numpy(), value.numpy(), rtol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old = nn.utils.weight_norm(nn.Linear(3, 2))
    layer.load_state_dict(old.state_dict())
    np.testing.assert_allclose(layer.weight.detach().numpy(), old.weight.detach().numpy())
    nn.utils.remove_weight_norm(old)
    assert sorted(old.state_dict()) == ["bias", "weight"]


@pytest.mark.parametrize("norm", [parametrizations.spectral_norm, nn.utils.spectral_norm])
def test_spectral_norm_divides_by_the_largest_singular_value(norm):
    layer = norm(nn.Linear(4, 3), n_power_iterations=50)
    layer(torch.ones(1, 4)).sum().backward()
    largest = np.linalg.svd(layer.weight.detach().numpy(), compute_uv=False)[0]
    assert largest == pytest.approx(1.0, rel=1e-3)


def test_spectral_norm_completes_a_state_without_the_right_vector():
    layer = nn.utils.spectral_norm(nn.Linear(4, 3))
    layer(torch.randn(2, 4))
    layer.eval()
    expected = layer.weight.detach().clone()
    state = layer.state_dict()
    old = {k: v.clone() for k, v in state.items() if not k.endswith("_v")}
    old["weight"] = expected.clone()
    other = nn.utils.spectral_norm(nn.Linear(4, 3)).eval()
    other.load_state_dict(old)
    other(torch.randn(2, 4))
    assert torch.allclose(other.weight, expected, atol=1e-6)
    del old["weight"]
    with pytest.raises(RuntimeError, match="weight_v"):
        other.load_state_dict(old)
    nn.utils.remove_spectral_norm(other)
    assert not other._load_state_dict_pre_hooks and not other._state_dict_hooks


def test_removing_spectral_norm_keeps_the_weight():
    layer = nn.utils.spectral_norm(nn.Linear(4, 3)).eval()
    inputs = torch.ones(1, 4)
    before = layer(inputs)
    nn.utils.remove_spectral_norm(layer)
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    np.testing.assert_allclose(layer(inputs).detach().numpy(), before.detach().numpy(), rtol=1e-6)


def test_packing_and_unpacking_give_the_sequences_back():
    sequences = [torch.arange(float(n)) + 10 * n for n in (2, 4, 3)]
    packed = rnn.pack_sequence(sequences, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 3, 2, 1]
    assert packed.data.tolist() == [40, 30, 20, 41, 31, 21, 42, 32, 43]
    for back, sequence in zip(rnn.unpack_sequence(packed), sequences, strict=True):
        assert torch.equal(back, sequence)
    padded, lengths = rnn.pad_packed_sequence(packed, batch_first=True, padding_value=-1)
    assert lengths.tolist() == [2, 4, 3] and padded[0].tolist() == [20, 21, -1, -1]


def test_packing_refuses_bad_lengths():
    with pytest.raises(RuntimeError, match="sorted in decreasing order"):
        rnn.pack_padded_sequence(torch.zeros(3, 2), [1, 3])
    with pytest.raises(RuntimeError, match="greater than 0"):
        rnn.pack_padded_sequence(torch.zeros(3, 2), [3, 0])
    with pytest.raises(RuntimeError, match="at most the sequence length"):
        rnn.pack_padded_sequence(torch.zeros(3, 2), [4, 1])


def test_functional_call_uses_given_tensors_and_restores_its_own():
    layer = nn.Sequential(nn.Linear(2, 1))
    own = layer[0].weight
    given = torch.full((1, 2), 3.0, requires_grad=True)
    out = stateless.functional_call(layer, {"0.weight": given}, torch.ones(1, 2))
    out.sum().backward()
    assert layer[0].weight is own and own.grad is None
    np.testing.assert_allclose(given.grad.numpy(), 1.0)
    with pytest.raises(RuntimeError, match="Missing key"):
        stateless.functional_call(layer, {"0.weight": given}, torch.ones(1, 2), strict=True)


def test_a_fused_linear_does_what_linear_and_norm_do():
    linear, norm = nn.Linear(3, 4), nn.BatchNorm1d(4)
    norm(torch.arange(12.0).reshape(3, 4))
    nn.init.constant_(norm.weight, 1.7)
    linear.eval(), norm.eval()
    inputs = torch.arange(6.0).reshape(2, 3)
    fused = nn.utils.fuse_linear_bn_eval(linear, norm)
    expected = norm(linear(inputs)).detach().numpy()
    np.testing.assert_allclose(fused(inputs).detach().numpy(), expected, rtol=1e-5, atol=1e-6)


def test_pruning_masks_the_smallest_entries_and_can_be_made_permanent():
    layer = nn.Linear(4, 3)
    layer.weight.data = torch.arange(12.0).reshape(3, 4) - 5
    prune.l1_unstructured(layer, "weight", amount=3)
    assert (layer.weight_mask == 0).nonzero().tolist() == [[1, 0], [1, 1], [1, 2]]
    prune.ln_structured(layer, "weight", amount=1, n=2, dim=0)
    assert layer.weight_mask[1].sum().item() == 0
    layer(torch.ones(1, 4)).sum().backward()
    assert layer.weight_orig.grad[1].tolist() == [0, 0, 0, 0]
    prune.remove(layer, "weight")
    assert not prune.is_pruned(layer) and sorted(layer.state_dict()) == ["bias", "weight"]
    assert layer.weight[1].tolist() == [0, 0, 0, 0]
    with pytest.raises(ValueError, match="has to be pruned before"):
        prune.remove(layer, "weight")


@pytest.mark.parametrize(
    ("inverse", "message"),
    [
        (lambda x: (x, x), "right_inverse must return a tensor"),
        (lambda x: x.bool(), "must have the same dtype"),
        (lambda x: x[:-1], "must have the same shape"),
    ],
)
def test_second_parametrization_with_a_wrong_inverse_raises(inverse, message):
    class Same(nn.Module):
        def forward(self, x):
            return x

    class Wrong(Same):
        def right_inverse(self, x):
            return inverse(x)

    module = nn.Linear(3, 4)
    nn.utils.parametrize.register_parametrization(module, "weight", Same())
    with pytest.raises(ValueError, match=message):
        nn.utils.parametrize.register_parametrization(module, "weight", Wrong())
    assert len(module.parametrizations.weight) == 1
