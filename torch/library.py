"""Operators and kernels defined in Python.

custom_op is the way to make an operator; Library and its companions are the lower level beneath
it, and the way to give existing operators kernels for new devices."""

import contextlib
import functools
import weakref

import torch
from torch import _C
from torch._library import simple_registry
from torch._library import utils as _utils  # noqa: F401  (torch._library.utils for others)
from torch._library.custom_ops import CustomOpDef, custom_op
from torch._library.custom_ops import find_definition as _find_definition
from torch._library.fake_impl import current_ctx, with_ctx
from torch._library.infer_schema import infer_schema
from torch._library.triton import triton_op, wrap_triton

__all__ = [
    "Library",
    "impl",
    "define",
    "fallthrough_kernel",
    "impl_abstract",
    "register_autocast",
    "register_fake",
    "register_torch_dispatch",
    "register_vmap",
    "get_ctx",
    "custom_op",
    "infer_schema",
    "register_kernel",
    "register_autograd",
    "opcheck",
    "triton_op",
    "wrap_triton",
]

_KINDS = ("IMPL", "DEF", "FRAGMENT")
_RESERVED = ("prim",)
_defined_namespaces = {"aten": "the built-in operators"}
_keep_alive = []


def fallthrough_kernel():
    """Pass this to Library.impl for a key at which the operator does nothing and dispatch goes on
    below."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def _split_name(qualname):
    """ "ns::op.overload" -> ("ns::op", "overload")."""
    name, _, overload = qualname.partition(".")
    return name, "" if overload == "default" else overload


def _release(registrations, definitions, fallbacks, namespace, kind) -> None:
    """Takes back what a Library registered, the latest first."""
    for name, overload, id in reversed(registrations):
        _C._library_remove(name, overload, id)
    for key in fallbacks:
        _C._library_remove_fallback(key)
    for name, overload in reversed(definitions):
        _C._library_undefine(name, overload)
        holder = torch.ops.__dict__.get(namespace)
        if holder is not None:
            holder.__dict__.pop(name.partition("::")[2], None)
    if kind == "DEF":
        _defined_namespaces.pop(namespace, None)
    del registrations[:], definitions[:], fallbacks[:]


# (name, overload) of operators that nobody has defined yet -> kernels for them.
_waiting = {}


def _register_waiting(name, overload) -> None:
    """Registers the kernels that came before their operator, as far as their library still is."""
    for reference, key, kernel, with_keyset in _waiting.pop((name, overload), ()):
        library = reference()
        if library is not None:
            id = _C._library_impl(name, overload, key, kernel, with_keyset)
            library._registrations.append((name, overload, id))


class Library:
    """Definitions of operators (kind "DEF" or "FRAGMENT") or kernels for existing ones ("IMPL") in
    a namespace.

    They last as long as the object."""

    def __init__(self, ns, kind, dispatch_key="") -> None:
        if kind not in _KINDS:
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in _RESERVED and kind != "IMPL":
            raise ValueError(
                f"{ns} is a reserved namespace. Please try creating a library with another name."
            )
        if kind == "DEF":
            if ns in _defined_namespaces:
                raise RuntimeError(
                    f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; "
                    "please put all of your "
                    "definitions in a single TORCH_LIBRARY block, or use the kind FRAGMENT."
                )
            _defined_namespaces[ns] = self.__class__.__name__
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._registrations, self._definitions, self._fallbacks = [], [], []
        self._taken = set()
        self.m = self._registrations  # programs delete it together with the library
        self._finalizer = weakref.finalize(
            self, _release, self._registrations, self._definitions, self._fallbacks, ns, kind
        )
        # At exit the process goes as a whole; taking registrations back one by one would only cost
        # time.
        self._finalizer.atexit = False

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema, alias_analysis="", *, tags=()):
        """Defines an operator from "name.overload(arguments) -> returns"; returns its name."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self.kind == "IMPL":
            raise RuntimeError("an operator cannot be defined in a library of kind IMPL")
        tags = tags if isinstance(tags, (list, tuple)) else (tags,)
        if schema.rstrip().endswith("-> None"):  # nothing is returned
            schema = schema.rstrip().removesuffix("None") + "()"
        name, overload = _C._library_define(f"{self.ns}::{schema}", tuple(map(str, tags)))
        self._definitions.append((name, overload))
        _register_waiting(name, overload)
        packet = torch.ops.__dict__.get(self.ns, None)
        if packet is not None:
            packet.__dict__.pop(name.partition("::")[2], None)
        return name.partition("::")[2] + ("." + overload if overload else "")

    def _resolve(self, op_name):
        if isinstance(op_name, torch._ops.OpOverload):
            name, overload = _split_name(op_name._name)
        elif isinstance(op_name, str):
            qualified = op_name if "::" in op_name else f"{self.ns}::{op_name}"
            name, overload = _split_name(qualified)
        else:
            raise RuntimeError(
                "impl should be passed either a name or an OpOverload object as the first argument"
            )
        if name.partition("::")[0] != self.ns:
            raise ValueError(f"{name} is not in the namespace {self.ns} of this library")
        return name, overload

    def impl(
        self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=False
    ) -> None:
        """Registers fn as the kernel of an operator for a dispatch key (that of the library by
        default).
        """
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        name, overload = self._resolve(op_name)
        if (name, overload, key) in self._taken and not allow_override:
            raise RuntimeError(
                "This is not allowed since there's already a kernel registered from python "
                "overriding "
                f"{name.partition('::')[2]}'s behavior for {key} dispatch key and {self.ns} "
                "namespace."
            )
        kernel = None if fn is fallthrough_kernel else fn
        self._taken.add((name, overload, key))
        if overload in _C._get_overload_names(name):
            id = _C._library_impl(name, overload, key, kernel, with_keyset)
            self._registrations.append((name, overload, id))
        else:
            # Kernels may come before the operator: modules are imported in any order.
            waiting = (weakref.ref(self), key, kernel, with_keyset)
            _waiting.setdefault((name, overload), []).append(waiting)

    def fallback(self, fn, dispatch_key="", *, with_keyset=False) -> None:
        """Registers fn(op, *args, **kwargs) for all operators without a kernel for the key."""
        key = dispatch_key or self.dispatch_key
        if self.ns != "_":
            raise RuntimeError(
                f"fallback can only be registered for the namespace '_', not {self.ns}"
            )
        if not key:
            raise RuntimeError("fallback needs a dispatch key")
        kernel = None if fn is fallthrough_kernel else fn
        _C._library_fallback(key, kernel, with_keyset)
        self._fallbacks.append(key)

    def _register_fake(self, op_name, fn, _stacklevel=1, *, allow_override=True) -> None:
        name, overload = self._resolve(op_name)
        full = name + ("." + overload if overload else "")
        composite = "CompositeImplicitAutograd"
        if overload in _C._get_overload_names(name) and (
            _C._dispatch_has_kernel_for_dispatch_key(full, composite)
        ):
            raise RuntimeError(
                f"We should not register a meta kernel directly to the operator '{full}', because "
                f"it has a {composite} kernel: it is made of other operators, whose meta kernels "
                "serve it"
            )
        self.impl(op_name, with_ctx(full, fn), "Meta", allow_override=allow_override)
        code = getattr(fn, "__code__", None)
        source = f"{code.co_filename}:{code.co_firstlineno}" if code else repr(fn)
        simple_registry.singleton.find(full).fake_impl.register(fn, source)

    def _destroy(self) -> None:
        self._finalizer()
        self._taken.clear()


