"""Checkpoints as safetensors files: read back by a plain reader of the format, and put together
from the parts of several ranks."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from ranks import needs_gloo, run_ranks

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint._consolidate_hf_safetensors import consolidate_safetensors_files
from torch.distributed.checkpoint.staging import (
    BlockingAsyncStager,
    DefaultStager,
    StagingOptions,
)


def _plain(path: Path) -> dict[str, np.ndarray]:
    """The file by the letter of the format, without our reader."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    kinds = {"F32": np.float32, "I64": np.int64}
    found = {}
    for name, entry in header.items():
        begin, end = (8 + length + at for at in entry["data_offsets"])
        values = np.frombuffer(data[begin:end], kinds[entry["dtype"]])
        found[name] = values.reshape(entry["shape"])
    return found


def _state() -> dict[str, torch.Tensor]:
    return {"a": torch.arange(6.0).view(2, 3), "b.w": torch.arange(4), "empty": torch.empty(0, 2)}


def test_one_process_writes_files_that_a_plain_reader_reads(tmp_path):
    mapping = {"a": 1, "b.w": 2, "empty": 2}
    writer = dcp.HuggingFaceStorageWriter(str(tmp_path), mapping)
    dcp.save(_state(), storage_writer=writer, no_dist=True)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == 24 + 32
    found = {}
    for name, file in index["weight_map"].items():
        assert file == f"model-{mapping[name]:05d}-of-00002.safetensors"
        found[name] = _plain(tmp_path / file)[name]
    for name, tensor in _state().items():
        np.testing.assert_array_equal(found[name], tensor.numpy())
    loaded = {name: torch.full_like(t, 7) for name, t in _state().items()}
    dcp.load(loaded, storage_reader=dcp.HuggingFaceStorageReader(str(tmp_path)), no_dist=True)
    assert all(torch.equal(loaded[name], t) for name, t in _state().items())


def test_objects_that_are_no_tensors_are_refused(tmp_path):
    writer = dcp.HuggingFaceStorageWriter(str(tmp_path))
    with pytest.raises(dcp.CheckpointException, match="tensors only"):
        dcp.save({"step": 3}, storage_writer=writer, no_dist=True)


def _save_parts(rank, size, folder, consolidates):
    from torch.distributed.tensor import Shard, distribute_tensor

    mesh = dist.init_device_mesh("cpu", (size,))
    whole = torch.arange(20.0).view(5, 4)
    state = {
        "rows": distribute_tensor(whole, mesh, [Shard(0)]),
        "columns": distribute_tensor(whole, mesh, [Shard(1)]),
        "same": torch.ones(3),
    }
    writer = dcp.HuggingFaceStorageWriter(
        folder, {"rows": 1, "columns": 2, "same": 1}, save_distributed=True,
        enable_consolidation=consolidates,
    )  # fmt: skip
    dcp.save(state, storage_writer=writer)
    if consolidates:
        return True
    other = {
        "rows": distribute_tensor(torch.zeros(5, 4), mesh, [Shard(1)]),
        "columns": torch.zeros(5, 4),
    }
    dcp.load(other, storage_reader=dcp.HuggingFaceStorageReader(folder))
    return torch.equal(other["rows"].full_tensor(), whole) and torch.equal(other["columns"], whole)


@needs_gloo
def test_parts_of_two_ranks_become_whole_tensors(tmp_path):
    assert run_ranks(_save_parts, 2, str(tmp_path), True) == [True, True]
    whole = np.arange(20, dtype=np.float32).reshape(5, 4)
    first = _plain(tmp_path / "model-00001-of-00002.safetensors")
    np.testing.assert_array_equal(first["rows"], whole)
    np.testing.assert_array_equal(first["same"], np.ones(3, np.float32))
    second = _plain(tmp_path / "model-00002-of-00002.safetensors")
    np.testing.assert_array_equal(second["columns"], whole)


