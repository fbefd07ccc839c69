"""From an exported program to records."""

from __future__ import annotations

import builtins
import json
import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
import torch.utils._pytree as pytree
from torch import Tensor, fx
from torch._export.serde import schema
from torch._export.serde._metadata import metadata_text
from torch._export.serde._numbers import DTYPES, LAYOUTS, MEMORY_FORMATS, expr_text
from torch._ops import HigherOrderOperator, OpOverload
from torch.export import graph_signature as signatures

if TYPE_CHECKING:
    from torch.export.exported_program import ExportedProgram, ModuleCallEntry

__all__ = ["GraphWriter", "SerializeError", "program_record", "tensor_meta"]

_POSITIONAL, _KEYWORD = schema.ArgumentKind.POSITIONAL, schema.ArgumentKind.KEYWORD


class SerializeError(RuntimeError):
    """A program that cannot be written, or data that is no program."""


# ---- numbers and tensors


def _hint(value: object) -> object:
    known = getattr(value.node, "hint", None)
    if known is None:
        return None
    for kind, name in ((bool, "as_bool"), (int, "as_int"), (float, "as_float")):
        if isinstance(known, kind):
            return schema.SymExprHint(name, known)
    return None


def symbolic(value: object) -> object:
    """SymInt, SymFloat or SymBool of a number."""
    for kinds, cls, name in (
        ((bool, torch.SymBool), schema.SymBool, "as_bool"),
        ((int, torch.SymInt), schema.SymInt, "as_int"),
        ((float, torch.SymFloat), schema.SymFloat, "as_float"),
    ):
        if isinstance(value, kinds[0]):
            return cls(name, value)
        if isinstance(value, kinds[1]):
            expr = value.node.expr
            if getattr(expr, "is_Integer", False) and cls is schema.SymInt:
                return cls("as_int", int(expr))
            return cls("as_expr", schema.SymExpr(expr_text(expr), _hint(value)))
    raise SerializeError(f"not a number: {value!r}")


def device_record(device: torch.device) -> object:
    """A device."""
    return schema.Device(device.type, device.index)


def tensor_meta(t: Tensor) -> object:
    """What a tensor is without its values."""
    strided = t.layout is torch.strided
    return schema.TensorMeta(
        dtype=DTYPES[t.dtype],
        sizes=[symbolic(s) for s in t.shape],
        requires_grad=t.requires_grad,
        device=device_record(t.device),
        strides=[symbolic(s) for s in t.stride()] if strided else [],
        storage_offset=symbolic(t.storage_offset() if strided else 0),
        layout=LAYOUTS[t.layout],
    )


# ---- graphs

_PYTHON = {
    fn: f"_operator.{fn.__name__}"
    for fn in vars(operator).values()
    if callable(fn) and getattr(fn, "__module__", "") == "_operator"
}
_PYTHON.update({math.ceil: "math.ceil", math.floor: "math.floor", math.trunc: "math.trunc"})
_PYTHON.update({builtins.round: "builtins.round", math.sqrt: "math.sqrt"})
_LISTS = {
    "Tensor[]": "as_tensors",
    "Tensor?[]": "as_optional_tensors",
    "int[]": "as_ints",
    "SymInt[]": "as_ints",
    "float[]": "as_floats",
    "bool[]": "as_bools",
    "str[]": "as_strings",
}


