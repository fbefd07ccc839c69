"""Summaries as programs hand them to a file writer: the bytes of TensorBoard's messages. Settings
of runs (hparams) are the messages of its hparams plugin."""

from __future__ import annotations

import time

import torch
from torch.utils.tensorboard import _events

__all__ = ["hparams", "scalar", "text"]

_EXPERIMENT, _SESSION_START, _SESSION_END = 2, 3, 4
_TEXT, _BOOL, _NUMBER = 1, 2, 3


def scalar(name, tensor, collections=None, new_style=False, double_precision=False):
    """A number."""
    value = tensor.item() if isinstance(tensor, torch.Tensor) else float(tensor)
    return _events.scalar(name, value)


def text(tag, text):
    """A text."""
    return _events.text(tag, text)


def _plugin(tag, kind, message) -> bytes:
    """A value without data of its own: all of it is in what the plugin reads."""
    content = _events.integer(1, 0) + _events.chunk(kind, message)
    plugin = _events.chunk(1, "hparams") + _events.chunk(2, content)
    return _events.chunk(1, _events.chunk(1, tag) + _events.chunk(9, _events.chunk(1, plugin)))


def _value(value) -> tuple[bytes, int]:
    """(the message of a setting's value, its type)."""
    if isinstance(value, torch.Tensor):
        value = value.item()
    if isinstance(value, bool):
        return _events.integer(4, value), _BOOL
    if isinstance(value, (int, float)):
        return _events.double(2, value), _NUMBER
    if isinstance(value, str):
        return _events.chunk(3, value), _TEXT
    raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")


def _choices(name, values):
    """The message of the values that a setting may have; all must be of one kind."""
    if not isinstance(values, (list, tuple)) or len({_value(v)[1] for v in values}) > 1:
        raise TypeError(f"parameter: hparam_domain_discrete[{name}] must be a list of same type.")
    return _events.chunk(5, b"".join(_events.chunk(1, _value(v)[0]) for v in values))


def hparams(
    hparam_dict=None, metric_dict=None, hparam_domain_discrete=None
) -> tuple[bytes, bytes, bytes]:
    """Three summaries: what settings and metrics there are, the settings of this run, and its end.
    Settings that are None are left out."""
    if not isinstance(hparam_dict, dict):
        raise TypeError("parameter: hparam_dict should be a dictionary, nothing logged.")
    if not isinstance(metric_dict, dict):
        raise TypeError("parameter: metric_dict should be a dictionary, nothing logged.")
    domains = hparam_domain_discrete or {}
    if not isinstance(domains, dict) or not set(domains) <= set(hparam_dict):
        raise TypeError("parameter: hparam_domain_discrete should be a dictionary of settings.")
    start, infos = b"", b""
    for name, value in hparam_dict.items():
        if value is None:
            continue
        message, kind = _value(value)
        start += _events.chunk(1, _events.chunk(1, name) + _events.chunk(2, message))
        info = _events.chunk(1, name) + _events.integer(4, kind)
        if name in domains:
            info += _choices(name, domains[name])
        infos += _events.chunk(4, info)
    metrics = b"".join(
        _events.chunk(5, _events.chunk(1, _events.chunk(2, name))) for name in metric_dict
    )
    start += _events.double(5, time.time())
    end = _events.integer(1, 1) + _events.double(2, time.time())
    return (
        _plugin("_hparams_/experiment", _EXPERIMENT, infos + metrics),
        _plugin("_hparams_/session_start_info", _SESSION_START, start),
        _plugin("_hparams_/session_end_info", _SESSION_END, end),
    )
