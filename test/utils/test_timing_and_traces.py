"""Callgrind files, execution traces, memory timelines and averages by shape."""

import json

import pytest

import torch
from torch import nn


def test_profiler_recording_can_be_interrupted():
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=cpu) as recorded:
        torch.ones(2).exp()
        recorded.toggle_collection_dynamic(False, cpu)
        torch.ones(2).cos()
        recorded.toggle_collection_dynamic(True, cpu)
        torch.ones(2).sin()
    names = [event.name for event in recorded.events()]
    assert "aten::exp" in names and "aten::sin" in names and "aten::cos" not in names


def test_memory_timeline_is_written(tmp_path):
    with pytest.raises(ValueError, match="required for memory profiling"):
        torch.profiler.profile().export_memory_timeline(str(tmp_path / "a.json"))
    settings = {"record_shapes": True, "profile_memory": True, "with_stack": True}
    with torch.profiler.profile(**settings) as recorded:
        kept = torch.ones(1000)
        kept = kept + 1
    recorded.export_memory_timeline(str(tmp_path / "a.json"), "cpu")
    moments, held = json.loads((tmp_path / "a.json").read_text())
    assert len(moments) == len(held) and max(row[1] for row in held) >= 4000
    recorded.export_memory_timeline(str(tmp_path / "a.html"), "cpu")
    assert "<svg" in (tmp_path / "a.html").read_text()


def test_execution_trace_has_a_node_for_each_operator(tmp_path):
    path = tmp_path / "trace.json"
    observer = torch.profiler.ExecutionTraceObserver().register_callback(str(path))
    observer.start()
    torch.ones(2, 3).exp()
    observer.stop()
    observer.unregister_callback()
    nodes = json.loads(path.read_text())["nodes"]
    found = [node for node in nodes if node["name"] == "aten::exp"]
    assert len(found) == 1 and found[0]["inputs"]["shapes"][0] == [2, 3]
    assert {node["ctrl_deps"] for node in nodes} <= {node["id"] for node in nodes}


PROFILE = """\
version: 1
events: Ir
fn=(1) main
0 5
+3 10
cfn=(2) helper
calls=2 0
0 40
fn=(2)
0 30
* 10
"""


def test_callgrind_files_are_read(tmp_path):
    from torch.utils.benchmark.utils.callgrind import _read_profile

    (tmp_path / "out").write_text(PROFILE)
    exclusive, inclusive = _read_profile(tmp_path / "out")
    assert exclusive == {"main": 15, "helper": 40}
    assert inclusive == {"main": 55, "helper": 40}


def test_function_counts_add_subtract_and_filter():
    from torch.utils.benchmark import FunctionCount, FunctionCounts

    a = FunctionCounts([FunctionCount(5, "f"), FunctionCount(2, "g:dictobject.c")], False)
    b = FunctionCounts([FunctionCount(3, "f"), FunctionCount(4, "h")], False)
    assert list(a + b) == [(8, "f"), (4, "h"), (2, "g:dictobject.c")]
    assert list(a - b) == [(-4, "h"), (2, "f"), (2, "g:dictobject.c")]
    assert a.sum() == 7 and a.denoise().sum() == 5 and len(a[:1]) == 1
    assert list((a * 2).transform(lambda name: name[0])) == [(10, "f"), (4, "g")]
    with pytest.raises(AssertionError, match="inclusive and exclusive"):
        a + FunctionCounts([], True)


def test_counting_refuses_values_it_cannot_hand_over():
    timer = torch.utils.benchmark.Timer("x", globals={"x": object()})
    with pytest.raises((ValueError, OSError), match=r"CopyIfCallgrind|valgrind"):
        timer.collect_callgrind()


def test_flop_counter_without_a_depth_lists_every_module():
    from torch.utils.flop_counter import FlopCounterMode

    model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 2)))
    with FlopCounterMode(display=False, depth=None) as counter:
        model(torch.ones(1, 3))
    assert counter.get_total_flops() == 2 * (3 * 4 + 4 * 2)
    assert "Sequential.1.0" in counter.get_table()


def test_averages_by_shape_hold_the_shapes_themselves():
    with torch.profiler.profile(record_shapes=True) as recorded:
        torch.ones(4, 8).relu()
    averages = recorded.key_averages(group_by_input_shape=True)
    (average,) = [e for e in averages if e.key == "aten::relu"]
    assert average.input_shapes == [[4, 8]]
    assert "[[4, 8]]" in averages.table()