class GraphWriter:
    """Writes one graph; graphs inside are written by writers of their own."""

    def __init__(self, module: fx.GraphModule, extensions: dict[type, type]) -> None:
        self.module, self.extensions = module, extensions
        self.record = schema.Graph([], [], [], {}, {}, {})

    def run(self) -> object:
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                self._input(node)
            elif node.op == "call_function":
                self._call(node)
            elif node.op == "output":
                values = node.args[0]
                single = isinstance(values, fx.Node)
                self.record.is_single_tensor_return = single
                rows = [values] if single else values
                self.record.outputs = [self.argument(v) for v in rows]
            elif node.op != "get_attr":
                raise SerializeError(f"cannot write a node {node.op} {node.target}")
        return self.record

    def _input(self, node: fx.Node) -> None:
        value = node.meta.get("val")
        if isinstance(value, (Tensor, torch.SymInt, torch.SymFloat, torch.SymBool)):
            self.record.inputs.append(self.result(node.name, value))
        elif isinstance(value, signatures.CustomObjArgument):
            held = schema.CustomObjArgument(node.name, value.class_fqn)
            self.record.custom_obj_values[node.name] = held
            self.record.inputs.append(schema.Argument("as_custom_obj", held))
        else:
            self.record.inputs.append(self.constant(value))

    # ---- values
    def result(self, name: str, value: object) -> object:
        """The argument for a value that is made here, whose facts are noted."""
        if isinstance(value, Tensor):
            self.record.tensor_values[name] = tensor_meta(value)
            return schema.Argument("as_tensor", schema.TensorArgument(name))
        if value is None:
            return schema.Argument("as_none", True)
        for kinds, table, cls, field in (
            ((bool, torch.SymBool), "sym_bool_values", schema.SymBoolArgument, "as_sym_bool"),
            ((int, torch.SymInt), "sym_int_values", schema.SymIntArgument, "as_sym_int"),
            ((float, torch.SymFloat), "sym_float_values", schema.SymFloatArgument, "as_sym_float"),
        ):
            if isinstance(value, kinds):
                getattr(self.record, table)[name] = symbolic(value)
                return schema.Argument(field, cls("as_name", name))
        raise SerializeError(f"cannot write the value {value!r:.80} of {name}")

    def argument(self, value: object, wanted: str = "") -> object:
        """What is passed: a node, a constant or a list. `wanted` is the type of a schema."""
        if isinstance(value, fx.Node):
            return self._node(value)
        if isinstance(value, (list, tuple)):
            return self._list(value, wanted)
        if isinstance(value, dict):
            made = {str(k): self.argument(v) for k, v in value.items()}
            return schema.Argument("as_string_to_argument", made)
        if wanted in ("float", "float?") and type(value) is int:
            value = float(value)
        return self.constant(value)

    def _node(self, node: fx.Node) -> object:
        if node.op == "get_attr":
            found = self.module
            for part in node.target.split("."):
                found = getattr(found, part)
            if isinstance(found, fx.GraphModule):
                graph = GraphWriter(found, self.extensions).run()
                return schema.Argument("as_graph", schema.GraphArgument(node.target, graph))
            raise SerializeError(f"cannot write the attribute {node.target}")
        value = node.meta.get("val")
        if isinstance(value, signatures.CustomObjArgument):
            held = schema.CustomObjArgument(node.name, value.class_fqn)
            return schema.Argument("as_custom_obj", held)
        for kinds, cls, field in (
            ((bool, torch.SymBool), schema.SymBoolArgument, "as_sym_bool"),
            ((int, torch.SymInt), schema.SymIntArgument, "as_sym_int"),
            ((float, torch.SymFloat), schema.SymFloatArgument, "as_sym_float"),
        ):
            if isinstance(value, kinds):
                if node.op == "placeholder" and isinstance(value, kinds[0]):
                    return self.constant(value)
                return schema.Argument(field, cls("as_name", node.name))
        if node.op == "placeholder" and not isinstance(value, Tensor):
            return self.constant(value)
        return schema.Argument("as_tensor", schema.TensorArgument(node.name))

    def constant(self, value: object) -> object:
        """A value that stands in the graph itself."""
        simple = ((bool, "as_bool"), (int, "as_int"), (float, "as_float"), (str, "as_string"))
        for kind, field in simple:
            if isinstance(value, kind):
                return schema.Argument(field, value)
        if value is None:
            return schema.Argument("as_none", True)
        if isinstance(value, torch.dtype):
            return schema.Argument("as_scalar_type", DTYPES[value])
        if isinstance(value, torch.layout):
            return schema.Argument("as_layout", LAYOUTS[value])
        if isinstance(value, torch.memory_format):
            return schema.Argument("as_memory_format", MEMORY_FORMATS[value])
        if isinstance(value, torch.device):
            return schema.Argument("as_device", device_record(value))
        if isinstance(value, complex):
            return schema.Argument("as_complex", schema.ComplexValue(value.real, value.imag))
        if isinstance(value, (OpOverload, HigherOrderOperator)):
            return schema.Argument("as_operator", self.target(value))
        raise SerializeError(f"Unsupported argument type: {type(value)} ({value!r:.80})")

    def _list(self, values: Sequence[object], wanted: str) -> object:
        import re

        parts = [self.argument(v) for v in values]
        kinds = {p.type for p in parts}
        plain = re.sub(r"\[\d+\]", "[]", wanted).removesuffix("?")
        if not kinds:
            return schema.Argument(_LISTS.get(plain, "as_ints"), [])
        if kinds == {"as_tensor"} and plain != "Tensor?[]":
            return schema.Argument("as_tensors", [p.value for p in parts])
        if kinds <= {"as_tensor", "as_none"}:
            rows = [schema.OptionalTensorArgument(p.type, p.value) for p in parts]
            return schema.Argument("as_optional_tensors", rows)
        for one, cls in (
            ("int", schema.SymIntArgument),
            ("float", schema.SymFloatArgument),
            ("bool", schema.SymBoolArgument),
        ):
            if kinds == {f"as_{one}"}:
                return schema.Argument(f"as_{one}s", [p.value for p in parts])
            if kinds <= {f"as_{one}", f"as_sym_{one}"}:
                rows = [
                    p.value if p.type.startswith("as_sym") else cls(f"as_{one}", p.value)
                    for p in parts
                ]
                return schema.Argument(f"as_sym_{one}s", rows)
        if kinds == {"as_int", "as_float"}:
            return schema.Argument("as_floats", [float(p.value) for p in parts])
        if kinds == {"as_string"}:
            return schema.Argument("as_strings", [p.value for p in parts])
        if kinds == {"as_ints"}:
            return schema.Argument("as_int_lists", [p.value for p in parts])
        raise SerializeError(f"cannot write a list of {sorted(kinds)}")

    # ---- nodes
    def target(self, target: object) -> str:
        """The name of what is called."""
        if isinstance(target, OpOverload):
            return f"torch.ops.{target}"
        if isinstance(target, HigherOrderOperator):
            return f"torch.ops.higher_order.{target.__name__}"
        if target in _PYTHON:
            return _PYTHON[target]
        name = getattr(target, "__name__", "")
        if name and getattr(torch, name, None) is target:
            return f"torch.{name}"
        handler = self.extensions.get(type(target))
        if handler is not None:
            return f"#{handler.namespace()}:{handler.to_op_name(target)}"
        raise SerializeError(f"cannot write a call of {target}")

    def _call(self, node: fx.Node) -> None:
        if node.target is operator.getitem and isinstance(node.args[0], fx.Node):
            held = node.args[0].meta.get("val")
            if isinstance(held, (tuple, list)):
                return  # an output of the node it takes from
        handler = self.extensions.get(type(node.target))
        described = getattr(node.target, "_schema", None)
        if handler is not None:
            described = handler.op_schema(node.target)
        hop = isinstance(node.target, HigherOrderOperator)
        if described is not None and not hop:
            inputs = self._by_schema(node, described)
            outputs = self._schema_outputs(node, described)
        else:
            names = ["a", "b", "c"] if not hop else []
            inputs = [
                schema.NamedArgument(
                    names[i] if i < len(names) else "", self.argument(a), _POSITIONAL
                )
                for i, a in enumerate(node.args)
            ]
            inputs += [
                schema.NamedArgument(k, self.argument(v), _KEYWORD) for k, v in node.kwargs.items()
            ]
            outputs = self._outputs(node)
        single = isinstance(node.meta.get("val"), Tensor) if hop else None
        self.record.nodes.append(
            schema.Node(
                self.target(node.target), inputs, outputs, metadata_text(node), single, node.name
            )
        )

    def _by_schema(self, node: fx.Node, described: object) -> list[object]:
        parameters = list(described.arguments)
        made = [
            schema.NamedArgument(p.name, self.argument(a, str(p.type)), _POSITIONAL)
            for p, a in zip(parameters, node.args, strict=False)
        ]
        for p in parameters:
            if p.name in node.kwargs:
                value = self.argument(node.kwargs[p.name], str(p.type))
                made.append(schema.NamedArgument(p.name, value, _KEYWORD))
        return made

    def _items(self, node: fx.Node, values: Sequence[object]) -> list[object]:
        """One argument for each item of a result, under the names of the nodes that take them."""
        names: dict[int, str] = {}
        for user in node.users:
            if user.target is operator.getitem and isinstance(user.args[1], int):
                names.setdefault(user.args[1], user.name)
        return [
            self.result(names.get(i, f"{node.name}_unused_{i}"), value)
            if not isinstance(value, (tuple, list))
            else self._tensors(node, names.get(i, f"{node.name}_unused_{i}"), value)
            for i, value in enumerate(values)
        ]

    def _tensors(self, node: fx.Node, name: str, values: Sequence[object]) -> object:
        inner = next((u for u in node.users if u.name == name), None)
        parts = (
            self._items(inner, values)
            if inner is not None
            else [self.result(f"{name}_{i}", v) for i, v in enumerate(values)]
        )
        return schema.Argument("as_tensors", [p.value for p in parts])

    def _schema_outputs(self, node: fx.Node, described: object) -> list[object]:
        returns = list(described.returns)
        value = node.meta.get("val")
        if not returns:
            return []
        if len(returns) == 1:
            if not isinstance(value, (tuple, list)):
                return [] if value is None else [self.result(node.name, value)]
            parts = self._items(node, value)
            if all(p.type == "as_tensor" for p in parts):
                return [schema.Argument("as_tensors", [p.value for p in parts])]
            return [schema.Argument(f"{parts[0].type}s", [p.value for p in parts])]
        return self._items(node, value)

    def _outputs(self, node: fx.Node) -> list[object]:
        value = node.meta.get("val")
        if isinstance(value, (tuple, list)):
            return self._items(node, value)
        return [] if value is None else [self.result(node.name, value)]


