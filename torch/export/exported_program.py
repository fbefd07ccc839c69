"""ExportedProgram: a graph without state of its own, what its inputs and outputs stand for, the
state and constants that belong to it, and the ranges of its symbols."""

from __future__ import annotations

import copy
import dataclasses
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import torch
import torch.utils._pytree as pytree
from torch import Tensor, fx, nn
from torch.export._tree_utils import reorder_kwargs
from torch.export.decomp_utils import CustomDecompTable
from torch.export.graph_signature import (
    ArgumentSpec,
    ConstantArgument,
    CustomObjArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
    TokenArgument,
)
from torch.fx.passes.infra.pass_base import PassResult
from torch.fx.passes.infra.pass_manager import PassManager

if TYPE_CHECKING:
    import sympy

    from torch.utils._sympy.value_ranges import ValueRanges

__all__ = [
    "ConstantArgument",
    "CustomObjArgument",
    "ExportGraphSignature",
    "ExportedProgram",
    "InputKind",
    "InputSpec",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "OutputKind",
    "OutputSpec",
    "SymBoolArgument",
    "SymFloatArgument",
    "SymIntArgument",
    "TensorArgument",
    "TokenArgument",
    "default_decompositions",
]


@dataclasses.dataclass
class ModuleCallSignature:
    """How a module is called: its arguments and results, flat, and the trees they are leaves of."""

    inputs: list[ArgumentSpec]
    outputs: list[ArgumentSpec]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec
    forward_arg_names: list[str] | None = None

    def replace_all_uses_with(self, original_node: fx.Node, new_node: fx.Node) -> None:
        """Another node takes the place of one."""
        for argument in (*self.inputs, *self.outputs):
            if argument.name == original_node.name:
                argument.name = new_node.name


@dataclasses.dataclass
class ModuleCallEntry:
    """A module of the program, and how it is called where that was kept."""

    fqn: str
    signature: ModuleCallSignature | None = None


@dataclasses.dataclass
class CallSpec:
    """The structure of arguments and results."""

    in_spec: pytree.TreeSpec | None
    out_spec: pytree.TreeSpec | None


def default_decompositions() -> CustomDecompTable:
    """The decompositions that bring a program down to the core ATen operators; a table that can be
    changed."""
    return CustomDecompTable()


def _share_items(gm: fx.GraphModule, signature: ExportGraphSignature) -> None:
    """Takes the same item of a value once."""
    known: dict[tuple[fx.Node, object], fx.Node] = {}
    renamed: dict[str, str] = {}
    for node in list(gm.graph.nodes):
        if node.op != "call_function" or node.target is not operator.getitem:
            continue
        source, index = node.args
        if not isinstance(source, fx.Node) or isinstance(index, fx.Node):
            continue
        first = known.setdefault((source, index), node)
        if first is not node:
            node.replace_all_uses_with(first)
            gm.graph.erase_node(node)
            renamed[node.name] = first.name
    for old, new in renamed.items():
        signature.replace_all_uses(old, new)


