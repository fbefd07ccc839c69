"""The old names of modules: `torch.nn.quantized.modules` is `torch.ao.nn.quantized.modules`.
A finder at the end of the import path serves whatever lies below an old package."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import types

_MOVED = {
    "torch.nn.quantized": "torch.ao.nn.quantized",
    "torch.nn.intrinsic": "torch.ao.nn.intrinsic",
    "torch.nn.qat": "torch.ao.nn.qat",
    "torch.nn.quantizable": "torch.ao.nn.quantizable",
    "torch.quantization": "torch.ao.quantization",
}
# Files of the old package whose names differ.
_RENAMED = {
    "torch.nn.quantized._reference": "torch.ao.nn.quantized.reference",
    "torch.quantization._numeric_suite": "torch.ao.ns._numeric_suite",
    "torch.quantization._numeric_suite_fx": "torch.ao.ns._numeric_suite_fx",
    "torch.quantization.fx.quantization_patterns": "torch.ao.quantization.fx.quantize_handler",
    "torch.quantization.fx._equalize": "torch.ao.quantization.fx._equalize",
    "torch.quantization.fx.fusion_patterns": "torch.ao.quantization.fx.fuse_handler",
    "torch.quantization.fx.quantization_types": "torch.ao.quantization.utils",
    "torch.quantization.fx.pattern_utils": "torch.ao.quantization.fx.pattern_utils",
}


def _new_name(name: str) -> str | None:
    if name in _RENAMED:
        return _RENAMED[name]
    for old, new in _MOVED.items():
        if name.startswith(old + "."):
            return new + name[len(old) :]
    return None


class _OldNames:
    """Finds and loads: the module of the new name, under the old one."""

    @staticmethod
    def find_spec(
        name: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        new = _new_name(name)
        if new is None:
            return None
        try:
            importlib.import_module(new)
        except ModuleNotFoundError:
            return None
        return importlib.machinery.ModuleSpec(name, _OldNames, is_package=True)

    @staticmethod
    def create_module(spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        made = types.ModuleType(spec.name, "An old name of " + _new_name(spec.name))
        made._new = sys.modules[_new_name(spec.name)]
        return made

    @staticmethod
    def exec_module(module: types.ModuleType) -> None:
        new = module._new
        module.__dict__.update(
            {name: value for name, value in vars(new).items() if not name.startswith("__")}
        )
        module.__getattr__ = lambda name: getattr(new, name)


def install() -> None:
    """Adds the finder, once."""
    if _OldNames not in sys.meta_path:
        sys.meta_path.append(_OldNames)


def names_of(old: str) -> object:
    """The __getattr__ of an old package: names of the new one, imported when asked for."""
    install()
    new = _MOVED[old]

    def get(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        return getattr(importlib.import_module(new), name)

    return get
