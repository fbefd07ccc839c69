"""Pruners that remove rows: the smaller model computes what the masked one does, and rows that
cannot be missed stay. Masks of data and of activations."""

import copy
import warnings

import pytest

import torch
from torch import nn
from torch.ao.pruning._experimental.activation_sparsifier.activation_sparsifier import (
    ActivationSparsifier,
)
from torch.ao.pruning._experimental.data_scheduler import BaseDataScheduler
from torch.ao.pruning._experimental.data_sparsifier import BaseDataSparsifier, DataNormSparsifier
from torch.ao.pruning._experimental.data_sparsifier.quantization_utils import (
    post_training_sparse_quantize,
)
from torch.ao.pruning._experimental.pruner import (
    BaseStructuredSparsifier,
    FPGMPruner,
    LSTMSaliencyPruner,
    SaliencyPruner,
)
from torch.nn import functional as F
from torch.nn.utils import parametrize


class EveryThird(BaseStructuredSparsifier):
    def update_mask(self, module, tensor_name, **kwargs):
        module.parametrizations[tensor_name][0].mask[::3] = False


def pruned(model, names, **defaults):
    """The masked model's and the smaller model's results, and the smaller model."""
    model.eval()
    pruner = EveryThird(defaults)
    pruner.prepare(model, [{"tensor_fqn": f"{name}.weight"} for name in names])
    pruner.step()
    masked = copy.deepcopy(model)
    smaller = pruner.prune()
    return masked, smaller


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 6, 3)
        self.norm = nn.BatchNorm2d(6)
        self.second = nn.Conv2d(6, 9, 3, bias=False)
        self.pool = nn.MaxPool2d(2)
        self.linear = nn.Linear(9 * 4, 5)

    def forward(self, x):
        x = torch.sigmoid(self.norm(self.first(x)))
        x = self.pool(F.gelu(self.second(x)))
        return self.linear(torch.flatten(x, 1))


@pytest.mark.parametrize("prune_bias", [True, False])
def test_linear_layers_lose_rows_and_columns_and_compute_the_same(prune_bias):
    model = nn.Sequential(
        nn.Linear(4, 9), nn.Tanh(), nn.Linear(9, 6, bias=False), nn.ReLU(), nn.Linear(6, 3)
    )
    masked, smaller = pruned(model, ["0", "2"], prune_bias=prune_bias)
    x = torch.randn(5, 4)
    torch.testing.assert_close(smaller(x), masked(x))
    layers = dict(smaller.named_modules())
    assert layers["0"].weight.shape == (6, 4) and layers["0"].out_features == 6
    assert layers["2"].weight.shape == (4, 6) and layers["4"].weight.shape == (3, 4)
    assert not any(parametrize.is_parametrized(m) for m in model.modules())
    # A bias that is kept goes through tanh to the next layer, which had none.
    assert (layers["2"].bias is None) == prune_bias


@pytest.mark.parametrize("prune_bias", [True, False])
def test_channels_are_followed_through_norms_pools_and_flattening(prune_bias):
    model = Convolutions()
    model.norm.running_mean.normal_()
    model.norm.running_var.uniform_(0.5, 2)
    masked, smaller = pruned(model, ["first", "second"], prune_bias=prune_bias)
    x = torch.randn(2, 2, 8, 8)
    torch.testing.assert_close(smaller(x), masked(x), rtol=1e-4, atol=1e-5)
    assert model.first.weight.shape[0] == 4 and model.norm.num_features == 4
    assert model.second.weight.shape[:2] == (6, 4) and model.linear.in_features == 24


def test_rows_stay_where_a_border_would_show_their_absence():
    model = nn.Sequential(nn.Conv2d(1, 6, 3), nn.Conv2d(6, 4, 3, padding=1))
    masked, smaller = pruned(model, ["0"], prune_bias=False)
    x = torch.randn(1, 1, 7, 7)
    torch.testing.assert_close(smaller(x), masked(x))
    assert model[0].weight.shape[0] == 6  # its bias would end at the border
    masked, smaller = pruned(nn.Sequential(nn.Conv2d(1, 6, 3), nn.Conv2d(6, 4, 3, padding=1)), "0")
    torch.testing.assert_close(smaller(x), masked(x))
    assert dict(smaller.named_modules())["0"].weight.shape[0] == 4


