"""TensorBoard event files: plugins, hyperparameters, graphs, projector data."""

import glob
import pathlib

import pytest

import torch
from torch import nn


def test_hparams_summaries(tmp_path):
    from torch.utils.tensorboard import SummaryWriter, summary

    parts = summary.hparams({"lr": 0.1, "flag": True, "name": "x", "none": None}, {"acc": 1.0})
    assert [b"_hparams_/experiment" in parts[0], b"lr" in parts[1]] == [True, True]
    with pytest.raises(ValueError, match="int, float, str, bool"):
        summary.hparams({"bad": object()}, {})
    with pytest.raises(TypeError, match="same type"):
        summary.hparams({"lr": 1.0}, {}, {"lr": [1.0, "x"]})
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams({"lr": 0.1}, {"acc": 0.5}, run_name="run")
    assert list((tmp_path / "run").glob("events.*"))


def test_graph_of_a_model_names_modules_and_edges(tmp_path):
    from torch.utils.tensorboard import SummaryWriter
    from torch.utils.tensorboard._graph import graph_of

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(3, 3)
            self.rest = nn.Sequential(nn.ReLU(), nn.Linear(3, 3))

        def forward(self, x):
            h = self.first(x)
            return self.rest(h * 2) + h

    message, nodes = graph_of(Residual(), torch.ones(2, 3))
    edges = {name: sources for name, _, sources, _ in nodes}
    assert edges["Residual/rest/0"] == ["Residual/first"]
    assert sorted(edges["output/output.1"]) == ["Residual/first", "Residual/rest/1"]
    assert b"Residual/rest/1" in message and b"Linear" in message
    writer = SummaryWriter(str(tmp_path))
    writer.add_graph(Residual(), torch.ones(2, 3))
    writer.close()
    (file,) = glob.glob(str(tmp_path / "*"))
    with open(file, "rb") as events:
        assert b"Residual/first" in events.read()


def fields(message):
    """The fields of a protocol buffer message: number -> values, bytes or integers."""
    found, position = {}, 0

    def varint():
        nonlocal position
        value = shift = 0
        while True:
            byte = message[position]
            position += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    while position < len(message):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(kind) or varint()
            value, position = message[position : position + size], position + size
        found.setdefault(key >> 3, []).append(value)
    return found


def values_in(folder):
    """tag -> (fields of its value) of the event file in a folder."""
    (path,) = pathlib.Path(folder).glob("events.*")
    content, position, found = path.read_bytes(), 0, {}
    while position < len(content):
        size = int.from_bytes(content[position : position + 8], "little")
        event = fields(content[position + 12 : position + 12 + size])
        position += 16 + size
        for summary in event.get(5, []):
            for value in fields(summary).get(1, []):
                value = fields(value)
                found[value[1][0].decode()] = value
    return found


def numbers_of(value):
    tensor = fields(value[8][0])
    shape = [fields(dim).get(1, [0])[0] for dim in fields(tensor[2][0]).get(2, [])]
    kind = torch.float32 if tensor[1] == [1] else torch.int64
    return torch.frombuffer(bytearray(tensor[4][0]), dtype=kind).reshape(shape)


def plugin_of(value):
    plugin = fields(fields(value[9][0])[1][0])
    return plugin[1][0].decode(), plugin.get(2, [b""])[0]


def test_summaries_of_plugins(tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    labels, scores = torch.tensor([0, 1, 1, 0, 1]), torch.tensor([0.1, 0.9, 0.8, 0.6, 0.3])
    with SummaryWriter(tmp_path) as writer:
        writer.add_pr_curve("pr", labels, scores, 0, num_thresholds=5)
        writer.add_tensor("whole", torch.arange(3), 2)
        writer.add_mesh("mesh", torch.ones(1, 4, 3), faces=torch.zeros(1, 2, 3, dtype=torch.long))
        writer.add_audio("sound", torch.tensor([-1.0, 0.0, 1.0]), sample_rate=8000)
        writer.add_custom_scalars_marginchart(["a", "b", "c"])
        writer.add_histogram_raw("raw", 0, 3, 4, 6, 14, [1, 2, 3], [1, 1, 2])
        with pytest.raises(ValueError, match="bucket_limits"):
            writer.add_histogram_raw("raw", 0, 3, 4, 6, 14, [1, 2], [1, 1, 2])
    found = values_in(tmp_path)
    expected = [[3, 3, 2, 2, 0], [2, 1, 1, 0, 0], [0, 1, 1, 2, 2], [0, 0, 1, 1, 3],
                [0.6, 0.75, 2 / 3, 1, 0], [1, 1, 2 / 3, 2 / 3, 0]]  # fmt: skip
    torch.testing.assert_close(numbers_of(found["pr"]), torch.tensor(expected))
    assert plugin_of(found["pr"]) == ("pr_curves", b"\x10\x05")
    assert numbers_of(found["whole"]).tolist() == [0, 1, 2]
    assert plugin_of(found["mesh_VERTEX"]) == (
        "mesh",
        b"\x12\x04mesh\x18\x01*\x02{}2\x03\x01\x04\x038\x06",
    )
    assert numbers_of(found["mesh_FACE"]).shape == (1, 2, 3)
    sound = fields(found["sound"][6][0])
    assert sound[3] == [3] and sound[4][0].endswith(b"\x01\x80\x00\x00\xff\x7f")
    assert plugin_of(found["custom_scalars__config__"])[0] == "custom_scalars"
    assert 5 in found["raw"]


def test_embedding_for_the_projector(tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        rows = torch.arange(6.0).reshape(2, 3)
        writer.add_embedding(
            rows,
            metadata=[("a", 1), ("b", 2)],
            metadata_header=["n", "v"],
            label_img=torch.rand(2, 3, 4, 4),
            global_step=7,
            tag="mine",
        )
        with pytest.raises(AssertionError, match="#labels should equal"):
            writer.add_embedding(rows, metadata=["a"])
        with pytest.raises(AssertionError, match="mat should be 2D"):
            writer.add_embedding(rows[0])
    folder = tmp_path / "00007" / "mine"
    assert (folder / "tensors.tsv").read_text() == "0.0\t1.0\t2.0\n3.0\t4.0\t5.0\n"
    assert (folder / "metadata.tsv").read_text() == "n\tv\na\t1\nb\t2\n"
    assert (folder / "sprite.png").read_bytes().startswith(b"\x89PNG")
    assert (
        'tensor_path: "00007/mine/tensors.tsv"' in (tmp_path / "projector_config.pbtxt").read_text()
    )
