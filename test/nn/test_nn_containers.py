"""Containers, names of modules, lazy and packed modules, recurrent weights."""

import copy
import warnings

import pytest

import torch
import torch.nn.functional as F
from torch import nn


def test_parameter_list_takes_a_generator():
    made = torch.nn.ParameterList(torch.nn.Parameter(torch.ones(1)) for _ in range(3))
    assert len(made.extend(torch.zeros(1) for _ in range(2))) == 5
    with pytest.raises(TypeError, match="iterable"):
        made.extend(torch.ones(2))


def test_lazy_module_can_be_copied():
    layer = copy.deepcopy(nn.LazyLinear(3, dtype=torch.float64))
    assert layer(torch.ones(2, 5, dtype=torch.float64)).shape == (2, 3)


def test_parameter_dict_takes_only_strings():
    with pytest.raises(TypeError, match="not a string"):
        nn.ParameterDict({3: torch.ones(1)})


def test_loading_into_meta_parameters_warns():
    with torch.device("meta"):
        layer = nn.Linear(2, 2)
    with pytest.warns(UserWarning, match="for weight: copying from a non-meta parameter"):
        layer.load_state_dict(nn.Linear(2, 2).state_dict())


def test_names_of_modules_have_no_dots():
    with pytest.raises(KeyError, match=r'contain "\.", got: a\.b'):
        nn.Module().add_module("a.b", nn.ReLU())


def test_functional_call_names_tied_weights():
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    given = {"0.weight": torch.eye(2), "1.weight": torch.ones(2, 2)}
    with pytest.raises(ValueError, match=r"keys \['0.weight', '1.weight'\], which are tied"):
        torch.func.functional_call(model, given, (torch.ones(1, 2),))
    with pytest.raises(TypeError, match="is not an instance of"):
        torch.func.functional_call(model, {"0.weight": 1}, (torch.ones(1, 2),))
    with pytest.raises(RuntimeError, match=r"Error\(s\) in reparametrizing for Sequential"):
        torch.func.functional_call(model, {"q": torch.ones(1)}, (torch.ones(1, 2),), strict=True)


@pytest.mark.parametrize(
    ("settings", "heads", "drops"),
    [
        ({}, 2, True),
        ({"activation": "gelu"}, 2, True),
        ({"activation": F.silu}, 2, False),
        ({"norm_first": True}, 2, False),
        ({"bias": False}, 2, False),
        ({}, 1, False),
    ],
)
def test_encoder_leaves_padding_out_only_where_programs_expect_it(settings, heads, drops):
    layer = nn.TransformerEncoderLayer(8, heads, 16, batch_first=True, **settings)
    encoder = nn.TransformerEncoder(layer, 1).eval()
    padding = torch.tensor([[False, False, True], [False, False, False]])
    with torch.no_grad():
        out = encoder(torch.randn(2, 3, 8), src_key_padding_mask=padding)
    assert encoder.use_nested_tensor is drops
    assert bool((out[0, 2] == 0).all()) is drops


def test_packed_sequences_convert_to_small_integers():
    packed = nn.utils.rnn.pack_sequence([torch.tensor([1.0, 2.0])])
    kinds = [packed.byte(), packed.char(), packed.short()]
    assert [p.data.dtype for p in kinds] == [torch.uint8, torch.int8, torch.int16]


def test_flattening_rnn_weights_makes_them_dense():
    layer = nn.LSTM(3, 4)
    layer.weight_ih_l0.data = layer.weight_ih_l0.data.t().contiguous().t()
    before = layer(torch.ones(2, 1, 3))[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer.flatten_parameters()
    assert layer.weight_ih_l0.is_contiguous()
    torch.testing.assert_close(layer(torch.ones(2, 1, 3))[0], before)


@pytest.mark.parametrize("kind", ["RNN", "LSTM"])
def test_autocast_runs_recurrent_networks_in_low_precision(kind):
    layer = getattr(nn, kind)(4, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out, state = layer(torch.ones(2, 1, 4))
        slope = F.prelu(torch.ones(2, 4), torch.ones(1))
        gated = nn.GRU(4, 4)(torch.ones(2, 1, 4))[0]
    assert out.dtype == slope.dtype == torch.bfloat16 and gated.dtype == torch.float32
    assert all(part.dtype == torch.bfloat16 for part in (state if kind == "LSTM" else [state]))
    out.float().sum().backward()
    assert layer.weight_ih_l0.grad.dtype == torch.float32


def test_lazy_modules_do_not_warn(recwarn):
    nn.LazyLinear(3)(torch.ones(2, 4))
    assert not recwarn.list
