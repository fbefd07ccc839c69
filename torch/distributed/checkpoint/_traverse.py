"""Walks through nested state: the way to a value is a tuple of texts, which are keys of dicts, and
numbers, which are places in lists. Checkpoints keep these ways in their metadata."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import STATE_DICT_TYPE

__all__ = ["get_element", "set_element", "traverse_state_dict", "traverse_state_dict_v_2_3"]

OBJ_PATH = tuple[str | int, ...]
Visitor = Callable[[OBJ_PATH, Any], None]


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def _walk(path: OBJ_PATH, value: Any, visitor: Visitor, enters: Callable[[Any], bool]) -> None:
    if isinstance(value, Mapping) and enters(value):
        for key, one in value.items():
            _walk((*path, str(key)), one, visitor, enters)
    elif isinstance(value, list) and enters(value):
        for place, one in enumerate(value):
            _walk((*path, place), one, visitor, enters)
    else:
        visitor(path, value)


def traverse_state_dict(
    state_dict: STATE_DICT_TYPE,
    visitor: Visitor,
    keep_traversing: Callable[[Any], bool] = _is_tensor,
) -> None:
    """Calls visitor(path, value) for what dicts hold, and for what lists hold that have a dict or
    a value of which `keep_traversing` is true inside. Other lists are values."""

    def enters(value: Any) -> bool:
        if isinstance(value, Mapping):
            return True
        if isinstance(value, list):
            return any(map(enters, value))
        return keep_traversing(value)

    for key, value in state_dict.items():
        _walk((str(key),), value, visitor, enters)


def traverse_state_dict_v_2_3(
    state_dict: STATE_DICT_TYPE,
    visitor: Visitor,
    keep_traversing: Callable[[Any], bool] = _is_tensor,
) -> None:
    """As traverse_state_dict, but dicts without such values inside are values, too: this is how
    checkpoints were written before 2.4."""

    def enters(value: Any) -> bool:
        if isinstance(value, Mapping):
            return any(map(enters, value.values()))
        if isinstance(value, list):
            return any(map(enters, value))
        return keep_traversing(value)

    for key, value in state_dict.items():
        _walk((str(key),), value, visitor, enters)


def set_element(root_dict: STATE_DICT_TYPE, path: OBJ_PATH, value: object) -> None:
    """Puts a value at the end of its way; dicts and lists that are missing on it are made."""
    holder: Any = root_dict
    for step, following in itertools.pairwise(path):
        inside = get_element(holder, (step,))
        if inside is None:
            inside = {} if isinstance(following, str) else []
            _put(holder, step, inside)
        holder = inside
    _put(holder, path[-1], value)


def _put(holder: Any, step: str | int, value: object) -> None:
    if isinstance(holder, list) and isinstance(step, int):
        holder.extend([None] * (step + 1 - len(holder)))
    holder[step] = value


def get_element(root_dict: STATE_DICT_TYPE, path: OBJ_PATH, default_value: Any = None) -> Any:
    """The value at the end of a way, or the default where it leads nowhere."""
    value: Any = root_dict
    for step in path:
        is_key = isinstance(value, Mapping) and step in value
        is_place = isinstance(value, list) and isinstance(step, int) and step < len(value)
        if not (is_key or is_place):
            return default_value
        value = value[step]
    return value
