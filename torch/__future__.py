"""Switches for how nn.Module converts its parameters."""

from __future__ import annotations

_overwrite_module_params_on_conversion: bool = False
_swap_module_params_on_conversion: bool = False


def set_overwrite_module_params_on_conversion(value) -> None:
    """Whether conversions such as module.half() assign new parameters instead of changing .data."""
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion() -> bool:
    """See set_overwrite_module_params_on_conversion."""
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value) -> None:
    """Whether conversions and load_state_dict swap the contents of parameters with the new ones."""
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion():
    """See set_swap_module_params_on_conversion."""
    return _swap_module_params_on_conversion
