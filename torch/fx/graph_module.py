"""GraphModule: a module whose forward is generated from a graph. Each object gets a class of its
own, because generated functions belong to a class; `recompile` writes the function anew after an
edit.

The text of a function is kept in `linecache` under the name of its file, so that tracebacks and
debuggers show it. A module is pickled as the text and its attributes; loading traces the text."""

import contextlib
import copy
import itertools
import linecache
import os
import sys
import traceback
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.fx import _reserved
from torch.fx._codegen import _BoxedCodeGen, _PyTreeCodeGen
from torch.fx._compatibility import compatibility
from torch.fx.graph import Graph, PythonCode

__all__ = ["GraphModule", "reduce_graph_module", "reduce_package_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
FX_GRAPH_MODULE_FILE_PREFIX = "fx_generated_"

# ---- running generated text
_numbers = itertools.count()


def _exec_with_source(
    src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None
) -> str:
    """Runs a text in a namespace; returns the file name under which tracebacks find its lines."""
    name = f"<eval_with_key>.{next(_numbers)}"
    if co_fields:
        # A name in angle brackets is a file to nobody, so that linecache would not keep the text.
        function = co_fields["co_name"].strip("<>")
        name += f" from {co_fields['co_filename']}:{co_fields['co_firstlineno']} in {function}"
    linecache.lazycache(name, {"__name__": name, "__loader__": _Source(src)})
    exec(compile(src, name, "exec"), globals)
    return name


class _Source:
    """Gives linecache the text of one generated function."""

    def __init__(self, src: str) -> None:
        self._src = src

    def get_source(self, name: str) -> str:
        return self._src


def _forward_from_src(
    src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None
) -> Callable:
    return _method_from_src("forward", src, globals, co_fields)


def _method_from_src(
    method_name: str, src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None
) -> Callable:
    """The function that a text defines."""
    space = dict(globals)
    name = _exec_with_source(src, space, co_fields)
    made = space[method_name]
    # The text goes with the code, which tracebacks keep as long as they need it.
    weakref.finalize(made.__code__, linecache.cache.pop, name, None).atexit = False
    return made


def _import_line(name: str, obj: Any) -> str:
    """The statement by which a saved text gets a global."""
    if name in _reserved.BUILTINS and _reserved.BUILTINS[name].obj is obj:
        return _reserved.BUILTINS[name].import_str
    if name in _reserved.BUILTINS or name in ("inf", "nan"):
        return _reserved.BUILTINS[name].import_str
    from torch.fx.node import _get_qualified_name, _type_repr

    home = getattr(obj, "__module__", None) or "builtins"
    local = getattr(obj, "__qualname__", None) or getattr(obj, "_name", None)
    if local is None:
        home, _, local = _get_qualified_name(obj).rpartition(".")
    if home == "builtins" and local == name:
        return ""
    if "<locals>" in local or "<lambda>" in local:
        raise RuntimeError(
            f"cannot save {_type_repr(obj)}: a global of the generated code must be importable"
        )
    first, _, rest = local.partition(".")
    if rest:
        return f"from {home} import {first} as _{name}; {name} = _{name}.{rest}"
    return (
        f"from {home} import {local} as {name}" if local != name else f"from {home} import {name}"
    )


def _format_import_block(globals: dict[str, Any], importer: Any = None) -> str:
    """The statements that make the globals of a generated function."""
    lines = {_import_line(name, obj) for name, obj in globals.items()}
    return "\n".join(sorted(line for line in lines if line))


class _Method:
    """A function of a class, compiled from its text when it is first asked for: passes recompile
    modules many times before anybody runs one, and compiling costs more than writing."""

    def __init__(
        self, name: str, src: str, globals: dict[str, Any], co_fields: dict[str, Any]
    ) -> None:
        self._parts: tuple | None = (name, src, globals, co_fields)
        self._function: Callable | None = None

    def __get__(self, obj: object, cls: type | None = None) -> Callable:
        if self._function is None:
            self._function = _method_from_src(*self._parts)
            self._parts = None
        return self._function.__get__(obj, cls)


# ---- attributes by dotted path
def _get_attr(model: nn.Module, attr_name: str) -> Any:
    """The value at a dotted path."""
    return _get_attr_via_attr_list(model, attr_name.split("."))


def _get_attr_via_attr_list(model: nn.Module, attr_list: list[str]) -> Any:
    value: Any = model
    for part in attr_list:
        value = getattr(value, part)
    return value


def _has_attr(model: nn.Module, attr_name: str) -> bool:
    """Whether a dotted path leads to something."""
    try:
        _get_attr(model, attr_name)
    except AttributeError:
        return False
    return True


def _del_attr(model: nn.Module, attr_name: str) -> None:
    """Deletes what a dotted path leads to."""
    path, _, last = attr_name.rpartition(".")
    delattr(_get_attr(model, path) if path else model, last)


def _holder(module: nn.Module, path: list[str]) -> nn.Module:
    """The module at a path; missing ones on the way are made."""
    for part in path:
        inner = getattr(module, part, None)
        if inner is None:
            inner = nn.Module()
            setattr(module, part, inner)
        module = inner
    return module


def _assign_attr(from_obj: Any, to_module: nn.Module, target: str) -> None:
    """Puts a value under a dotted path; a plain tensor becomes a buffer."""
    *path, last = target.split(".")
    place = _holder(to_module, path)
    if isinstance(from_obj, torch.Tensor) and not isinstance(from_obj, nn.Parameter):
        place.register_buffer(last, from_obj)
    else:
        setattr(place, last, from_obj)


def _copy_attr(from_module: nn.Module, to_module: nn.Module, target: str) -> None:
    """Gives one module what another has under a dotted path. Containers on the way become plain
    modules."""
    *path, last = target.split(".")
    source: Any = from_module
    place = to_module
    for part in path:
        inner = getattr(source, part)
        there = getattr(place, part, None)
        if there is inner:  # the whole of it was copied already
            return
        if there is None:
            there = nn.Module()
            setattr(place, part, there)
        source, place = inner, there
    value = getattr(source, last)
    if isinstance(value, torch.Tensor) and not isinstance(value, nn.Parameter):
        persistent = last not in getattr(source, "_non_persistent_buffers_set", ())
        place.register_buffer(last, value, persistent=persistent)
    else:
        setattr(place, last, value)


# ---- calling
class _WrappedCall:
    """The call of a graph module: an error inside its generated code is followed by the line that
    raised it, as the source shows it."""

    def __init__(self, cls: type, cls_call: Callable | None) -> None:
        self.cls = cls
        self.cls_call = cls_call

    @staticmethod
    def _generate_error_message(frame: traceback.FrameSummary) -> str:
        number = frame.lineno
        lines = linecache.getlines(frame.filename)
        head = (
            f"Call using an FX-traced Module, line {number} of the traced Module's generated "
            "forward function:"
        )
        before = "".join(lines[max(number - 2, 0) : number])
        after = "".join(lines[number : number + 2])
        return f"{head}\n{before}\n~~~~~~~~~~~~~~~~~~~~~~~~~~~ <--- HERE\n{after}"

    def __call__(self, obj: nn.Module, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return super(self.cls, obj).__call__(*args, **kwargs)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            inner = frames[-1] if frames else None
            if inner is not None and "eval_with_key" in inner.filename:
                print(self._generate_error_message(inner), file=sys.stderr)
            raise


def calls_forward(cls: type, call: object) -> bool:
    """Whether a `__call__` of a class is the one that graph modules get, with nothing of the user's
    behind it: what it runs is forward with its hooks."""
    made = getattr(cls, "_wrapped_call", None)
    if not isinstance(made, _WrappedCall) or made.cls_call is not None:
        return False
    return vars(made.cls).get("__call__") is call


def _addindent(text: str, spaces: int) -> str:
    return text.replace("\n", "\n" + " " * spaces)


@compatibility(is_backward_compatible=True)
class GraphModule(nn.Module):
    """A module made of a graph. `graph` is the program, `code` its text."""

    def __new__(cls, *args: Any, **kwargs: Any) -> "GraphModule":
        # A class that was made for one object is derived from the class the user knows.
        for base in cls.__mro__:
            if "<locals>" not in base.__qualname__ or "GraphModuleImpl" not in base.__qualname__:
                cls = base
                break
        made = type(cls.__name__, (cls,), {"__module__": cls.__module__})
        made.__qualname__ = f"{cls.__qualname__}.__new__.<locals>.GraphModuleImpl"
        return super().__new__(made)

    @compatibility(is_backward_compatible=True)
    def __init__(
        self,
        root: nn.Module | dict[str, Any],
        graph: Graph,
        class_name: str = "GraphModule",
    ) -> None:
        """`root` gives what the graph's targets name: a module, or a dict by dotted path."""
        super().__init__()
        self.__class__.__name__ = class_name
        targets = [n.target for n in graph.nodes if n.op in ("get_attr", "call_module")]
        if isinstance(root, nn.Module):
            if hasattr(root, "training"):
                self.training = root.training
            self._take_user_attributes(root)
            for target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            self._take_dict(root, targets)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self._replace_hooks: list[Callable] = []
        self._create_node_hooks: list[Callable] = []
        self._erase_node_hooks: list[Callable] = []
        self._deepcopy_hooks: list[Callable] = []
        self.shape_env = None
        self.meta: dict[str, Any] = {}
        if isinstance(root, nn.Module) and isinstance(getattr(root, "meta", None), dict):
            self.meta.update(root.meta)
        self.graph = graph
        self._tracer_cls = None
        if graph._tracer_cls and "<locals>" not in graph._tracer_cls.__qualname__:
            self._tracer_cls = graph._tracer_cls
        self._tracer_extras = graph._tracer_extras or {}

    def _take_user_attributes(self, root: nn.Module) -> None:
        kept = getattr(root, "meta", None)
        if isinstance(kept, dict) and _USER_PRESERVED_ATTRIBUTES_KEY in kept:
            for name, value in kept[_USER_PRESERVED_ATTRIBUTES_KEY].items():
                setattr(self, name, value)

    def _take_dict(self, root: dict[str, Any], targets: list[str]) -> None:
        for target in targets:
            if target not in root:
                raise RuntimeError(
                    f"Node in graph referenced target {target} but that target was not provided in "
                    "``root``!"
                )
        # Parents before what they hold.
        for target in sorted(set(targets), key=lambda path: path.count(".")):
            _assign_attr(root[target], self, target)

    # TorchScript compiles forward alone.
    __jit_unused_properties__ = ["graph", "_boxed_call"]

    @property
    def graph(self) -> Graph:
        """The program. Call recompile after an edit."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The text of forward."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    @property
    def _boxed_call(self) -> bool:
        return isinstance(self._graph._codegen, _BoxedCodeGen)

    # ---- compiling
    @compatibility(is_backward_compatible=True)
    def recompile(self) -> PythonCode:
        """Generates forward from the graph; needed after every edit."""
        self._note_specs()
        code = self._graph.python_code(root_module="self")
        self._install(code)
        return code

    def _note_specs(self) -> None:
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen) and codegen.pytree_info is not None:
            self._in_spec = codegen.pytree_info.in_spec
            self._out_spec = codegen.pytree_info.out_spec

    def _install(self, code: PythonCode) -> None:
        self._code = code.src
        self._lineno_map = code._lineno_map
        self._prologue_start = code._prologue_start
        cls = type(self)
        name = self._graph._codegen._func_name
        method = _Method(name, code.src, code.globals, self._graph._co_fields)
        setattr(cls, name, method)
        if name != "forward" and "forward" not in vars(cls):
            cls.forward = method
        if "_wrapped_call" not in vars(cls):
            own = vars(cls).get("__call__")
            cls._wrapped_call = _WrappedCall(cls, own)

            def call_wrapped(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
                return cls._wrapped_call(self, *args, **kwargs)

            cls.__call__ = call_wrapped

    # ---- submodules
    @compatibility(is_backward_compatible=False)
    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Puts a module under a dotted path; false where something else than a module is in the
        way."""
        *path, last = target.split(".")
        place: nn.Module = self
        for part in path:
            inner = getattr(place, part, None)
            if inner is None:
                inner = nn.Module()
                setattr(place, part, inner)
            if not isinstance(inner, nn.Module):
                return False
            place = inner
        place.add_module(last, m)
        return True

    @compatibility(is_backward_compatible=False)
    def delete_submodule(self, target: str) -> bool:
        """Takes the module under a dotted path away; false where there is none."""
        *path, last = target.split(".")
        place: Any = self
        for part in path:
            place = getattr(place, part, None)
            if not isinstance(place, nn.Module):
                return False
        if not isinstance(getattr(place, last, None), nn.Module):
            return False
        delattr(place, last)
        return True

    @compatibility(is_backward_compatible=True)
    def delete_all_unused_submodules(self) -> None:
        """Takes away modules that no node calls or reads from."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            parts = node.target.split(".")
            used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
            if node.op == "call_module":
                try:
                    called = self.get_submodule(node.target)
                except AttributeError:
                    continue
                used.update(f"{node.target}.{path}" for path, _ in called.named_modules() if path)
        for path in [p for p, _ in self.named_modules() if p and p not in used]:
            self.delete_submodule(path)

    # ---- saving
    @compatibility(is_backward_compatible=False)
    def to_folder(self, folder: str | os.PathLike, module_name: str = "FxModule") -> None:
        """Writes the module as a package of Python text and tensors: `from folder import
        FxModule`."""
        from pathlib import Path

        from torch.fx._save_folder import write_package

        write_package(self, Path(folder), module_name)

    def _reduce_state(self) -> tuple[dict[str, Any], str]:
        state = self.__dict__.copy()
        state["_graphmodule_cls_name"] = self.__class__.__name__
        del state["_graph"]
        code = self._graph.python_code(root_module="self")
        state["_code"] = code.src
        return state, _format_import_block(code.globals)

    def __reduce__(self) -> tuple:
        return reduce_graph_module, self._reduce_state()

    def __reduce_package__(self, exporter: Any) -> tuple:
        state, imports = self._reduce_state()
        name = f"fx-generated._{exporter.get_unique_id()}"
        exporter.save_source_string(name, f"{imports}\n{state['_code']}")
        return reduce_package_graph_module, (state, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> "GraphModule":
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        skipped = ("_graph", "_create_node_hooks", "_erase_node_hooks", "_replace_hooks")
        state = {
            key: copy.deepcopy(value, memo)
            for key, value in self.__dict__.items()
            if key not in skipped
        }
        nn.Module.__init__(made)
        made.__dict__.update(state)
        made.__dict__.update(_create_node_hooks=[], _erase_node_hooks=[], _replace_hooks=[])
        made.__class__.__name__ = self.__class__.__name__
        made.graph = copy.deepcopy(self._graph, memo)
        for hook in made._deepcopy_hooks:
            hook(made)
        return made

    def __copy__(self) -> "GraphModule":
        from torch.fx._lazy_graph_module import _make_graph_module

        made = _make_graph_module(self, self.graph, self.__class__.__name__, graph_module_cls=None)
        made.meta = dict(self.meta)
        return made

    # ---- printing
    @compatibility(is_backward_compatible=False)
    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: bool = False,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:
        """The text of this module and of graph modules inside it, with types, sizes and the
        lines of the user's program; printed unless print_output is false, and returned."""
        text = _print_readable(
            self,
            self._get_name(),
            include_stride=include_stride,
            include_device=include_device,
            colored=colored,
            expanded_def=expanded_def,
            additional_meta=additional_meta,
        )
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        head = super().__str__()
        note = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([head, self._code, note])

    def _replicate_for_data_parallel(self) -> "GraphModule":
        made = self.__copy__()
        made._is_replica = True
        return made

    # ---- hooks of edits
    def _register_replace_node_hook(self, f: Callable) -> None:
        _require_callable(f, "replace_node hook")
        self._replace_hooks.append(f)

    def _unregister_replace_node_hook(self, f: Callable) -> None:
        self._replace_hooks.remove(f)

    def _register_create_node_hook(self, f: Callable) -> None:
        _require_callable(f, "create_node hook")
        self._create_node_hooks.append(f)
        self._graph._create_node_hooks = self._create_node_hooks

    def _unregister_create_node_hook(self, f: Callable) -> None:
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: Callable) -> None:
        _require_callable(f, "erase_node hook")
        self._erase_node_hooks.append(f)
        self._graph._erase_node_hooks = self._erase_node_hooks

    def _unregister_erase_node_hook(self, f: Callable) -> None:
        self._erase_node_hooks.remove(f)

    def _register_deepcopy_hook(self, f: Callable) -> None:
        _require_callable(f, "deepcopy hook")
        self._deepcopy_hooks.append(f)

    def _unregister_deepcopy_hook(self, f: Callable) -> None:
        self._deepcopy_hooks.remove(f)

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable) -> Iterator[None]:
        """Registers a replace hook while the context lasts."""
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    @contextlib.contextmanager
    def _set_create_node_hook(self, f: Callable) -> Iterator[None]:
        """Registers a create hook while the context lasts."""
        self._register_create_node_hook(f)
        try:
            yield
        finally:
            self._unregister_create_node_hook(f)


