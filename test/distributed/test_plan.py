"""Plans beside what real processes hold and send: the same model, divided by the same functions, on
two and four processes."""

import itertools
import json

import pytest
from ranks import needs_gloo, run_ranks

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace_json, _reset_fr_recording
from torch.distributed.plan import GPTConfig, config_for, count_stage, draw, plan, schedule
from torch.distributed.plan.__main__ import main
from torch.distributed.plan.model import GPT, parallelize

CONFIG = GPTConfig(layers=3, hidden=128, heads=4, vocabulary=500, length=64)
BATCH = 2


def _bytes(tensor):
    local = getattr(tensor, "_local_tensor", tensor)
    return local.numel() * local.element_size()


def _measured(rank, size, dp, tp):
    mesh = dist.init_device_mesh("cpu", (dp, tp), mesh_dim_names=("dp", "tp"))
    torch.manual_seed(0)
    model = parallelize(GPT(CONFIG), mesh)
    optimizer = torch.optim.Adam(model.parameters())
    tokens = torch.zeros(BATCH, CONFIG.length, dtype=torch.int64)
    kept = {}

    def pack(tensor):
        storage = getattr(tensor, "_local_tensor", tensor).untyped_storage()
        parameters = {
            getattr(p, "_local_tensor", p).untyped_storage()._cdata for p in model.parameters()
        }
        if storage._cdata not in parameters:
            kept[storage._cdata] = (storage.nbytes(), storage)
        return tensor

    _reset_fr_recording()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        out = model(tokens)
    activations = sum(nbytes for nbytes, _ in kept.values())
    out.sum().backward()
    sent = {}
    for entry in json.loads(_dump_fr_trace_json())["entries"]:
        name = entry["profiling_name"].partition(":")[2]
        side = "input_sizes" if name == "reduce_scatter_tensor" else "output_sizes"
        count = sum(torch.Size(one).numel() for one in entry[side])
        before = sent.get(name, (0, 0))
        sent[name] = (before[0] + 1, before[1] + 4 * count)
    optimizer.step()
    state = sum(_bytes(v) for s in optimizer.state.values() for v in s.values() if v.dim())
    return {
        "parameters": sum(_bytes(p) for p in model.parameters()),
        "gradients": sum(_bytes(p.grad) for p in model.parameters()),
        "optimizer": state,
        "activations": activations,
        "sent": sent,
    }


@needs_gloo
@pytest.mark.parametrize("dp, tp", [(2, 1), (1, 2), (2, 2)])
def test_memory_and_collectives_are_those_of_real_processes(dp, tp):
    real = run_ranks(_measured, dp * tp, dp, tp, timeout=120)[0]
    counts = count_stage(CONFIG, CONFIG.layers, dp, tp, BATCH)
    assert counts.parameters == pytest.approx(real["parameters"], rel=0.02)
    assert counts.parameters == pytest.approx(real["gradients"], rel=0.02)
    assert counts.elements * 8 == pytest.approx(real["optimizer"], rel=0.02)
    assert counts.activations == pytest.approx(real["activations"], rel=0.1)
    planned = {}
    for (name, axis), (count, nbytes) in counts.collectives.items():
        assert axis == ("tp" if name == "all_reduce" else "dp")
        planned[name] = (count, nbytes)
    assert set(planned) == set(real["sent"])
    for name, (count, nbytes) in real["sent"].items():
        assert planned[name][0] == pytest.approx(count, rel=0.1), name
        assert planned[name][1] == pytest.approx(nbytes, rel=0.1), name


def test_one_and_two_layers_tell_how_three_are():
    direct = count_stage(GPTConfig(1, 64, 2, 100, 32), 2, 2, 1, 1)
    longer = count_stage(GPTConfig(1, 64, 2, 100, 32), 3, 2, 1, 1)
    block = 12 * 64 * 64 + 13 * 64
    assert longer.elements - direct.elements == block / 2
    assert config_for(7e9).parameters == pytest.approx(7e9, rel=0.05)
    assert config_for(124e6).parameters == pytest.approx(124e6, rel=0.2)


def test_schedule_keeps_every_order_and_one_thing_at_a_time():
    slots = schedule(4, 6, forward=1.0, backward=2.0, transfer=0.5)
    when = {(s.kind, s.stage, s.microbatch): s for s in slots}
    assert len(slots) == 2 * 4 * 6
    for number in range(6):
        for stage in range(3):
            forward, after = when["F", stage, number], when["F", stage + 1, number]
            assert after.begin >= forward.end + 0.5
            assert when["B", stage, number].begin >= when["B", stage + 1, number].end + 0.5
        assert when["B", 3, number].begin >= when["F", 3, number].end
    for stage in range(4):
        mine = sorted((s for s in slots if s.stage == stage), key=lambda s: s.begin)
        assert all(a.end <= b.begin for a, b in itertools.pairwise(mine))
        # 1F1B: at most as many forwards without their backward as there are stages to the end.
        ahead = most = 0
        for slot in mine:
            ahead += 1 if slot.kind == "F" else -1
            most = max(most, ahead)
        assert most == 4 - stage
    assert schedule(1, 3, 1.0, 2.0)[-1].end == 9.0
    assert draw(slots, 40).count("\n") == 3


def test_command_prints_memory_collectives_time_and_a_picture(capsys):
    assert main("--params 70B --gpus 1024 --mesh 8x16x8".split()) == 0
    text = capsys.readouterr().out
    for word in ("mesh pp=8 x dp=16 x tp=8 = 1024 ranks", "optimizer", "all_reduce", "tokens/s",
                 "all_gather_into_tensor", "send and recv", "stage   7 |"):  # fmt: skip
        assert word in text, word
    with pytest.raises(SystemExit):
        main("--gpus 12 --mesh 8".split())
    with pytest.raises(SystemExit):
        main("--layers 2 --hidden 64 --heads 2 --mesh 4x1x1".split())


def test_plan_says_what_does_not_fit():
    made = plan(config_for(70e9, 1024), 1, 8, 1)
    assert "DOES NOT FIT" in made.report()
    smaller = plan(config_for(1e9), 1, 8, 1, recompute=True)
    assert "DOES NOT FIT" not in smaller.report() and smaller.step_seconds > 0
