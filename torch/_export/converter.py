"""Scripts as exported programs: a script runs once on tensors without data, as the Python of a
module does. Loops whose number of rounds does not depend on data are unrolled; branches are taken
as for the example."""

from __future__ import annotations

import torch
from torch import nn
from torch.export.exported_program import ExportedProgram

__all__ = ["TS2EPConverter"]


class _Function(nn.Module):
    """A scripted function as a module."""

    def __init__(self, function: torch.jit.ScriptFunction) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: object, **kwargs: object) -> object:
        return self.function(*args, **kwargs)


class TS2EPConverter:
    """Converts a script, a traced module or a scripted function."""

    def __init__(
        self,
        ts_model: torch.jit.ScriptModule | torch.jit.ScriptFunction,
        sample_args: tuple[object, ...],
        sample_kwargs: dict[str, object] | None = None,
    ) -> None:
        if not isinstance(ts_model, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
            raise TypeError(f"expected a script, got {type(ts_model)}")
        self.ts_model = ts_model
        self.sample_args = tuple(sample_args)
        self.sample_kwargs = dict(sample_kwargs or {})

    def convert(self) -> ExportedProgram:
        """The program, with the state of the script under its own names."""
        from torch.export._trace import _export_by_running

        script = self.ts_model
        mod = script if isinstance(script, torch.jit.ScriptModule) else _Function(script)
        return _export_by_running(mod, self.sample_args, self.sample_kwargs, None, (), False, None)

    def retrace_as_exported_program(
        self, gm: nn.Module, name_to_constant: dict[str, object] | None = None
    ) -> ExportedProgram:
        """The program of a module, for the arguments of the script."""
        return torch.export.export(gm, self.sample_args, self.sample_kwargs)