def test_rows_stay_where_an_unknown_operation_reads_them():
    class Sums(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(3, 6), nn.Linear(6, 2)

        def forward(self, x):
            y = self.a(x)
            return self.b(y * y.sum(-1, keepdim=True))

    model = Sums()
    masked, smaller = pruned(model, ["a"])
    x = torch.randn(4, 3)
    torch.testing.assert_close(smaller(x), masked(x))
    assert model.a.weight.shape == (6, 3) and not model.a.weight[::3].any()


def test_pruners_choose_small_rows_and_filters_that_others_stand_for():
    model = nn.Sequential(nn.Linear(2, 4, bias=False), nn.Linear(4, 1))
    model[0].weight.data = torch.tensor([[1.0, 1], [4, 4], [2, 2], [3, 3]])
    pruner = SaliencyPruner({"sparsity_level": 0.5})
    pruner.prepare(model, [{"tensor_fqn": "0.weight"}])
    pruner.step()
    pruner.prune()
    assert model[0].weight.tolist() == [[4, 4], [3, 3]]

    filters = nn.Sequential(nn.Conv2d(1, 3, 1, bias=False), nn.Conv2d(3, 1, 1))
    filters[0].weight.data = torch.tensor([3.0, 2.0, 0.1]).view(3, 1, 1, 1)
    pruner = FPGMPruner(0.3)
    pruner.prepare(filters, [{"tensor_fqn": "0.weight"}])
    pruner.step()
    pruner.prune()
    torch.testing.assert_close(filters[0].weight.flatten(), torch.tensor([3.0, 0.1]))
    with pytest.raises(NotImplementedError):
        FPGMPruner(0.3, 3)


def test_units_of_an_lstm_go_with_the_columns_that_read_them():
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.linear = nn.LSTM(3, 4, num_layers=2), nn.Linear(4, 2)

        def forward(self, x):
            states, _ = self.lstm(x)
            return self.linear(states)

    model = Model().eval()
    names = [f"lstm.weight_{kind}_l{layer}" for kind in ("ih", "hh") for layer in range(2)]
    pruner = LSTMSaliencyPruner({"sparsity_level": 0.5})
    pruner.prepare(model, [{"tensor_fqn": name} for name in names])
    pruner.step()
    assert pruner.prune()(torch.randn(5, 3)).shape == (5, 2)
    assert model.lstm.hidden_size == 2 and model.linear.weight.shape == (2, 2)
    shapes = {name: tuple(p.shape) for name, p in model.lstm.named_parameters()}
    assert shapes["weight_ih_l0"] == (8, 3) and shapes["weight_hh_l0"] == (8, 2)
    assert shapes["weight_ih_l1"] == (8, 2) and shapes["bias_hh_l1"] == (8,)


# ---- data ----------------------------------------------------------------------------------------
class FirstRow(BaseDataSparsifier):
    def update_mask(self, name, data, **kwargs):
        self.get_mask(name)[0] = 0


def test_data_is_held_masked_replaced_and_squashed():
    tensor, parameter = torch.ones(3, 2), nn.Parameter(torch.ones(2, 2))
    embedding = nn.Embedding(4, 2)
    sparsifier = FirstRow([("t", tensor), ("p", parameter), ("e", embedding)], level=3)
    sparsifier.add_data("other", torch.ones(2, 2), level=7)
    assert sparsifier.data_groups["t"] == {"level": 3}
    assert sparsifier.data_groups["other"] == {"level": 7}
    sparsifier.step()
    assert sparsifier.get_data("t", return_original=False).tolist() == [[0, 0], [1, 1], [1, 1]]
    assert sparsifier.get_data("t") is tensor and tensor.sum() == 6
    sparsifier.add_data("t", torch.full((3, 2), 2.0))
    assert sparsifier.get_data("t", return_original=False).tolist() == [[0, 0], [2, 2], [2, 2]]
    assert sparsifier.data_groups["t"] == {"level": 3} and tensor.sum() == 6
    sparsifier.squash_mask()
    assert parameter.tolist() == [[0, 0], [1, 1]] and not embedding.weight[0].any()
    with pytest.raises(ValueError, match="squashed"):
        sparsifier.get_data("p")


def test_state_of_a_data_sparsifier_comes_back():
    first = FirstRow([("a", torch.ones(2, 2)), ("b", torch.ones(3, 3))], level=1)
    first.step()
    state = first.state_dict()
    assert state["state"]["a"]["mask"].is_sparse
    second = FirstRow([("c", torch.ones(1, 1))])
    second.load_state_dict(state)
    assert set(second.data_groups) == {"a", "b"}
    for name in ("a", "b"):
        mine, theirs = (s.get_data(name, return_original=False) for s in (second, first))
        assert torch.equal(mine, theirs)
        assert torch.equal(second.get_mask(name), first.get_mask(name))
    second.get_mask("a")[1] = 0  # the mask that is listed is the one that acts
    assert not second.get_data("a", return_original=False).any()


@pytest.mark.parametrize("norm", ["L1", "L2"])
def test_norm_sparsifier_makes_two_zeros_of_four(norm):
    data = torch.randn(3, 8)
    sparsifier = DataNormSparsifier(
        [("d", data)], sparsity_level=1.0, zeros_per_block=2, sparse_block_shape=(1, 4), norm=norm
    )
    sparsifier.step()
    blocks, mask = data.view(-1, 4).abs(), sparsifier.get_mask("d").view(-1, 4)
    assert (mask.sum(1) == 2).all()
    assert ((mask == 0) == (blocks < blocks.sort(1).values[:, 2:3])).all()


def test_schedulers_halve_a_level_and_warn_when_called_too_early():
    class Halves(BaseDataScheduler):
        def get_schedule_param(self):
            return {name: value * 0.5**self.last_epoch for name, value in self.base_param.items()}

    sparsifier = DataNormSparsifier([("d", torch.randn(4, 4))], sparsity_level=0.8)
    scheduler = Halves(sparsifier, "sparsity_level")
    with pytest.warns(UserWarning, match="before the sparsifier"):
        scheduler.step()
    assert sparsifier.data_groups["d"]["sparsity_level"] == 0.4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sparsifier.step()
        scheduler.step()
    assert scheduler.get_last_param() == {"d": 0.2}


@pytest.mark.parametrize("sparsify_first", [True, False])
def test_embeddings_become_sparse_and_quantized(sparsify_first):
    model = nn.ModuleDict({"e": nn.Embedding(50, 4), "linear": nn.Linear(4, 4)})
    post_training_sparse_quantize(
        model, DataNormSparsifier, sparsify_first, sparsity_level=0.5, sparse_block_shape=(1, 1)
    )
    assert type(model["e"]) is torch.ao.nn.quantized.Embedding
    assert type(model["linear"]) is nn.Linear
    values = model["e"].weight().dequantize()
    assert abs((values.abs() < 0.05).double().mean().item() - 0.5) < 0.1


def test_activations_are_gathered_masked_and_restored():
    model = nn.Sequential(nn.Identity(), nn.Linear(6, 2))
    sparsifier = ActivationSparsifier(
        model, aggregate_fn=torch.add, reduce_fn=lambda x: x.mean(0), level=1.0
    )
    sparsifier.register_layer(model[0], mask_fn=lambda data, level: (data > level).float())
    sparsifier.register_layer(
        model[1], features=[1, 4], feature_dim=1, mask_fn=lambda data, level: data * 0
    )
    with pytest.raises(ValueError, match="before step"):
        sparsifier.get_mask("0")
    data = torch.tensor([[0.0, 1, 2, 3, 0, 0]])
    for _ in range(3):
        model(data)
    assert torch.equal(sparsifier.data_groups["0"]["data"], 3 * data)
    sparsifier.step()
    assert sparsifier.get_mask("0").tolist() == [0, 1, 1, 1, 0, 0]
    assert [m.tolist() for m in sparsifier.get_mask(layer=model[1])] == [[0], [0]]
    sparsifier.squash_mask()
    ones = torch.ones(1, 6)
    assert model[0](ones).tolist() == [[0, 1, 1, 1, 0, 0]]
    columns = model[1].weight.detach().clone()
    columns[:, [1, 4]] = 0
    torch.testing.assert_close(model[1](ones), F.linear(ones, columns, model[1].bias))

    other = nn.Sequential(nn.Identity(), nn.Linear(6, 2))
    restored = ActivationSparsifier(other)
    restored.load_state_dict(sparsifier.state_dict())
    assert other[0](ones).tolist() == [[0, 1, 1, 1, 0, 0]]
