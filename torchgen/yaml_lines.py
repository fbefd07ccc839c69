"""YAML with line numbers and strict mappings.

The generator's errors name a line, which PyYAML's plain loader throws away, so the tree of nodes is
converted here: a mapping becomes a Mapping that knows the line of each key, and a key given twice
is an error instead of a silent overwrite.
"""

from __future__ import annotations

import os
from typing import Any

import yaml

from .errors import GenError

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"


class Mapping(dict[str, Any]):
    """A yaml mapping with `line` and the line of each key."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.key_lines: dict[str, int] = {}


def _scalar(node: yaml.ScalarNode) -> Any:
    if node.tag == _TAG + "bool":
        return node.value.lower() in ("true", "yes", "on")
    if node.tag == _TAG + "int" and node.value.lstrip("-").isdigit():
        return int(node.value)
    if node.tag == _TAG + "null":
        return None
    return node.value


def _convert(node: yaml.Node, file: str) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return [_convert(item, file) for item in node.value]
    mapping = Mapping(node.start_mark.line + 1)
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else ""
        if not key:
            raise GenError("a key must be a plain word", file, line)
        if key in mapping:
            raise GenError(f"the key '{key}' is given twice", file, line)
        mapping[key] = _convert(value_node, file)
        mapping.key_lines[key] = line
    return mapping


def load_list(path: str) -> tuple[list[Mapping], list[str], str]:
    """Reads a yaml list of mappings. Returns the entries, the file's lines and its short name for
    messages."""
    file = os.path.basename(path)
    try:
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
    except OSError as error:
        raise GenError(f"cannot be read: {error.strerror}", path, 0) from None
    try:
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 0
        raise GenError(f"is not valid yaml: {error.problem or error.context}", file, line) from None
    if node is None:
        return [], text.splitlines(), file
    if not isinstance(node, yaml.SequenceNode):
        raise GenError("must be a list of entries, each beginning with '- '", file, 1)
    entries = []
    for item in node.value:
        if not isinstance(item, yaml.MappingNode):
            raise GenError("an entry must be a mapping", file, item.start_mark.line + 1)
        entries.append(_convert(item, file))
    return entries, text.splitlines(), file