class ExportedProgram:
    """A program as `torch.export.export` returns it."""

    def __init__(
        self,
        root: nn.Module | dict[str, object],
        graph: fx.Graph,
        graph_signature: ExportGraphSignature,
        state_dict: dict[str, Tensor],
        range_constraints: dict[sympy.Symbol, ValueRanges],
        module_call_graph: list[ModuleCallEntry],
        example_inputs: tuple[tuple, dict] | None = None,
        constants: dict[str, object] | None = None,
        *,
        verifiers: list[type] | None = None,
    ) -> None:
        graph._codegen = fx.graph.CodeGen()
        self._graph_module = fx.GraphModule(root, graph)
        if isinstance(root, fx.GraphModule):
            self._graph_module.meta.update(root.meta)
        _share_items(self._graph_module, graph_signature)
        self._graph_module.recompile()
        self._graph_signature = graph_signature
        self._state_dict = state_dict
        self._range_constraints = range_constraints
        self._module_call_graph = module_call_graph
        self._example_inputs = example_inputs
        self._constants = constants or {}
        self._guards_code: list[str] = []
        self._verifiers = list(verifiers) if verifiers else [_default_verifier()]
        self.validate()

    # ---- parts
    @property
    def graph_module(self) -> fx.GraphModule:
        """The graph as a module that takes state and arguments, flat."""
        return self._graph_module

    @property
    def graph(self) -> fx.Graph:
        """The graph."""
        return self._graph_module.graph

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """What inputs and outputs stand for."""
        return self._graph_signature

    @property
    def state_dict(self) -> dict[str, Tensor]:
        """Parameters and persistent buffers by name."""
        return self._state_dict

    @property
    def range_constraints(self) -> dict[sympy.Symbol, ValueRanges]:
        """{symbol: its range}"""
        return self._range_constraints

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """The modules of the program."""
        return self._module_call_graph

    @property
    def constants(self) -> dict[str, object]:
        """Tensors and objects that are neither parameters nor persistent buffers, by name."""
        return self._constants

    @property
    def tensor_constants(self) -> dict[str, object]:
        """As `constants`."""
        return self._constants

    @property
    def verifier(self) -> type:
        """What checks the program."""
        return self._verifiers[0]

    @property
    def verifiers(self) -> list[type]:
        """All that check the program."""
        return self._verifiers

    @property
    def dialect(self) -> str:
        """The name of the rules that the graph keeps."""
        return self._verifiers[0].dialect

    @property
    def call_spec(self) -> CallSpec:
        """The structure of arguments and results."""
        signature = self._module_call_graph[0].signature if self._module_call_graph else None
        if signature is None:
            return CallSpec(None, None)
        return CallSpec(signature.in_spec, signature.out_spec)

    @property
    def example_inputs(self) -> tuple[tuple, dict] | None:
        """(args, kwargs) that the program was exported with."""
        return self._example_inputs

    @example_inputs.setter
    def example_inputs(self, value: tuple[tuple, dict] | None) -> None:
        if value is None:
            self._example_inputs = None
            return
        shaped = isinstance(value, tuple) and len(value) == 2
        if not shaped or not isinstance(value[0], tuple) or not isinstance(value[1], dict):
            raise ValueError(
                "Example inputs should be a tuple containing example arguments (as a tuple), and "
                "example kwargs (as a dictionary)."
            )
        args, kwargs = value
        flat_arguments(args, kwargs, self.call_spec.in_spec)
        self._example_inputs = value

    def parameters(self) -> Iterator[nn.Parameter]:
        """The parameters."""
        for _, parameter in self.named_parameters():
            yield parameter

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """The parameters with their names."""
        for name in self._graph_signature.parameters:
            yield name, self._state_dict[name]

    def buffers(self) -> Iterator[Tensor]:
        """The buffers."""
        for _, buffer in self.named_buffers():
            yield buffer

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their names."""
        other = set(self._graph_signature.non_persistent_buffers)
        for name in self._graph_signature.buffers:
            yield name, (self._constants if name in other else self._state_dict)[name]

    # ---- use
    def __call__(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` "
            "instead."
        )

    def module(self, check_guards: bool = True) -> nn.Module:
        """A module that runs the program with its state; inputs are checked if asked for."""
        from torch.export._unlift import _unlift_exported_program_lifted_states

        return _unlift_exported_program_lifted_states(self, check_guards=check_guards)

    def _num_lifted_params_buffers(self) -> int:
        kinds = [s.kind for s in self._graph_signature.input_specs]
        return next((i for i, k in enumerate(kinds) if k is InputKind.USER_INPUT), len(kinds))

    def run_decompositions(
        self,
        decomp_table: dict[torch._ops.OperatorBase, Callable] | None = None,
        decompose_custom_triton_ops: bool = False,
    ) -> ExportedProgram:
        """The program without writes, with operators of the table (default_decompositions())
        replaced by what they are made of."""
        from torch.export._decompose import decomposed

        table = default_decompositions() if decomp_table is None else decomp_table
        return decomposed(self, table)

    def _transform_do_not_use(self, *passes: Callable) -> ExportedProgram:
        """The program after passes over its graph module."""
        manager = PassManager(list(passes))
        module = copy.deepcopy(self._graph_module)
        signature = copy.deepcopy(self._graph_signature)
        with module._set_replace_hook(signature.get_replace_hook()):
            result = manager(module)
        if result is None or not isinstance(result, PassResult):
            raise AssertionError(f"expected a PassResult, got {type(result)}")
        if result.graph_module is module and not result.modified:
            return self
        made = result.graph_module
        signature = _renewed_signature(signature, made)
        return self._update(made, signature)

    def _update(
        self,
        graph_module: fx.GraphModule,
        graph_signature: ExportGraphSignature,
        *,
        state_dict: dict[str, Tensor] | None = None,
        constants: dict[str, object] | None = None,
        verifiers: list[type] | None = None,
    ) -> ExportedProgram:
        """The program with another graph."""
        made = ExportedProgram(
            graph_module,
            graph_module.graph,
            graph_signature,
            self._state_dict if state_dict is None else state_dict,
            copy.deepcopy(self._range_constraints),
            copy.deepcopy(self._module_call_graph),
            self._example_inputs,
            self._constants if constants is None else constants,
            verifiers=self._verifiers if verifiers is None else verifiers,
        )
        made._guards_code = list(self._guards_code)
        return made

    def validate(self) -> None:
        """Raises SpecViolationError where graph, signature and state do not fit."""
        self._validate()

    def _validate(self) -> None:
        for verifier in self._verifiers:
            verifier().check(self)

    def __str__(self) -> str:
        code = self.graph_module.print_readable(
            print_output=False, colored=False, include_stride=False, include_device=False
        )
        shown = "\n".join(f"    {line}" if line.strip() else line for line in code.split("\n"))
        signature = str(self.graph_signature).replace("\n", "\n    ")
        return (
            f"ExportedProgram:\n{shown}\nGraph signature: {signature}\nRange constraints: "
            f"{self.range_constraints}\n"
        )

    __repr__ = object.__repr__


def _default_verifier() -> type:
    from torch._export.verifier import Verifier

    return Verifier


def _renewed_signature(old: ExportGraphSignature, module: fx.GraphModule) -> ExportGraphSignature:
    """The signature with the names that nodes have now."""
    inputs = module.graph.find_nodes(op="placeholder")
    names = {}
    for spec, node in zip(old.input_specs, inputs, strict=True):
        names[spec.arg.name] = node.name
        spec.arg.name = node.name
    for spec, value in zip(old.output_specs, module.graph.output_node().args[0], strict=True):
        if isinstance(value, fx.Node):
            spec.arg.name = value.name
        if spec.kind is OutputKind.USER_INPUT_MUTATION:
            spec.target = names.get(spec.target, spec.target)
    return old


def flat_arguments(
    args: Sequence[object], kwargs: dict[str, object], in_spec: pytree.TreeSpec | None
) -> list[object]:
    """The leaves of arguments, which must have the structure of a spec."""
    if in_spec is None:
        return pytree.tree_leaves((tuple(args), kwargs))
    kwargs = reorder_kwargs(kwargs, in_spec)
    leaves, received = pytree.tree_flatten((tuple(args), kwargs))
    if received != in_spec:
        raise ValueError(
            "Trying to flatten user inputs with exported input tree spec: \n"
            f"{in_spec}\n"
            "but actually got inputs with tree spec of: \n"
            f"{received}.\n"
            "Please check that the inputs have the same number and type of args and kwargs as the "
            "ones you used when tracing."
        )
    return leaves
