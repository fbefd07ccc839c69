"""The graph of a model for TensorBoard: its modules, seen while they run once. Each call of a
module without children of its own is a node, named by its place in the model; an edge says whose
output reached whose input, whether as it was or through operations between the modules."""

from __future__ import annotations

import torch
from torch.utils.tensorboard._events import chunk, integer

__all__ = ["graph_of"]


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


class _Recorder:
    """Nodes in the order of their calls; which node made a tensor is known by the tensor itself
    and, for what operations made of it, by the nodes of its autograd graph."""

    def __init__(self) -> None:
        self.nodes = []
        self.makers = {}
        self.steps = {}
        self.kept = []
        self.names = {}

    def add(self, name, op, inputs, outputs) -> None:
        """One node; a name that comes again gets a number."""
        count = self.names[name] = self.names.get(name, 0) + 1
        name = name if count == 1 else f"{name}_{count}"
        sources = []
        for tensor in _tensors(inputs):
            for source in self._sources(tensor):
                if source not in sources and source != name:
                    sources.append(source)
        shapes = []
        for tensor in _tensors(outputs):
            self.kept.append(tensor)
            self.makers[id(tensor)] = name
            if tensor.grad_fn is not None:
                self.steps[tensor.grad_fn] = name
            shapes.append(list(tensor.shape))
        self.nodes.append((name, op, sources, shapes))

    def _sources(self, tensor) -> list[str]:
        if id(tensor) in self.makers:
            return [self.makers[id(tensor)]]
        found, seen, waiting = [], set(), [tensor.grad_fn]
        while waiting:
            step = waiting.pop()
            if step is None or step in seen:
                continue
            seen.add(step)
            if step in self.steps:
                found.append(self.steps[step])
            else:
                waiting += [before for before, _ in step.next_functions]
        return found


def _shape(sizes) -> bytes:
    return b"".join(chunk(2, integer(1, size)) for size in sizes)


def _node(name, op, inputs, shapes) -> bytes:
    body = chunk(1, name) + chunk(2, op) + b"".join(chunk(3, source) for source in inputs)
    listed = b"".join(chunk(7, _shape(sizes)) for sizes in shapes)
    return body + chunk(5, chunk(1, "_output_shapes") + chunk(2, chunk(1, listed)))


def graph_of(model, inputs):
    """(a GraphDef message, its nodes) of a model called with some inputs."""
    recorder = _Recorder()
    root = type(model).__name__
    handles = []

    def hook(path):
        def seen(module, args, kwargs, output) -> None:
            recorder.add(path, type(module).__name__, (args, kwargs), output)

        return seen

    arguments = inputs if isinstance(inputs, tuple) else (inputs,)
    # Leaves that ask for gradients keep the graph between the modules.
    with torch.enable_grad():
        arguments = tuple(
            value.detach().requires_grad_()
            if isinstance(value, torch.Tensor) and value.is_floating_point()
            else value
            for value in arguments
        )
        for i, tensor in enumerate(_tensors(arguments)):
            recorder.add(f"input/input.{i + 1}", "IO Node", (), tensor)
        for path, module in model.named_modules():
            if next(module.children(), None) is None:
                name = f"{root}/{path.replace('.', '/')}" if path else root
                handles.append(module.register_forward_hook(hook(name), with_kwargs=True))
        try:
            result = model(*arguments)
        finally:
            for handle in handles:
                handle.remove()
    for i, tensor in enumerate(_tensors(result)):
        recorder.add(f"output/output.{i + 1}", "IO Node", tensor, ())
    message = b"".join(chunk(1, _node(*node)) for node in recorder.nodes)
    return message + chunk(4, integer(1, 22)), recorder.nodes
