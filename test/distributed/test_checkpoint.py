"""Checkpoints of several processes, and modules computed again."""

import os
import pickle

import pytest
from ranks import needs_gloo, run_ranks

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed._shard.sharded_tensor import metadata as sharded
from torch.distributed.algorithms._checkpoint import checkpoint_wrapper as wrappers
from torch.distributed.checkpoint._traverse import get_element, set_element
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict


def _state(fill: float = 0.0) -> dict:
    return {
        "model": {"w": torch.arange(6.0).view(2, 3) + fill, "b": torch.ones(2) * fill},
        "optim": {"step": 3, "moments": [torch.full((2,), fill), torch.full((3,), -fill)]},
        "name": "run",
    }


def _empty() -> dict:
    return {
        "model": {"w": torch.zeros(2, 3), "b": torch.zeros(2)},
        "optim": {"step": 0, "moments": [torch.zeros(2), torch.zeros(3)]},
        "name": "",
    }


def _check(found: dict, fill: float) -> None:
    expected = _state(fill)
    assert found["name"] == "run" and found["optim"]["step"] == 3
    for key in ("w", "b"):
        assert torch.equal(found["model"][key], expected["model"][key])
    for one, other in zip(found["optim"]["moments"], expected["optim"]["moments"], strict=True):
        assert torch.equal(one, other)


def test_load_gives_back_nested_states_with_the_tensors_in_place(tmp_path):
    dcp.save(_state(2.0), checkpoint_id=tmp_path)
    found = _empty()
    kept = found["model"]["w"]
    dcp.load(found, checkpoint_id=tmp_path)
    _check(found, 2.0)
    assert found["model"]["w"] is kept


def test_modules_and_optimizers_are_saved_by_their_own_states(tmp_path):
    model = nn.Linear(2, 2)
    dcp.save({"model": model}, checkpoint_id=tmp_path)
    other = nn.Linear(2, 2)
    dcp.load({"model": other}, checkpoint_id=tmp_path)
    assert torch.equal(model.weight, other.weight)


def test_ways_say_by_their_types_what_is_a_key_and_what_a_place(tmp_path):
    state = {"optim": {"state": {0: {"m": torch.ones(1)}}, "moments": [1, [torch.zeros(1)]]}}
    dcp.save(state, checkpoint_id=tmp_path)
    ways = dcp.FileSystemReader(tmp_path).read_metadata().planner_data
    assert set(ways.values()) == {
        ("optim", "state", "0", "m"),
        ("optim", "moments", 0),
        ("optim", "moments", 1, 0),
    }
    dcp_to_torch_save(tmp_path, tmp_path / "all.pt")
    moments = torch.load(tmp_path / "all.pt")["optim"]["moments"]
    assert moments[0] == 1
    assert torch.equal(moments[1][0], torch.zeros(1))
    found = {"optim": {"state": {0: {"m": torch.zeros(1)}}, "moments": [0, [torch.ones(1)]]}}
    dcp.load(found, checkpoint_id=tmp_path)
    assert found == state


def test_dict_without_entries_is_neither_written_nor_asked_for(tmp_path):
    # An optimizer without state, in files of PyTorch too.
    dcp.save({"w": torch.ones(1)}, checkpoint_id=tmp_path)
    found = {"w": torch.zeros(1), "optim": {"state": {}}}
    dcp.load(found, checkpoint_id=tmp_path)
    assert found == {"w": torch.ones(1), "optim": {"state": {}}}


def test_checkpoint_that_holds_dicts_of_objects_as_one_value_is_loaded(tmp_path):
    # Before 2.4 dicts without tensors were not taken apart.
    state = {"w": torch.ones(1), "settings": {"a": {"b": 1}, "c": [2]}}
    planner = dcp.DefaultSavePlanner(flatten_state_dict=False)
    dcp.save(state, checkpoint_id=tmp_path, planner=planner)
    found = {"w": torch.zeros(1), "settings": {"a": {"b": 0}, "c": [0]}}
    dcp.load(found, checkpoint_id=tmp_path)
    assert found == state


def test_elements_are_set_and_got_by_their_ways():
    state = {}
    set_element(state, ("a", 2), 1)
    set_element(state, ("a", 0, "b"), 5)
    assert state == {"a": [{"b": 5}, None, 1]}
    assert get_element(state, ("a", 0, "b")) == 5
    assert get_element(state, ("a", 3), "none") == "none"
    assert get_element(state, ("a", "b")) is None


def test_properties_in_old_metadata_are_found_by_their_old_name():
    properties = sharded.TensorProperties(torch.float16, memory_format=torch.channels_last)
    text = pickle.dumps(properties)
    assert b"torch.distributed._shard.sharded_tensor.metadata" in text
    assert pickle.loads(text) == properties