# ---- programs


def _argument(arg: object) -> object:
    kinds = {
        signatures.TensorArgument: ("as_tensor", schema.TensorArgument),
        signatures.SymIntArgument: ("as_sym_int", schema.SymIntArgument),
        signatures.SymFloatArgument: ("as_sym_float", schema.SymFloatArgument),
        signatures.SymBoolArgument: ("as_sym_bool", schema.SymBoolArgument),
    }
    if isinstance(arg, signatures.ConstantArgument):
        return GraphWriter(None, {}).constant(arg.value)
    if isinstance(arg, signatures.CustomObjArgument):
        return schema.Argument("as_custom_obj", schema.CustomObjArgument(arg.name, arg.class_fqn))
    field, cls = kinds[type(arg)]
    held = cls(arg.name) if cls is schema.TensorArgument else cls("as_name", arg.name)
    return schema.Argument(field, held)


def _constant_value(value: object) -> object:
    made = GraphWriter(None, {}).constant(value)
    if made.type not in schema.ConstantValue._fields:
        raise SerializeError(f"cannot write the input {value!r}")
    return schema.ConstantValue(made.type, made.value)


def _input_spec(spec: signatures.InputSpec) -> object:
    kind, arg = spec.kind, spec.arg
    kinds = signatures.InputKind
    if kind is kinds.USER_INPUT and isinstance(arg, signatures.ConstantArgument):
        held = schema.InputToConstantInputSpec(arg.name, _constant_value(arg.value))
        return schema.InputSpec("constant_input", held)
    if kind is kinds.USER_INPUT:
        return schema.InputSpec("user_input", schema.UserInputSpec(_argument(arg)))
    if kind is kinds.TOKEN:
        held = schema.InputTokenSpec(schema.TokenArgument(arg.name))
        return schema.InputSpec("token", held)
    if kind is kinds.CUSTOM_OBJ:
        named = schema.CustomObjArgument(arg.name, arg.class_fqn)
        return schema.InputSpec("custom_obj", schema.InputToCustomObjSpec(named, spec.target))
    tensor = schema.TensorArgument(arg.name)
    if kind is kinds.PARAMETER:
        return schema.InputSpec("parameter", schema.InputToParameterSpec(tensor, spec.target))
    if kind is kinds.BUFFER:
        held = schema.InputToBufferSpec(tensor, spec.target, spec.persistent)
        return schema.InputSpec("buffer", held)
    held = schema.InputToTensorConstantSpec(tensor, spec.target)
    return schema.InputSpec("tensor_constant", held)


