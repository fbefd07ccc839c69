"""What an exported program has to be: a graph of operators, whose inputs and outputs are those of
its signature, and state for every input that stands for state."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import fx
from torch._ops import HigherOrderOperator, OpOverload
from torch.export.graph_signature import (
    ConstantArgument,
    CustomObjArgument,
    InputKind,
    OutputKind,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
    TokenArgument,
)

if TYPE_CHECKING:
    from torch.export.exported_program import ExportedProgram

__all__ = [
    "SpecViolationError",
    "TrainingIRVerifier",
    "Verifier",
    "is_functional",
    "load_verifier",
]


class SpecViolationError(Exception):
    """A program that breaks the rules of exported programs."""


def is_functional(op: OpOverload) -> bool:
    """Whether an operator writes to none of its arguments."""
    return not op._schema.is_mutable


_DIALECTS: dict[str, type] = {}

_OF_PYTHON = (
    operator.getitem,
    operator.add,
    operator.mul,
    operator.sub,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.neg,
    operator.pos,
    operator.invert,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lshift,
    operator.rshift,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.not_,
    operator.abs,
    builtins.abs,
    builtins.max,
    builtins.min,
    math.ceil,
    math.floor,
    math.trunc,
    round,
)
_NOT_FUNCTIONAL = {
    "aten::_assert_async",
    "aten::_assert_scalar",
    "aten::sym_constrain_range",
    "aten::sym_constrain_range_for_size",
}


def _is_symbolic_function(target: object) -> bool:
    """torch.sym_max and the like."""
    name = getattr(target, "__name__", "")
    return name.startswith(("sym_", "_sym_")) and getattr(torch, name, None) is target


class Verifier:
    """The rules of graphs without writes. A subclass has its own `dialect`."""

    dialect = "ATEN"

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if "dialect" in vars(cls):
            _DIALECTS[cls.dialect] = cls

    def allowed_builtin_ops(self) -> list[Callable]:
        """Functions of Python that may be called."""
        return list(_OF_PYTHON)

    def allowed_op_types(self) -> tuple[type, ...]:
        """Kinds of operators that may be called."""
        return (OpOverload, HigherOrderOperator)

    def allowed_getattr_types(self) -> tuple[type, ...]:
        """Kinds of attributes that a graph may read."""
        return (fx.GraphModule, torch.utils._pytree.TreeSpec, torch._C.ScriptObject)

    def allowed_getattr_types_for_subgm(self) -> tuple[type, ...]:
        """Kinds of attributes that a graph inside a graph may read."""
        return (fx.GraphModule, torch.utils._pytree.TreeSpec, torch._C.ScriptObject)

    def check_valid_op(self, op: object) -> None:
        """Raises for an operator that may not be called."""
        if isinstance(op, OpOverload) and not self._may_write(op) and not is_functional(op):
            raise SpecViolationError(f"operator '{op}' is not functional")

    def _may_write(self, op: OpOverload) -> bool:
        return op._schema.name in _NOT_FUNCTIONAL

    def check_additional(self, gm: fx.GraphModule) -> None:
        """What a subclass asks for besides."""

    # ---- the checks
    def check(self, ep: ExportedProgram) -> None:
        """Raises SpecViolationError where a program breaks the rules."""
        self._check_graph_module(ep.graph_module)
        _check_signature(ep)

    def _check_graph_module(self, gm: fx.GraphModule, inner: bool = False) -> None:
        gm.graph.lint()
        for node in gm.graph.nodes:
            if node.op in ("call_module", "call_method"):
                raise SpecViolationError(f"call_module is not valid: got a class '{node.target}' ")
            if node.op == "call_function":
                self._check_target(node)
            elif node.op == "get_attr":
                self._check_attribute(gm, node)
        for _, module in gm.named_children():
            if isinstance(module, fx.GraphModule):
                self._check_graph_module(module, inner=True)
        self.check_additional(gm)

    def _check_target(self, node: fx.Node) -> None:
        target = node.target
        if target in self.allowed_builtin_ops() or _is_symbolic_function(target):
            return
        if not isinstance(target, self.allowed_op_types()):
            if target not in _switches():
                raise SpecViolationError(
                    f"Operator '{target}' is not an allowed operator type: "
                    f"{self.allowed_op_types()}\nValid builtin ops: {self.allowed_builtin_ops()}"
                )
            return
        self.check_valid_op(target)

    def _check_attribute(self, gm: fx.GraphModule, node: fx.Node) -> None:
        found: object = gm
        for name in node.target.split("."):
            if not hasattr(found, name):
                raise SpecViolationError(f"the graph reads {node.target}, which is missing")
            found = getattr(found, name)
        if not isinstance(found, self.allowed_getattr_types()):
            raise SpecViolationError(
                f"Invalid get_attr type {type(found)}. \n"
                f"Valid get_attr types: {self.allowed_getattr_types()}"
            )


def _switches() -> tuple[Callable, ...]:
    mode = torch.amp.autocast_mode
    return (torch._C._set_grad_enabled, mode._enter_autocast, mode._exit_autocast)


_DIALECTS["ATEN"] = Verifier


class TrainingIRVerifier(Verifier):
    """The rules of graphs as the program was: operators may write."""

    dialect = "TRAINING"

    def check_valid_op(self, op: object) -> None:
        """Every operator may be called."""


class PreDispatchVerifier(TrainingIRVerifier):
    """As TrainingIRVerifier, by its older name."""

    dialect = "PREDISPATCH"


class EdgeDialectVerifier(Verifier):
    """The rules of a dialect by the name EDGE."""

    dialect = "EDGE"


def load_verifier(dialect: str) -> type | None:
    """The verifier of a dialect; that of ATEN is the base of all."""
    return _DIALECTS.get(dialect or "ATEN")


# ---- signatures

_NUMBERS = {
    SymIntArgument: torch.SymInt,
    SymFloatArgument: torch.SymFloat,
    SymBoolArgument: torch.SymBool,
}


def _check_signature(ep: ExportedProgram) -> None:
    signature = ep.graph_signature
    inputs = ep.graph.find_nodes(op="placeholder")
    if len(inputs) != len(signature.input_specs):
        raise SpecViolationError(
            f"Number of graph inputs ({len(inputs)}) does not match number of inputs in the graph "
            f"signature ({len(signature.input_specs)})"
        )
    for node, spec in zip(inputs, signature.input_specs, strict=True):
        if node.name != spec.arg.name:
            raise SpecViolationError(
                f"Input spec {spec.arg} of {node} does not have its name {node.name}"
            )
        _check_input(ep, spec)
    _check_outputs(ep)


def _check_input(ep: ExportedProgram, spec: object) -> None:
    kind, target = spec.kind, spec.target
    if kind is InputKind.USER_INPUT:
        allowed = (TensorArgument, ConstantArgument, CustomObjArgument, *_NUMBERS)
        if not isinstance(spec.arg, allowed):
            raise SpecViolationError(f"User input spec {spec.arg} is of an unknown kind")
        return
    if kind is InputKind.TOKEN:
        if not isinstance(spec.arg, TokenArgument):
            raise SpecViolationError(f"Constant tensor {spec.arg.name} is not a token")
        return
    if not isinstance(target, str):
        raise SpecViolationError(f"InputSpec for {spec.arg.name} has no target.")
    if kind is InputKind.PARAMETER:
        if target not in ep.state_dict:
            raise SpecViolationError(f"Parameter {target} is not in the state dict.")
        if not isinstance(ep.state_dict[target], torch.nn.Parameter):
            raise SpecViolationError(
                f"State dict entry for parameter {target} is not an instance of torch.nn.Parameter."
            )
    elif kind is InputKind.BUFFER:
        if spec.persistent is None:
            raise SpecViolationError(f"Buffer {target} is missing a persistence flag")
        if spec.persistent and target not in ep.state_dict:
            raise SpecViolationError(f"Buffer {target} is not in the state dict.")
        if not spec.persistent and target in ep.state_dict:
            raise SpecViolationError(
                f"Non-persistent buffer {target} is in the state dict, it should not be."
            )
    elif kind in (InputKind.CONSTANT_TENSOR, InputKind.CUSTOM_OBJ):
        what = "Constant tensor" if kind is InputKind.CONSTANT_TENSOR else "Custom object"
        if target not in ep.constants:
            raise SpecViolationError(f"{what} {target} is not in the constants dictionary.")


def _check_outputs(ep: ExportedProgram) -> None:
    signature = ep.graph_signature
    values = ep.graph.output_node().args[0]
    if len(values) != len(signature.output_specs):
        raise SpecViolationError(
            f"Number of output nodes {len(values)} is different Than the number of outputs "
            f"specified by the graph signature: \nNumber of mutated buffers: "
            f"{len(signature.buffers_to_mutate)}. \nNumber of user outputs: "
            f"{len(signature.user_outputs)}. \n"
        )
    buffers = {s.target for s in signature.input_specs if s.kind is InputKind.BUFFER}
    users = {s.arg.name for s in signature.input_specs if s.kind is InputKind.USER_INPUT}
    for value, spec in zip(values, signature.output_specs, strict=True):
        if isinstance(value, fx.Node) and value.name != spec.arg.name:
            raise SpecViolationError(
                f"Output {value.name} is called {spec.arg.name} in the graph signature"
            )
        if spec.kind is OutputKind.BUFFER_MUTATION and spec.target not in buffers:
            raise SpecViolationError(
                f"Buffer output {value} does not point to a buffer that exists. \nDict of buffers "
                f"that are mutated, in order: {signature.buffers_to_mutate} \nBuffer nodes "
                f"available: {sorted(buffers)} \n"
            )
        if spec.kind is OutputKind.USER_INPUT_MUTATION and spec.target not in users:
            raise SpecViolationError(
                f"User input output {value} does not point to a user input that exists: "
                f"{spec.target}"
            )
