"""Which submodules of a module can be exported."""

from __future__ import annotations

import torch
from torch import nn
from torch.export._trace import _export

__all__ = ["report_exportability"]


def report_exportability(
    mod: nn.Module,
    args: tuple[object, ...],
    kwargs: dict[str, object] | None = None,
    *,
    strict: bool = True,
    pre_dispatch: bool = False,
) -> dict[str, Exception | None]:
    """{path: None, or why it cannot be exported}. Submodules of one that can be are not tried."""
    calls = _calls(mod, args, kwargs or {})
    report: dict[str, Exception | None] = {}

    def attempt(module: nn.Module, path: str) -> None:
        if path not in calls:
            return
        given, named = calls[path]
        try:
            _export(module, given, named, strict=strict, pre_dispatch=pre_dispatch)
        except Exception as error:
            report[path] = error
            for name, child in module.named_children():
                attempt(child, f"{path}.{name}" if path else name)
        else:
            report[path] = None

    attempt(mod, "")
    return report


def _calls(
    mod: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]
) -> dict[str, tuple[tuple, dict]]:
    """{path: arguments of the first call} of a run."""
    found: dict[str, tuple[tuple, dict]] = {}
    hooks = []
    for path, module in mod.named_modules():

        def note(_: nn.Module, given: tuple, named: dict, path: str = path) -> None:
            found.setdefault(path, (given, named))

        hooks.append(module.register_forward_pre_hook(note, with_kwargs=True))
    try:
        with torch.no_grad():
            mod(*args, **kwargs)
    finally:
        for hook in hooks:
            hook.remove()
    return found