_OUTPUTS = {
    "LOSS_OUTPUT": ("loss_output", "LossOutputSpec"),
    "BUFFER_MUTATION": ("buffer_mutation", "BufferMutationSpec"),
    "PARAMETER_MUTATION": ("parameter_mutation", "ParameterMutationSpec"),
    "GRADIENT_TO_PARAMETER": ("gradient_to_parameter", "GradientToParameterSpec"),
    "GRADIENT_TO_USER_INPUT": ("gradient_to_user_input", "GradientToUserInputSpec"),
    "USER_INPUT_MUTATION": ("user_input_mutation", "UserInputMutationSpec"),
}


def _output_spec(spec: signatures.OutputSpec) -> object:
    if spec.kind is signatures.OutputKind.USER_OUTPUT:
        return schema.OutputSpec("user_output", schema.UserOutputSpec(_argument(spec.arg)))
    if spec.kind is signatures.OutputKind.TOKEN:
        held = schema.OutputTokenSpec(schema.TokenArgument(spec.arg.name))
        return schema.OutputSpec("token", held)
    field, name = _OUTPUTS[spec.kind.name]
    cls = getattr(schema, name)
    tensor = schema.TensorArgument(spec.arg.name)
    made = cls(tensor) if field == "loss_output" else cls(tensor, spec.target)
    return schema.OutputSpec(field, made)


