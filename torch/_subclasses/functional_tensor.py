"""Functionalisation as a dispatch mode: inside FunctionalTensorMode tensors are FunctionalTensor,
and operators that write become functional ones. A FunctionalTensor holds a tensor of the dispatch
key Functionalize (`elem`), whose kernel does the work (aten/src/ATen/functional); the class gives
it a place above other modes, so that those see functional operators only."""

import abc
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import _C
from torch._C import _TorchDispatchModeKey
from torch._dispatch import pre_dispatch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

_FUNCTIONAL = _TorchDispatchModeKey.FUNCTIONAL


class FunctionalTensor(torch.Tensor):
    """A tensor whose in-place operators replace its value. `elem` is the functional tensor that
    does so, `_mode` the mode it was made in."""

    _mode_key = _FUNCTIONAL
    elem: torch.Tensor
    _inference_mode_base: "FunctionalTensorMode | None" = None

    def __new__(cls, elem: torch.Tensor, mode: "FunctionalTensorMode") -> "FunctionalTensor":
        if not _C._is_functional_tensor(elem):
            raise AssertionError("FunctionalTensor(elem): elem must be a functional tensor")
        out = torch.Tensor._make_wrapper_subclass(
            cls,
            elem.shape,
            dtype=elem.dtype,
            layout=elem.layout,
            device=elem.device,
            requires_grad=elem.requires_grad,
        )
        if elem.layout is torch.strided:
            _C._functionalize_mirror_shape(out, elem)
        out.elem = elem
        out._mode = mode
        return out

    __torch_function__ = _C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(
        cls, func: OpOverload, types: tuple, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        foreign = [t for t in types if t not in (torch.Tensor, FunctionalTensor)]
        if foreign:
            return NotImplemented
        raise RuntimeError(
            "Attempting to use FunctionalTensor on its own. Instead, please use it with a "
            "corresponding FunctionalTensorMode()"
        )

    def __repr__(self) -> str:
        return f"FunctionalTensor({self.elem!r})"

    @staticmethod
    def to_functional(x: torch.Tensor) -> "FunctionalTensor":
        """x as a functional tensor of the mode in force."""
        if isinstance(x, FunctionalTensor) or _C._is_functional_tensor(x):
            raise AssertionError("to_functional(): the tensor is functional already")
        mode = _mode_in_force()
        if mode is None:
            raise AssertionError("to_functional() needs a FunctionalTensorMode")
        with mode.off():
            elem = _C._to_functional_tensor(x)
            _C._mirror_autograd_meta_to(x, elem)
            out = FunctionalTensor(elem, mode)
            _C._mirror_autograd_meta_to(elem, out)
        return out

    def from_functional(self) -> torch.Tensor:
        """The value, after all writes."""
        _C._sync(self.elem)
        return _C._from_functional_tensor(self.elem)

    def is_base_tensor(self) -> bool:
        """Whether the tensor is no view."""
        return _C._is_functional_tensor_base(self.elem)

    def replace_(self, output: torch.Tensor) -> None:
        """Replaces the value; commit_update() makes it visible to aliases."""
        _C._functionalize_replace(self.elem, output)

    def commit_update(self) -> None:
        """Makes the value a write."""
        _C._functionalize_commit_update(self.elem)

    def sync(self) -> None:
        """Brings the value up to date with writes to aliases."""
        _C._functionalize_sync(self.elem)

    def mark_mutation_hidden_from_autograd(self) -> None:
        """The writes so far are of no concern to autograd."""
        _C._functionalize_mark_mutation_hidden_from_autograd(self.elem)

    def tolist(self) -> Any:
        """The elements as numbers."""
        if self.dim() == 0:
            return self.elem.item()
        return [row.tolist() for row in self.unbind(0)]


def _functional_elem(t: torch.Tensor) -> torch.Tensor:
    return t.elem


def _is_foreign(cls: type) -> bool:
    """A subclass with rules of its own, which must be gone before functionalisation."""
    from torch._subclasses.fake_tensor import FakeTensor

    return not issubclass(cls, (FunctionalTensor, FakeTensor)) and cls not in (
        torch.Tensor,
        torch.nn.Parameter,
    )


@contextlib.contextmanager
def _below_autograd(mode: "FunctionalTensorMode | None") -> Iterator[None]:
    """A block with a mode in the slot of functionalisation, None: without one."""
    before = _C._unset_dispatch_mode(_FUNCTIONAL)
    if mode is not None:
        _C._set_dispatch_mode(mode)
    try:
        yield
    finally:
        _C._unset_dispatch_mode(_FUNCTIONAL)
        if before is not None:
            _C._set_dispatch_mode(before)


def _mode_in_force() -> "FunctionalTensorMode | None":
    return _C._get_dispatch_mode(_FUNCTIONAL) or pre_dispatch.get_mode(_FUNCTIONAL)


@contextlib.contextmanager
def _recorded_below() -> Iterator[None]:
    """A recorder above autograd records what operators on functional tensors are carried out with,
    which is below."""
    from torch.fx.experimental.proxy_tensor import _below_autograd as recording

    proxy = _TorchDispatchModeKey.PROXY
    recorder = pre_dispatch.get_mode(proxy)
    if recorder is None:
        yield
        return
    with pre_dispatch.with_mode(proxy, None), recording(recorder):
        yield


class FunctionalTensorMode(TorchDispatchMode):
    """Inside, tensors made by operators are FunctionalTensor, and writes to them are functional."""

    _mode_key = _FUNCTIONAL

    def __init__(
        self,
        pre_dispatch: bool = False,
        export: bool = False,
        _allow_token_discovery: bool = False,
    ) -> None:
        super().__init__()
        self.export = export
        self.pre_dispatch = pre_dispatch
        self.is_on_stack = False
        self._allow_token_discovery = _allow_token_discovery
        self._tokens: dict[Any, torch.Tensor] = {}
        self._tokens_forward_output: dict[Any, torch.Tensor] = {}
        self._storage_to_base: dict[Any, Any] = {}
        self._entered: list[contextlib.AbstractContextManager[None]] = []

    @classmethod
    def is_infra_mode(cls) -> bool:
        return True

    def __enter__(self) -> "FunctionalTensorMode":
        # The mode in force is entered again as it is.
        place: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
        if _mode_in_force() is None:
            above = self.pre_dispatch
            place = pre_dispatch.with_mode(_FUNCTIONAL, self) if above else _below_autograd(self)
        place.__enter__()
        self._entered.append(place)
        self.is_on_stack = True
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self._entered.pop().__exit__(None, None, None)
        self.is_on_stack = bool(self._entered)

    @contextlib.contextmanager
    def off(self) -> Iterator[None]:
        """A block outside of the mode, wherever it is in force."""
        with disable_functional_mode():
            yield

    def __torch_dispatch__(
        self, func: OpOverload, types: tuple, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if any(map(_is_foreign, types)):
            return NotImplemented
        if func._schema.is_mutable and func.namespace != "aten":
            handled = _auto_functionalized(self, func, args, kwargs)
            if handled is not NotImplemented:
                return handled
        if self.pre_dispatch and not func._schema.is_mutable and not func.is_view:
            return self._on_values(func, args, kwargs)
        inner_args, inner_kwargs = pytree.tree_map_only(
            FunctionalTensor, _functional_elem, (args, kwargs)
        )
        with _recorded_below() if self.pre_dispatch else contextlib.nullcontext():
            out = _C._functionalize_call(func, inner_args, inner_kwargs)
        if func._schema.is_mutable:
            return _written(func, args, kwargs, out, self)
        return pytree.tree_map_only(torch.Tensor, self._wrap, out)

    def _on_values(self, func: OpOverload, args: tuple, kwargs: dict[str, Any]) -> Any:
        """An operator that writes nothing and shares nothing, whole: above autograd it is not taken
        apart."""
        values = pytree.tree_map_only(
            FunctionalTensor, FunctionalTensor.from_functional, (args, kwargs)
        )
        out = func(*values[0], **values[1])
        return pytree.tree_map_only(
            torch.Tensor, lambda t: self._wrap(_C._to_functional_tensor(t)), out
        )

    def _wrap(self, t: torch.Tensor) -> torch.Tensor:
        return FunctionalTensor(t, self) if _C._is_functional_tensor(t) else t


def _written(
    func: OpOverload, args: tuple, kwargs: dict[str, Any], out: Any, mode: FunctionalTensorMode
) -> Any:
    """The result of an operator that writes: arguments that were written are themselves."""
    known: dict[int, torch.Tensor] = {}

    def note(t: FunctionalTensor) -> None:
        known[id(t.elem)] = t
        if t.shape != t.elem.shape or t.stride() != t.elem.stride():
            _C._functionalize_mirror_shape(t, t.elem)

    pytree.tree_map_only(FunctionalTensor, note, (args, kwargs))
    return pytree.tree_map_only(
        torch.Tensor, lambda t: known[id(t)] if id(t) in known else mode._wrap(t), out
    )


def _auto_functionalized(
    mode: FunctionalTensorMode, func: OpOverload, args: tuple, kwargs: dict[str, Any]
) -> Any:
    """An operator of a user that writes: called by a higher-order operator that returns what it
    writes; NotImplemented where the operator must be called as it is."""
    try:
        from torch._higher_order_ops.auto_functionalize import (
            can_auto_functionalize,
            do_auto_functionalize,
        )
    except ImportError:
        return NotImplemented
    if not can_auto_functionalize(func):
        return NotImplemented
    return do_auto_functionalize(mode, func, args, kwargs)


@contextlib.contextmanager
def disable_functional_mode() -> Iterator[None]:
    """A block outside of the mode."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_below_autograd(None))
        if pre_dispatch.get_mode(_FUNCTIONAL) is not None:
            stack.enter_context(pre_dispatch.with_mode(_FUNCTIONAL, None))
        yield


def mb_unwrap_functional_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """What a functional tensor wraps; every other tensor is itself."""
    return tensor.from_functional() if isinstance(tensor, FunctionalTensor) else tensor


def dispatch_functionalize(
    func: Callable[..., Any], mode: FunctionalTensorMode | None = None
) -> Callable[..., Any]:
    """The function, run on functional tensors; what it returns is plain again."""
    mode = FunctionalTensorMode() if mode is None else mode

    def to_functional(t: torch.Tensor) -> torch.Tensor:
        return t if isinstance(t, FunctionalTensor) else FunctionalTensor.to_functional(t)

    def inner(*args: Any, **kwargs: Any) -> Any:
        with mode:
            args, kwargs = pytree.tree_map_only(torch.Tensor, to_functional, (args, kwargs))
            out = func(*args, **kwargs)
        return pytree.tree_map_only(FunctionalTensor, FunctionalTensor.from_functional, out)

    return inner


# ---- what kernels of higher-order operators use
class BaseFunctionalizeAPI(abc.ABC):
    """How a higher-order operator takes off and puts on the wrappers of one kind of
    functionalisation."""

    @abc.abstractmethod
    def wrap_tensors(self, args: Any) -> Any:
        """Plain tensors as functional ones."""

    @abc.abstractmethod
    def unwrap_tensors(self, args: Any) -> Any:
        """Functional tensors as their values."""

    @abc.abstractmethod
    def functionalize(self, inner_f: Callable[..., Any]) -> Callable[..., Any]:
        """A function that is functionalised when called."""

    @abc.abstractmethod
    def redispatch_to_next(self) -> contextlib.AbstractContextManager:
        """A block below this functionalisation."""

    @abc.abstractmethod
    def replace(self, input_tensor: torch.Tensor, output_tensor: torch.Tensor) -> None:
        """Replaces the value of a tensor."""

    @abc.abstractmethod
    def commit_update(self, tensor: torch.Tensor) -> None:
        """Makes the value a write."""

    @abc.abstractmethod
    def sync(self, tensor: torch.Tensor) -> None:
        """Brings a tensor up to date."""

    @abc.abstractmethod
    def mark_mutation_hidden_from_autograd(self, tensor: torch.Tensor) -> None:
        """The writes so far are of no concern to autograd."""


class PythonFunctionalizeAPI(BaseFunctionalizeAPI):
    """For FunctionalTensorMode."""

    def __init__(
        self, mode: FunctionalTensorMode | None = None, pre_dispatch: bool = False
    ) -> None:
        self.mode = mode if mode is not None else FunctionalTensorMode()
        self.pre_dispatch = pre_dispatch

    def wrap_tensors(self, args: Any) -> Any:
        with self.mode:
            return pytree.tree_map_only(torch.Tensor, FunctionalTensor.to_functional, args)

    def unwrap_tensors(self, args: Any) -> Any:
        return pytree.tree_map_only(FunctionalTensor, FunctionalTensor.from_functional, args)

    def functionalize(self, inner_f: Callable[..., Any]) -> Callable[..., Any]:
        return dispatch_functionalize(inner_f, self.mode)

    def redispatch_to_next(self) -> contextlib.AbstractContextManager:
        return contextlib.nullcontext()  # the mode is off while its handler runs

    def replace(self, input_tensor: FunctionalTensor, output_tensor: torch.Tensor) -> None:
        input_tensor.replace_(output_tensor)

    def commit_update(self, tensor: FunctionalTensor) -> None:
        tensor.commit_update()

    def sync(self, tensor: FunctionalTensor) -> None:
        tensor.sync()

    def mark_mutation_hidden_from_autograd(self, tensor: FunctionalTensor) -> None:
        tensor.mark_mutation_hidden_from_autograd()


@contextlib.contextmanager
def _functionalized_here() -> Iterator[None]:
    """A block in which factories make tensors of the key Functionalize, also below its kernel."""
    keys = _C.DispatchKeySet(_C.DispatchKey.Functionalize)
    excluded = _C._dispatch_tls_is_dispatch_key_excluded(_C.DispatchKey.Functionalize)
    _C._dispatch_tls_set_dispatch_key_excluded(_C.DispatchKey.Functionalize, False)
    try:
        with _C._IncludeDispatchKeyGuard(keys):
            yield
    finally:
        _C._dispatch_tls_set_dispatch_key_excluded(_C.DispatchKey.Functionalize, excluded)


def _refuse_writes(function: Callable[..., Any], arguments: Any) -> None:
    """Raises where a function given to an operator wrote to its arguments: nobody would see it."""
    from torch._higher_order_ops.utils import UnsupportedAliasMutationException

    for t in pytree.tree_leaves(arguments):
        if isinstance(t, torch.Tensor) and _C._functionalize_has_data_mutation(t):
            name = getattr(function, "__name__", type(function).__name__)
            raise UnsupportedAliasMutationException(f"{name} might be modifying the input!")


class CppFunctionalizeAPI(BaseFunctionalizeAPI):
    """For tensors of the key Functionalize without a Python wrapper."""

    def wrap_tensors(self, args: Any) -> Any:
        return pytree.tree_map_only(torch.Tensor, _C._to_functional_tensor, args)

    def unwrap_tensors(self, args: Any) -> Any:
        def value(t: torch.Tensor) -> torch.Tensor:
            if not _C._is_functional_tensor(t):
                return t
            _C._sync(t)
            return _C._from_functional_tensor(t)

        return pytree.tree_map_only(torch.Tensor, value, args)

    def functionalize(self, inner_f: Callable[..., Any]) -> Callable[..., Any]:
        def inner(*args: Any, **kwargs: Any) -> Any:
            with _functionalized_here():
                args, kwargs = self.wrap_tensors((args, kwargs))
                out = inner_f(*args, **kwargs)
            _refuse_writes(inner_f, (args, kwargs))
            return self.unwrap_tensors(out)

        return inner

    def redispatch_to_next(self) -> contextlib.AbstractContextManager:
        return _C._ExcludeDispatchKeyGuard(_C.DispatchKeySet(_C.DispatchKey.Functionalize))

    def replace(self, input_tensor: torch.Tensor, output_tensor: torch.Tensor) -> None:
        _C._functionalize_replace(input_tensor, output_tensor)

    def commit_update(self, tensor: torch.Tensor) -> None:
        _C._functionalize_commit_update(tensor)

    def sync(self, tensor: torch.Tensor) -> None:
        _C._functionalize_sync(tensor)

    def mark_mutation_hidden_from_autograd(self, tensor: torch.Tensor) -> None:
        _C._functionalize_mark_mutation_hidden_from_autograd(tensor)


class FunctorchFunctionalizeAPI(BaseFunctionalizeAPI):
    """For a level of torch.func.functionalize."""

    def __init__(self, interpreter: Any) -> None:
        self.interpreter = interpreter

    def wrap_tensors(self, args: Any) -> Any:
        level = self.interpreter.level()
        return pytree.tree_map_only(
            torch.Tensor, lambda t: _C._functorch._wrap_functional_tensor(t, level), args
        )

    def unwrap_tensors(self, args: Any) -> Any:
        level = self.interpreter.level()
        return pytree.tree_map_only(
            torch.Tensor, lambda t: _C._functorch._unwrap_functional_tensor(t, level)[0], args
        )

    def functionalize(self, inner_f: Callable[..., Any]) -> Callable[..., Any]:
        return torch.func.functionalize(inner_f)

    def redispatch_to_next(self) -> contextlib.AbstractContextManager:
        return _C._ExcludeDispatchKeyGuard(_C.DispatchKeySet(_C.DispatchKey.FunctionalizeMode))

    def replace(self, input_tensor: torch.Tensor, output_tensor: torch.Tensor) -> None:
        input_tensor.copy_(self.wrap_tensors(output_tensor))

    def commit_update(self, tensor: torch.Tensor) -> None:
        """A write to a tensor of a level is seen at once."""

    def sync(self, tensor: torch.Tensor) -> None:
        """A tensor of a level brings itself up to date."""

    def mark_mutation_hidden_from_autograd(self, tensor: torch.Tensor) -> None:
        """Levels do not tell such writes apart."""
