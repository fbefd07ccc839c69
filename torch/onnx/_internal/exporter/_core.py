"""The translation itself: an exported program, node by node, to a model of onnx_ir."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping, Sequence

import onnx_ir as ir
import onnxscript
import onnxscript.evaluator

import torch
from torch import Tensor, fx
from torch._ops import HigherOrderOperator, OpOverload
from torch.export.exported_program import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.onnx._internal.exporter import _control_flow, _errors, _symbolic
from torch.onnx._internal.exporter._building import OpRecorder
from torch.onnx._internal.exporter._promotion import promoted
from torch.onnx._internal.exporter._registration import ONNXRegistry
from torch.onnx._internal.exporter._tensors import SymbolicTensor
from torch.onnx._internal.exporter._types import TorchTensor, onnx_type, shape_of

__all__ = ["TorchTensor", "Translator", "exported_program_to_ir", "prepared"]

_IR_VERSION = {18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 11}

# Operators that only check something, which a model cannot state.
_CHECKS = {
    torch.ops.aten._assert_async.default,
    torch.ops.aten._assert_async.msg,
    torch.ops.aten._assert_scalar.default,
    torch.ops.aten._assert_tensor_metadata.default,
    torch.ops.aten.sym_constrain_range.default,
    torch.ops.aten.sym_constrain_range_for_size.default,
    torch._check,
    torch._check_is_size,
}
_MAKES_COMPLEX = {
    torch.ops.aten.view_as_complex.default,
    torch.ops.aten.complex.default,
    torch.ops.aten._fft_r2c.default,
}
_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


def prepared(program: ExportedProgram, registry: ONNXRegistry) -> ExportedProgram:
    """The program without writes, in operators that have translations as far as they can be taken
    apart."""
    from torch.export.exported_program import default_decompositions

    table = default_decompositions()
    for target in registry:
        if isinstance(target, OpOverload) and target in table:
            del table[target]
    return program.run_decompositions(table)


def exported_program_to_ir(
    exported_program: ExportedProgram,
    *,
    registry: ONNXRegistry | None = None,
    lower: bool = True,
    names: Mapping[str, str] | None = None,
) -> ir.Model:
    """The model of a program. `names`: names for sizes by the program's own."""
    registry = registry or ONNXRegistry.from_torchlib()
    program = prepared(exported_program, registry) if lower else exported_program
    return Translator(program, registry, dict(names or {})).model()


