"""The report of load_state_dict about keys that do not fit: readable where there are many, and with
the renames that would help."""

import pytest

import torch
from torch.nn.modules._state_report import grouped, proposals


def model():
    layers = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(12)])
    return torch.nn.ModuleDict({"encoder": layers, "head": torch.nn.Linear(2, 3)})


def report(change):
    state = {change(key): value for key, value in model().state_dict().items()}
    with pytest.raises(RuntimeError) as caught:
        model().load_state_dict(state)
    return str(caught.value)


def test_few_keys_are_listed_as_pytorch_lists_them():
    text = report(lambda key: key.replace("head", "top"))
    assert 'Missing key(s) in state_dict: "head.weight", "head.bias". ' in text
    assert 'Unexpected key(s) in state_dict: "top.weight", "top.bias". ' in text
    assert 'rename "top" to "head" (2 keys)' in text


def test_many_keys_are_grouped():
    text = report(lambda key: key.replace("encoder", "backbone"))
    assert 'Missing key(s) in state_dict: "encoder.{0..11}.{weight, bias}" (24 keys). ' in text
    assert 'rename "backbone" to "encoder" (24 keys)' in text
    assert len(text) < 400


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda key: "module." + key, 'begin with "module.": remove that prefix (26 keys)'),
        (lambda key: key.removeprefix("encoder."), 'begin with "encoder.": add that prefix'),
        (lambda key: key.replace("encoder.", "a.b."), 'rename "a.b." at the beginning to "enc'),
        (lambda key: key.replace("weight", "kernel"), 'rename "kernel" to "weight" (13 keys)'),
    ],
    ids=["removed", "added", "longer", "leaf"],
)
def test_renames_are_proposed(change, told):
    assert told in report(change)


def test_groups_of_numbers():
    keys = [f"a.{i}.b.{j}.w" for i in (0, 2, 7) for j in range(4)]
    assert grouped(keys) == '"a.{0, 2, 7}.b.{0..3}.w" (12 keys)'
    many = grouped([f"m{i}.w" for i in range(50)])
    assert many.endswith("and 30 groups more")


def test_close_names_and_strangers():
    assert 'rename "wieght" to "weight" (1 key)' in proposals(["conv1.weight"], ["conv1.wieght"])
    assert 'rename "layr.q.weights" to "layer.q.weight"' in proposals(
        ["layer.q.weight"], ["layr.q.weights"]
    )
    assert proposals(["a.b"], ["something.else.entirely"]) == ""
