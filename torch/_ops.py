"""torch.ops: every operator of the dispatcher, by namespace, name and overload.

    torch.ops.aten.add            an OpOverloadPacket: picks the overload by the arguments
    torch.ops.aten.add.Tensor     an OpOverload: one schema

The objects are made on first access and kept, so that identity is equality."""

import contextlib
import importlib
import sys
import types

import torch
from torch import _C
from torch._C import DispatchKey
from torch._C._functorch import TransformType


class OperatorBase:
    """What operators of all kinds share: kernels registered from Python, by dispatch key, mode
    class or functorch transform.
    """

    def __init__(self) -> None:
        self.py_kernels = {}
        self.python_key_table = {}
        self.functorch_table = {}

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(f"{type(self).__name__} does not define __call__")

    def has_kernel_for_dispatch_key(self, k) -> bool:
        """Whether a kernel was registered from Python for exactly this key."""
        return k in self.py_kernels

    def has_kernel_for_any_dispatch_key(self, ks) -> bool:
        """Whether a kernel was registered from Python for one of the keys that is no alias."""
        return any(not _C._dispatch_is_alias_key(k) and ks.has(k) for k in self.py_kernels)

    def py_impl(self, k):
        """A decorator that registers a Python kernel for a dispatch key, a mode class, a tensor
        subclass or a functorch transform.
        """

        def register(fn):
            table = self._table_for(k)
            if k in table:
                raise RuntimeError(
                    f"Trying to override a python impl for {k} on operator {self.name()}"
                )
            table[k] = fn
            # A mode whose calls do not pass through Python wants to know.
            registered = getattr(k, "_rule_registered", None)
            if registered is not None and isinstance(self, OpOverload):
                registered(self)
            return fn

        return register

    def _table_for(self, k) -> dict:
        if isinstance(k, DispatchKey):
            return self.py_kernels
        return self.functorch_table if isinstance(k, TransformType) else self.python_key_table

    def name(self):
        """The qualified name."""
        raise NotImplementedError(f"{type(self).__name__} does not define name()")


