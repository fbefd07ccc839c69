"""Modules of torch.nn that are written for Python in a way that the compiler cannot read: each
scripts, gives what it gives in Python, and survives an archive."""

import io

import pytest

import torch
from torch import nn
from torch.utils import _pytree as pytree

ROW, LINE = torch.linspace(-1, 1, 8).view(2, 4), torch.linspace(-1, 1, 64).view(2, 4, 8)
PLANE, VOLUME = (
    torch.linspace(0, 1, 512).view(2, 4, 8, 8),
    torch.linspace(0, 1, 128).view(1, 2, 4, 4, 4),
)
WORDS = torch.linspace(-1, 1, 48).view(3, 2, 8)
CASES = {
    "ConvTranspose1d": lambda: (nn.ConvTranspose1d(4, 3, 3), (LINE,)),
    "ConvTranspose2d": lambda: (nn.ConvTranspose2d(4, 3, 3, stride=2), (PLANE, [17, 17])),
    "ConvTranspose3d": lambda: (nn.ConvTranspose3d(2, 3, 3), (VOLUME,)),
    "LPPool1d": lambda: (nn.LPPool1d(2, 2), (LINE.abs(),)),
    "LPPool2d": lambda: (nn.LPPool2d(2, (2, 3), stride=2), (PLANE,)),
    "LPPool3d": lambda: (nn.LPPool3d(2, 2), (VOLUME,)),
    "FractionalMaxPool2d": lambda: (nn.FractionalMaxPool2d(2, output_size=(3, 3)), (PLANE,)),
    "FractionalMaxPool2d_ratio": lambda: (
        nn.FractionalMaxPool2d(2, output_ratio=0.5, return_indices=True),
        (PLANE,),
    ),
    "FractionalMaxPool3d": lambda: (nn.FractionalMaxPool3d(2, output_size=2), (VOLUME,)),
    "MaxUnpool2d": lambda: (
        nn.MaxUnpool2d(2),
        (torch.ones(1, 1, 2, 2), torch.tensor([[[[0, 2], [8, 10]]]])),
    ),
    "TransformerEncoder": lambda: (
        nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2),
        (WORDS,),
    ),
    "TransformerDecoder": lambda: (
        nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2),
        (WORDS, WORDS),
    ),
    "Transformer": lambda: (nn.Transformer(8, 2, 1, 1, 16, batch_first=True), (WORDS, WORDS)),
    "GaussianNLLLoss": lambda: (nn.GaussianNLLLoss(full=True), (ROW, -ROW, ROW.abs() + 1)),
    "AdaptiveLogSoftmaxWithLoss": lambda: (
        nn.AdaptiveLogSoftmaxWithLoss(4, 20, [5, 10]),
        (ROW, torch.tensor([1, 17])),
    ),
    "TripletMarginWithDistanceLoss": lambda: (
        nn.TripletMarginWithDistanceLoss(swap=True),
        (ROW, -ROW, ROW * 2),
    ),
    "TripletMarginLoss": lambda: (nn.TripletMarginLoss(), (ROW, -ROW, ROW * 2)),
    "Upsample": lambda: (nn.Upsample(scale_factor=2), (PLANE,)),
    "EmbeddingBag": lambda: (nn.EmbeddingBag(4, 3), (torch.tensor([[1, 2], [0, 3]]),)),
    "EmbeddingBag of padding": lambda: (
        nn.EmbeddingBag(4, 3, padding_idx=-1),
        (torch.tensor([[1, 2], [0, 3]]),),
    ),
    "CrossMapLRN2d": lambda: (nn.CrossMapLRN2d(3), (PLANE,)),
    "SyncBatchNorm": lambda: (nn.SyncBatchNorm(4), (PLANE,)),
}


def same(module: torch.nn.Module, other: torch.nn.Module, arguments: tuple) -> None:
    torch.manual_seed(0)
    wanted = pytree.tree_leaves(module(*arguments))
    torch.manual_seed(0)
    found = pytree.tree_leaves(other(*arguments))
    assert len(wanted) == len(found)
    for a, b in zip(wanted, found, strict=True):
        torch.testing.assert_close(b, a)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("name", CASES)
def test_scripted_module_of_nn_gives_the_results_of_python(name):
    torch.manual_seed(1)
    module, arguments = CASES[name]()
    module.eval()
    scripted = torch.jit.script(module)
    same(module, scripted, arguments)
    file = io.BytesIO()
    torch.jit.save(scripted, file)
    file.seek(0)
    same(module, torch.jit.load(file), arguments)


class Packed(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor, lengths: torch.Tensor):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
        output, state = self.layer(packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(output)
        again, _ = self.layer(packed, state)
        return padded, state, again.data


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.LSTM(3, 4, 2, bidirectional=True),
        lambda: nn.LSTM(3, 4, proj_size=2, bias=False),
        lambda: nn.GRU(3, 4),
        lambda: nn.RNN(3, 4, nonlinearity="relu"),
    ],
)
def test_scripted_recurrent_layer_takes_packed_sequences(make):
    plain = Packed(make())
    x, lengths = torch.randn(5, 3, 3), torch.tensor([2, 5, 3])
    expected = pytree.tree_leaves(plain(x, lengths))
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(plain), buffer)
    buffer.seek(0)
    for form in (torch.jit.script(plain), torch.jit.load(buffer)):
        found = pytree.tree_leaves(form(x, lengths))
        assert len(found) == len(expected)
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
