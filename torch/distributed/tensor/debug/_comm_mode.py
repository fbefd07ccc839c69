"""CommDebugMode counts collectives, in all and by module."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import torch
import torch.distributed._c10d_ops
from torch import nn
from torch._distributed import group as _group
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.module_tracker import ModuleTracker

_NATIVE = "_c10d_functional"
_NO_DATA = ("wait_tensor",)


class CommDebugMode(TorchDispatchMode):
    """Inside the block every collective is counted, those of functional collectives under the names
    of torch.ops.c10d_functional, those of torch.distributed under torch.ops.c10d."""

    def __init__(self) -> None:
        super().__init__()
        self.comm_counts: dict[Any, int] = defaultdict(int)
        self.comm_module_counts: dict[str, dict[str, dict[Any, int]]] = {}
        self.parameter_info: dict[str, dict[str, Any]] = {}
        self.sharding_info: dict[str, Any] = {}
        self._tracker: ModuleTracker | None = None
        self._inside = False

    # ---- results
    def get_total_counts(self) -> int:
        """How many collectives ran."""
        return sum(self.comm_counts.values())

    def get_comm_counts(self) -> dict[Any, int]:
        """How often each collective ran."""
        return self.comm_counts

    def get_parameter_info(self) -> dict[str, dict[str, Any]]:
        """The parameters of the modules that ran, by module."""
        return self.parameter_info

    def get_sharding_info(self) -> dict[str, Any]:
        """The placements of the parameters that are distributed."""
        return self.sharding_info

    def _rows(self) -> list[tuple[int, str]]:
        rows: list[tuple[int, str]] = []
        for module, passes in sorted(self.comm_module_counts.items()):
            depth = module.count(".") + (module != "Global")
            rows.append((depth, module))
            for direction, counts in passes.items():
                rows.append((depth + 1, f"{direction.upper()} PASS"))
                rows.extend((depth + 2, f"*{op}: {count}") for op, count in counts.items())
        return rows

    def generate_comm_debug_tracing_table(self, noise_level: int = 3) -> str:
        """The counts by module and pass, as text."""
        return "".join(f"{'  ' * depth}{text}\n" for depth, text in self._rows())

    def log_comm_debug_tracing_table_to_file(
        self, file_name: str = "comm_mode_log.txt", noise_level: int = 3
    ) -> None:
        """Writes the table to a file."""
        with open(file_name, "w") as file:
            file.write(self.generate_comm_debug_tracing_table(noise_level))

    def generate_json_dump(
        self, file_name: str = "comm_mode_log.json", noise_level: int = 3
    ) -> None:
        """Writes the counts to a file as JSON."""
        found = {
            module: {
                direction: {str(op): count for op, count in counts.items()}
                for direction, counts in passes.items()
            }
            for module, passes in self.comm_module_counts.items()
        }
        with open(file_name, "w") as file:
            json.dump(found, file, indent=2)

    # ---- counting
    def __enter__(self) -> CommDebugMode:
        self.comm_counts.clear()
        self.comm_module_counts.clear()
        self.comm_module_counts["Global"] = {
            direction: defaultdict(int) for direction in ("forward", "backward")
        }
        self.parameter_info.clear()
        self.sharding_info.clear()
        self._tracker = ModuleTracker()
        self._tracker.__enter__()
        self._hook = nn.modules.module.register_module_forward_pre_hook(self._look_at)
        _group.observers.functions.append(self._saw_call)
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        _group.observers.functions.remove(self._saw_call)
        self._hook.remove()
        if self._tracker is not None:
            self._tracker.__exit__(*error)

    def _look_at(self, module: nn.Module, inputs: Any) -> None:
        """Notes the parameters of a module that runs."""
        name = self._tracker._name_of(module) if self._tracker is not None else ""
        own = dict(module.named_parameters(recurse=False))
        if own:
            self.parameter_info[name] = {key: value.data for key, value in own.items()}
            for key, value in own.items():
                if hasattr(value, "placements"):
                    self.sharding_info[f"{name}.{key}"] = value.placements

    def _count(self, op: Any) -> None:
        self.comm_counts[op] += 1
        tracker = self._tracker
        direction = "backward" if tracker is not None and tracker.is_bw else "forward"
        for module in tracker.parents if tracker is not None else ("Global",):
            passes = self.comm_module_counts.setdefault(module, {})
            counts = passes.setdefault(direction, defaultdict(int))
            counts[op] += 1

    def _saw_call(self, name: str) -> None:
        if not self._inside:
            self._count(getattr(torch.ops.c10d, name))

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        from torch.distributed.tensor import DTensor

        if any(issubclass(one, DTensor) for one in types):
            return NotImplemented
        space, _, name = func._schema.name.partition("::")
        if space not in (_NATIVE, "c10d"):
            return func(*args, **(kwargs or {}))
        if space == "c10d":
            self._count(func._overloadpacket)
        elif name not in _NO_DATA:
            self._count(getattr(torch.ops.c10d_functional, name.rstrip("_")))
        # An operator calls a group, which would be counted once more.
        before, self._inside = self._inside, True
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self._inside = before
