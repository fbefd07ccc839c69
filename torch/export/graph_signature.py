"""What the inputs and outputs of an exported graph stand for: parameters, buffers, constants, what
the caller passes and gets, and which state an output is written back to."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from torch import fx

__all__ = [
    "ArgumentSpec",
    "ConstantArgument",
    "CustomObjArgument",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "SymBoolArgument",
    "SymFloatArgument",
    "SymIntArgument",
    "TensorArgument",
    "TokenArgument",
]


@dataclasses.dataclass
class TensorArgument:
    """A tensor, by the name of its node."""

    name: str


@dataclasses.dataclass
class TokenArgument:
    """A token that orders effects."""

    name: str


@dataclasses.dataclass
class SymIntArgument:
    """An integer that is not fixed."""

    name: str


@dataclasses.dataclass
class SymFloatArgument:
    """A float that is not fixed."""

    name: str


@dataclasses.dataclass
class SymBoolArgument:
    """A truth value that is not fixed."""

    name: str


@dataclasses.dataclass
class CustomObjArgument:
    """An object of a class that was registered from C++, or one that stands for it."""

    name: str
    class_fqn: str
    fake_val: object = None


@dataclasses.dataclass
class ConstantArgument:
    """A value that is the same in every run."""

    name: str
    value: int | float | bool | str | None


ArgumentSpec: TypeAlias = (
    TensorArgument
    | SymIntArgument
    | SymFloatArgument
    | SymBoolArgument
    | ConstantArgument
    | CustomObjArgument
    | TokenArgument
)


class InputKind(Enum):
    """Where an input of the graph comes from."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


class OutputKind(Enum):
    """What becomes of an output of the graph."""

    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


def _check_argument(arg: object) -> None:
    if not isinstance(arg, ArgumentSpec):
        raise AssertionError(f"got {type(arg)}")


@dataclasses.dataclass
class InputSpec:
    """One input: its kind, its node, and for state the name by which the program holds it."""

    kind: InputKind
    arg: ArgumentSpec
    target: str | None
    persistent: bool | None = None

    def __post_init__(self) -> None:
        if self.kind is InputKind.BUFFER and self.persistent is None:
            raise AssertionError("Failed to specify persistent flag on BUFFER.")
        _check_argument(self.arg)

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name!s}: {self.kind.name}{target}{persistent}"


@dataclasses.dataclass
class OutputSpec:
    """One output: its kind, its node, and the name of what it is written to."""

    kind: OutputKind
    arg: ArgumentSpec
    target: str | None

    def __post_init__(self) -> None:
        _check_argument(self.arg)

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        return f"{self.arg.name!s}: {self.kind.name}{target}"


@dataclasses.dataclass
class ExportBackwardSignature:
    """Which outputs are gradients, and which is the loss."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


_STATE = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR, InputKind.CUSTOM_OBJ)


@dataclasses.dataclass
class ExportGraphSignature:
    """The specs of all inputs and outputs of a graph, in their order."""

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    # ---- by kind
    def _targets(self, kind: InputKind) -> tuple[str, ...]:
        return tuple(s.target for s in self.input_specs if s.kind is kind)

    def _input_names(self, kind: InputKind) -> dict[str, str]:
        return {s.arg.name: s.target for s in self.input_specs if s.kind is kind}

    def _output_names(self, kind: OutputKind) -> dict[str, str]:
        return {s.arg.name: s.target for s in self.output_specs if s.kind is kind}

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters that the graph takes."""
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self) -> tuple[str, ...]:
        """Names of the buffers that the graph takes."""
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """Names of the buffers that no state_dict holds."""
        return tuple(
            s.target
            for s in self.input_specs
            if s.kind is InputKind.BUFFER and s.persistent is False
        )

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """Names of the tensors that are neither parameters nor buffers."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def lifted_custom_objs(self) -> tuple[str, ...]:
        """Names of the objects of registered classes."""
        return self._targets(InputKind.CUSTOM_OBJ)

    @property
    def user_inputs(self) -> tuple[int | float | bool | str | None, ...]:
        """What the caller passes: names of nodes, and constants themselves."""
        return tuple(_shown(s.arg) for s in self.input_specs if s.kind is InputKind.USER_INPUT)

    @property
    def user_outputs(self) -> tuple[int | float | bool | str | None, ...]:
        """What the caller gets: names of nodes, and constants themselves."""
        kinds = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)
        return tuple(_shown(s.arg) for s in self.output_specs if s.kind in kinds)

    @property
    def inputs_to_parameters(self) -> Mapping[str, str]:
        """{node: parameter}"""
        return self._input_names(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        """{node: buffer}"""
        return self._input_names(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> Mapping[str, str]:
        """{node: constant}"""
        return self._input_names(InputKind.CONSTANT_TENSOR)

    @property
    def inputs_to_lifted_custom_objs(self) -> Mapping[str, str]:
        """{node: object}"""
        return self._input_names(InputKind.CUSTOM_OBJ)

    @property
    def buffers_to_mutate(self) -> Mapping[str, str]:
        """{output: buffer it is written to}"""
        return self._output_names(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> Mapping[str, str]:
        """{output: parameter it is written to}"""
        return self._output_names(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> Mapping[str, str]:
        """{output: input it is written to}"""
        return self._output_names(OutputKind.USER_INPUT_MUTATION)

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        """Of a graph with gradients."""
        losses = [s.arg.name for s in self.output_specs if s.kind is OutputKind.LOSS_OUTPUT]
        if not losses:
            return None
        return ExportBackwardSignature(
            dict(self._output_names(OutputKind.GRADIENT_TO_PARAMETER)),
            dict(self._output_names(OutputKind.GRADIENT_TO_USER_INPUT)),
            losses[0],
        )

    @property
    def assertion_dep_token(self) -> Mapping[int, str] | None:
        """Checks need no token."""
        return None

    @property
    def input_tokens(self) -> tuple[str, ...]:
        """Names of the tokens that the graph takes."""
        return tuple(s.arg.name for s in self.input_specs if s.kind is InputKind.TOKEN)

    @property
    def output_tokens(self) -> tuple[str, ...]:
        """Names of the tokens that the graph returns."""
        return tuple(s.arg.name for s in self.output_specs if s.kind is OutputKind.TOKEN)

    # ---- edits
    def replace_all_uses(self, old: str, new: str, replace_inputs: bool = False) -> None:
        """A node of another name takes the place of an output, and of an input if asked for."""
        if not isinstance(old, str) or not isinstance(new, str):
            raise AssertionError(f"expected names of nodes, got {old!r} and {new!r}")
        specs = [*self.output_specs, *(self.input_specs if replace_inputs else ())]
        for spec in specs:
            if not isinstance(spec.arg, ConstantArgument) and spec.arg.name == old:
                spec.arg.name = new

    def get_replace_hook(
        self, replace_inputs: bool = False
    ) -> Callable[[fx.Node, str, fx.Node], None]:
        """What a graph module calls when a node is replaced."""

        def hook(old: fx.Node, new: str, user: fx.Node) -> None:
            if user.op == "output" or (replace_inputs and old.op == "placeholder"):
                self.replace_all_uses(old.name, new, replace_inputs)

        return hook

    def __str__(self) -> str:
        inputs = "\n".join(map(str, self.input_specs))
        outputs = "\n".join(map(str, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"


def _shown(arg: ArgumentSpec) -> int | float | bool | str | None:
    return arg.value if isinstance(arg, ConstantArgument) else arg.name