def _require_callable(f: Any, what: str) -> None:
    if not callable(f):
        raise AssertionError(f"{what} must be a callable.")


def _print_readable(
    module: GraphModule,
    module_name: str,
    print_output: bool = False,
    **options: Any,
) -> str:
    code = module._graph.python_code(root_module="self", verbose=True, **options)
    body = code.src.lstrip("\n")
    parts = [f"class {module_name}(torch.nn.Module):\n{body}"]
    for name, child in module.named_children():
        if isinstance(child, GraphModule):
            parts.append(_print_readable(child, name, **options))
    text = _addindent("\n\n".join(part.rstrip() for part in parts), 4)
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    if print_output:
        print(text)
    return f"{text}\n"


# ---- loading
class _CodeOnlyModule(nn.Module):
    """What a pickled graph module is before its text is traced again."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


@compatibility(is_backward_compatible=False)
def reduce_graph_module(body: dict[Any, Any], import_block: str) -> nn.Module:
    """A graph module from its pickled attributes and the import lines of its text."""
    # Files written by early versions keep the text under another name.
    src = body.get("_code") or body.get("code")
    forward = _forward_from_src(f"{import_block}\n{src}", {})
    return _deserialize_graph_module(forward, body)


@compatibility(is_backward_compatible=False)
def reduce_package_graph_module(
    importer: Any, body: dict[Any, Any], generated_module_name: str
) -> nn.Module:
    """A graph module from a torch.package archive."""
    forward = importer.import_module(generated_module_name).forward
    return _deserialize_graph_module(forward, body)


def _deserialize_graph_module(
    forward: Callable, body: dict[Any, Any], graph_module_cls: type | None = None
) -> nn.Module:
    from torch.fx._lazy_graph_module import _make_graph_module
    from torch.fx._symbolic_trace import Tracer

    name = body.pop("_graphmodule_cls_name", "GraphModule")
    tracer_cls = body.get("_tracer_cls") or Tracer
    cls = type("KeepModules", (tracer_cls,), {"is_leaf_module": lambda self, m, path: True})
    _CodeOnlyModule.forward = forward
    shell = _CodeOnlyModule(body)
    graph = cls().trace(shell, **body.get("_tracer_extras", {}))
    graph._tracer_cls = tracer_cls
    made = _make_graph_module(shell, graph, class_name=name, graph_module_cls=graph_module_cls)
    # Attributes that no node names, such as those the user set.
    for key, value in body.items():
        if not hasattr(made, key):
            setattr(made, key, value)
    for store in ("_modules", "_parameters", "_buffers"):
        for key, value in body[store].items():
            getattr(made, store).setdefault(key, value)
    return made
