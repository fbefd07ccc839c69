"""What is known of a traced function: which inputs it writes to, which outputs share memory with
what, and the settings of a compilation."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Sequence

import torch
from torch._functorch._aot_autograd.subclasses import Layout

__all__ = [
    "AOTConfig",
    "GraphSignature",
    "InputAliasInfo",
    "MutationType",
    "OutputAliasInfo",
    "OutputType",
    "TangentForm",
    "ViewAndMutationMeta",
    "tangent_form",
]


class OutputType(enum.Enum):
    """How an output relates to other memory."""

    non_alias = 1
    alias_of_input = 2
    is_input = 3
    alias_of_intermediate_save_as_output = 4  # its base is returned behind the outputs
    alias_of_intermediate = 5
    alias_of_intermediate_base_is_user_output = 6
    unsafe_view_alias = 7
    custom_function_view = 8


class MutationType(enum.Enum):
    """Where a write to an input happens."""

    NOT_MUTATED = 1
    MUTATED_IN_GRAPH = 2
    MUTATED_OUT_GRAPH = 3


@dataclasses.dataclass
class InputAliasInfo:
    """What the function does to an input."""

    is_leaf: bool
    requires_grad: bool
    mutates_data: bool = False
    mutates_metadata: bool = False
    mutations_hidden_from_autograd: bool = True
    mutations_under_no_grad_or_inference_mode: bool = False
    mutates_storage_metadata: bool = False
    mutation_inductor_storage_resize: bool = False
    keep_input_mutations: bool = False

    @property
    def is_mutated(self) -> bool:
        """Whether anything of it changes."""
        return self.mutates_data or self.mutates_metadata or self.mutates_storage_metadata

    @property
    def seen_by_autograd(self) -> bool:
        """Whether a write is part of what is differentiated."""
        return (
            self.mutates_data
            and self.requires_grad
            and not self.mutations_hidden_from_autograd
            and not self.mutations_under_no_grad_or_inference_mode
        )

    @property
    def mutation_type(self) -> MutationType:
        """Where the write happens."""
        if not self.is_mutated:
            return MutationType.NOT_MUTATED
        inside = (
            self.keep_input_mutations
            and self.mutates_data
            and not self.mutates_metadata
            and not self.seen_by_autograd
        )
        if self.mutates_storage_metadata:
            inside = self.keep_input_mutations
        return MutationType.MUTATED_IN_GRAPH if inside else MutationType.MUTATED_OUT_GRAPH


@dataclasses.dataclass
class OutputAliasInfo:
    """What an output is. `base_idx` counts inputs, outputs or intermediate bases, by its type;
    `views` are the operators that lead from the base to the output, None where they are unknown."""

    output_type: OutputType
    raw_type: type
    base_idx: int | None = None
    requires_grad: bool = False
    views: list[Callable[[torch.Tensor], torch.Tensor]] | None = None

    @property
    def is_alias(self) -> bool:
        """Whether the runtime makes the output anew from other memory."""
        return self.output_type in (
            OutputType.alias_of_input,
            OutputType.is_input,
            OutputType.alias_of_intermediate,
            OutputType.alias_of_intermediate_save_as_output,
            OutputType.alias_of_intermediate_base_is_user_output,
        )


@dataclasses.dataclass
class TangentForm:
    """How a tangent lies in memory: its strides, None where they or sizes are symbols, and whether
    it is contiguous."""

    strides: tuple[int, ...] | None
    contiguous: bool


def tangent_form(traced: torch.Tensor) -> TangentForm:
    """The form of a tensor that stood for a tangent."""
    if traced.layout is not torch.strided:
        return TangentForm(None, False)
    numbers = (*traced.shape, *traced.stride())
    known = not any(isinstance(n, torch.SymInt) for n in numbers)
    return TangentForm(tuple(traced.stride()) if known else None, traced.is_contiguous())


@dataclasses.dataclass
class ViewAndMutationMeta:
    """Everything that the runtime needs to know of a graph. Forward graphs return the new values of
    `written` inputs, then the outputs, then the intermediate bases."""

    input_info: list[InputAliasInfo]
    output_info: list[OutputAliasInfo]
    num_intermediate_bases: int
    is_train: bool
    traced_tangents: list[torch.Tensor] = dataclasses.field(default_factory=list)
    tangent_forms: list[TangentForm] = dataclasses.field(default_factory=list)
    # Positions among the returned values that take part in the backward pass.
    differentiable: list[int] = dataclasses.field(default_factory=list)
    grad_enabled_mutation: bool | None = None
    num_outputs: int = 0
    # How wrappers among the inputs, the returned values and the tangents are put together.
    input_layout: Layout | None = None
    return_layout: Layout | None = None
    tangent_layout: Layout | None = None
    gradient_layout: Layout | None = None
    num_symints_saved_for_bw: int = 0
    # Whether graphs take the state of CUDA's generator, and return where they leave it.
    moves_generator: bool = False
    indices_of_inputs_that_requires_grad_with_mutations_in_bw: list[int] = dataclasses.field(
        default_factory=list
    )

    @property
    def written(self) -> list[int]:
        """Inputs whose new value is returned and written by the runtime."""
        return [
            i
            for i, info in enumerate(self.input_info)
            if info.mutation_type is MutationType.MUTATED_OUT_GRAPH
        ]

    @property
    def written_in_graph(self) -> list[int]:
        """Inputs that the graph itself writes to."""
        return [
            i
            for i, info in enumerate(self.input_info)
            if info.mutation_type is MutationType.MUTATED_IN_GRAPH
        ]

    mutated_inp_runtime_indices = written

    @property
    def num_mutated_inp_runtime_indices(self) -> int:
        """How many values of inputs are returned."""
        return len(self.written)

    @property
    def num_forward_returns(self) -> int:
        """How many values the forward graph returns before what it saves."""
        return len(self.written) + len(self.output_info) + self.num_intermediate_bases


@dataclasses.dataclass
class AOTConfig:
    """The settings of one compilation."""

    fw_compiler: Callable | None
    bw_compiler: Callable | None
    partition_fn: Callable | None
    decompositions: dict
    num_params_buffers: int = 0
    aot_id: int = 0
    keep_inference_input_mutations: bool = False
    is_export: bool = False
    no_tangents: bool = False
    dynamic_shapes: bool = False
    aot_autograd_arg_pos_to_source: list | None = None
    static_input_indices: list[int] | None = None
    inference_compiler: Callable | None = None
    enable_log: bool = True
    pre_dispatch: bool = False
    # Keeps what is compiled (torch._inductor.function_cache.Keeper).
    cache_info: object | None = None
    loss_index: int | None = None

    def __post_init__(self) -> None:
        if self.pre_dispatch and not self.is_export:
            raise AssertionError("pre_dispatch is for export")


@dataclasses.dataclass
class BackwardSignature:
    """The outputs of an exported joint graph that are gradients."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


@dataclasses.dataclass
class GraphSignature:
    """The inputs and outputs of an exported graph by name."""

    parameters: list[str]
    buffers: list[str]
    user_inputs: list[str]
    user_outputs: list[str]
    inputs_to_parameters: dict[str, str]
    inputs_to_buffers: dict[str, str]
    buffers_to_mutate: dict[str, str]
    parameters_to_mutate: dict[str, str]
    user_inputs_to_mutate: dict[str, str]
    in_spec: object
    out_spec: object
    backward_signature: BackwardSignature | None
    input_tokens: list[str] = dataclasses.field(default_factory=list)
    output_tokens: list[str] = dataclasses.field(default_factory=list)


def flat_tensors(values: Sequence[object]) -> list[torch.Tensor]:
    """The tensors among the values."""
    return [v for v in values if isinstance(v, torch.Tensor)]
