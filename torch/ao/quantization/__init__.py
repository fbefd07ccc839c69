"""Quantization of models: observers, fake quantizers, configurations, and flows of eager mode."""

from torch import _later
from torch.ao.quantization import fake_quantize as _fake_quantize
from torch.ao.quantization import fuse_modules as _fuse_modules
from torch.ao.quantization import observer as _observer
from torch.ao.quantization import qconfig as _qconfig
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


_NAMES: dict[str, object] = {}
for _part in (_observer, _fake_quantize, _qconfig, _mappings, _fuse_modules, _quantize, _stubs):
    _NAMES.update(_public(_part, "Mapping", "Specification", "annotations"))
for _part in (_observer, _fake_quantize, _qconfig):
    _NAMES.update({n: v for n, v in vars(_part).items() if n.startswith(("default_", "float"))})

globals().update(_NAMES)

# Graph modes: the names exist, starting one raises NotImplementedError.
_LATER = _later.names(
    __name__,
    "QConfigMapping get_default_qconfig_mapping get_default_qat_qconfig_mapping quantize_jit "
    "quantize_dynamic_jit prepare_jit convert_jit",
)
globals().update(_LATER)
_later.install(
    __name__,
    """
    quantize_fx: prepare_fx prepare_qat_fx convert_fx fuse_fx
    utils: get_qparam_dict
    """,
)


def default_eval_fn(model: _Module, calib_data: object) -> None:
    """Runs the model on pairs of inputs and targets, for calibration."""
    for data, _ in calib_data:
        model(data)


__all__ = sorted([*_NAMES, *_LATER, "default_eval_fn"])
