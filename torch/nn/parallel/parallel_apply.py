"""Calling several modules at once, each in a thread."""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch._utils import ExceptionWrapper

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj) -> Any:
    """The first tensor in a nested value, or None."""
    if isinstance(obj, torch.Tensor):
        return obj
    if isinstance(obj, dict):
        obj = obj.items()
    if isinstance(obj, (list, tuple)) or (hasattr(obj, "__iter__") and not isinstance(obj, str)):
        for item in obj:
            found = get_a_var(item)
            if found is not None:
                return found
    return None


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None) -> list[object]:
    """module(*inputs, **kwargs) for each module, in threads when there is more than one; the
    results in order."""
    if len(modules) != len(inputs):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of inputs "
            f"{len(inputs)}"
        )
    kwargs_tup = kwargs_tup or ({},) * len(modules)
    devices = devices or [None] * len(modules)
    results = [None] * len(modules)
    grad_enabled = torch.is_grad_enabled()
    autocast = [(k, torch.is_autocast_enabled(k), torch.get_autocast_dtype(k)) for k in _KINDS]

    def work(i) -> None:
        args = inputs[i] if isinstance(inputs[i], (list, tuple)) else (inputs[i],)
        device = devices[i] if devices[i] is not None else getattr(get_a_var(args), "device", "cpu")
        device = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
        try:
            with torch.set_grad_enabled(grad_enabled), _current(device):
                contexts = [torch.autocast(k, dtype=t, enabled=on) for k, on, t in autocast]
                with contexts[0], contexts[1]:
                    results[i] = modules[i](*args, **kwargs_tup[i])
        except Exception:
            results[i] = ExceptionWrapper(where=f"in replica {i} on device {device}")

    if len(modules) == 1:
        work(0)
    else:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(modules))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for result in results:
        if isinstance(result, ExceptionWrapper):
            result.reraise()
    return results


_KINDS = ("cpu", "cuda")


def _current(device):
    import contextlib

    return torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext()