class Translator:
    """Builds one model."""

    def __init__(
        self, program: ExportedProgram, registry: ONNXRegistry, names: dict[str, str]
    ) -> None:
        self.program, self.registry, self.names = program, registry, names
        self.opset = onnxscript.values.Opset("", registry.opset_version)
        self.functions: dict[ir.OperatorIdentifier, ir.Function] = {}
        self.imports: dict[str, int] = {"": registry.opset_version}
        self.initializers: list[SymbolicTensor] = []
        self.used: set[str] = set()
        self.recorder = OpRecorder(self.opset, {})

    # ---- the model
    def model(self) -> ir.Model:
        """The model of the whole program."""
        inputs, env = self._inputs()
        with onnxscript.evaluator.default_as(self.recorder):
            returned = self.run(self.program.graph_module, env)
            outputs = self._outputs(returned, inputs)
        self._take_functions(self.recorder)
        version = self.registry.opset_version
        for function in self.functions.values():
            self.imports.setdefault(function.domain, 1)
        graph = ir.Graph(
            inputs,
            outputs,
            nodes=self.recorder.nodes,
            initializers=self.initializers,
            opset_imports=dict(self.imports),
            name="main_graph",
        )
        return ir.Model(
            graph,
            ir_version=_IR_VERSION.get(version, 10),
            producer_name="pytorch",
            producer_version=str(torch.__version__),
            functions=list(self.functions.values()),
        )

    def _take_functions(self, recorder: OpRecorder) -> None:
        self.functions.update(recorder.functions)
        for node in recorder.nodes:
            if node.domain:
                self.imports.setdefault(node.domain, node.version or 1)

    def _inputs(self) -> tuple[list[SymbolicTensor], dict[fx.Node, object]]:
        """Inputs of the model, and what all inputs of the program stand for."""
        inputs: list[SymbolicTensor] = []
        env: dict[fx.Node, object] = {}
        specs = self.program.graph_signature.input_specs
        nodes = self.program.graph.find_nodes(op="placeholder")
        state = {**self.program.constants, **self.program.state_dict}
        shared: dict[int, SymbolicTensor] = {}
        for node, spec in zip(nodes, specs, strict=True):
            if spec.kind is InputKind.USER_INPUT:
                env[node] = value = node.meta.get("val")
                if isinstance(value, (Tensor, *_SYMBOLIC)):
                    env[node] = self.value(node.name, value)
                    inputs.append(env[node])
            elif spec.kind in (InputKind.CUSTOM_OBJ, InputKind.TOKEN):
                env[node] = None
            else:
                tensor = state[spec.target]
                if id(tensor) not in shared:
                    shared[id(tensor)] = self._initializer(spec.target, tensor)
                env[node] = shared[id(tensor)]
        return inputs, env

    def _initializer(self, name: str, tensor: Tensor) -> SymbolicTensor:
        data = tensor.detach()
        pairs = data.is_complex()
        if pairs:
            data = torch.view_as_real(data.resolve_conj())
        constant = TorchTensor(data, name=name)
        made = SymbolicTensor(
            self.opset, name, ir.Shape(list(data.shape)), ir.TensorType(constant.dtype)
        )
        made.const_value = constant
        made.is_complex = pairs
        self.used.add(name)
        self.initializers.append(made)
        return made

    def value(self, name: str, example: object) -> SymbolicTensor:
        """A value of its own with the type of an example."""
        made = SymbolicTensor(self.opset, name)
        self.used.add(name)
        self.describe(made, example)
        return made

    def describe(self, value: SymbolicTensor, example: object) -> None:
        """Notes the type and the sizes of an example on a value."""
        if isinstance(example, Tensor):
            value.is_complex = example.is_complex()
            value.type = ir.TensorType(onnx_type(example.dtype))
            value.shape = shape_of(example.shape, self.names, value.is_complex)
        elif isinstance(example, (bool, torch.SymBool)):
            value.type, value.shape = ir.TensorType(ir.DataType.BOOL), ir.Shape([])
        elif isinstance(example, (int, torch.SymInt)):
            value.type, value.shape = ir.TensorType(ir.DataType.INT64), ir.Shape([])
        elif isinstance(example, (float, torch.SymFloat)):
            value.type, value.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape([])

    def _outputs(
        self, returned: Sequence[object], inputs: Sequence[SymbolicTensor]
    ) -> list[SymbolicTensor]:
        """Values that the program returns to its user; each is an output of some node."""
        found: list[SymbolicTensor] = []
        seen: set[int] = {id(v) for v in (*inputs, *self.initializers)}
        specs = self.program.graph_signature.output_specs
        for value, spec in zip(returned, specs, strict=True):
            if spec.kind is OutputKind.USER_OUTPUT and value is not None:
                found.append(self.as_output(value, seen))
        return found

    def as_output(self, value: object, seen: set[int]) -> SymbolicTensor:
        """A value as the output of a graph: made inside it, and only once in the list."""
        if not isinstance(value, ir.Value):
            value = self.recorder.constant(value)
        if id(value) in seen:
            kept = value
            value = self.opset.Identity(kept)
            value.type, value.shape = kept.type, kept.shape
        seen.add(id(value))
        return value

    # ---- graphs
    def run(self, module: fx.GraphModule, env: dict[fx.Node, object]) -> tuple[object, ...]:
        """Translates the nodes of a graph whose inputs are in env; returns what it returns."""
        for node in module.graph.nodes:
            if node.op == "placeholder":
                continue
            if node.op == "get_attr":
                env[node] = self._attribute(module, node)
            elif node.op == "output":
                returned = fx.map_arg(node.args[0], lambda n: env[n])
                return tuple(returned) if isinstance(returned, (tuple, list)) else (returned,)
            else:
                env[node] = self._call(node, env)
        raise AssertionError("a graph without an output")

    def _attribute(self, module: fx.GraphModule, node: fx.Node) -> object:
        value = operator.attrgetter(node.target)(module)
        return self.recorder.constant(value) if isinstance(value, Tensor) else value

    def subgraph(
        self,
        name: str,
        inputs: Sequence[SymbolicTensor],
        body: Callable[[], Sequence[object]],
    ) -> ir.Graph:
        """What `body` calls as a graph of its own, which sees the values around it."""
        outer = self.recorder
        self.recorder = OpRecorder(self.opset, {})
        try:
            with onnxscript.evaluator.default_as(self.recorder):
                returned = body()
                own = {id(o) for n in self.recorder.nodes for o in n.outputs}
                outputs: list[SymbolicTensor] = []
                for value in returned:
                    seen = {id(o) for o in outputs}
                    if isinstance(value, ir.Value) and id(value) not in own:
                        seen.add(id(value))
                    outputs.append(self.as_output(value, seen))
            self._take_functions(self.recorder)
            return ir.Graph(inputs, outputs, nodes=self.recorder.nodes, name=name)
        finally:
            self.recorder = outer

    def branch(self, module: fx.GraphModule, operands: Sequence[object]) -> tuple[object, ...]:
        """A graph that takes operands, translated here."""
        nodes = module.graph.find_nodes(op="placeholder")
        return self.run(module, dict(zip(nodes, operands, strict=True)))

    # ---- one node
    def _call(self, node: fx.Node, env: dict[fx.Node, object]) -> object:
        try:
            made = self._translated(node, env)
        except _errors.ConversionError:
            raise
        except Exception as error:
            where = node.meta.get("stack_trace")
            lines = f"\nIt is called here:\n{where}" if where else ""
            raise _errors.ConversionError(
                f"Error when translating node {node.format_node()}: {error}{lines}"
            ) from error
        self._name(node, made)
        return made

    def _translated(self, node: fx.Node, env: dict[fx.Node, object]) -> object:
        target = node.target
        if node.op != "call_function":
            raise _errors.ConversionError(f"cannot translate {node.format_node()}")
        if target in _CHECKS:
            return None
        args = [self._argument(a, env) for a in node.args]
        kwargs = {k: self._argument(v, env) for k, v in node.kwargs.items()}
        if target is operator.getitem and isinstance(args[0], (tuple, list)):
            return args[0][args[1]]
        if isinstance(target, HigherOrderOperator):
            return _control_flow.translated(self, node, args)
        if isinstance(target, OpOverload) and target.namespace == "onnx_symbolic":
            return _symbolic.symbolic_node(self.recorder, args, kwargs)
        return self._by_function(node, args, kwargs)

    def _by_function(self, node: fx.Node, args: list, kwargs: dict[str, object]) -> object:
        every = [v for a in args for v in (a if isinstance(a, list) else [a])]
        is_complex = any(getattr(v, "is_complex", False) for v in (*every, *kwargs.values()))
        example = node.meta.get("val")
        if not is_complex and isinstance(example, Tensor) and example.is_complex():
            is_complex = node.target not in _MAKES_COMPLEX
        args = promoted(node, args, self.recorder)
        meta = self.registry.choose(node.target, args, is_complex)
        if isinstance(node.target, OpOverload):
            args, kwargs = _by_name(node.target, meta.onnx_function, args, kwargs)
        function = meta.onnx_function
        if isinstance(function, onnxscript.OnnxFunction):
            return self.recorder.eval_function(function, args, kwargs)
        # What wraps a function of the library has a parameter `self` of its own.
        return getattr(function, "func", function)(*args, **kwargs)

    def _argument(self, argument: object, env: dict[fx.Node, object]) -> object:
        if isinstance(argument, fx.Node):
            return env[argument]
        if isinstance(argument, (tuple, list)):
            return [self._argument(a, env) for a in argument]
        if isinstance(argument, torch.dtype):
            return int(onnx_type(argument))
        if isinstance(argument, (torch.device, torch.memory_format, torch.layout)):
            return str(argument)
        return argument

    def _name(self, node: fx.Node, made: object) -> None:
        """Gives values the names of nodes and what is known about them."""
        examples = node.meta.get("val")
        values = made if isinstance(made, (tuple, list)) else (made,)
        if not isinstance(examples, (tuple, list)):
            examples = (examples,)
        for index, value in enumerate(values):
            if not isinstance(value, SymbolicTensor):
                continue
            producer = value.producer()
            if value.name is None and producer is not None:
                value.name = self.unused(node.name if len(values) == 1 else f"{node.name}__{index}")
                if producer.name is None:
                    producer.name = f"node_{value.name}"
                producer.metadata_props["pkg.torch.onnx.fx_node"] = node.format_node()
            fitting = index < len(examples) and not isinstance(examples[index], (tuple, list))
            if fitting and producer is not None:
                self._describe_known(value, examples[index])

    def _describe_known(self, value: SymbolicTensor, example: object) -> None:
        """As `describe`; numbers keep the type that their node gives them."""
        known = value.type
        if isinstance(known, ir.SequenceType):
            return
        self.describe(value, example)
        if known is not None and not isinstance(example, Tensor):
            value.type = known

    def unused(self, name: str) -> str:
        """A name that no value has yet."""
        made, count = name, 0
        while made in self.used:
            count += 1
            made = f"{name}_{count}"
        self.used.add(made)
        return made


def _by_name(
    target: OpOverload, function: Callable[..., object], args: list, kwargs: dict[str, object]
) -> tuple[list[object], dict[str, object]]:
    """Arguments as a translation takes them: it may know fewer parameters than the operator or call
    them something else, and its own defaults stand for None."""
    plain = getattr(function, "func", getattr(function, "function", function))
    parameters = inspect.signature(plain).parameters
    if any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in parameters.values()):
        return args, kwargs
    known = list(parameters)
    names = [a.name for a in target._schema.arguments]
    given: dict[str, object] = {}
    for index, value in enumerate(args):
        name = names[index]
        if name not in parameters and index < len(known) and known[index] not in names:
            name = known[index]
        given[name] = value
    given.update(kwargs)
    found = {}
    for name, value in given.items():
        parameter = parameters.get(name)
        if parameter is None:
            continue
        if value is None and parameter.default is not inspect.Parameter.empty:
            continue
        found[name] = value
    return [], found
