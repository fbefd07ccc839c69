"""Files that PyTorch 2.13 wrote load here as what was saved, in every form and way of loading; its
optimizers' states continue here as they did there; and what we write of the same values reads back
the same. The recordings are described in peer_files.py and peer_optimizers.py."""

import io
import pathlib

import peer_files
import peer_optimizers
import pytest

import torch

HERE = pathlib.Path(__file__).parent
FILES = {f"{n}: {form}": (n, d) for n, form, d in peer_files.recorded(HERE / "peer_files.txt")}
OPTIMIZERS = peer_optimizers.recorded(HERE / "peer_optimizers.txt")


def test_recording_is_complete():
    assert len(FILES) == len(peer_files.VALUES) * len(peer_files.FORMS) + 1
    assert set(OPTIMIZERS) == set(peer_optimizers.CASES)


@pytest.mark.parametrize("label", FILES)
def test_recorded_file_loads_as_it_was_saved(label, tmp_path):
    name, data = FILES[label]
    expected = peer_files.describe(peer_files.VALUES[name]())
    path = tmp_path / "x.pt"
    path.write_bytes(data)
    assert peer_files.describe(torch.load(path)) == expected
    assert peer_files.describe(torch.load(io.BytesIO(data))) == expected
    assert peer_files.describe(torch.load(path, weights_only=False)) == expected
    if "zip" in label:
        assert peer_files.describe(torch.load(path, mmap=True)) == expected


@pytest.mark.parametrize("form", peer_files.FORMS)
@pytest.mark.parametrize("name", peer_files.VALUES)
def test_own_file_loads_as_it_was_saved(name, form):
    value = peer_files.VALUES[name]()
    data = peer_files.saved(value, **peer_files.FORMS[form])
    expected = peer_files.describe(value)
    assert peer_files.describe(torch.load(io.BytesIO(data))) == expected
    assert peer_files.describe(torch.load(io.BytesIO(data), weights_only=False)) == expected


def _kinds(state):
    """The shape of a state_dict: keys and types, dtypes and sizes instead of values."""
    if isinstance(state, dict):
        return {key: _kinds(value) for key, value in state.items()}
    if isinstance(state, (list, tuple)):
        return [_kinds(value) for value in state]
    if isinstance(state, torch.Tensor):
        return (str(state.dtype), tuple(state.shape))
    return type(state).__name__


@pytest.mark.parametrize("case", peer_optimizers.CASES)
def test_optimizer_continues_from_a_recorded_state(case):
    told = OPTIMIZERS[case]
    params = peer_optimizers.parameters(case)
    optimizer = peer_optimizers.make(case, params)
    with torch.no_grad():
        for parameter, value in zip(params, told["middle"], strict=True):
            parameter.copy_(value)
    optimizer.load_state_dict(torch.load(io.BytesIO(told["state"])))
    peer_optimizers.run(optimizer, params, 3, case)
    for parameter, value in zip(params, told["end"], strict=True):
        torch.testing.assert_close(parameter.detach(), value, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("case", peer_optimizers.CASES)
def test_own_optimizer_state_has_the_recorded_form(case):
    told, own = OPTIMIZERS[case], peer_optimizers.story(case)
    expected, found = (torch.load(io.BytesIO(s["state"])) for s in (told, own))
    assert _kinds(found) == _kinds(expected)
    for mine, theirs in zip(own["middle"] + own["end"], told["middle"] + told["end"], strict=True):
        torch.testing.assert_close(mine, theirs, rtol=5e-6, atol=5e-6)