def test_load_of_a_missing_key_or_another_shape_raises_and_names_it(tmp_path):
    dcp.save({"a": torch.ones(2)}, checkpoint_id=tmp_path)
    with pytest.raises(dcp.CheckpointException, match="Missing key in checkpoint state_dict: b"):
        dcp.load({"b": torch.ones(2)}, checkpoint_id=tmp_path)
    with pytest.raises(dcp.CheckpointException, match="Size mismatch"):
        dcp.load({"a": torch.ones(3)}, checkpoint_id=tmp_path)


class _Stops(dcp.FileSystemWriter):
    def finish(self, metadata, results):
        raise OSError("the disk is full")


def test_save_that_fails_leaves_the_older_checkpoint_loadable(tmp_path):
    dcp.save(_state(1.0), checkpoint_id=tmp_path)
    with pytest.raises(dcp.CheckpointException, match="the disk is full"):
        dcp.save(_state(9.0), storage_writer=_Stops(tmp_path))
    found = _empty()
    dcp.load(found, checkpoint_id=tmp_path)
    _check(found, 1.0)


def test_save_over_a_checkpoint_replaces_it_and_its_files(tmp_path):
    dcp.save(_state(1.0), checkpoint_id=tmp_path)
    dcp.save(_state(2.0), checkpoint_id=tmp_path)
    found = _empty()
    dcp.load(found, checkpoint_id=tmp_path)
    _check(found, 2.0)
    assert len([name for name in os.listdir(tmp_path) if name.endswith(".distcp")]) == 1


def test_async_save_keeps_the_values_of_its_call(tmp_path):
    state = {"w": torch.ones(3)}
    future = dcp.async_save(state, checkpoint_id=tmp_path)
    state["w"].fill_(7)
    future.result(30)
    found = {"w": torch.zeros(3)}
    dcp.load(found, checkpoint_id=tmp_path)
    assert found["w"].tolist() == [1, 1, 1]


def _saving(rank: int, size: int, folder: str) -> bool:
    dcp.save({**_state(4.0), f"own{rank}": torch.full((2,), float(rank))}, checkpoint_id=folder)
    found = {**_empty(), f"own{1 - rank}": torch.zeros(2)}
    dcp.load(found, checkpoint_id=folder)
    _check(found, 4.0)
    return found[f"own{1 - rank}"].tolist() == [1.0 - rank] * 2


@needs_gloo
def test_two_ranks_write_each_tensor_once_and_one_process_reads_all(tmp_path):
    assert run_ranks(_saving, 2, str(tmp_path)) == [True, True]
    found = {**_empty(), "own0": torch.ones(2), "own1": torch.ones(2)}
    dcp.load(found, checkpoint_id=tmp_path)
    _check(found, 4.0)
    assert found["own0"].tolist() == [0, 0] and found["own1"].tolist() == [1, 1]
    told = pickle.loads((tmp_path / ".metadata").read_bytes())
    assert all(len(getattr(e, "chunks", [0])) == 1 for e in told.state_dict_metadata.values())


def _one_fails(rank: int, size: int, folder: str) -> str:
    class Broken:
        def __getstate__(self):
            raise ValueError("cannot be saved")

    with pytest.raises(dcp.CheckpointException) as caught:
        dcp.save({f"x{rank}": Broken() if rank else 1}, checkpoint_id=folder)
    dist.barrier()
    return str(caught.value)


@needs_gloo
def test_rank_that_cannot_save_is_named_on_every_rank(tmp_path):
    for text in run_ranks(_one_fails, 2, str(tmp_path)):
        assert "RANK 1" in text and "cannot be saved" in text


@pytest.mark.parametrize("kind", list(wrappers.CheckpointImpl))
def test_wrapped_module_has_the_values_gradients_and_names_of_the_plain_one(kind):
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    wrapped = wrappers.checkpoint_wrapper(plain, kind)
    x = torch.randn(2, 3, requires_grad=True)
    expected = torch.autograd.grad(plain(x).sum(), x)[0]
    wrapped(x).sum().backward()
    assert torch.allclose(x.grad, expected)
    assert list(wrapped.state_dict()) == ["0.weight", "0.bias"]
    assert [name for name, _ in wrapped.named_parameters()] == ["0.weight", "0.bias"]
    wrapped.load_state_dict(plain.state_dict())


def test_apply_activation_checkpointing_wraps_what_is_chosen():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    wrappers.apply_activation_checkpointing(model, check_fn=lambda m: isinstance(m, nn.Linear))
    assert isinstance(model[0], wrappers.CheckpointWrapper) and isinstance(model[1], nn.ReLU)


