"""What an export did, step by step, as lines on the screen and as a file for people."""

from __future__ import annotations

import contextlib
import os
import time
import traceback
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.export.exported_program import ExportedProgram
    from torch.onnx._internal.exporter._onnx_program import ONNXProgram
    from torch.onnx._internal.exporter._verification import VerificationInfo

__all__ = ["Steps", "write"]


class Steps:
    """Steps of an export with their times and outcomes."""

    def __init__(self, verbose: bool | None, profile: bool = False) -> None:
        self.verbose, self.profile = verbose, profile
        self.done: list[tuple[str, float, str]] = []

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Notes what happens inside as one step."""
        begin = time.perf_counter()
        if self.verbose:
            print(f"[torch.onnx] {name}...", flush=True)
        outcome = "failed"
        try:
            yield
            outcome = "done"
        finally:
            seconds = time.perf_counter() - begin
            self.done.append((name, seconds, outcome))
            if self.verbose or self.profile:
                print(f"[torch.onnx] {name}: {outcome} ({seconds:.2f} s)", flush=True)


def write(
    folder: str | os.PathLike,
    steps: Steps,
    program: ExportedProgram | None,
    made: ONNXProgram | None,
    found: Sequence[VerificationInfo],
    error: Exception | None,
) -> str:
    """Writes a report in Markdown; returns its path."""
    lines = ["# PyTorch ONNX Conversion Report", ""]
    lines += ["| step | seconds | outcome |", "| - | - | - |"]
    lines += [f"| {name} | {seconds:.2f} | {outcome} |" for name, seconds, outcome in steps.done]
    if error is not None:
        text = "".join(traceback.format_exception(error)).rstrip()
        lines += ["", "## Error", "", "```", text, "```"]
    if found:
        lines += ["", "## Verification", "", "| output | largest difference | relative |"]
        lines += ["| - | - | - |"]
        lines += [f"| {i.name} | {i.max_abs_diff:.3g} | {i.max_rel_diff:.3g} |" for i in found]
    if program is not None:
        lines += ["", "## Exported program", "", "```python", str(program).rstrip(), "```"]
    if made is not None:
        counts: dict[str, int] = {}
        for node in made.model.graph.all_nodes():
            counts[node.op_type] = counts.get(node.op_type, 0) + 1
        lines += ["", "## ONNX operators", "", "| operator | nodes |", "| - | - |"]
        lines += [f"| {name} | {counts[name]} |" for name in sorted(counts)]
    stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
    state = "success" if error is None else "failed"
    path = os.path.join(folder, f"onnx_export_{stamp}_{state}.md")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path
