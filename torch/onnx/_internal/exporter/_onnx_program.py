"""ONNXProgram: a model that belongs to an exported program, which can be run and saved."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING

import torch
import torch.utils._pytree as pytree

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir
    import onnxruntime

    from torch.export.exported_program import ExportedProgram

__all__ = ["ONNXProgram", "new_session"]

# A file of protobuf cannot be larger than 2 GB; part of it is not tensors.
_LARGEST = 1_800_000_000


def new_session(model: str | bytes) -> onnxruntime.InferenceSession:
    """A session of ONNX Runtime on the CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(model, sess_options=options, providers=providers)


class ONNXProgram:
    """The model of an exported program."""

    def __init__(self, model: ir.Model, exported_program: ExportedProgram | None) -> None:
        self.model = model
        self.exported_program = exported_program
        self._inference_session: onnxruntime.InferenceSession | None = None
        self._folder: tempfile.TemporaryDirectory | None = None

    def __repr__(self) -> str:
        return f"ONNXProgram(\n    model=\n{self.model}\n    ,\n)"

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The model as protobuf."""
        import onnx_ir as ir

        return ir.serde.serialize_model(self.model)

    # ---- running
    def __call__(self, *args: object, **kwargs: object) -> Sequence[torch.Tensor]:
        """Runs the model by ONNX Runtime; arguments as for the module that was exported."""
        feed = self._feed(args, kwargs)
        if self._inference_session is None:
            self.initialize_inference_session()
        names = [value.name for value in self.model.graph.outputs]
        return _run(self._inference_session, names, feed)

    def _feed(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> dict[str, torch.Tensor]:
        """Arguments by the names of the model's inputs."""
        given = [_plain(leaf) for leaf in self._leaves(args, kwargs)]
        inputs = self.model.graph.inputs
        if len(given) != len(inputs):
            raise ValueError(f"the model has {len(inputs)} inputs, got {len(given)}")
        return dict(zip([i.name for i in inputs], given, strict=True))

    def _leaves(self, args: Sequence[object], kwargs: Mapping[str, object]) -> list[object]:
        """The leaves of arguments that are inputs of the model."""
        program = self.exported_program
        if program is None:
            return [v for v in pytree.tree_leaves((tuple(args), dict(kwargs))) if v is not None]
        from torch.export.exported_program import flat_arguments
        from torch.export.graph_signature import ConstantArgument, InputKind

        leaves = flat_arguments(tuple(args), dict(kwargs), program.call_spec.in_spec)
        specs = [s for s in program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
        return [
            leaf
            for leaf, spec in zip(leaves, specs, strict=True)
            if not isinstance(spec.arg, ConstantArgument)
        ]

    def call_reference(self, *args: object, **kwargs: object) -> Sequence[torch.Tensor]:
        """Runs the model by the reference implementation of the onnx package."""
        import onnx.reference

        feed = {name: value.numpy() for name, value in self._feed(args, kwargs).items()}
        runner = onnx.reference.ReferenceEvaluator(self.model_proto)
        return [torch.as_tensor(value) for value in runner.run(None, feed)]

    def compute_values(
        self,
        value_names: Sequence[str],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> Sequence[torch.Tensor]:
        """Runs the model for inner values, by name."""
        import onnx_ir as ir

        model = ir.serde.deserialize_model(self.model_proto)
        by_name = {o.name: o for node in model.graph for o in node.outputs}
        by_name.update({i.name: i for i in model.graph.inputs})
        unknown = [name for name in value_names if name not in by_name]
        if unknown:
            raise ValueError(f"Values {unknown} are not in the model")
        model.graph.outputs.clear()
        model.graph.outputs.extend(by_name[name] for name in value_names)
        session = new_session(ir.serde.serialize_model(model).SerializeToString())
        return _run(session, list(value_names), self._feed(args, kwargs or {}))

    def initialize_inference_session(
        self, initializer: Callable[[str | bytes], onnxruntime.InferenceSession] = new_session
    ) -> None:
        """Makes the session that calls use."""
        self.release()
        if self._bytes_of_weights() <= _LARGEST:
            self._inference_session = initializer(self.model_proto.SerializeToString())
            return
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        path = os.path.join(self._folder.name, "model.onnx")
        self.save(path, external_data=True)
        self._inference_session = initializer(path)

    def _bytes_of_weights(self) -> int:
        values = self.model.graph.initializers.values()
        return sum(v.const_value.nbytes for v in values if v.const_value is not None)

    def release(self) -> None:
        """Gives the session back."""
        self._inference_session = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    # ---- changing and saving
    def optimize(self) -> None:
        """Folds constants and fuses operators, in place."""
        from onnxscript._framework_apis import torch_2_9

        self.model = torch_2_9.optimize(self.model)

    def rename_axes(self, rename_mapping: Mapping[object, str]) -> None:
        """Gives other names to sizes that vary."""
        import onnx_ir as ir

        names = {str(old): str(new) for old, new in rename_mapping.items()}
        values = [*self.model.graph.inputs, *self.model.graph.outputs]
        for node in self.model.graph.all_nodes():
            values.extend(node.outputs)
        for value in values:
            if value.shape is not None and not value.shape.is_static():
                sizes = [s if isinstance(s, int) else _renamed(s.value, names) for s in value.shape]
                value.shape = ir.Shape(sizes)

    def apply_weights(self, state_dict: Mapping[str, torch.Tensor]) -> None:
        """Replaces weights by others of the same names."""
        from torch.onnx._internal.exporter._types import TorchTensor

        for name, tensor in state_dict.items():
            value = self.model.graph.initializers.get(name)
            if value is None:
                warnings.warn(f"the model has no weight '{name}': it is left out", stacklevel=2)
                continue
            value.const_value = TorchTensor(tensor, name)

    def save(
        self,
        destination: str | os.PathLike | IO[bytes],
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Writes the model to a file. With external_data, or where it is too large for one file,
        weights go to a file beside it, `<name>.data`."""
        import onnx_ir as ir

        with self._shown(include_initializers, keep_initializers_as_inputs):
            if not isinstance(destination, (str, os.PathLike)):
                destination.write(self.model_proto.SerializeToString())
            elif external_data or self._bytes_of_weights() > _LARGEST:
                data = f"{os.path.basename(os.fspath(destination))}.data"
                ir.save(self.model, destination, external_data=data)
            else:
                ir.save(self.model, destination)

    @contextlib.contextmanager
    def _shown(self, include: bool, as_inputs: bool) -> Iterator[None]:
        """Inside, the model has no weights, or has them among its inputs."""
        graph = self.model.graph
        inputs, weights = list(graph.inputs), dict(graph.initializers)
        if as_inputs or not include:
            graph.inputs.extend(weights.values())
        if not include:
            graph.initializers.clear()
        try:
            yield
        finally:
            graph.inputs.clear()
            graph.inputs.extend(inputs)
            if not include:
                graph.initializers.update(weights)


def _plain(value: object) -> torch.Tensor:
    """A tensor or number as memory on the CPU; complex numbers as pairs."""
    tensor = torch.as_tensor(value).detach()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.cpu().contiguous().resolve_neg()


def _run(
    session: onnxruntime.InferenceSession,
    names: Sequence[str],
    feed: Mapping[str, torch.Tensor],
) -> list[torch.Tensor]:
    known = {i.name for i in session.get_inputs()}
    given = {name: _to_runtime(value) for name, value in feed.items() if name in known}
    found = session.run_with_ort_values(list(names), given)
    return [_from_runtime(value) for value in found]


def _to_runtime(value: torch.Tensor) -> onnxruntime.OrtValue:
    import onnxruntime

    if value.dtype != torch.bfloat16:
        return onnxruntime.OrtValue.ortvalue_from_numpy(value.numpy())
    import onnx_ir as ir

    make = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type
    return make(value.view(torch.uint16).numpy(), int(ir.DataType.BFLOAT16))


def _from_runtime(value: onnxruntime.OrtValue) -> torch.Tensor:
    if value.data_type() == "tensor(bfloat16)":
        import ctypes

        count = 1
        for size in value.shape():
            count *= size
        memory = (ctypes.c_uint16 * count).from_address(value.data_ptr())
        bits = torch.tensor(list(memory), dtype=torch.int32).to(torch.uint16)
        return bits.view(torch.bfloat16).reshape(value.shape())
    return torch.from_numpy(value.numpy().copy())


def _renamed(text: str | None, names: Mapping[str, str]) -> str | None:
    if text is None:
        return None
    return re.sub(r"[A-Za-z_]\w*", lambda m: names.get(m.group(), m.group()), text)