class HigherOrderOperator(OperatorBase):
    """An operator that takes functions as arguments. Its kernels are Python functions, registered
    by `py_impl` for dispatch keys, classes of modes, classes of tensors and functorch transforms; a
    call looks for them from the highest key of its tensors and the thread downwards, as the
    dispatcher does. Keys without a kernel are passed over.
    """

    _instances = {}

    def __init__(self, name, *, cacheable=False) -> None:
        super().__init__()
        if type(self) is HigherOrderOperator:
            raise RuntimeError(
                "Direct instantiation of HigherOrderOperator is not allowed. Please subclass it."
            )
        self._name = self.__name__ = name
        self._ns = "higher_order"
        self._cacheable = cacheable
        self._passed_over = set()
        self._functionalize_kernel = None
        self.__qualname__ = name
        self.__module__ = "torch.ops.higher_order"
        HigherOrderOperator._instances[name] = self

    @property
    def namespace(self):
        """Always "higher_order"."""
        return self._ns

    def name(self):
        return self._name

    def cacheable(self) -> bool:
        """Whether compiled graphs with this operator may be kept on disk."""
        return self._cacheable

    def fallthrough(self, dispatch_key) -> None:
        """Calls pass over this key."""
        self._passed_over.add(dispatch_key)

    def py_autograd_impl(self, fn):
        """A decorator: the kernel for calls with tensors that require grad."""
        return self.py_impl(DispatchKey.Autograd)(fn)

    def py_functionalize_impl(self, fn):
        """A decorator: the kernel where in-place operators are rewritten. It is called with an
        object that wraps, unwraps and functionalizes (`ctx`) before the arguments.
        """
        self._functionalize_kernel = fn
        return fn

    def __call__(self, /, *args, **kwargs):
        tensors = [
            leaf
            for leaf in torch.utils._pytree.tree_leaves((args, kwargs))
            if isinstance(leaf, torch.Tensor)
        ]
        if torch.overrides.has_torch_function(tensors):
            return torch.overrides.handle_torch_function(self, tensors, *args, **kwargs)
        keys = _C._dispatch_tls_local_include_set()
        for tensor in tensors:
            keys = keys | _C._dispatch_keys(tensor)
        return self._run(keys - _C._dispatch_tls_local_exclude_set(), tensors, args, kwargs)

    def dispatch(self, /, dispatch_key, *args, **kwargs):
        """Runs the kernel of one key."""
        return self._run(_C.DispatchKeySet(dispatch_key), [], args, kwargs)

    def _run(self, keys, tensors, args, kwargs):
        for key in reversed(keys.keys()):
            if key in self._passed_over:
                continue
            result = self._run_key(key, tensors, args, kwargs)
            if result is not NotImplemented:
                return result
        for key in (
            DispatchKey.CompositeExplicitAutograd,
            DispatchKey.CompositeImplicitAutograd,
            DispatchKey.CPU,
            # Tensors that need no gradient do not have these keys.
            DispatchKey.Autograd,
            DispatchKey.AutogradCPU,
            DispatchKey.AutogradCUDA,
        ):
            if key in self.py_kernels:
                return self.py_kernels[key](*args, **kwargs)
        raise NotImplementedError(
            f"the higher order operator {self._name} has no kernel for the keys {keys}"
        )

    def _run_key(self, key, tensors, args, kwargs):
        if key in self.py_kernels:
            return self.py_kernels[key](*args, **kwargs)
        name = key.name
        if name.startswith("Autograd") and DispatchKey.Autograd in self.py_kernels:
            return self.py_kernels[DispatchKey.Autograd](*args, **kwargs)
        if name.startswith("FuncTorch") or name == "FunctionalizeMode":
            return self._run_transform(tensors, args, kwargs)
        if key == DispatchKey.Functionalize and self._functionalize_kernel is not None:
            from torch._subclasses.functional_tensor import CppFunctionalizeAPI

            return self._functionalize_kernel(CppFunctionalizeAPI(), *args, **kwargs)
        if key == DispatchKey.PreDispatch:
            return self._run_above_autograd(args, kwargs)
        if key == DispatchKey.Python:
            return self._run_python(tensors, args, kwargs)
        if key == DispatchKey.Fake:
            return self._run_fake(tensors, args, kwargs)
        return NotImplemented

    def _run_transform(self, tensors, args, kwargs):
        """The kernel of the newest level that a tensor belongs to."""
        from torch._functorch.pyfunctorch import interpreter_of

        newest = max((_C._functorch.maybe_get_level(t) for t in tensors), default=0)
        if newest <= 0:
            return NotImplemented
        level = interpreter_of(newest)
        kernel = self.functorch_table.get(level.key())
        if kernel is not None:
            return kernel(level, *args, **kwargs)
        if level.key() == TransformType.Functionalize and self._functionalize_kernel is not None:
            from torch._subclasses.functional_tensor import FunctorchFunctionalizeAPI

            return self._functionalize_kernel(FunctorchFunctionalizeAPI(level), *args, **kwargs)
        return NotImplemented

    def _run_python(self, tensors, args, kwargs):
        from torch.utils import _python_dispatch as modes

        stack = modes._get_current_dispatch_mode_stack()
        if stack:
            return self._run_mode(stack[-1], args, kwargs)
        for tensor in tensors:
            if type(tensor) in self.python_key_table:
                return self.python_key_table[type(tensor)](*args, **kwargs)
        return NotImplemented

    def _run_above_autograd(self, args, kwargs):
        """The kernel of the uppermost mode that sees operators before autograd does."""
        from torch._dispatch import pre_dispatch

        for key in reversed(pre_dispatch._ORDER):
            mode = pre_dispatch.get_mode(key)
            if mode is None:
                continue
            kernel = self.python_key_table.get(type(mode))
            if kernel is None and type(mode).__name__ == "FunctionalTensorMode":
                kernel = self._functional_kernel()
            if kernel is not None:
                with pre_dispatch.with_mode(key, None):
                    return kernel(mode, *args, **kwargs)
        return NotImplemented

    def _run_mode(self, mode, args, kwargs):
        from torch.utils import _python_dispatch as modes

        kernel = self.python_key_table.get(type(mode))
        if kernel is None and type(mode).__name__ == "FunctionalTensorMode":
            kernel = self._functional_kernel()
        handles = getattr(type(mode), "supports_higher_order_operators", False)
        if kernel is None and not handles:
            raise NotImplementedError(
                f"There was no rule registered for HOP {self._name} and mode {mode}. Register one "
                f"by {self._name}.py_impl({type(mode).__name__})."
            )
        with modes._pop_mode_temporarily() as popped:
            if kernel is not None:
                return kernel(popped, *args, **kwargs)
            return popped.__torch_dispatch__(self, (), args, kwargs)

    def _functional_kernel(self):
        if self._functionalize_kernel is None:
            return None
        from torch._subclasses.functional_tensor import PythonFunctionalizeAPI

        return lambda mode, *args, **kwargs: self._functionalize_kernel(
            PythonFunctionalizeAPI(mode), *args, **kwargs
        )

    def _run_fake(self, tensors, args, kwargs):
        from torch._subclasses.fake_tensor import FakeTensorMode, maybe_get_fake_mode

        mode = _C._get_dispatch_mode(_C._TorchDispatchModeKey.FAKE)
        for tensor in tensors:
            mode = mode or maybe_get_fake_mode(tensor)
        kernel = self.python_key_table.get(FakeTensorMode)
        return NotImplemented if kernel is None else kernel(mode, *args, **kwargs)

    def __str__(self):
        return self._name

    def __repr__(self) -> str:
        return f"<HigherOrderOperator {self._name}>"

    def __reduce__(self):
        return _find_higher_order, (self._name,)

    def __deepcopy__(self, memo=None):
        return self