@needs_gloo
def test_parts_load_into_other_parts_and_consolidate_later(tmp_path):
    parts, out = tmp_path / "parts", tmp_path / "out"
    assert run_ranks(_save_parts, 2, str(parts), False) == [True, True]
    names = {path.name for path in parts.glob("*.safetensors")}
    assert "shard-00001-model-00001-of-00002.safetensors" in names
    consolidate_safetensors_files(str(parts), str(out), {"rows": 1, "columns": 1}, num_threads=2)
    found = _plain(out / "model-00001-of-00001.safetensors")
    np.testing.assert_array_equal(found["rows"], found["columns"])
    (parts / "shard-00001-model-00001-of-00002.safetensors").unlink()
    with pytest.raises(ValueError, match="rows: the parts hold"):
        consolidate_safetensors_files(str(parts), str(out), {"rows": 1})


def test_scaled_matrices_are_read_in_full_precision(tmp_path):
    values = (torch.arange(12.0).view(4, 3) - 6).to(torch.float8_e4m3fn)
    scales = torch.tensor([[2.0, 4.0], [8.0, 16.0]])
    state = {"w": values, "w_scale_inv": scales, "bias": torch.ones(3)}
    dcp.save(state, storage_writer=dcp.HuggingFaceStorageWriter(str(tmp_path)), no_dist=True)
    target = {"w": torch.zeros(4, 3), "bias": torch.zeros(3)}
    reader = dcp.QuantizedHuggingFaceStorageReader(str(tmp_path), block_size=2)
    dcp.load(target, storage_reader=reader, no_dist=True)
    factor = np.kron(scales.numpy(), np.ones((2, 2)))[:, :3]
    np.testing.assert_array_equal(target["w"].numpy(), values.float().numpy() * factor)
    np.testing.assert_array_equal(target["bias"].numpy(), np.ones(3))


def test_optimizer_state_is_loaded_by_its_key(tmp_path):
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    names = dict(enumerate(model.state_dict()))
    state = {names[i]: one for i, one in optimizer.state_dict()["state"].items()}
    dcp.save({"model": model.state_dict(), "optim": {"state": state, "lr": 0.5}},
             checkpoint_id=tmp_path, no_dist=True)  # fmt: skip
    loaded = dcp.load_sharded_optimizer_state_dict(
        model.state_dict(), "optim", dcp.FileSystemReader(tmp_path)
    )
    assert set(loaded) == {"optim"} and loaded["optim"]["lr"] == 0.5
    for name, one in state.items():
        for key, value in one.items():
            assert torch.equal(loaded["optim"]["state"][name][key], value), (name, key)


@pytest.mark.parametrize("background", [False, True])
def test_stager_copies_before_the_state_changes_and_uses_its_memory_again(background):
    stager = DefaultStager(StagingOptions(use_async_staging=background))
    state = {"w": torch.ones(3), "list": [torch.zeros(2), "text"]}
    staged = stager.stage(state)
    first = staged.result() if background else staged
    state["w"].fill_(5)
    assert first["w"].tolist() == [1, 1, 1] and first["list"][1] == "text"
    again = stager.stage(state)
    again = again.result() if background else again
    assert again["w"].data_ptr() == first["w"].data_ptr() and again["w"].tolist() == [5, 5, 5]
    stager.close()


def test_asynchronous_save_with_stagers_saves_what_was_staged(tmp_path):
    for number, stager in enumerate((BlockingAsyncStager(True), DefaultStager())):
        state = {"w": torch.ones(3)}
        done = dcp.async_save(
            state, checkpoint_id=tmp_path / str(number), async_stager=stager, no_dist=True
        )
        if isinstance(stager, DefaultStager):
            done.staging_completion.result()
            done = done.upload_completion
        state["w"].zero_()
        done.result()
        loaded = {"w": torch.empty(3)}
        dcp.load(loaded, checkpoint_id=tmp_path / str(number), no_dist=True)
        assert loaded["w"].tolist() == [1, 1, 1]
