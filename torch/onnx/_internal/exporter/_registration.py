"""Which function translates an operator: those of onnxscript's library, those of this package, and
those of the user, who comes first."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence

import onnx_ir as ir

import torch
from torch._ops import OpOverload

__all__ = ["ONNXRegistry", "OnnxDecompMeta", "UntranslatedError", "translation"]

Target = OpOverload | Callable[..., object]

_OWN: list[tuple[str, Callable[..., object], int]] = []


class UntranslatedError(RuntimeError):
    """An operator has no translation."""


@dataclasses.dataclass
class OnnxDecompMeta:
    """A function that translates an operator."""

    onnx_function: Callable[..., object]
    fx_target: Target
    is_custom: bool = False
    is_complex: bool = False


def translation(
    *names: str, since: int = 18
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Marks a function of this package as the translation of operators, by names like
    `aten::add.Tensor`, for models of a version and later."""

    def mark(function: Callable[..., object]) -> Callable[..., object]:
        _OWN.extend((name, function, since) for name in names)
        return function

    return mark


def target_of(name: str) -> Target | None:
    """The operator or Python function of a name like `aten::add.Tensor` or `_operator::add`."""
    namespace, _, rest = name.partition("::")
    if namespace in ("_operator", "math"):
        module = importlib.import_module("operator" if namespace == "_operator" else namespace)
        return getattr(module, rest, None)
    if namespace == "torch":
        return getattr(torch, rest, None)
    packet, _, overload = rest.partition(".")
    try:
        return getattr(getattr(getattr(torch.ops, namespace), packet), overload or "default")
    except (AttributeError, RuntimeError):
        return None  # an operator that is not known here


class ONNXRegistry:
    """Translations by operator."""

    def __init__(self, opset_version: int = 18) -> None:
        self.opset_version = opset_version
        self.functions: dict[Target, list[OnnxDecompMeta]] = {}

    @classmethod
    def from_torchlib(
        cls, opset_version: int = 18, table: Mapping[Target, object] | None = None
    ) -> ONNXRegistry:
        """All translations for a version, with those of a user's table."""
        from onnxscript.function_libs.torch_lib import ops as ops  # fills the library
        from onnxscript.function_libs.torch_lib.registration import default_registry

        from torch.onnx._internal.exporter import _translations as _translations

        registry = cls(opset_version)
        for name, known in default_registry.items():
            target = None if name.startswith("internal::") else target_of(name)
            if target is not None:
                for function in known.overloads:
                    registry._add(target, function)
                for function in known.complex:
                    registry._add(target, function, is_complex=True)
        for name, function, since in _OWN:
            target = target_of(name)
            if target is not None and since <= opset_version:
                registry._add(target, function, first=True)
        for target, given in (table or {}).items():
            functions = given if isinstance(given, Sequence) else [given]
            for function in reversed(functions):
                registry.register_op(target, function)
        return registry

    def _add(
        self,
        target: Target,
        function: Callable[..., object],
        *,
        is_custom: bool = False,
        is_complex: bool = False,
        first: bool = False,
    ) -> None:
        known = self.functions.setdefault(target, [])
        meta = OnnxDecompMeta(function, target, is_custom, is_complex)
        known.insert(0 if first else len(known), meta)

    def register_op(
        self, target: Target, function: Callable[..., object], is_complex: bool = False
    ) -> None:
        """A translation that is preferred to those that are known."""
        if isinstance(target, torch._ops.OpOverloadPacket):
            raise TypeError(
                f"Target '{target}' should be provided as an OpOverload instead of an "
                f"OpOverloadPacket. You can get the default overload with {target}.default"
            )
        if not callable(target):
            raise TypeError(f"a translation is for an operator, got {target!r}")
        self._add(target, function, is_custom=True, is_complex=is_complex, first=True)

    def get_decomps(self, target: Target) -> list[OnnxDecompMeta]:
        """The translations of an operator, in order of preference."""
        return self.functions.get(target, [])

    def is_registered(self, target: Target) -> bool:
        """Whether an operator has a translation."""
        return bool(self.functions.get(target))

    def __iter__(self) -> Iterator[Target]:
        return iter(self.functions)

    def choose(self, target: Target, args: Sequence[object], is_complex: bool) -> OnnxDecompMeta:
        """The translation for a call. Where there are several, annotations of arguments decide."""
        every = self.get_decomps(target)
        found = [m for m in every if m.is_complex == is_complex or m.is_custom]
        if not found:
            kind = "complex inputs of " if is_complex else ""
            raise UntranslatedError(f"No ONNX function found for {kind}{target!r}.")
        for meta in found:
            if not meta.is_custom or _fits(meta.onnx_function, args):
                return meta
        return found[0]


def _fits(function: Callable[..., object], args: Sequence[object]) -> bool:
    """Whether the types of values are those that a function's annotations name (FLOAT, BOOL)."""
    plain = getattr(function, "func", getattr(function, "function", function))
    try:
        parameters = inspect.signature(plain, eval_str=True).parameters.values()
    except (NameError, TypeError, ValueError):
        return True
    for value, parameter in zip(args, parameters, strict=False):
        wanted = getattr(parameter.annotation, "dtype", None)
        dtype = getattr(value, "dtype", None)
        if isinstance(wanted, int) and isinstance(dtype, ir.DataType) and int(dtype) != int(wanted):
            return False
    return True
