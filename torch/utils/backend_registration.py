"""Devices that other packages bring, under the kind that is left to them: its name, and methods of
tensors, modules and storages that are named after it. Kernels, memory and streams of such a device
are registered in C++ (TORCH_LIBRARY_IMPL(aten, PrivateUse1, m), C10_REGISTER_GUARD_IMPL,
REGISTER_ALLOCATOR); its Python functions are a module, torch._register_device_module."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import _C

__all__ = ["generate_methods_for_privateuse1_backend", "rename_privateuse1_backend"]


def rename_privateuse1_backend(backend_name: str) -> None:
    """Names the kind of device that is left to other packages: torch.device(backend_name) and its
    like then mean it. Once per process; the same name again changes nothing."""
    _C._rename_privateuse1_backend(backend_name)


def _backend_name() -> str:
    return torch.device("privateuseone").type


def _add(cls: type, name: str, member: object, what: str) -> None:
    """Adds an attribute that must not exist yet."""
    if hasattr(cls, name):
        raise RuntimeError(
            f"The custom device module of {_backend_name()} has already been registered: "
            f"{what}.{name} exists"
        )
    setattr(cls, name, member)


def _normalized(kind: str, device: torch.device | str | int | None) -> torch.device:
    """A device of the kind: by default and for a bare name the current one."""
    if isinstance(device, int) and not isinstance(device, bool):
        return torch.device(kind, device)
    device = torch.device(kind if device is None else device)
    if device.type != kind:
        raise RuntimeError(f"Invalid device, must be {kind} device but got {device.type}")
    if device.index is None:
        device = torch.device(kind, _get_custom_mod_func("current_device")())
    return device


def _add_tensor_methods(kind: str) -> None:
    def is_kind(self: torch.Tensor) -> bool:
        return self.device.type == kind

    def to_kind(
        self: torch.Tensor,
        device: torch.device | str | int | None = None,
        non_blocking: bool = False,
        **kwargs: torch.memory_format,
    ) -> torch.Tensor:
        return self.to(device=_normalized(kind, device), non_blocking=non_blocking, **kwargs)

    _add(torch.Tensor, f"is_{kind}", property(is_kind), "torch.Tensor")
    _add(torch.Tensor, kind, to_kind, "torch.Tensor")


def _add_module_methods(kind: str) -> None:
    def to_kind(
        self: torch.nn.Module, device: torch.device | str | int | None = None
    ) -> torch.nn.Module:
        return self._apply(lambda tensor: getattr(tensor, kind)(device))

    _add(torch.nn.Module, kind, to_kind, "torch.nn.Module")


def _add_packed_sequence_methods(kind: str) -> None:
    sequence = torch.nn.utils.rnn.PackedSequence

    def is_kind(self: sequence) -> bool:
        return self.data.device.type == kind

    def to_kind(
        self: sequence, device: torch.device | str | int | None = None, **kwargs: bool
    ) -> sequence:
        return self.to(_normalized(kind, device), **kwargs)

    _add(sequence, f"is_{kind}", property(is_kind), "PackedSequence")
    _add(sequence, kind, to_kind, "PackedSequence")


def _add_storage_methods(kind: str, refused: tuple[torch.dtype, ...]) -> None:
    def is_kind(self: torch.UntypedStorage | torch.TypedStorage) -> bool:
        return self.device.type == kind

    def untyped_to_kind(
        self: torch.UntypedStorage,
        device: torch.device | str | int | None = None,
        non_blocking: bool = False,
    ) -> torch.UntypedStorage:
        return self.to(device=_normalized(kind, device), non_blocking=non_blocking)

    def typed_to_kind(
        self: torch.TypedStorage,
        device: torch.device | str | int | None = None,
        non_blocking: bool = False,
    ) -> torch.TypedStorage:
        if self.dtype in refused:
            raise RuntimeError(f"Cannot create a storage of {self.dtype} on {kind}")
        return self.to(device=_normalized(kind, device), non_blocking=non_blocking)

    for cls, method in (
        (torch.UntypedStorage, untyped_to_kind),
        (torch.TypedStorage, typed_to_kind),
    ):
        _add(cls, f"is_{kind}", property(is_kind), cls.__name__)
        _add(cls, kind, method, cls.__name__)


def generate_methods_for_privateuse1_backend(
    for_tensor: bool = True,
    for_module: bool = True,
    for_packed_sequence: bool = True,
    for_storage: bool = False,
    unsupported_dtype: list[torch.dtype] | None = None,
) -> None:
    """Adds `is_<name>` and `<name>()` to tensors, modules, packed sequences and storages;
    RuntimeError where one of them exists."""
    kind = _backend_name()
    if for_tensor:
        _add_tensor_methods(kind)
    if for_module:
        _add_module_methods(kind)
    if for_packed_sequence:
        _add_packed_sequence_methods(kind)
    if for_storage:
        _add_storage_methods(kind, tuple(unsupported_dtype or ()))


def _get_custom_mod_func(func_name: str) -> Callable[..., int]:
    """A function of the module that was registered for the kind."""
    if not isinstance(func_name, str):
        raise TypeError(f"func_name must be a str, not {type(func_name).__name__}")
    kind = _backend_name()
    function = getattr(getattr(torch, kind, None), func_name, None)
    if function is None:
        raise RuntimeError(
            f"Try to call torch.{kind}.{func_name}. The backend must register a custom backend "
            f"module with `torch._register_device_module('{kind}', BackendModule)`, and that "
            f"module needs the function `{func_name}`."
        )
    return function
