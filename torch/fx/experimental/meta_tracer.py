"""A symbolic trace in which proxies carry meta tensors: sizes and dtypes of inputs that are
given as meta tensors are known, so that a program may branch on them."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.fx
from torch.fx.node import map_aggregate

__all__ = ["MetaAttribute", "MetaDeviceAttribute", "MetaProxy", "MetaTracer", "symbolic_trace"]


def _meta_of(value: Any) -> Any:
    """The meta tensor of a proxy; other values are themselves."""
    if isinstance(value, MetaProxy):
        if value._tensor_meta is None:
            raise RuntimeError(f"the value of {value} is not known: nothing was given for it")
        return value._tensor_meta
    if isinstance(value, torch.Tensor):
        return value.to("meta")
    return value


class MetaProxy(torch.fx.Proxy):
    """A proxy that knows the shape, dtype and device of its value."""

    _tensor_meta: Any = None

    def install_tensor_meta(self, tensor_meta: Any) -> None:
        """Says what the value looks like: a meta tensor, a number, or a structure of them."""
        self._tensor_meta = tensor_meta

    def size(self, dim: int | None = None) -> Any:
        """The sizes, where they are known."""
        if isinstance(self._tensor_meta, torch.Tensor):
            return self._tensor_meta.size(*([dim] if dim is not None else []))
        args = (self, dim) if dim is not None else (self,)
        return self.tracer.create_proxy("call_method", "size", args, {}, name="size")

    def dim(self) -> Any:
        """The number of dimensions, where it is known."""
        if isinstance(self._tensor_meta, torch.Tensor):
            return self._tensor_meta.dim()
        return self.tracer.create_proxy("call_method", "dim", (self,), {}, name="dim")

    def _known(self, name: str) -> Any:
        """An attribute of the value, where it is known; a node that reads it otherwise."""
        meta = self._tensor_meta
        return getattr(meta, name) if isinstance(meta, torch.Tensor) else MetaAttribute(self, name)

    @property
    def shape(self) -> Any:
        """The sizes, where they are known."""
        return self._known("shape")

    @property
    def dtype(self) -> Any:
        """The dtype, where it is known."""
        return self._known("dtype")

    @property
    def device(self) -> "MetaDeviceAttribute":
        """The device, which only the run knows."""
        return MetaDeviceAttribute(self, "device")

    def __getattr__(self, k: str) -> "MetaAttribute":
        if k in ("_tensor_meta", "tracer", "node", "__setstate__", "__deepcopy__"):
            raise AttributeError(k)
        return MetaAttribute(self, k)


class MetaAttribute(MetaProxy):
    """`proxy.name`, a node only when it is used as a value."""

    def __init__(self, root: MetaProxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node = None

    @property
    def node(self) -> torch.fx.Node:
        """The getattr node, made when first asked for."""
        if self._node is None:
            read = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {})
            self._node = read.node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class MetaDeviceAttribute(MetaAttribute):
    """`proxy.device`."""


class MetaTracer(torch.fx.Tracer):
    """A tracer that runs every call on meta tensors too."""

    allow_insert_stateless_mods: bool = True
    # Factories take proxies for device and dtype, hence have to be recorded.
    _TORCH_METHODS_TO_PATCH = ["arange", "zeros", "ones", "full_like", "eye"]

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: tuple,
        kwargs: dict,
        name: str | None = None,
        type_expr: Any | None = None,
        proxy_factory_fn: Callable | None = None,
    ) -> Any:
        """A node and its proxy, which gets what the call gives on meta tensors."""
        made = super().create_proxy(kind, target, args, kwargs, name, type_expr, proxy_factory_fn)
        if kind == "placeholder" and target in self.meta_args:
            made.install_tensor_meta(self.meta_args[target])
            return made
        known = _device_free(target, kwargs)
        try:
            values, keywords = map_aggregate((args, known), _meta_of)
            made.install_tensor_meta(self._run_on_meta(kind, target, values, keywords))
        except Exception as error:  # what the call needs is not known: the proxy knows nothing
            made.__dict__.setdefault("_meta_error", error)
        return made

    def _run_on_meta(self, kind: str, target: Any, args: tuple, kwargs: dict) -> Any:
        with torch.no_grad():
            if kind == "call_function":
                return target(*args, **kwargs)
            if kind == "call_method":
                return getattr(args[0], target)(*args[1:], **kwargs)
            if kind == "get_attr":
                value: Any = self.root
                for part in target.split("."):
                    value = getattr(value, part)
                return value.to("meta") if isinstance(value, torch.Tensor) else value
            if kind == "call_module":
                with self._untraced():
                    module = self.root.get_submodule(target)
                    copy = _meta_module(module)
                    return torch._C._call_module(copy, tuple(args), dict(kwargs))
        return None

    @contextlib.contextmanager
    def _untraced(self) -> Iterator[None]:
        before = torch._C._set_module_tracer(None, None)
        try:
            yield
        finally:
            torch._C._set_module_tracer(*before)

    def proxy(self, node: torch.fx.Node) -> MetaProxy:
        """The proxy of a node."""
        return MetaProxy(node, self)

    def path_of_module(self, mod: torch.nn.Module) -> str:
        """The path of a module; one without parameters that the root does not have is added."""
        try:
            return super().path_of_module(mod)
        except NameError:
            stateless = not list(mod.parameters()) and not list(mod.buffers())
            if not (self.allow_insert_stateless_mods and stateless):
                raise
        number = 0
        while hasattr(self.root, f"{type(mod).__name__.lower()}_{number}"):
            number += 1
        path = f"{type(mod).__name__.lower()}_{number}"
        self.root.add_module(path, mod)
        if self.submodule_paths is not None:
            self.submodule_paths[mod] = path
        return path

    def trace(
        self,
        root: torch.nn.Module | Callable,
        meta_args: dict[str, torch.Tensor],
        concrete_args: dict[str, Any] | None = None,
    ) -> torch.fx.Graph:
        """Traces; inputs named in meta_args are known by their meta tensors."""
        self.meta_args = meta_args
        originals = {name: getattr(torch, name) for name in self._TORCH_METHODS_TO_PATCH}
        try:
            for name, function in originals.items():
                setattr(torch, name, _recorded_factory(function))
            graph = super().trace(root, concrete_args)
            graph._tracer_extras = {"meta_args": meta_args}
            return graph
        finally:
            for name, function in originals.items():
                setattr(torch, name, function)


def _recorded_factory(function: Callable) -> Callable:
    @functools.wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        proxies: list[MetaProxy] = []
        map_aggregate(
            (args, kwargs), lambda a: proxies.append(a) if isinstance(a, torch.fx.Proxy) else a
        )
        if not proxies:
            return function(*args, **kwargs)
        return proxies[0].tracer.create_proxy("call_function", function, args, kwargs)

    return recorded


def _device_free(target: Any, kwargs: dict) -> dict:
    if "device" not in kwargs:
        return kwargs
    return {**kwargs, "device": "meta"}


def _meta_module(module: torch.nn.Module) -> torch.nn.Module:
    """A shallow copy of a module with its tensors on meta."""
    import copy

    made = copy.copy(module)
    made.__dict__ = dict(module.__dict__)
    for store in ("_parameters", "_buffers"):
        owned = module.__dict__[store]
        made.__dict__[store] = {
            name: None if value is None else value.to("meta") for name, value in owned.items()
        }
    made.__dict__["_modules"] = {
        name: None if child is None else _meta_module(child)
        for name, child in module._modules.items()
    }
    return made


def symbolic_trace(
    root: torch.nn.Module | Callable,
    meta_args: dict[str, torch.Tensor] | None = None,
    concrete_args: dict[str, Any] | None = None,
) -> torch.fx.GraphModule:
    """Traces a module or function; inputs named in meta_args are known by their meta tensors."""
    tracer = MetaTracer()
    graph = tracer.trace(root, meta_args or {}, concrete_args)
    name = type(root).__name__ if isinstance(root, torch.nn.Module) else root.__name__
    return torch.fx.GraphModule(tracer.root, graph, name)
