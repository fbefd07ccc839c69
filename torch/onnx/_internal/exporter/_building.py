"""Records what translations call as nodes of an ONNX graph. onnxscript passes every operator that a
function calls to the evaluator in charge; the one here adds a node, with Python numbers and lists
turned into constants of the type that the operator's schema asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir
import onnxscript

import torch
from torch.onnx._internal.exporter._tensors import SymbolicTensor
from torch.onnx._internal.exporter._types import TorchTensor

__all__ = ["OpRecorder"]

_Signature = ir.schemas.OpSignature
_Parameter = ir.schemas.Parameter
_Scalar = (bool, int, float, complex, str)
_DEFAULT = {bool: ir.DataType.BOOL, int: ir.DataType.INT64, float: ir.DataType.FLOAT}


class OpRecorder:
    """The nodes and functions of a graph that is being built: an evaluator of onnxscript."""

    def __init__(self, opset: onnxscript.values.Opset, constant_farm: dict) -> None:
        self.opset = opset
        self.constant_farm = constant_farm
        self.nodes: list[ir.Node] = []
        self.functions: dict[ir.OperatorIdentifier, ir.Function] = {}

    # ---- what onnxscript calls
    def eval_op(
        self, op: onnxscript.values.Op, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> object:
        """Adds a node for an operator and returns its outputs."""
        signature = op.op_signature
        domain, version = op.opset.domain, op.opset.version
        if signature is None:
            inputs = [self.constant(a) if isinstance(a, _Scalar) else a for a in args]
            return self.node(domain, op.name, inputs, kwargs, [None], version)
        inputs, attributes = _separated(signature, args, kwargs)
        if op.name == "CastLike" and domain == "":
            done = self._cast_like(inputs, attributes)
            if done is not None:
                return done
        values = self._values(signature, inputs)
        count = _count_of_outputs(op, signature, values, inputs, attributes)
        types = _types(signature, values, attributes, count)
        return self.node(domain, op.name, values, attributes, types, None, signature)

    def eval_function(
        self,
        function: onnxscript.OnnxFunction,
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> object:
        """Adds a call of a function that onnxscript compiled, and the function to the model."""
        if function.traceable:
            return function.function(*args, **kwargs)
        signature = function.op_signature
        inputs, attributes = _separated(signature, args, kwargs, defaults=True)
        values = self._values(signature, inputs)
        called = [function, *function.function_ir.get_called_functions().values()]
        for one in called:
            made = ir.serde.deserialize_function(one.to_function_proto())
            self.functions[made.identifier()] = made
        types: list[ir.DataType | None] = [None] * len(signature.outputs)
        domain, version = function.function_ir.domain, function.opset.version
        return self.node(domain, function.name, values, attributes, types, version, signature)

    # ---- nodes
    def node(
        self,
        domain: str,
        name: str,
        inputs: Sequence[ir.Value | None],
        attributes: Mapping[str, object],
        types: Sequence[ir.DataType | None],
        version: int | None = None,
        signature: _Signature | None = None,
    ) -> object:
        """Adds a node with an output for each of `types`; returns it, or a tuple of several."""
        outputs = [
            SymbolicTensor(self.opset, type=None if dtype is None else ir.TensorType(dtype))
            for dtype in types
        ]
        kinds = {} if signature is None else {p.name: p for p in signature.params}
        made = [
            _attribute(key, value, getattr(kinds.get(key), "type", None))
            for key, value in attributes.items()
            if value is not None
        ]
        given = list(inputs)
        while given and given[-1] is None:
            given.pop()
        self.nodes.append(ir.Node(domain, name, given, made, outputs=outputs, version=version))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _cast_like(self, inputs: Sequence[object], attributes: Mapping[str, object]) -> object:
        """A cast to a known type, or nothing where the type is right already."""
        value, like = inputs
        if not isinstance(like, ir.Value) or like.dtype is None:
            return None
        if not isinstance(value, ir.Value):
            return self.constant(value, like.dtype)
        if value.dtype == like.dtype:
            return value
        made = self.opset.Cast(value, to=like.dtype, **attributes)
        made.shape = value.shape
        return made

    # ---- inputs
    def _values(
        self, signature: _Signature, inputs: Sequence[object]
    ) -> list[SymbolicTensor | None]:
        """Inputs as values. Numbers take the type of other inputs that must have the same."""
        pairs = _with_parameters(signature, inputs)
        known: dict[str, ir.DataType] = {}
        alike: dict[str, ir.Value] = {}
        for value, parameter in pairs:
            name = parameter.type_constraint.name
            for part in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(part, ir.Value) and parameter.homogeneous:
                    alike.setdefault(name, part)
                    if part.dtype is not None:
                        known.setdefault(name, part.dtype)
        made = []
        for value, parameter in pairs:
            name = parameter.type_constraint.name
            made.append(self._value(value, parameter, known.get(name), alike.get(name)))
        return made

    def _value(
        self,
        value: object,
        parameter: _Parameter,
        dtype: ir.DataType | None,
        like: ir.Value | None,
    ) -> SymbolicTensor | None:
        if value is None or isinstance(value, ir.Value):
            return value
        allowed = parameter.type_constraint.allowed_types
        if isinstance(value, (list, tuple)) and any(isinstance(v, ir.Value) for v in value):
            if all(isinstance(t, ir.SequenceType) for t in allowed):
                return self.opset.SequenceConstruct(*value)
            return self._concatenated(value, dtype)
        if dtype is None:
            only = {t.dtype for t in allowed if isinstance(t, ir.TensorType)}
            dtype = next(iter(only)) if len(only) == 1 else None
        made = self.constant(value, dtype)
        if dtype is None and like is not None:
            return self.opset.CastLike(made, like)
        return made

    def _concatenated(self, parts: Sequence[object], dtype: ir.DataType | None) -> SymbolicTensor:
        """A list of numbers, some known only when the model runs, as one tensor."""
        made = []
        plain: list[object] = []
        for part in (*parts, None):
            if isinstance(part, (bool, int, float)):
                plain.append(part)
                continue
            if plain:
                made.append(self.constant(list(plain), dtype))
                plain = []
            if part is not None:
                if dtype is not None and part.dtype not in (None, dtype):
                    part = self.opset.Cast(part, to=dtype)
                flat = part.shape is not None and len(part.shape) == 1
                made.append(part if flat else self.opset.Reshape(part, [-1]))
        return made[0] if len(made) == 1 else self.opset.Concat(*made, axis=0)

    def constant(self, value: object, dtype: ir.DataType | None = None) -> SymbolicTensor:
        """A number, a list of numbers or a tensor as a node. Equal numbers share one."""
        key = None
        if isinstance(value, _Scalar):
            key = (type(value), str(value), dtype)
            if key in self.constant_farm:
                return self.constant_farm[key]
        tensor = _tensor(value, dtype)
        output = SymbolicTensor(
            self.opset,
            shape=tensor.shape,
            type=ir.TensorType(tensor.dtype),
            const_value=tensor,
        )
        attribute = ir.AttrTensor("value", tensor)
        self.nodes.append(ir.Node("", "Constant", (), [attribute], outputs=[output]))
        if key is not None:
            self.constant_farm[key] = output
        return output


def _tensor(value: object, dtype: ir.DataType | None) -> ir.TensorProtocol:
    if isinstance(value, torch.Tensor):
        return TorchTensor(value.detach().clone())
    if isinstance(value, ir.TensorProtocol):
        return value
    if isinstance(value, complex):
        return ir.tensor([value.real, value.imag], dtype=dtype or ir.DataType.FLOAT)
    if dtype is None:
        dtype = _natural_type(value)
    if dtype is not None and dtype.is_integer() and isinstance(value, float):
        value = int(value)
    return ir.tensor(value, dtype=dtype)


def _natural_type(value: object) -> ir.DataType | None:
    """The type of a number or of a list of numbers by itself."""
    first = value
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    if isinstance(first, (list, tuple)):
        return ir.DataType.INT64  # an empty list of sizes
    if isinstance(value, (list, tuple)) and any(isinstance(v, float) for v in value):
        return ir.DataType.FLOAT
    return _DEFAULT.get(type(first))


def _attribute(key: str, value: object, kind: ir.AttributeType | None) -> ir.Attr:
    if isinstance(value, ir.Attr):
        return value
    if kind in (ir.AttributeType.INT, ir.AttributeType.FLOAT):
        convert = int if kind is ir.AttributeType.INT else float
        return ir.Attr(key, kind, convert(value))
    if kind in (ir.AttributeType.INTS, ir.AttributeType.FLOATS):
        convert = int if kind is ir.AttributeType.INTS else float
        parts = value if isinstance(value, (list, tuple)) else [value]
        return ir.Attr(key, kind, tuple(convert(v) for v in parts))
    if kind is ir.AttributeType.TENSOR and not isinstance(value, ir.TensorProtocol):
        return ir.AttrTensor(key, ir.tensor(value))
    if kind is ir.AttributeType.UNDEFINED:
        kind = None
    return ir.convenience.convert_attribute(key, value, kind)


def _separated(
    signature: _Signature,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    defaults: bool = False,
) -> tuple[list[object], dict[str, object]]:
    """Arguments of a call as inputs and attributes."""
    inputs: list[object] = []
    attributes: dict[str, object] = {}
    rest = dict(kwargs)
    place = 0
    for parameter in signature.params:
        is_input = isinstance(parameter, _Parameter)
        if is_input and parameter.variadic:
            inputs.extend(args[place:])
            place = len(args)
            continue
        if place < len(args):
            value = args[place]
            place += 1
        elif parameter.name in rest:
            value = rest.pop(parameter.name)
        elif is_input:
            value = None
        elif defaults and parameter.default is not None:
            value = parameter.default.value
        else:
            continue
        if is_input:
            inputs.append(value)
        else:
            attributes[parameter.name] = value
    if rest or place < len(args):
        extra = [*rest, *map(str, args[place:])]
        raise TypeError(f"{signature.name}() got unexpected arguments {extra}")
    return inputs, attributes


def _with_parameters(
    signature: _Signature, inputs: Sequence[object]
) -> list[tuple[object, _Parameter]]:
    parameters = [p for p in signature.params if isinstance(p, _Parameter)]
    return [(value, parameters[min(i, len(parameters) - 1)]) for i, value in enumerate(inputs)]


def _count_of_outputs(
    op: onnxscript.values.Op,
    signature: _Signature,
    values: Sequence[ir.Value | None],
    inputs: Sequence[object],
    attributes: Mapping[str, object],
) -> int:
    """How many outputs a call has: a schema leaves it open for some operators."""
    if op.name == "Split":
        if attributes.get("num_outputs") is not None:
            return int(attributes["num_outputs"])
        if len(inputs) > 1 and isinstance(inputs[1], (list, tuple)):
            return len(inputs[1])
        known = values[1].const_value if len(values) > 1 else None
        if known is None:
            raise ValueError("Split: the number of outputs is not known before the model runs")
        return int(known.shape[0])
    if op.name == "BatchNormalization" and not attributes.get("training_mode"):
        return 1
    graphs = {"If": ("then_branch", 0), "Loop": ("body", 1), "Scan": ("body", 0)}
    if op.name in graphs:
        name, less = graphs[op.name]
        return len(attributes[name].outputs) - less
    return len(signature.outputs)


def _types(
    signature: _Signature,
    values: Sequence[ir.Value | None],
    attributes: Mapping[str, object],
    count: int,
) -> list[ir.DataType | None]:
    """Element types of outputs, as far as the schema decides them."""
    if signature.name == "Cast" and "to" in attributes:
        return [ir.DataType(attributes["to"])]
    bound: dict[str, ir.DataType] = {}
    for value, parameter in _with_parameters(signature, values):
        if value is not None and value.dtype is not None and parameter.homogeneous:
            bound.setdefault(parameter.type_constraint.name, value.dtype)
    found: list[ir.DataType | None] = []
    for index in range(count):
        constraint = signature.outputs[min(index, len(signature.outputs) - 1)].type_constraint
        allowed = constraint.allowed_types
        if any(isinstance(t, ir.SequenceType) for t in allowed):
            found.append(None)
            continue
        dtype = bound.get(constraint.name)
        if dtype is None and len(allowed) == 1:
            dtype = next(iter(allowed)).dtype
        found.append(dtype)
    return found
