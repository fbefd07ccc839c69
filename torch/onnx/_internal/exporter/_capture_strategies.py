"""Ways to make a program of a model, in the order in which they are tried."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import torch
from torch import nn
from torch.export.exported_program import ExportedProgram

__all__ = [
    "CaptureStrategy",
    "JitTraceConvertStrategy",
    "Result",
    "TorchExportNonStrictStrategy",
    "TorchExportStrategy",
    "strategies_for",
]


@dataclasses.dataclass
class Result:
    """The program, or why there is none."""

    exported_program: ExportedProgram | None
    strategy: str
    exception: Exception | None = None

    @property
    def success(self) -> bool:
        """Whether there is a program."""
        return self.exported_program is not None


class _Called(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: object, **kwargs: object) -> object:
        return self.function(*args, **kwargs)


class CaptureStrategy:
    """A way to make a program. A call never raises: the result has the error."""

    describes = ""

    def __call__(
        self,
        model: nn.Module | Callable[..., object],
        args: tuple[object, ...],
        kwargs: Mapping[str, object] | None = None,
        dynamic_shapes: object = None,
    ) -> Result:
        mod = model if isinstance(model, nn.Module) else _Called(model)
        try:
            made = self.capture(mod, tuple(args), dict(kwargs or {}), dynamic_shapes)
        except Exception as error:
            return Result(None, type(self).__name__, error)
        return Result(made, type(self).__name__)

    def capture(
        self, mod: nn.Module, args: tuple, kwargs: dict[str, object], dynamic_shapes: object
    ) -> ExportedProgram:
        """The program."""
        raise NotImplementedError(f"{type(self).__name__}.capture")


class _TorchExport(CaptureStrategy):
    """torch.export; where promises about sizes do not hold, with what its error proposes."""

    strict = False

    def capture(
        self, mod: nn.Module, args: tuple, kwargs: dict[str, object], dynamic_shapes: object
    ) -> ExportedProgram:
        from torch._dynamo.exc import UserError
        from torch.export.dynamic_shapes import refine_dynamic_shapes_from_suggested_fixes

        def exported(shapes: object) -> ExportedProgram:
            return torch.export.export(
                mod,
                args,
                kwargs,
                dynamic_shapes=shapes,
                strict=self.strict,
                prefer_deferred_runtime_asserts_over_guards=True,
            )

        try:
            return exported(dynamic_shapes)
        except UserError as error:
            try:
                refined = refine_dynamic_shapes_from_suggested_fixes(str(error), dynamic_shapes)
            except (ValueError, KeyError, SyntaxError):
                raise error from None
            return exported(refined)


class TorchExportNonStrictStrategy(_TorchExport):
    """torch.export, which runs the model's Python."""

    describes = "`torch.export.export(..., strict=False)`"


class TorchExportStrategy(_TorchExport):
    """torch.export, which traces the model's bytecode."""

    describes = "`torch.export.export(..., strict=True)`"
    strict = True


class JitTraceConvertStrategy(CaptureStrategy):
    """A script of the model, converted."""

    describes = "`torch.jit`"

    def capture(
        self, mod: nn.Module, args: tuple, kwargs: dict[str, object], dynamic_shapes: object
    ) -> ExportedProgram:
        from torch._export.converter import TS2EPConverter

        script = mod
        if not isinstance(mod, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
            script = torch.jit.trace(mod, args, check_trace=False)
        return TS2EPConverter(script, args, kwargs).convert()


def strategies_for(model: object) -> list[CaptureStrategy]:
    """Those that may succeed for a model."""
    if isinstance(model, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        return [JitTraceConvertStrategy()]
    return [TorchExportNonStrictStrategy(), TorchExportStrategy()]