def _find_higher_order(name):
    """Unpickles an operator that takes functions."""
    return getattr(torch.ops.higher_order, name)


def _keys(keyset):
    """The keys of a set, lowest first."""
    return keyset.keys()


class OpOverload(_C._Operator, OperatorBase):
    """One overload of an operator: a schema and its kernels. Calls are the C base's."""

    def __init__(self, overloadpacket, op, overload_name) -> None:
        OperatorBase.__init__(self)
        self._op = op
        self._handle = op
        self._schema = op.schema
        self._overloadpacket = overloadpacket
        self._overloadname = overload_name
        self._qualified_op_name = overloadpacket._qualified_op_name
        self._namespace, self._opname = self._qualified_op_name.split("::")
        self._name = self._qualified_op_name + (
            "" if overload_name == "default" else "." + overload_name
        )
        self.__name__ = f"{self._opname}.{overload_name}"
        self.__qualname__ = self._name
        self.__module__ = overloadpacket.__module__

    def redispatch(self, /, keyset, *args, **kwargs):
        """Runs the kernel that `keyset` leads to."""
        return self._op.redispatch_boxed(keyset, *args, **kwargs)

    @property
    def op(self):
        """The packet."""
        return self._overloadpacket

    @property
    def overloadpacket(self):
        """The packet."""
        return self._overloadpacket

    @property
    def namespace(self):
        """The part of the name before the colons."""
        return self._namespace

    @property
    def tags(self):
        """The tags of the operator's definition."""
        own = torch._tags.parse(self._op.tags)
        compliant = torch._tags.Tag.pt2_compliant_tag
        return [*own, compliant] if self._namespace == "aten" and compliant not in own else own

    @property
    def is_view(self):
        """Whether the result shares the memory of an argument."""
        return self._op.is_view

    def name(self):
        """The qualified name with the overload, e.g. "aten::add.Tensor"."""
        return self._name

    def has_kernel_for_dispatch_key(self, k):
        return OperatorBase.has_kernel_for_dispatch_key(
            self, k
        ) or self._op.has_kernel_for_dispatch_key(k)

    def has_kernel_for_any_dispatch_key(self, ks) -> bool:
        if OperatorBase.has_kernel_for_any_dispatch_key(self, ks):
            return True
        return any(self._op.has_kernel_for_dispatch_key(k) for k in _keys(ks))

    def _can_decompose(self):
        return self._op.has_kernel_for_dispatch_key(DispatchKey.CompositeImplicitAutograd)

    def decompose(self, *args, **kwargs):
        """Runs the operator's definition in terms of others; NotImplemented if it has none."""
        if not self._can_decompose():
            return NotImplemented
        return self._op.decompose(*args, **kwargs)

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return (
            f"<OpOverload(op='{self._namespace}.{self._opname}', overload='{self._overloadname}')>"
        )

    def __str__(self) -> str:
        return f"{self._namespace}.{self._opname}.{self._overloadname}"

    def __deepcopy__(self, memo=None):
        return self

    def __reduce__(self):
        return _find, (self._namespace, self._opname, self._overloadname)


