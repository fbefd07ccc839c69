"""Artifacts of TORCH_LOGS, records of TORCH_TRACE and the table of explain."""

from __future__ import annotations

import json
import logging
import os
import pathlib
import subprocess
import sys

import pytest

import torch
import torch._dynamo
import torch._logging

SEEN: list[int] = []


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    SEEN.clear()


def broken(x: torch.Tensor) -> torch.Tensor:
    SEEN.append(1)
    y = x.sin()
    torch._dynamo.graph_break()
    return y.cos()


@pytest.mark.parametrize(
    ("artifact", "logger", "words"),
    [
        ("trace_source", "torch._dynamo", "y = x.sin()"),
        ("trace_bytecode", "torch._dynamo", "TRACE LOAD_ATTR sin"),
        ("side_effects", "torch._dynamo", "G['SEEN']"),
        ("verbose_guards", "torch._dynamo", "TENSOR_MATCH L['x']"),
        ("graph_breaks", "torch._dynamo", "torch._dynamo.graph_break()\n"),
        ("aot_graphs", "torch._functorch._aot_autograd", "Backward graph"),
        ("aot_joint_graph", "torch._functorch._aot_autograd", "Joint graph"),
    ],
)
def test_artifact_is_written_when_it_is_asked_for(
    artifact: str, logger: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = logging.getLogger(logger)
    torch._logging.set_logs(**{artifact: True})
    found.addHandler(caplog.handler)
    try:
        torch.compile(broken, backend="aot_eager")(torch.ones(2, requires_grad=True))
    finally:
        found.removeHandler(caplog.handler)
        torch._logging.set_logs()
    texts = [r.getMessage() for r in caplog.records if r.name.endswith(f"__{artifact}")]
    assert any(words in text for text in texts)


def test_graph_break_names_line_explanation_hint_and_registry_id(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logger = logging.getLogger("torch._dynamo")
    torch._logging.set_logs(graph_breaks=True)
    logger.addHandler(caplog.handler)
    try:
        torch.compile(broken, backend="eager")(torch.ones(2))
    finally:
        logger.removeHandler(caplog.handler)
        torch._logging.set_logs()
    (text,) = [r.getMessage() for r in caplog.records if r.name.endswith("__graph_breaks")]
    line = broken.__code__.co_firstlineno + 3
    assert f"{__file__}:{line}" in text
    for word in ("Explanation:", "Hint:", "Registry id: GB", "User code traceback:"):
        assert word in text


def test_kind_of_break_has_one_id_in_every_process() -> None:
    from torch._dynamo.exc import Unsupported

    first, second = (Unsupported.of("kind", context, "why", ()) for context in ("a", "b"))
    assert first.gb_id == second.gb_id == "GB3bc4bcd9"
    assert first.gb_id != Unsupported.of("other kind", "a", "why", ()).gb_id


PROGRAM = """
import torch

def fn(x, n):
    y = x.relu()
    print("break")
    return y * n

compiled = torch.compile(fn, backend="inductor")
for n in (2, 3):
    compiled(torch.ones(3, requires_grad=True), n).sum().backward()
compiled = torch.compile(lambda x: torch._dynamo.graph_break(), fullgraph=True)
try:
    compiled(torch.ones(2))
except Exception:
    pass
"""


def records(folder: pathlib.Path) -> list[tuple[dict, str]]:
    """The records of a trace, each with its payload."""
    (file,) = folder.iterdir()
    out: list[tuple[dict, str]] = []
    for line in file.read_text().splitlines():
        if line.startswith("\t") and out:
            head, payload = out[-1]
            out[-1] = (head, f"{payload}{line[1:]}\n")
        elif "{" in line:
            out.append((json.loads(line[line.index("{") :]), ""))
    return out


def test_records_of_a_trace_have_the_form_that_tlparse_reads(tmp_path: pathlib.Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    folder = tmp_path / "trace"
    env = {"TORCH_TRACE": str(folder), "PYTHONPATH": ":".join(sys.path), "PATH": ""}
    subprocess.run([sys.executable, tmp_path / "program.py"], env=env, check=True)
    found = records(folder)
    kinds = {key for head, _ in found for key in head}
    assert {"dynamo_start", "dynamo_output_graph", "dynamo_cpp_guards_str"} <= kinds
    assert {"aot_joint_graph", "aot_forward_graph", "aot_backward_graph"} <= kinds
    assert {"compilation_metrics", "chromium_event", "str"} <= kinds
    names = {head["artifact"]["name"] for head, _ in found if "artifact" in head}
    assert {"torch_version", "recompile_reasons", "dynamo_graph_break_reason"} <= names
    assert {"dynamo_error", "fn_ORIGINAL_BYTECODE", "fn_MODIFIED_BYTECODE"} <= names
    for head, payload in found:
        if "dynamo_guards" in head:
            assert all(isinstance(guard["code"], str) for guard in json.loads(payload))
        if "chromium_event" in head:
            assert json.loads(payload)["ph"] in "BE"
        if head.get("artifact", {}).get("encoding") == "json":
            json.loads(payload)
        if "dynamo_output_graph" in head:
            assert [3] in head["dynamo_output_graph"]["sizes"].values()
        if "dynamo_start" in head:
            assert head["dynamo_start"]["stack"][0]["name"] == "<module>"
        # Graphs of backward passes and reasons to recompile belong to a compilation, too.
        reasons = head.get("artifact", {}).get("name") == "recompile_reasons"
        if reasons or any("graph" in key for key in head):
            assert "frame_id" in head and "frame_compile_id" in head


def test_explain_shows_graphs_and_breaks_in_one_table() -> None:
    lines = str(torch._dynamo.explain(broken)(torch.ones(2))).splitlines()
    line = broken.__code__.co_firstlineno
    table = [text.split() for text in lines[3:7]]
    assert [row[:2] for row in table[1:3]] == [["graph", "1"], ["graph", "2"]]
    assert table[3][:2] == ["break", "1"]
    assert f"line {line + 2}, in broken" in lines[4]
    assert f"{__file__}:{line + 3}" in lines[6]


def test_help_lists_the_visible_names_and_all_of_them_when_asked() -> None:
    from torch._logging._internal import help_message, log_registry

    short, full = help_message(), help_message(verbose=True)
    for name in ("recompiles", "graph_breaks", "guards", "output_code", "side_effects"):
        assert f"  {name}: " in short and f"  {name}: " in full
    for name in ("bytecode", "cudagraphs", "caching", "ir_pre_fusion", "ir_post_fusion"):
        assert f"  {name}: " not in short and f"  {name}: " in full
        assert log_registry.is_artifact(name)
    assert all(f"\n  {alias}" in short for alias in ("all", "dynamo", "cache", "async_compile"))
    # Debug output of a log brings its artifacts, but not those that are long.
    assert not log_registry.is_off_by_default("aot_joint_graph")
    assert log_registry.is_off_by_default("bytecode")


@pytest.mark.parametrize("artifact", ["ir_pre_fusion", "ir_post_fusion"])
def test_loops_are_logged_once_for_each_graph(artifact, caplog) -> None:
    with caplog.at_level(logging.DEBUG):
        torch._logging.set_logs(**{artifact: True})
        try:
            torch.compile(lambda x: (x + 1).sin(), backend="inductor")(torch.ones(100, 100))
        finally:
            torch._logging.set_logs()
    # A record may come to the handler by two ways.
    texts = {id(r): r.getMessage() for r in caplog.records if r.name.endswith(f"__{artifact}")}
    (text,) = texts.values()
    assert "sin" in text


def test_dynamic_tells_of_symbols_and_of_guards_on_them() -> None:
    program = """
import torch
f = torch.compile(lambda x: x + 1 if x.size(0) > 4 else x, backend="eager", dynamic=True)
f(torch.ones(7))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TORCH_LOGS": "dynamic"},
        capture_output=True,
        text=True,
    )
    assert "create_symbol s0 = 7 for L['x'].size()[0] [2, int_oo]" in done.stderr
    assert "[guard added]" in done.stderr
