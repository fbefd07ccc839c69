"""One page about a traced run: `python -m torch.compile_report DIR [--out report.html]`, where DIR
is what TORCH_TRACE named. It lists every compilation with its time, graph, guards and breaks, and
why functions were compiled again."""

from __future__ import annotations

import argparse
import html
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

__all__ = ["main", "page", "read"]

Record = tuple[dict[str, object], str]
_LINE = re.compile(r"^[VDIWEC]\d{4} \S+ \d+ [^\]]+\] (\{.*\})$")
_STYLE = """
body { font: 15px/1.4 sans-serif; margin: 2em; max-width: 70em }
table { border-collapse: collapse } td, th { border: 1px solid #bbb; padding: 2px 8px }
th { text-align: left; background: #eee } pre { background: #f6f6f6; padding: .6em; overflow: auto }
summary { cursor: pointer }
"""


def read(folder: Path) -> Iterator[Record]:
    """The records of all files of a folder: what is known, and the text that follows it."""
    files = sorted(folder.rglob("*.log")) if folder.is_dir() else [folder]
    for file in files:
        known: dict[str, object] | None = None
        text: list[str] = []
        for line in file.read_text(errors="replace").splitlines():
            found = _LINE.match(line)
            if found is None:
                text.append(line.removeprefix("\t"))
                continue
            if known is not None:
                yield known, "\n".join(text)
            known, text = json.loads(found.group(1)), []
        if known is not None:
            yield known, "\n".join(text)


def _id(record: dict[str, object]) -> str:
    if record.get("frame_id") is None:
        return "-"
    return f"[{record['frame_id']}/{record.get('frame_compile_id', 0)}]"


def _escaped(value: object) -> str:
    return html.escape(str(value))


def _table(head: list[str], rows: list[list[object]]) -> str:
    lines = ["<table><tr>", *(f"<th>{_escaped(h)}</th>" for h in head), "</tr>"]
    for row in rows:
        lines += ["<tr>", *(f"<td>{_escaped(cell)}</td>" for cell in row), "</tr>"]
    return "".join([*lines, "</table>"])


def _folded(title: str, text: str) -> str:
    body = f"<pre>{_escaped(text)}</pre>"
    return f"<details><summary>{_escaped(title)}</summary>{body}</details>"


_TEXTS = {
    "dynamo_output_graph": "captured graph",
    "dynamo_guards": "guards",
    "dynamo_cpp_guards_str": "guards",
    "aot_forward_graph": "forward graph",
    "aot_backward_graph": "backward graph",
    "aot_inference_graph": "inference graph",
    "aot_joint_graph": "joint graph",
    "inductor_post_grad_graph": "graph after passes",
    "inductor_output_code": "output code",
}


def page(records: list[Record]) -> str:
    """The page."""
    rows, breaks, again = [], [], []
    texts: defaultdict[str, list[str]] = defaultdict(list)
    for record, text in records:
        place = _id(record)
        metrics = record.get("compilation_metrics")
        if isinstance(metrics, dict):
            seconds = metrics.get("entire_frame_compile_time_s") or 0.0
            where = f"{metrics.get('co_filename')}:{metrics.get('co_firstlineno')}"
            rows.append([place, metrics.get("co_name"), where, f"{seconds * 1e3:.1f}",
                         metrics.get("graph_op_count"), metrics.get("guard_count"),
                         metrics.get("fail_reason") or ""])  # fmt: skip
        if "dynamo_graph_break_reason" in record:
            breaks.append(_folded(place, text))
        if "recompile_reasons" in record or "dynamo_recompile" in record:
            again.append(_folded(place, text))
        for key, title in _TEXTS.items():
            if key in record:
                texts[place].append(_folded(title, text))
    again += [f"<p>{r[0]} {_escaped(r[1])} was compiled again</p>" for r in rows
              if not str(r[0]).endswith("/0]")]  # fmt: skip
    head = ["id", "function", "where", "ms", "operators", "guards", "failure"]
    parts = [
        "<!DOCTYPE html>",
        f"<html><head><meta charset='utf-8'><title>torch.compile</title><style>{_STYLE}</style>",
        "</head><body><h1>torch.compile</h1>",
        "<h2>Compilations</h2>",
        _table(head, rows),
        "<h2>Graph breaks</h2>",
        *(breaks or ["<p>none</p>"]),
        "<h2>Recompiles</h2>",
        *(again or ["<p>none</p>"]),
        "<h2>Artifacts</h2>",
    ]
    for place, found in texts.items():
        parts += [f"<h3>{_escaped(place)}</h3>", *found]
    return "\n".join([*parts, "</body></html>"])


def main(argv: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m torch.compile_report", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("compile_report.html"))
    given = parser.parse_args(argv)
    if not given.folder.exists():
        print(
            f"{given.folder} does not exist: run with TORCH_TRACE={given.folder}", file=sys.stderr
        )
        return 1
    records = list(read(given.folder))
    given.out.write_text(page(records))
    print(f"{given.out}: {len(records)} records")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