class TorchBindOpOverload(OpOverload):
    """An overload that takes objects of classes bound to TorchScript. Nothing makes one here."""


class OpOverloadPacket(_C._OperatorPacket):
    """All overloads of an operator. A call, which is the C base's, runs the first that takes its
    arguments: overloads on tensors before those on numbers, out= forms last.
    """

    def __init__(self, qualified_op_name, op_name, overload_names) -> None:
        self._qualified_op_name = qualified_op_name
        self.__name__ = op_name
        self._overload_names = [name or "default" for name in overload_names]
        self._dir = []
        self.__module__ = "torch._ops." + qualified_op_name.split("::")[0]

    def __getattr__(self, key):
        if key.startswith("__") or key == "_overload_names":
            raise AttributeError(
                f"'{self!s}' can't have an overload name beginning with '__': '{key}'"
            )
        if key not in self._overload_names:
            # Operators may have been defined after the packet was made.
            self._overload_names = _overload_names(self._qualified_op_name, key)
        if key not in self._overload_names:
            raise AttributeError(f"The underlying op of '{self!s}' has no overload name '{key}'")
        handle = _C._get_operation(self._qualified_op_name, "" if key == "default" else key)
        overload = OpOverload(self, handle, key)
        setattr(self, key, overload)
        self._dir.append(key)
        return overload

    @property
    def op(self):
        """The packet itself."""
        return self

    def overloads(self):
        """The names of the overloads."""
        return list(self._overload_names)

    def __iter__(self):
        return iter(self._dir)

    def __dir__(self):
        return [*object.__dir__(self), *self._overload_names]

    def __hash__(self) -> int:
        return hash(self._qualified_op_name)

    def __eq__(self, other) -> bool:
        return self is other

    def __repr__(self) -> str:
        return "<OpOverloadPacket(op='{}.{}')>".format(*self._qualified_op_name.split("::"))

    def __str__(self) -> str:
        return "{}.{}".format(*self._qualified_op_name.split("::"))

    def __deepcopy__(self, memo=None):
        return self

    def __reduce__(self):
        return _find, tuple(self._qualified_op_name.split("::"))


def _find(namespace, name, overload=None):
    """Unpickles an operator."""
    packet = getattr(getattr(torch.ops, namespace), name)
    return packet if overload is None else getattr(packet, overload)


# Namespaces of which some operators are defined when a name is asked for that is not there yet.
_DEFINED_IN_PYTHON = {
    "_c10d_functional": "torch.distributed._functional_collectives",
    "aten": "torch._composed_ops",
    "c10d": "torch.distributed._c10d_ops",
    "c10d_functional": "torch.distributed._c10d_ops",
    "prims": "torch._prims",
    "quantized": "torch._quantized_ops",
    "rngprims": "torch._prims.rng_prims",
}