@contextlib.contextmanager
def _scoped_library(*args, **kwargs):
    """A Library whose definitions and kernels are taken back when the block ends."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


@functools.singledispatch
def define(qualname, schema, *, lib=None, tags=()) -> None:
    """Defines an operator "namespace::name" with a schema "(arguments) -> returns"."""
    if not isinstance(qualname, str):
        raise ValueError(
            "define(qualname, schema): expected qualname to be instance of str, got "
            f"{type(qualname)}"
        )
    namespace, _, name = qualname.partition("::")
    if not name:
        raise ValueError(
            f"Expected the name of an operator to be namespace::name, got {qualname!r}"
        )
    if not schema.startswith("("):
        raise ValueError(
            "define(qualname, schema, ...): expected schema to look like "
            f'"(Tensor x, int y, ...) -> Tensor" but got "{schema}"'
        )
    if lib is None:
        lib = Library(namespace, "FRAGMENT")
        _keep_alive.append(lib)
    lib.define(name + schema, alias_analysis="", tags=tags)


@define.register
def _(lib: Library, schema, alias_analysis=""):
    def decorate(f):
        name = lib.define(schema, alias_analysis)
        lib.impl(name, f)
        return f

    return decorate


_DEVICE_KEYS = {"default": "CompositeExplicitAutograd"}


def _key_of_device(device):
    return _DEVICE_KEYS.get(device) or _C._dispatch_key_for_device(device)


@functools.singledispatch
def impl(qualname, types, func=None, *, lib=None):
    """Registers an implementation of an operator for device types ("default" for all)."""
    return _impl(qualname, types, func, lib=lib)


@impl.register
def _(lib: Library, name, dispatch_key=""):
    def decorate(f):
        lib.impl(name, f, dispatch_key)
        return f

    return decorate


def _impl(qualname, types, func=None, *, lib=None):
    types = (types,) if isinstance(types, str) else tuple(types)
    keys = {_key_of_device(device) if device in _known_devices() else device for device in types}

    def register(function):
        namespace = qualname.partition("::")[0]
        target = lib
        if target is None:
            target = Library(namespace, "FRAGMENT")
            _keep_alive.append(target)
        for key in keys:
            target.impl(qualname, function, key)
        return function

    return register if func is None else register(func)


def _known_devices():
    return ("default", "cpu", "cuda", "meta", "xpu", "mps", "hpu", "mtia", "ipu", "privateuseone")


def _name_of(op):
    if isinstance(op, torch._ops.OpOverload):
        return op._name
    if isinstance(op, CustomOpDef):
        return op._qualname
    if not isinstance(op, str):
        raise ValueError(f"expected an operator, its name or a custom operator, got {type(op)}")
    return op


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """Registers an implementation of an operator for device types (all for None)."""
    definition = _find_definition(op)
    if definition is not None:
        return definition.register_kernel(device_types, func)
    return _impl(_name_of(op), device_types or "default", func, lib=lib)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=True):
    """Registers the form of an operator that computes shapes and dtypes only."""
    definition = _find_definition(op)

    def register(function):
        if definition is not None:
            return definition.register_fake(function)
        name = _name_of(op)
        target = lib
        if target is None:
            target = Library(name.partition("::")[0], "FRAGMENT")
            _keep_alive.append(target)
        target._register_fake(name, function, allow_override=allow_override)
        return function

    return register if func is None else register(func)


def impl_abstract(qualname, func=None, *, lib=None, _stacklevel=1):
    """The old name of register_fake."""
    return register_fake(qualname, func, lib=lib)


def register_autograd(op, backward, /, *, setup_context=None, lib=None) -> None:
    """Registers the backward function of an operator."""
    definition = _find_definition(op)
    if definition is None:
        definition = _ForeignOp(_overload_of(op), lib)
    definition.register_autograd(backward, setup_context=setup_context)


def _overload_of(op):
    """The overload that a registration means: itself, a name, or a custom operator."""
    if isinstance(op, torch._ops.OpOverload):
        return op
    name, overload = _split_name(_name_of(op))
    namespace, _, plain = name.partition("::")
    return getattr(getattr(getattr(torch.ops, namespace), plain), overload or "default")


class _ForeignOp(CustomOpDef):
    """The gradient part of a CustomOpDef for an operator that was defined in another way."""

    def __init__(self, overload, lib) -> None:
        self._opoverload = overload
        self._namespace, self._name = overload._namespace, overload._opname
        self._backward_fn = self._setup_context_fn = None
        target = lib
        if target is None:
            target = Library(overload._namespace, "FRAGMENT")
            _keep_alive.append(target)
        target.impl(overload, self._autograd_kernel, "Autograd", with_keyset=True)


def register_vmap(op, func=None, /, *, lib=None):
    """Registers the batched form of a custom operator."""
    definition = _find_definition(op)
    if definition is None:
        raise NotImplementedError(
            f"register_vmap: {_name_of(op)} was not made by torch.library.custom_op"
        )
    return definition.register_vmap(func)


def register_torch_dispatch(op, torch_dispatch_class, func=None, /, *, lib=None):
    """Registers a rule of an operator for a tensor subclass or a mode."""
    definition = _find_definition(op)
    overload = definition._opoverload if definition is not None else op
    if isinstance(overload, str):
        name, which = _split_name(overload)
        packet = getattr(getattr(torch.ops, name.partition("::")[0]), name.partition("::")[2])
        overload = getattr(packet, which or "default")
    register = overload.py_impl(torch_dispatch_class)
    return register if func is None else register(func)


def register_autocast(op, device_type, cast_inputs, /, *, lib=None):
    """Floating point inputs of an operator are cast where autocast is on for the device."""
    from torch._library.autocast import casting_kernel, key_of

    definition = _find_definition(op)
    if definition is not None:
        return definition.register_autocast(device_type, cast_inputs)
    key, overload = key_of(device_type), _overload_of(op)
    target = lib if lib is not None else Library(overload._namespace, "FRAGMENT")
    if lib is None:
        _keep_alive.append(target)
    kernel = casting_kernel(overload, device_type, lambda: cast_inputs)
    return target.impl(overload, kernel, key, with_keyset=True)


def get_ctx():
    """The context of the fake implementation that is running: it makes sizes that data decide."""
    found = current_ctx()
    if found is None:
        raise RuntimeError(
            "get_ctx() was called outside of a fake implementation under torch.compile or export"
        )
    return found


def opcheck(
    op,
    args,
    kwargs=None,
    *,
    test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
    raise_exception=True,
    atol=None,
    rtol=None,
):
    """Checks an operator against its schema: mutation, aliasing and the fake form. Returns a result
    per test."""
    from torch._library.opcheck import run

    if isinstance(op, CustomOpDef):
        op = op._opoverload
    elif isinstance(op, torch._ops.OpOverloadPacket):
        op = op.default
    names = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    return run(op, tuple(args), kwargs or {}, names, raise_exception)


@contextlib.contextmanager
def _scoped_library(ns, kind, dispatch_key=""):
    """A Library for the length of a with block; what it registered is taken back at the end."""
    made = Library(ns, kind, dispatch_key)
    try:
        yield made
    finally:
        made._destroy()