def test_initialised_optimizer_has_state_and_unchanged_parameters():
    from torch.distributed.checkpoint.state_dict import _init_optim_state

    weight = torch.nn.Parameter(torch.arange(3.0))
    optimizer = torch.optim.AdamW([weight], lr=0.1, weight_decay=0.5)
    _init_optim_state(optimizer)
    assert torch.equal(weight, torch.arange(3.0)) and weight.grad is None
    assert set(optimizer.state[weight]) >= {"exp_avg", "exp_avg_sq", "step"}
    assert optimizer.param_groups[0]["lr"] == 0.1


def _with_optimizer(kind, **settings):
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    return model, kind(model.parameters(), **settings)


def _step_of(model, optimizer):
    model(torch.ones(4, 3)).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (torch.optim.AdamW, {"lr": 0.1}),
        (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
        (torch.optim.RMSprop, {"lr": 0.1}),
    ],
)
def test_new_optimizer_goes_on_from_the_state_of_a_checkpoint(kind, settings, tmp_path):
    model, optimizer = _with_optimizer(kind, **settings)
    for _ in range(3):
        _step_of(model, optimizer)
    values, state = get_state_dict(model, optimizer)
    dcp.save({"model": values, "optimizer": state}, checkpoint_id=tmp_path)
    _step_of(model, optimizer)

    resumed, fresh = _with_optimizer(kind, **settings)
    values, state = get_state_dict(resumed, fresh)
    dcp.load({"model": values, "optimizer": state}, checkpoint_id=tmp_path)
    set_state_dict(resumed, fresh, model_state_dict=values, optim_state_dict=state)
    _step_of(resumed, fresh)
    assert torch.equal(resumed.weight, model.weight) and torch.equal(resumed.bias, model.bias)


def test_optimizer_that_needs_a_closure_is_not_stepped_for_its_state():
    model, optimizer = _with_optimizer(torch.optim.LBFGS)
    assert get_state_dict(model, optimizer)[1]["state"] == {}


def _sharded_state(rank, size, dim, folder):
    from torch.distributed._shard import sharded_tensor
    from torch.distributed._shard.sharding_spec import ChunkShardingSpec

    spec = ChunkShardingSpec(dim, [f"rank:{r}/cpu" for r in range(size)])
    return {"t": sharded_tensor.zeros(spec, 5, 6)}


def _save_sharded(rank, size, folder):
    state = _sharded_state(rank, size, 0, folder)
    (shard,) = state["t"].local_shards()
    begin = shard.metadata.shard_offsets[0]
    shard.tensor.copy_(torch.arange(30.0).view(5, 6)[begin : begin + shard.tensor.size(0)])
    dcp.save(state, checkpoint_id=folder)
    other = _sharded_state(rank, size, 1, folder)
    dcp.load(other, checkpoint_id=folder)
    out = torch.zeros(5, 6) if rank == 0 else None
    other["t"].gather(0, out)
    return None if out is None else out.clone()


@needs_gloo
def test_sharded_tensors_are_saved_by_rows_and_loaded_by_columns(tmp_path):
    whole, _ = run_ranks(_save_sharded, 2, str(tmp_path / "c"))
    assert torch.equal(whole, torch.arange(30.0).view(5, 6))
    plain = {"t": torch.zeros(5, 6)}
    dcp.load(plain, checkpoint_id=tmp_path / "c", no_dist=True)
    assert torch.equal(plain["t"], whole)


def test_chunks_of_a_spec_are_those_of_torch_chunk():
    from torch.distributed._shard.sharded_tensor import TensorProperties
    from torch.distributed._shard.sharding_spec import ChunkShardingSpec, EnumerableShardingSpec

    for length in (1, 4, 5, 11, 13):
        spec = ChunkShardingSpec(-1, ["rank:0/cpu", "rank:1", "rank:2/cpu", "rank:3/cpu"])
        made = spec.build_metadata(torch.Size([2, length]), TensorProperties())
        sizes = [t.size(1) for t in torch.zeros(2, length).chunk(4, 1)]
        assert [one.shard_sizes[1] for one in made.shards_metadata] == sizes
        assert made.shards_metadata[0].placement.rank() == 0
        again = EnumerableShardingSpec(made.shards_metadata)
        assert again.build_metadata(torch.Size([2, length]), TensorProperties()).size[1] == length
    with pytest.raises(ValueError, match="Could not parse remote_device"):
        ChunkShardingSpec(0, ["rank:x"])
    with pytest.raises(ValueError, match="overlap"):
        EnumerableShardingSpec(made.shards_metadata[:1] * 2)


def test_old_order_of_arguments_is_taken_with_a_warning(tmp_path):
    with pytest.warns(FutureWarning, match="argument order"):
        dcp.save({"a": torch.ones(3)}, dcp.FileSystemWriter(tmp_path))
    state = {"a": torch.zeros(3)}
    with pytest.warns(FutureWarning, match="argument order"):
        dcp.load(state, dcp.FileSystemReader(tmp_path))
    assert state["a"].tolist() == [1.0] * 3
