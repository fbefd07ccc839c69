"""Quantization of models: observers, fake quantizers, configurations, and the flows of eager mode
and of traced graphs (`quantize_fx`)."""

from torch.ao.quantization import fake_quantize as _fake_quantize
from torch.ao.quantization import fuse_modules as _fuse_modules
from torch.ao.quantization import fuser_method_mappings as _fusers
from torch.ao.quantization import observer as _observer
from torch.ao.quantization import qconfig as _qconfig
from torch.ao.quantization import qconfig_mapping as _qconfig_mapping
from torch.ao.quantization import quant_type as _quant_type
from torch.ao.quantization import quantization_mappings as _mappings
from torch.ao.quantization import quantize as _quantize
from torch.ao.quantization import stubs as _stubs
from torch.nn import Module as _Module


def _public(module: object, *skip: str) -> dict[str, object]:
    """What a module defines, by name."""
    own = module.__name__
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (getattr(value, "__module__", own) == own or not hasattr(value, "__module__"))
        and name not in skip
        and type(value).__name__ != "module"
    }


_PREFIXES = ("default_", "float", "fused_")  # of settings, which are no classes or functions
_NAMES: dict[str, object] = {}
for _part in (
    _observer,
    _fake_quantize,
    _qconfig,
    _mappings,
    _fusers,
    _fuse_modules,
    _quantize,
    _stubs,
    _quant_type,
    _qconfig_mapping,
):
    _NAMES.update(_public(_part, "Mapping", "Specification", "annotations", "Fuser"))
for _part in (_observer, _fake_quantize, _qconfig):
    _NAMES.update({n: v for n, v in vars(_part).items() if n.startswith(_PREFIXES)})
_NAMES["QConfigAny"] = _qconfig.QConfigAny
_NAMES["ObserverOrFakeQuantize"] = _observer.ObserverBase | _fake_quantize.FakeQuantizeBase

globals().update(_NAMES)


def default_eval_fn(model: _Module, calib_data: object) -> None:
    """Runs the model on pairs of inputs and targets, for calibration."""
    for data, _ in calib_data:
        model(data)


__all__ = sorted([*_NAMES, "default_eval_fn"])