def _overload_names(qualified: str, wanted: str | None = None) -> list[str]:
    """The overloads of an operator, of all of it or with the one that is wanted among them."""

    def found() -> list[str]:
        return [name or "default" for name in _C._get_overload_names(qualified)]

    names = found()
    if not names or (wanted is not None and wanted not in names):
        module = _DEFINED_IN_PYTHON.get(qualified.partition("::")[0])
        if module is not None and module not in sys.modules:
            importlib.import_module(module)
            names = found()
    return names


class _OpNamespace(types.ModuleType):
    """The operators of one library."""

    def __init__(self, name) -> None:
        super().__init__("torch.ops." + name)
        self.name = name
        self._dir = []

    __file__ = "torch.ops"

    def __iter__(self):
        return iter(self._dir)

    def __getattr__(self, op_name):
        if op_name in ("__origin__", "__self__", "__path__", "__spec__", "__wrapped__"):
            raise AttributeError(f"Invalid attribute '{op_name}' for '_OpNamespace' '{self.name}'")
        qualified = f"{self.name}::{op_name}"
        names = _overload_names(qualified)
        if not names:
            raise AttributeError(
                f"'_OpNamespace' '{self.name}' object has no attribute '{op_name}'"
                + "".join(f"; {text}" for text in _registration_failures(ns=self.name))
            )
        packet = OpOverloadPacket(qualified, op_name, names)
        setattr(self, op_name, packet)
        self._dir.append(op_name)
        return packet


class _HigherOrderNamespace(types.ModuleType):
    """The operators that take functions."""

    __file__ = "torch.ops"

    def __init__(self) -> None:
        super().__init__("torch.ops.higher_order")

    def __getattr__(self, name):
        if name not in HigherOrderOperator._instances and not name.startswith("__"):
            importlib.import_module("torch._higher_order_ops")
        if name not in HigherOrderOperator._instances:
            raise AttributeError(
                f"'_HigherOrderNamespace' 'torch.ops.higher_order' has no attribute '{name}'"
            )
        return HigherOrderOperator._instances[name]


class _Ops(types.ModuleType):
    """torch.ops: namespaces are made on first access."""

    __file__ = "_ops.py"

    def __init__(self) -> None:
        super().__init__("torch.ops")
        self.loaded_libraries = set()
        self.higher_order = _HigherOrderNamespace()
        self._dir = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(f"module 'torch.ops' has no attribute '{name}'")
        namespace = _OpNamespace(name)
        setattr(self, name, namespace)
        self._dir.append(name)
        return namespace

    def __iter__(self):
        return iter(self._dir)

    def import_module(self, module) -> None:
        """Imports a Python module that defines operators."""
        from importlib import import_module

        import_module(module)

    def load_library(self, path) -> None:
        """Loads a shared library; its static initialisers define operators."""
        import ctypes
        import os

        from torch import _supplied_ops

        path = os.path.realpath(path)
        if _supplied_ops.stand_in(path):
            self.loaded_libraries.add(path)
            return
        with dl_open_guard():
            try:
                ctypes.CDLL(path)
            except OSError as error:
                raise OSError(f"Could not load this library: {path}") from error
        failures = _registration_failures(file=path)
        if failures:
            raise ImportError(f"Could not load this library: {path}: {'; '.join(failures)}")
        self.loaded_libraries.add(path)


def _registration_failures(*, file: str | None = None, ns: str | None = None) -> list[str]:
    """What registration blocks of a library file, or of a namespace, threw when it was loaded."""
    import os

    return [
        text
        for path, namespace, text in torch._C._registration_failures()
        if (file is None or os.path.realpath(path) == file) and (ns is None or namespace == ns)
    ]


@contextlib.contextmanager
def dl_open_guard():
    """Symbols of libraries loaded inside are visible to libraries loaded later."""
    import ctypes
    import sys

    old = sys.getdlopenflags()
    sys.setdlopenflags(old | ctypes.RTLD_GLOBAL)
    try:
        yield
    finally:
        sys.setdlopenflags(old)


ops = _Ops()
