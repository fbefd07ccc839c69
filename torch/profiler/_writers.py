"""Files made from recorded events: which operators ran with which inputs (an execution trace), and
how much memory was held over time."""

from __future__ import annotations

import gzip
import json
import os
import time

__all__ = ["write_execution_trace", "write_memory_timeline"]


def _node(event):
    """One operator or range as a node of an execution trace."""
    shapes, kinds = event.input_shapes or [], event.input_dtypes or []
    parent = event.cpu_parent.id + 1 if event.cpu_parent is not None else 1
    attributes = [
        {"name": "rf_id", "type": "uint64", "value": event.id},
        {"name": "fw_parent", "type": "uint64", "value": 0},
        {"name": "scope", "type": "uint64", "value": 7 if event.is_user_annotation else 0},
        {"name": "tid", "type": "uint64", "value": event.thread},
    ]
    return {
        "id": event.id + 1,
        "name": event.name,
        "ctrl_deps": parent,
        "inputs": {"values": [], "shapes": shapes, "types": kinds},
        "outputs": {"values": [], "shapes": [], "types": []},
        "ts": event.time_range.start,
        "dur": event.time_range.elapsed_us(),
        "attrs": attributes,
    }


def write_execution_trace(path, events) -> None:
    """Writes events as a tree of nodes under one root; a name that ends in .gz is compressed."""
    root = {
        "id": 1,
        "name": "[pytorch|profiler|execution_trace|process]",
        "ctrl_deps": 1,
        "inputs": {"values": [], "shapes": [], "types": []},
        "outputs": {"values": [], "shapes": [], "types": []},
        "attrs": [{"name": "rf_id", "type": "uint64", "value": 1}],
    }
    document = {
        "schema": "1.1.1-chakra.0.0.4",
        "pid": os.getpid(),
        "time": time.strftime("%Y-%m-%d %H:%M:%S"),
        "start_ts": min((event.time_range.start for event in events), default=0),
        "nodes": [root, *(_node(event) for event in events)],
        "finish_ts": max((event.time_range.end for event in events), default=0),
    }
    opener = gzip.open if os.fspath(path).endswith(".gz") else open
    with opener(path, "wt") as file:
        json.dump(document, file)


def _timeline(events, on_device) -> list[tuple[float, int]]:
    """(microseconds, bytes held) after each operator that itself took or gave back memory."""
    moments = []
    for event in events:
        if event.is_user_annotation:
            continue
        own = event.self_device_memory_usage if on_device else event.self_cpu_memory_usage
        if own:
            moments.append((event.time_range.end, own))
    held, points = 0, []
    for moment, change in sorted(moments):
        held += change
        points.append((moment, held))
    return points


def _page(points, device) -> str:
    """A page that draws the curve without any library."""
    span = max((moment for moment, _ in points), default=1) or 1
    top = max((held for _, held in points), default=1) or 1
    path = " ".join(f"{900 * m / span:.1f},{300 - 280 * h / top:.1f}" for m, h in points)
    return (
        f"<!doctype html><title>Memory on {device}</title><h1>Memory on {device}</h1>"
        f"<p>At most {top} bytes more than at the start, over {span / 1e3:.3f} ms.</p>"
        f'<svg width="900" height="300"><polyline fill="none" stroke="black" points="{path}"/>'
        "</svg>"
    )


def write_memory_timeline(path, events, device) -> None:
    """Writes how memory was used: .html a picture, .raw.json.gz every change, else the curve."""
    name = os.fspath(path)
    points = _timeline(events, on_device=not device.startswith("cpu"))
    if name.endswith(".html"):
        with open(name, "w") as file:
            file.write(_page(points, device))
        return
    if name.endswith("raw.json.gz"):
        before = 0
        rows = []
        for moment, held in points:
            rows.append((int(moment * 1000), 1 if held > before else 2, abs(held - before), 0))
            before = held
        document = rows
    else:
        document = [[moment for moment, _ in points], [[0, held] for _, held in points]]
    opener = gzip.open if name.endswith(".gz") else open
    with opener(name, "wt") as file:
        json.dump(document, file)