def _entry(entry: ModuleCallEntry) -> object:
    held = entry.signature
    if held is None:
        return schema.ModuleCallEntry(entry.fqn)
    return schema.ModuleCallEntry(
        entry.fqn,
        schema.ModuleCallSignature(
            [_argument(a) for a in held.inputs],
            [_argument(a) for a in held.outputs],
            pytree.treespec_dumps(held.in_spec, 1),
            pytree.treespec_dumps(held.out_spec, 1),
            held.forward_arg_names,
        ),
    )


def _bound(value: object, up: bool) -> int | None:
    import sympy

    if getattr(value, "is_finite", True) is False or "oo" in str(value):
        return None
    return int(sympy.floor(value) if up else sympy.ceiling(value))


def program_record(
    ep: ExportedProgram, opset_version: dict[str, int], extensions: dict[type, type]
) -> object:
    """The records of a program."""
    graph = GraphWriter(ep.graph_module, extensions).run()
    signature = schema.GraphSignature(
        [_input_spec(s) for s in ep.graph_signature.input_specs],
        [_output_spec(s) for s in ep.graph_signature.output_specs],
    )
    metadata = {}
    if ep.graph_module.meta.get("custom"):
        metadata["custom"] = json.dumps(ep.graph_module.meta["custom"])
    module = schema.GraphModule(
        graph, signature, [_entry(e) for e in ep.module_call_graph], metadata
    )
    ranges = {
        str(symbol): schema.RangeConstraint(_bound(vr.lower, False), _bound(vr.upper, True))
        for symbol, vr in ep.range_constraints.items()
        if getattr(symbol, "is_Symbol", True)
    }
    return schema.ExportedProgram(
        module,
        opset_version,
        ranges,
        schema.SchemaVersion(*schema.SCHEMA_VERSION),
        [v.dialect for v in ep.verifiers],
        torch.__version__,
        list(ep._guards_code),
    )
