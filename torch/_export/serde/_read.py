"""From records to an exported program. Targets are looked up among operators, functions on symbolic
numbers and registered extensions; nothing else can be called by a file."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
import torch.utils._pytree as pytree
from torch import Tensor, fx
from torch._export.serde import schema
from torch._export.serde._metadata import metadata_of, read_json
from torch._export.serde._numbers import DTYPES, LAYOUTS, MEMORY_FORMATS, Symbols, invert
from torch._export.serde._write import _PYTHON, SerializeError
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import graph_signature as signatures
from torch.fx.experimental.symbolic_shapes import ShapeEnv, _find_paths

if TYPE_CHECKING:
    from torch.export.exported_program import ExportedProgram

__all__ = ["ProgramReader"]

_BY_NAME = {name: fn for fn, name in _PYTHON.items()}


class _Name:
    """Stands for an unbacked symbol while paths to it are looked for."""

    def __init__(self, expr: object) -> None:
        self.expr = expr


class ProgramReader:
    """Reads one program."""

    def __init__(self, record: object, extensions: dict[type, type]) -> None:
        self.record, self.extensions = record, extensions
        self.mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True, export=True)
        self.symbols = Symbols(self.mode.shape_env, record.range_constraints)
        self.bound: set[str] = set()

    def run(
        self,
        state_dict: dict[str, Tensor],
        constants: dict[str, object],
        example_inputs: tuple | None,
    ) -> ExportedProgram:
        from torch._export.verifier import load_verifier
        from torch.export.exported_program import ExportedProgram

        held = self.record.graph_module
        signature = self._signature(held.signature)
        names = [s.arg.name for s in signature.input_specs]
        constants_in = {
            s.arg.name: s.arg.value
            for s in signature.input_specs
            if isinstance(s.arg, signatures.ConstantArgument)
        }
        module = _GraphReader(self, held.graph).run(names, constants_in)
        if held.metadata.get("custom"):
            module.meta["custom"] = read_json(held.metadata["custom"])
        verifiers = [load_verifier(d) for d in self.record.verifiers]
        unknown = [d for d, v in zip(self.record.verifiers, verifiers, strict=True) if v is None]
        if unknown:
            raise SerializeError(f"no verifier is known for the dialects {unknown}")
        try:
            made = ExportedProgram(
                module,
                module.graph,
                signature,
                state_dict,
                self._ranges(),
                [self._entry(e) for e in held.module_call_graph],
                example_inputs,
                constants,
                verifiers=verifiers or None,
            )
        except (RuntimeError, AttributeError, IndexError, TypeError, ValueError) as error:
            raise SerializeError(f"the program is damaged: {error}") from error
        if made.call_spec.in_spec is None:
            raise SerializeError("the program is damaged: it does not say how it is called")
        made._guards_code = list(self.record.guards_code)
        return made

    def _ranges(self) -> dict:
        from torch.utils._sympy.numbers import int_oo
        from torch.utils._sympy.value_ranges import ValueRanges

        found = {}
        for name, row in self.record.range_constraints.items():
            low = -int_oo if row.min_val is None else row.min_val
            high = int_oo if row.max_val is None else row.max_val
            if name in self.mode.shape_env._nodes and not name.startswith("z"):
                found[self.symbols.symbol(name)] = ValueRanges(low, high)
        return found

    # ---- signatures
    def _argument(self, arg: object) -> signatures.ArgumentSpec:
        value = arg.value
        match arg.type:
            case "as_tensor":
                return signatures.TensorArgument(value.name)
            case "as_custom_obj":
                return signatures.CustomObjArgument(value.name, value.class_fqn)
            case "as_sym_int" | "as_sym_float" | "as_sym_bool":
                if value.type == "as_name":
                    cls = {
                        "as_sym_int": signatures.SymIntArgument,
                        "as_sym_float": signatures.SymFloatArgument,
                        "as_sym_bool": signatures.SymBoolArgument,
                    }[arg.type]
                    return cls(value.value)
                return signatures.ConstantArgument("", value.value)
        return signatures.ConstantArgument("", _plain(arg))

    def _signature(self, record: object) -> signatures.ExportGraphSignature:
        return signatures.ExportGraphSignature(
            [self._input_spec(s) for s in record.input_specs],
            [self._output_spec(s) for s in record.output_specs],
        )

    def _input_spec(self, spec: object) -> signatures.InputSpec:
        kind, held = signatures.InputKind, spec.value
        make, tensor = signatures.InputSpec, signatures.TensorArgument
        match spec.type:
            case "user_input":
                return make(kind.USER_INPUT, self._argument(held.arg), None)
            case "constant_input":
                value = None if held.value.type == "as_none" else held.value.value
                constant = signatures.ConstantArgument(held.name, value)
                return make(kind.USER_INPUT, constant, None)
            case "parameter":
                return make(kind.PARAMETER, tensor(held.arg.name), held.parameter_name)
            case "buffer":
                arg = tensor(held.arg.name)
                return make(kind.BUFFER, arg, held.buffer_name, held.persistent)
            case "tensor_constant":
                arg = tensor(held.arg.name)
                return make(kind.CONSTANT_TENSOR, arg, held.tensor_constant_name)
            case "custom_obj":
                arg = signatures.CustomObjArgument(held.arg.name, held.arg.class_fqn)
                return make(kind.CUSTOM_OBJ, arg, held.custom_obj_name)
        return make(kind.TOKEN, signatures.TokenArgument(held.arg.name), None)

    def _output_spec(self, spec: object) -> signatures.OutputSpec:
        held = spec.value
        kind = signatures.OutputKind[spec.type.upper()]
        if spec.type == "user_output":
            return signatures.OutputSpec(kind, self._argument(held.arg), None)
        if spec.type == "token":
            return signatures.OutputSpec(kind, signatures.TokenArgument(held.arg.name), None)
        names = ("buffer_name", "parameter_name", "user_input_name")
        target = next((getattr(held, n) for n in names if hasattr(held, n)), None)
        return signatures.OutputSpec(kind, signatures.TensorArgument(held.arg.name), target)

    def _entry(self, record: object) -> object:
        from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature

        held = record.signature
        if held is None:
            return ModuleCallEntry(record.fqn)
        return ModuleCallEntry(
            record.fqn,
            ModuleCallSignature(
                [self._argument(a) for a in held.inputs],
                [self._argument(a) for a in held.outputs],
                _spec(held.in_spec),
                _spec(held.out_spec),
                held.forward_arg_names,
            ),
        )

    # ---- values
    def size(self, number: object) -> int | torch.SymInt:
        """A size."""
        if number.type == "as_int":
            return number.value
        return self.symbols.number(number.value, torch.SymInt)

    def number(self, record: object) -> object:
        """A symbolic number."""
        if record.type != "as_expr":
            return record.value
        kinds = {
            schema.SymInt: torch.SymInt,
            schema.SymFloat: torch.SymFloat,
            schema.SymBool: torch.SymBool,
        }
        return self.symbols.number(record.value, kinds[type(record)])

    def tensor(self, meta: object) -> Tensor:
        """A tensor without data."""
        dtype = invert(DTYPES, meta.dtype, "dtype")
        device = device_of(meta.device)
        sizes = [self.size(s) for s in meta.sizes]
        strides = [self.size(s) for s in meta.strides]
        layout = invert(LAYOUTS, meta.layout, "layout")
        if len(strides) != len(sizes) and layout is torch.strided:
            raise SerializeError(f"{len(sizes)} sizes but {len(strides)} strides")
        try:
            with self.mode:
                if layout is not torch.strided:
                    raise SerializeError(f"cannot read a tensor of the layout {layout}")
                made = torch.empty_strided(sizes, strides, dtype=dtype, device=device)
                if meta.requires_grad:
                    made.requires_grad_()
        except RuntimeError as error:
            raise SerializeError(f"a tensor cannot have these sizes: {error}") from error
        return made

    def target(self, name: str) -> object:
        """What a node calls."""
        if name in _BY_NAME:
            return _BY_NAME[name]
        parts = name.split(".")
        if name.startswith("#"):
            return self._extension(name)
        if parts[:2] == ["torch", "ops"] and len(parts) in (4, 5):
            found: object = torch.ops
            for part in parts[2:]:
                if part.startswith("__") and part not in ("__and__", "__or__", "__xor__"):
                    raise SerializeError(f"no operator {name!r:.80}")
                found = getattr(found, part, None)
            if isinstance(found, (OpOverload, torch._ops.HigherOrderOperator)):
                return found
            raise SerializeError(f"the operator {name!r:.80} is not known")
        if len(parts) == 2 and parts[0] == "torch" and parts[1].startswith(("sym_", "_sym_")):
            found = getattr(torch, parts[1], None)
            if callable(found):
                return found
        switches = {"torch._C._set_grad_enabled": torch._C._set_grad_enabled}
        if name in switches:
            return switches[name]
        raise SerializeError(f"a program may not call {name!r:.80}")

    def _extension(self, name: str) -> object:
        namespace, _, op = name[1:].partition(":")
        for handler in self.extensions.values():
            if handler.namespace() == namespace:
                return handler.from_op_name(op)
        raise SerializeError(f"no extension is registered for {name!r:.80}")


def device_of(record: object) -> torch.device:
    """A device."""
    try:
        place = "" if record.index is None else f":{record.index}"
        return torch.device(f"{record.type}{place}")
    except RuntimeError as error:
        raise SerializeError(f"no device: {record}") from error


def _spec(text: str) -> pytree.TreeSpec:
    try:
        return pytree.treespec_loads(text)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SerializeError(f"not a tree: {text!r:.80}") from error


def _plain(arg: object) -> object:
    return None if arg.type == "as_none" else arg.value


class _GraphReader:
    """Reads one graph."""

    def __init__(self, reader: ProgramReader, record: object) -> None:
        self.reader, self.record = reader, record
        self.graph = fx.Graph()
        self.root = torch.nn.Module()
        self.names: dict[str, fx.Node] = {}
        self.values: dict[str, object] = {}

    def run(self, names: Sequence[str] | None, constants: dict[str, object]) -> fx.GraphModule:
        for i, arg in enumerate(self.record.inputs):
            self._input(arg, names[i] if names is not None and i < len(names) else None, constants)
        for node in self.record.nodes:
            self._node(node)
        outputs = [self.value(arg) for arg in self.record.outputs]
        single = self.record.is_single_tensor_return and len(outputs) == 1
        result = self.graph.output(outputs[0] if single else tuple(outputs))
        result.meta["val"] = pytree.tree_map_only(
            fx.Node, lambda n: n.meta.get("val"), result.args[0]
        )
        for node in reversed(self.graph.nodes):
            if node.target is operator.getitem and not node.users and "_unused_" in node.name:
                self.graph.erase_node(node)
        return fx.GraphModule(self.root, self.graph)

    # ---- names
    def _known(self, name: str) -> fx.Node:
        if name not in self.names:
            raise SerializeError(f"the graph uses {name!r:.80}, which nothing computes")
        return self.names[name]

    def _note(self, name: str, node: fx.Node) -> None:
        if name in self.names:
            raise SerializeError(f"the graph has two values {name!r:.80}")
        self.names[name] = node

    def _meta_of(self, name: str) -> object:
        """The example value of a name."""
        if name in self.record.tensor_values:
            return self.reader.tensor(self.record.tensor_values[name])
        for table in ("sym_int_values", "sym_bool_values", "sym_float_values"):
            held = getattr(self.record, table)
            if name in held:
                return self.reader.number(held[name])
        if name in self.record.custom_obj_values:
            held = self.record.custom_obj_values[name]
            return signatures.CustomObjArgument(held.name, held.class_fqn)
        raise SerializeError(f"nothing is said of the value {name!r:.80}")

    def _input(self, arg: object, name: str | None, constants: dict[str, object]) -> None:
        held = arg.value
        if arg.type in ("as_tensor", "as_custom_obj"):
            node = self._placeholder(held.name)
            node.meta["val"] = self._meta_of(held.name)
            self._note(held.name, node)
        elif arg.type.startswith("as_sym") and getattr(held, "type", "") == "as_name":
            node = self._placeholder(held.value)
            node.meta["val"] = self._meta_of(held.value)
            self._note(held.value, node)
        else:
            node = self.graph.placeholder(name or "constant")
            node.meta["val"] = constants.get(name, _plain(arg))
        if node.op == "placeholder":
            self._bind(node, node.meta["val"], inputs=True)

    def _placeholder(self, name: str) -> fx.Node:
        """An input of exactly this name: the signature refers to it."""
        return self.graph.create_node("placeholder", name, name=name)

    # ---- arguments
    def value(self, arg: object) -> object:
        """What an argument is in the graph."""
        held = arg.value
        match arg.type:
            case "as_none":
                return None
            case "as_tensor" | "as_custom_obj":
                return self._known(held.name)
            case "as_tensors":
                return [self._known(t.name) for t in held]
            case "as_optional_tensor":
                return self._optional(held)
            case "as_optional_tensors":
                return [self._optional(t) for t in held]
            case "as_sym_int" | "as_sym_float" | "as_sym_bool":
                return self._symbolic(held)
            case "as_sym_ints" | "as_sym_floats" | "as_sym_bools":
                return [self._symbolic(n) for n in held]
            case "as_scalar_type":
                return invert(DTYPES, held, "dtype")
            case "as_layout":
                return invert(LAYOUTS, held, "layout")
            case "as_memory_format":
                return invert(MEMORY_FORMATS, held, "memory format")
            case "as_device":
                return device_of(held)
            case "as_complex":
                return complex(held.real, held.imag)
            case "as_operator":
                return self.reader.target(held)
            case "as_graph":
                return self._graph(held)
            case "as_string_to_argument":
                return {k: self.value(v) for k, v in held.items()}
        return list(held) if isinstance(held, list) else held

    def _optional(self, held: object) -> fx.Node | None:
        return None if held.type == "as_none" else self._known(held.value.name)

    def _symbolic(self, held: object) -> object:
        return self._known(held.value) if held.type == "as_name" else held.value

    def _graph(self, held: object) -> fx.Node:
        if not held.name.isidentifier():
            raise SerializeError(f"not a name of a graph: {held.name!r:.80}")
        module = _GraphReader(self.reader, held.graph).run(None, {})
        self.root.add_module(held.name, module)
        return self.graph.get_attr(held.name)

    # ---- nodes
    def _node(self, record: object) -> None:
        target = self.reader.target(record.target)
        args: list[object] = []
        kwargs: dict[str, object] = {}
        described = getattr(target, "_schema", None)
        only = set()
        if isinstance(target, OpOverload):
            only = {a.name for a in described.arguments if a.kwarg_only}
        for given in record.inputs:
            keyword = given.kind is schema.ArgumentKind.KEYWORD or given.name in only
            if keyword or (kwargs and given.name):
                kwargs[given.name] = self.value(given.arg)
            else:
                args.append(self.value(given.arg))
        name = record.name or self._own_name(record)
        if name is not None and name in self.names:
            name = None
        node = self.graph.create_node("call_function", target, tuple(args), kwargs, name)
        self._results(node, record)
        node.meta.update(metadata_of(record.metadata))
        for user in node.users:
            user.meta.update({k: v for k, v in node.meta.items() if k != "val"})

    def _own_name(self, record: object) -> str | None:
        if len(record.outputs) == 1:
            held = record.outputs[0].value
            return getattr(held, "name", None) or getattr(held, "value", None)
        return None

    def _results(self, node: fx.Node, record: object) -> None:
        outputs = record.outputs
        hop = isinstance(node.target, torch._ops.HigherOrderOperator)
        returns = getattr(getattr(node.target, "_schema", None), "returns", ())
        several = len(outputs) > 1 or (hop and record.is_hop_single_tensor_return is False)
        if not outputs:
            node.meta["val"] = () if hop else None
        elif several or (not hop and len(returns) > 1):
            node.meta["val"] = tuple(
                self._item(node, i, output) for i, output in enumerate(outputs)
            )
        elif outputs[0].type in ("as_tensors", "as_sym_ints"):
            held = outputs[0].value
            one = outputs[0].type.removesuffix("s")
            node.meta["val"] = [
                self._item(node, i, schema.Argument(one, part)) for i, part in enumerate(held)
            ]
        else:
            name = _name_of(outputs[0])
            if name is None:
                node.meta["val"] = None
                return
            node.meta["val"] = self._meta_of(name)
            self._note(name, node)
        self._bind(node, node.meta["val"])

    def _item(self, node: fx.Node, index: int, output: object) -> object:
        if output.type == "as_none":
            return None
        if output.type == "as_tensors":
            inner = self.graph.call_function(operator.getitem, (node, index))
            inner.meta["val"] = [
                self._item(inner, i, schema.Argument("as_tensor", part))
                for i, part in enumerate(output.value)
            ]
            return inner.meta["val"]
        name = _name_of(output)
        if name is None:
            return None
        item = self.graph.create_node("call_function", operator.getitem, (node, index), {}, name)
        item.meta["val"] = self._meta_of(name)
        self._note(name, item)
        return item.meta["val"]

    def _bind(self, node: fx.Node, value: object, inputs: bool = False) -> None:
        """Notes which symbols of data a node brings."""
        env = self.reader.mode.shape_env
        pending = {
            name: _Name(env._sympy_symbol(name))
            for name in env._nodes
            if name.startswith(("u", "zuf")) and name not in self.reader.bound
        }
        if not pending:
            return
        found: dict[str, tuple] = {}
        _find_paths(value, (), pending, found)
        self.reader.bound |= set(found)
        if found and not inputs:
            node.meta["unbacked_bindings"] = {pending[n].expr: path for n, path in found.items()}


def _name_of(output: object) -> str | None:
    held = output.value
    if output.type in ("as_tensor", "as_custom_obj"):
        return held.name
    if output.type == "as_optional_tensor" and held.type == "as_tensor":
        return held.value.name
    if output.type.startswith("as_sym") and held.type == "as_name":
        return held.value
    return None
