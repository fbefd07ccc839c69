"""The styles of tensor parallelism. A style places a module's parameters and says how its inputs
come and its outputs leave; hooks around forward do the moving."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor._api import DTensor, distribute_module, distribute_tensor
from torch.distributed.tensor.placement_types import Placement, Replicate, Shard

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput",
    "PrepareModuleOutput", "RowwiseParallel", "SequenceParallel",
]  # fmt: skip

Layouts = Placement | Sequence[Placement | None] | None


class ParallelStyle(ABC):
    """How a module is made parallel."""

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        """Makes the module parallel."""


def _place(
    module: nn.Module, mesh: DeviceMesh, places: dict[str, Placement], src: int | None
) -> None:
    """Makes parameters distributed tensors, by name."""
    for name, parameter in module._parameters.items():
        placement = places.get(name)
        if parameter is None or placement is None or isinstance(parameter, DTensor):
            continue
        placed = distribute_tensor(parameter.data, mesh, [placement], src_data_rank=src)
        module.register_parameter(name, nn.Parameter(placed, requires_grad=parameter.requires_grad))


def _arrive(value: Any, mesh: DeviceMesh, have: Placement, want: Placement) -> Any:
    """An input as a distributed tensor under the placement that is wanted."""
    if not isinstance(value, torch.Tensor):
        return value
    if not isinstance(value, DTensor):
        value = DTensor.from_local(value, mesh, (have,), run_check=False)
    return value if value.placements == (want,) else value.redistribute(placements=(want,))


def _leave(value: Any, placement: Placement, local: bool) -> Any:
    """An output under the placement that is wanted, as a plain tensor if asked for."""
    if not isinstance(value, DTensor):
        return value
    if value.placements != (placement,):
        value = value.redistribute(placements=(placement,))
    return value.to_local() if local else value


class _OneInOneOut(ParallelStyle):
    """A layer with one input and one output, whose parameters are placed by a table."""

    def __init__(self, input: Placement, output: Placement, use_local_output: bool) -> None:
        super().__init__()
        self.input_layouts, self.output_layouts = (input,), (output,)
        self.use_local_output = use_local_output

    def _table(self, module: nn.Module) -> tuple[dict[str, Placement], Placement]:
        """Placements of parameters, and of the input that the layer wants."""
        raise NotImplementedError

    def _refuse(self, module: nn.Module) -> NotImplementedError:
        name = type(self).__name__
        return NotImplementedError(
            f"{name} currently only support nn.Linear and nn.Embedding! Got {type(module)}"
        )

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        places, wanted = self._table(module)

        def enter(own: nn.Module, inputs: tuple, mesh: DeviceMesh) -> tuple:
            return (_arrive(inputs[0], mesh, self.input_layouts[0], wanted), *inputs[1:])

        def exit(own: nn.Module, output: Any, mesh: DeviceMesh) -> Any:
            return _leave(output, self.output_layouts[0], self.use_local_output)

        def partition(name: str, own: nn.Module, mesh: DeviceMesh) -> None:
            _place(own, mesh, places, self.src_data_rank)

        return distribute_module(module, device_mesh, partition, enter, exit)


class ColwiseParallel(_OneInOneOut):
    """Linear: the outputs' features are cut. Embedding: the features are cut."""

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__(
            input_layouts or Replicate(), output_layouts or Shard(-1), use_local_output
        )
        self.desired_input_layouts = (Replicate(),)

    def _table(self, module: nn.Module) -> tuple[dict[str, Placement], Placement]:
        if isinstance(module, nn.Linear):
            return {"weight": Shard(0), "bias": Shard(0)}, Replicate()
        if isinstance(module, nn.Embedding):
            return {"weight": Shard(1)}, Replicate()
        raise self._refuse(module)


class RowwiseParallel(_OneInOneOut):
    """Linear: the inputs' features are cut, outputs are summed. Embedding: the rows are cut."""

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__(
            input_layouts or Shard(-1), output_layouts or Replicate(), use_local_output
        )

    def _table(self, module: nn.Module) -> tuple[dict[str, Placement], Placement]:
        if isinstance(module, nn.Linear):
            self.desired_input_layouts: tuple[Placement, ...] = (Shard(-1),)
            return {"weight": Shard(1), "bias": Replicate()}, Shard(-1)
        if isinstance(module, nn.Embedding):
            self.desired_input_layouts = (Replicate(),)
            return {"weight": Shard(0)}, Replicate()
        raise self._refuse(module)


class SequenceParallel(ParallelStyle):
    """A layer without matrices, such as a norm, whose input is cut along the sequence: parameters
    are replicated, and nothing moves."""

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        super().__init__()
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        (placed,) = self.sequence_sharding

        def enter(own: nn.Module, inputs: tuple, mesh: DeviceMesh) -> tuple:
            first = inputs[0]
            if not isinstance(first, torch.Tensor):
                raise ValueError(
                    f"expecting input of {own} to be a torch.Tensor or DTensor, but got {first}"
                )
            return (_arrive(first, mesh, placed, placed), *inputs[1:])

        def exit(own: nn.Module, output: Any, mesh: DeviceMesh) -> Any:
            return output.to_local() if self.use_local_output else output

        def partition(name: str, own: nn.Module, mesh: DeviceMesh) -> None:
            whole = {key: Replicate() for key in own._parameters}
            _place(own, mesh, whole, self.src_data_rank)

        return distribute_module(module, device_mesh, partition, enter, exit)


