"""draft_export: a program in spite of what would stop an export, with a report of it. Real tensors
are computed beside those without data, so that a question about data is answered by the example."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from enum import IntEnum

import torch
from torch import nn
from torch.export.exported_program import ExportedProgram

__all__ = ["DraftExportReport", "FailureReport", "FailureType", "draft_export"]


class FailureType(IntEnum):
    """What would have stopped an export."""

    MISSING_FAKE_KERNEL = 1
    DATA_DEPENDENT_ERROR = 2
    GUARD_ADDED = 3
    MISMATCHED_FAKE_KERNEL = 4

    def __str__(self) -> str:
        return self.name


@dataclasses.dataclass
class FailureReport:
    """One of these, with what is known of it."""

    failure_type: FailureType
    data: dict[str, object]
    xfail: bool = False

    def print(self, str_to_filename: dict[int, str] | None = None) -> str:
        """The failure in words."""
        return f"{self.failure_type}: {self.data.get('reason', '')}\n"


class DraftExportReport:
    """All failures of one export."""

    def __init__(
        self,
        failures: list[FailureReport],
        str_to_filename: dict[int, str] | None = None,
        expressions_created: dict | None = None,
        op_profiles: dict | None = None,
    ) -> None:
        self.failures = failures
        self.str_to_filename = str_to_filename or {}
        self.expressions_created = expressions_created or {}
        self.op_profiles = op_profiles or {}

    def successful(self) -> bool:
        """Whether an export would have succeeded."""
        return not self.failures or all(f.xfail for f in self.failures)

    def __str__(self) -> str:
        if not self.failures:
            return "Nothing stopped the export: torch.export.export() gives the same program.\n"
        rows = "\n".join(f"{i + 1}. {f.print()}" for i, f in enumerate(self.failures))
        return f"WARNING: {len(self.failures)} issue(s) found during export.\n\n{rows}"

    def apply_suggested_fixes(self) -> None:
        """Fixes are for the author of the program."""
        raise NotImplementedError("Not implemented yet")


def draft_export(
    mod: nn.Module,
    args: tuple[object, ...],
    kwargs: Mapping[str, object] | None = None,
    *,
    dynamic_shapes: dict | tuple | list | None = None,
    preserve_module_call_signature: Sequence[str] = (),
    strict: bool = False,
    pre_dispatch: bool = True,
) -> ExportedProgram:
    """The program, with `_report`."""
    from torch._dynamo.exc import UserError
    from torch.export._trace import _export
    from torch.export.dynamic_shapes import Dim, _DimHint

    failures: list[FailureReport] = []
    settings = {
        "strict": strict,
        "preserve_module_call_signature": preserve_module_call_signature,
        "pre_dispatch": pre_dispatch,
    }
    try:
        ep = _export(mod, args, kwargs, dynamic_shapes, **settings)
    except UserError as error:
        failures.append(FailureReport(FailureType.GUARD_ADDED, {"reason": str(error)}))
        relaxed = torch.utils._pytree.tree_map(
            lambda d: Dim.AUTO if isinstance(d, (Dim, _DimHint)) else d, dynamic_shapes
        )
        ep = _export(mod, args, kwargs, relaxed, **settings)
    except (RuntimeError, NotImplementedError) as error:
        kind = FailureType.DATA_DEPENDENT_ERROR
        if "fake" in str(error).lower() or "meta" in str(error).lower():
            kind = FailureType.MISSING_FAKE_KERNEL
        failures.append(FailureReport(kind, {"reason": str(error).split("\n")[0]}))
        with torch._functorch.config.patch(fake_tensor_propagate_real_tensors=True):
            ep = _export(mod, args, kwargs, dynamic_shapes, **settings)
    ep._report = DraftExportReport(failures)
    return ep