def _tuple(layouts: Layouts) -> tuple[Placement | None, ...] | None:
    if layouts is None:
        return None
    return (layouts,) if isinstance(layouts, Placement) else tuple(layouts)


class PrepareModuleInput(ParallelStyle):
    """Makes the inputs of a module distributed tensors under the placements it wants."""

    def __init__(
        self,
        *,
        input_layouts: Layouts = None,
        desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts = _tuple(input_layouts)
        self.desired_input_layouts = _tuple(desired_input_layouts)
        self.use_local_output = use_local_output
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            if len(self.input_layouts) != len(self.desired_input_layouts):
                raise AssertionError(
                    "input_layouts and desired_input_layouts should have same length!"
                )
        self.with_kwargs = input_kwarg_layouts is not None
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        if self.with_kwargs and len(self.input_kwarg_layouts) != len(
            self.desired_input_kwarg_layouts
        ):
            raise AssertionError(
                "input_kwarg_layouts and desired_input_kwarg_layouts should have same length!"
            )

    def _one(
        self, value: Any, mesh: DeviceMesh, have: Placement | None, want: Placement | None
    ) -> Any:
        if have is None:
            return value
        if not isinstance(value, torch.Tensor):
            raise AssertionError(f"expecting input to be a torch.Tensor, but got {value}")
        arrived = _arrive(value, mesh, have, have if want is None else want)
        return arrived.to_local() if self.use_local_output else arrived

    def _prepare_input_fn(self, inputs: Any, device_mesh: DeviceMesh) -> Any:
        if self.input_layouts is None:
            return inputs
        given = inputs if isinstance(inputs, tuple) else (inputs,)
        if len(given) != len(self.input_layouts):
            raise ValueError("module inputs and input_layouts should have same length!")
        return tuple(
            self._one(value, device_mesh, have, want)
            for value, have, want in zip(
                given, self.input_layouts, self.desired_input_layouts, strict=True
            )
        )

    def _prepare_input_kwarg_fn(
        self, inputs: Any, kwarg_inputs: dict[str, Any], device_mesh: DeviceMesh
    ) -> tuple[Any, dict[str, Any]]:
        named = dict(kwarg_inputs)
        for name in self.input_kwarg_layouts.keys() & named.keys():
            have = self.input_kwarg_layouts.get(name)
            want = self.desired_input_kwarg_layouts.get(name)
            named[name] = self._one(named[name], device_mesh, have, want)
        return self._prepare_input_fn(inputs, device_mesh), named

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        def enter(own: nn.Module, given: tuple, named: dict[str, Any]) -> tuple[Any, dict]:
            return self._prepare_input_kwarg_fn(given, named, device_mesh)

        module.register_forward_pre_hook(enter, with_kwargs=True)
        return module


class PrepareModuleOutput(ParallelStyle):
    """Makes the outputs of a module distributed tensors under the placements that are wanted."""

    def __init__(
        self,
        *,
        output_layouts: Layouts,
        desired_output_layouts: Layouts,
        use_local_output: bool = True,
    ) -> None:
        self.output_layouts = _tuple(output_layouts) or ()
        self.desired_output_layouts = _tuple(desired_output_layouts) or ()
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError(
                "output_layouts and desired_output_layouts should have same length!"
            )

    def _prepare_out_fn(self, outputs: Any, device_mesh: DeviceMesh) -> Any:
        given = outputs if isinstance(outputs, tuple) else (outputs,)
        if len(given) != len(self.output_layouts):
            raise ValueError("module outputs and output_layouts should have same length!")
        made = []
        for value, have, want in zip(
            given, self.output_layouts, self.desired_output_layouts, strict=True
        ):
            if have is not None:
                value = _arrive(value, device_mesh, have, have if want is None else want)
                value = value.to_local() if self.use_local_output else value
            made.append(value)
        return made[0] if len(made) == 1 else tuple(made)

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        module.register_forward_hook(
            lambda own, inputs, outputs: self._prepare_out_fn(outputs, device_mesh)
        )
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """PrepareModuleInput and PrepareModuleOutput of one module."""

    def __init__(
        self,
        *,
        input_layouts: Layouts = None,
        desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_input: bool = False,
        output_layouts: Layouts,
        desired_output_layouts: Layouts,
        use_local_output: bool = True,
    ) -> None:
        enter = {
            "input_layouts": input_layouts,
            "desired_input_layouts": desired_input_layouts,
            "input_kwarg_layouts": input_kwarg_layouts,
            "desired_input_kwarg_layouts": desired_input_kwarg_layouts,
        }
        leave = {"output_layouts": output_layouts, "desired_output_layouts": desired_output_layouts}
        self._both: tuple[ParallelStyle, ParallelStyle] = (
            PrepareModuleInput(use_local_output=use_local_input, **enter),
            PrepareModuleOutput(use_local_output=use_local_output, **leave),
        )

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        for style in self._both:
            style._apply(module, device_mesh)
        return module
