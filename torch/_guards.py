"""What a compiler keeps while it traces: the compilation (CompileContext), the state of one trace
(TracingContext), where values come from (Source) and what has to hold for the result to be valid
(Guard). Contexts belong to a thread. Nothing here knows how guards are checked."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import re
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import torch
from torch import _C
from torch.utils import _pytree as pytree

if TYPE_CHECKING:
    import weakref

    from torch._subclasses.fake_tensor import FakeTensorMode

T = TypeVar("T")
COMPILE_ID_PATTERN = re.compile(r"^(?P<frame_id>\d+)/(?P<frame_compile_id>\d+)$")
CA_COMPILE_ID_PATTERN = re.compile(
    r"^!(?P<compiled_autograd_id>\d+)(?:/(?P<frame_id>\d+)/(?P<frame_compile_id>\d+))?$"
)


# ---- names of compilations


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompileId:
    """A compilation: the frame, how often it was compiled before, and the compiled backward pass it
    belongs to. Printed as "frame/compile"."""

    frame_id: int | None
    frame_compile_id: int | None
    compiled_autograd_id: int | None = None

    def __str__(self) -> str:
        frame = f"{self.frame_id}/{self.frame_compile_id}"
        if self.compiled_autograd_id is None:
            return frame
        backward = f"!{self.compiled_autograd_id}"
        return backward if self.frame_id is None else f"{backward}/{frame}"

    @classmethod
    def from_string(cls, compile_id: str | None) -> CompileId | None:
        """The compilation that prints as the text."""
        if compile_id is None:
            return None
        for pattern in (COMPILE_ID_PATTERN, CA_COMPILE_ID_PATTERN):
            match = pattern.match(compile_id)
            if match is not None:
                parts = {k: int(v) if v is not None else None for k, v in match.groupdict().items()}
                return cls(**{"frame_id": None, "frame_compile_id": None, **parts})
        raise ValueError(f"invalid compile id {compile_id!r}")


class TraceId(NamedTuple):
    """One attempt of a compilation."""

    compile_id: CompileId
    attempt: int

    def __str__(self) -> str:
        return str(self.compile_id) + (f"_{self.attempt}" if self.attempt else "")


# ---- where values come from


class GuardSource(enum.Enum):
    """What kind of place a value was found in."""

    LOCAL = 0
    GLOBAL = 1
    LOCAL_SPECIALIZED_NN_MODULE = 2
    GLOBAL_SPECIALIZED_NN_MODULE = 3
    CONSTANT = 4
    RANDOM_VALUE = 5
    SHAPE_ENV = 6
    LOCAL_FSDP_MODULE = 7
    GLOBAL_FSDP_MODULE = 8
    BACKWARD_STATE = 9
    EPHEMERAL = 10
    SYNTHETIC_LOCAL = 11
    LOCAL_UNSPECIALIZED_NN_MODULE = 12
    GLOBAL_UNSPECIALIZED_NN_MODULE = 13
    LOCAL_UNSPECIALIZED_BUILTIN_NN_MODULE = 14
    GLOBAL_UNSPECIALIZED_BUILTIN_NN_MODULE = 15
    TEMP_LOCAL = 16

    def is_local(self) -> bool:
        """Whether the frame's locals hold it."""
        return self.name.startswith("LOCAL")

    def is_fsdp_module(self) -> bool:
        """Whether it belongs to a module of FSDP."""
        return "FSDP" in self.name

    def is_specialized_nn_module(self) -> bool:
        """Whether it belongs to a module that is compiled into the code."""
        return "_SPECIALIZED" in self.name or self.is_fsdp_module()

    def is_unspecialized_nn_module(self) -> bool:
        """Whether it belongs to a module that is read when the code runs."""
        return "UNSPECIALIZED" in self.name

    def is_unspecialized_builtin_nn_module(self) -> bool:
        """The same for the modules of torch.nn."""
        return "UNSPECIALIZED_BUILTIN" in self.name


@dataclasses.dataclass(frozen=True)
class Source:
    """Where a value came from, as an expression that finds it again."""

    def is_dict_key(self) -> bool:
        """Whether it is a key of a dictionary."""
        return False

    def is_ephemeral(self) -> bool:
        """Whether it cannot be found again once the trace is over."""
        return False

    def reconstruct(self, codegen: object) -> None:
        """Emits code that loads the value."""
        raise NotImplementedError(f"{type(self).__name__} does not define reconstruct")

    def guard_source(self) -> GuardSource:
        """The kind of place."""
        raise NotImplementedError(f"{type(self).__name__} does not define guard_source")

    def name(self) -> str:
        """The expression as text."""
        raise NotImplementedError(f"{type(self).__name__} does not define name")

    def make_guard(self, fn: Callable[[GuardBuilderBase, Guard], None]) -> Guard:
        """A guard on the value."""
        if self.guard_source() is GuardSource.CONSTANT:
            raise NotImplementedError(f"a constant ({type(self).__name__}) needs no guard")
        return Guard(self, fn)

    def is_specialized_nn_module(self) -> bool:
        """Whether it belongs to a module that is compiled into the code."""
        return self.guard_source().is_specialized_nn_module()

    def subguards_allowed(self) -> bool:
        """Whether parts of the value may be guarded too."""
        return self.guard_source() is not GuardSource.SYNTHETIC_LOCAL


@dataclasses.dataclass(frozen=True)
class ChainedSource(Source):
    """A part of what another source gives."""

    base: Source

    def is_dict_key(self) -> bool:
        return self.base.is_dict_key()

    def is_ephemeral(self) -> bool:
        return self.base.is_ephemeral()

    def guard_source(self) -> GuardSource:
        return self.base.guard_source()

    def get_base(self) -> Source:
        """The source at the beginning of the chain."""
        source: Source = self
        while isinstance(source, ChainedSource):
            source = source.base
        return source


# ---- guards


class GuardBuilderBase:
    """Turns guards into checks."""


@dataclasses.dataclass(frozen=True)
class SLoc:
    """Lines in the framework and in the user's program."""

    framework_loc: traceback.FrameSummary | str | None
    maybe_user_loc: str | None

    def __str__(self) -> str:
        inner = f"at {self.framework_loc}"
        return f"at {self.maybe_user_loc} ({inner})" if self.maybe_user_loc else inner


class ShapeGuard(NamedTuple):
    """A relation between sizes and where it was asked for."""

    expr: object
    sloc: SLoc
    size_oblivious: bool = False


@dataclasses.dataclass
class Guard:
    """A condition on the value at a source. `create_fn` adds the check to a builder; what it
    checked is noted here for messages."""

    originating_source: Source
    create_fn: Callable[[GuardBuilderBase, Guard], None]
    guard_types: list[str] | None = None
    code_list: list[str] | None = None
    obj_weakref: object | None = None
    guarded_class_weakref: weakref.ReferenceType[type] | None = None
    stack: object | None = None
    user_stack: traceback.StackSummary | None = None

    def __hash__(self) -> int:
        return hash((self.name, self.source, self.create_fn_name()))

    def __eq__(self, other: object) -> bool:
        return self is other

    @property
    def name(self) -> str:
        """The expression of the source."""
        name = self.originating_source.name
        return name() if callable(name) else name

    @property
    def source(self) -> GuardSource:
        """The kind of place."""
        kind = self.originating_source.guard_source
        return kind() if callable(kind) else kind

    def inner_create_fn(self) -> Callable[..., None]:
        """create_fn without arguments that were bound to it."""
        return getattr(self.create_fn, "func", self.create_fn)

    def create_fn_name(self) -> str:
        """The name of the check."""
        return self.inner_create_fn().__name__

    def sort_key(self) -> tuple[bool, int, int, str, int]:
        """Order of checks: shapes last, then by kind and depth of the source."""
        kind, name = self.source, self.name
        line = self.inner_create_fn().__code__.co_firstlineno
        return kind is GuardSource.SHAPE_ENV, kind.value, len(name), name, line

    def __lt__(self, other: Guard) -> bool:
        return self.sort_key() < other.sort_key()

    def create(self, builder: GuardBuilderBase) -> None:
        """Adds the check; a failure says which guard it was."""
        try:
            self.create_fn(builder, self)
        except Exception as error:
            error.add_note(f"while making the guard {self.create_fn_name()} on {self.name}")
            raise

    def is_specialized_nn_module(self) -> bool:
        """Whether it is on a module that is compiled into the code."""
        return self.source.is_specialized_nn_module()

    def is_fsdp_module(self) -> bool:
        """Whether it is on a module of FSDP."""
        return self.source.is_fsdp_module()

    def is_local(self) -> bool:
        """Whether it is on a local variable."""
        return self.source.is_local()

    def set_export_info(
        self,
        guard_type: str,
        guarded_class: weakref.ReferenceType[type] | None,
        code_list: list[str],
        obj_weakref: object,
    ) -> None:
        """Notes what was checked."""
        self.guard_types = [*(self.guard_types or []), guard_type]
        self.code_list = [*(self.code_list or []), *code_list]
        self.guarded_class_weakref = guarded_class
        self.obj_weakref = obj_weakref


class GuardsSet:
    """Guards without repetition, in order."""

    def __init__(self, inner: Iterable[Guard] | None = None) -> None:
        self.inner: dict[Guard, None] = dict.fromkeys(inner or ())
        self._known = {self._key(guard) for guard in self.inner}

    @staticmethod
    def _key(guard: Guard) -> tuple[object, ...]:
        return guard.originating_source, guard.create_fn

    def __iter__(self) -> Iterator[Guard]:
        return iter(self.inner)

    def __len__(self) -> int:
        return len(self.inner)

    def __bool__(self) -> bool:
        return bool(self.inner)

    def __sub__(self, other: GuardsSet) -> GuardsSet:
        return GuardsSet(guard for guard in self if guard not in other.inner)

    def add(self, guard: Guard, *, collect_debug_stack: bool = True, skip: int = 0) -> None:
        """Adds a guard unless the same check is there."""
        if self._key(guard) in self._known:
            return
        if collect_debug_stack and guard.user_stack is None:
            guard.user_stack = TracingContext.extract_stack()
        self._known.add(self._key(guard))
        self.inner[guard] = None

    def update(self, *others: Iterable[Guard]) -> None:
        """Adds the guards of others."""
        for other in others:
            for guard in other:
                self.add(guard, collect_debug_stack=False)

    def get_guards_for_source(self, source: Source) -> list[Guard]:
        """The guards on a source."""
        return [guard for guard in self if guard.originating_source == source]

    def remove_guards_with_source(self, source: Source) -> None:
        """Drops the guards on a source and on parts of it."""

        def concerns(found: Source) -> bool:
            while found != source and isinstance(found, ChainedSource):
                found = found.base
            return found == source

        kept = [guard for guard in self if not concerns(guard.originating_source)]
        self.inner = dict.fromkeys(kept)
        self._known = {self._key(guard) for guard in kept}


@dataclasses.dataclass(frozen=True)
class GuardEnvExpr:
    """A condition on the inputs of a graph as a whole."""


@dataclasses.dataclass(frozen=True)
class DuplicateInputs(GuardEnvExpr):
    """Two inputs are one tensor."""

    input_source_a: Source
    input_source_b: Source

    def __post_init__(self) -> None:
        if self.input_source_a == self.input_source_b:
            raise AssertionError("an input cannot duplicate itself")


@dataclasses.dataclass(frozen=True)
class StorageOverlap(GuardEnvExpr):
    """Some inputs share memory, and others do not."""

    overlapping_sources: list[Source]
    non_overlapping_sources: list[Source]


# ---- state that a failed attempt is rolled back to


class Checkpointable(Generic[T]):
    """State of a trace that can be saved and put back."""

    def copy_graphstate(self) -> T:
        """The state as it is now."""
        raise NotImplementedError(f"{type(self).__name__} does not define copy_graphstate")

    def restore_graphstate(self, state: T) -> None:
        """Puts a saved state back."""
        raise NotImplementedError(f"{type(self).__name__} does not define restore_graphstate")


class GuardsContext(Checkpointable[GuardsSet]):
    """The guards of a trace."""

    def __init__(self) -> None:
        self.dynamo_guards = GuardsSet()
        self.aotautograd_guards: list[GuardEnvExpr] = []

    def copy_graphstate(self) -> GuardsSet:
        return GuardsSet(self.dynamo_guards)

    def restore_graphstate(self, state: GuardsSet) -> None:
        self.dynamo_guards = state


class ModuleContext(Checkpointable[dict]):
    """The modules that a trace refers to."""

    def __init__(self) -> None:
        self.nn_modules: dict[str, object] = {}

    def copy_graphstate(self) -> dict[str, object]:
        return dict(self.nn_modules)

    def restore_graphstate(self, state: dict[str, object]) -> None:
        self.nn_modules = state


class GlobalContext(Checkpointable[dict]):
    """Settings of the process that a trace changes, each with the function that sets it."""

    _supported_global_states = frozenset(
        {
            "grad_enabled",
            "autocast_enabled",
            "autocast_cpu_enabled",
            "autocast_gpu_dtype",
            "autocast_cpu_dtype",
            "autocast_cache_enabled",
        }
    )

    def __init__(self) -> None:
        self.global_state: dict[str, tuple[Callable[[object], None], object]] = {}

    def copy_graphstate(self) -> dict[str, tuple[Callable[[object], None], object]]:
        return dict(self.global_state)

    def restore_graphstate(self, state: dict[str, tuple[Callable[[object], None], object]]) -> None:
        unknown = set(state) - self._supported_global_states
        if unknown:
            raise AssertionError(f"unknown settings: {sorted(unknown)}")
        self.global_state = state
        for setter, value in state.values():
            setter(value)


# ---- contexts of a thread


class _Local(threading.local):
    compile_context: CompileContext | None = None
    tracing_context: TracingContext | None = None


_local = _Local()


class CompileContext:
    """One compilation, from its beginning to its end, with all attempts at tracing."""

    def __init__(self, compile_id: CompileId | None) -> None:
        self.compile_id = compile_id
        self.attempt = 0
        self.shape_env_guards: list[str] = []

    @staticmethod
    def try_get() -> CompileContext | None:
        """The compilation that this thread is in."""
        return _local.compile_context

    @staticmethod
    def get() -> CompileContext:
        """The same; an error outside of any."""
        if _local.compile_context is None:
            raise AssertionError("no compilation is under way")
        return _local.compile_context

    @staticmethod
    def current_compile_id() -> CompileId | None:
        """The name of the compilation."""
        context = _local.compile_context
        return None if context is None else context.compile_id

    @staticmethod
    def current_trace_id() -> TraceId | None:
        """The name of the attempt."""
        context = _local.compile_context
        if context is None or context.compile_id is None:
            return None
        return TraceId(context.compile_id, context.attempt)


class TracingContext:
    """The state of one trace."""

    def __init__(self, fake_mode: FakeTensorMode | None) -> None:
        self.fake_mode = fake_mode
        self.guards_context = GuardsContext()
        self.module_context = ModuleContext()
        self.global_context = GlobalContext()
        self.frame_summary_stack: list[traceback.FrameSummary] = []
        self.loc_in_frame: tuple[str, int, str] | None = None
        # What AOTAutograd and the backend tell each other about the graph.
        self.fw_metadata: object | None = None
        self.aot_graph_name: str | list[str] | None = None
        self.params_flat: list[torch.Tensor] | None = None
        self.params_flat_unwrap_subclasses: list[torch.Tensor] | None = None
        self.params_unwrapped_to_flat_index: list[int] | None = None
        self.output_strides: list[tuple[int, ...] | None] | None = None
        self.force_unspec_int_unbacked_size_like = False
        self.tensor_to_context: dict[object, object] = {}
        self.fakify_first_call = False
        self.hop_dispatch_set_cache: dict[object, object] = {}

    @staticmethod
    def try_get() -> TracingContext | None:
        """The trace that this thread is in."""
        return _local.tracing_context

    @staticmethod
    def get() -> TracingContext:
        """The same; an error outside of any."""
        if _local.tracing_context is None:
            raise RuntimeError("TracingContext.get() must be called within an ongoing trace.")
        return _local.tracing_context

    def clear(self) -> None:
        """Forgets guards, modules and what was said about outputs."""
        self.__init__(self.fake_mode)

    @staticmethod
    @contextlib.contextmanager
    def patch(**kwargs: object) -> Iterator[None]:
        """Inside, attributes of the trace have other values."""
        context = TracingContext.get()
        before = {name: getattr(context, name) for name in kwargs}
        try:
            for name, value in kwargs.items():
                setattr(context, name, value)
            yield
        finally:
            for name, value in before.items():
                setattr(context, name, value)

    @staticmethod
    def extract_stack() -> traceback.StackSummary:
        """The user's frames that are being traced, the outermost first."""
        context = _local.tracing_context
        if context is None:
            return traceback.StackSummary()
        return traceback.StackSummary.from_list([*context.frame_summary_stack, *context._here()])

    def _here(self) -> list[traceback.FrameSummary]:
        if self.loc_in_frame is None:
            return []
        filename, line, name = self.loc_in_frame
        return [traceback.FrameSummary(filename, line, name, lookup_line=False)]

    @staticmethod
    @contextlib.contextmanager
    def clear_frame() -> Iterator[None]:
        """Inside, no user frame is known."""
        with TracingContext.patch(frame_summary_stack=[], loc_in_frame=None):
            yield

    @staticmethod
    @contextlib.contextmanager
    def current_frame(frame_summary: traceback.FrameSummary | None) -> Iterator[None]:
        """Inside, the trace is in a frame called from the one before."""
        context = TracingContext.get()
        stack = [*context.frame_summary_stack]
        if frame_summary is not None:
            stack.append(frame_summary)
        with TracingContext.patch(frame_summary_stack=stack, loc_in_frame=None):
            yield

    @staticmethod
    def set_current_loc(filename: str, lineno: int, frame_name: str) -> None:
        """The line that is being traced."""
        TracingContext.get().loc_in_frame = filename, lineno, frame_name

    @staticmethod
    @contextlib.contextmanager
    def report_output_strides() -> Iterator[list[tuple[int, ...] | None] | None]:
        """A list that the backend fills with the strides of the outputs; None outside a trace."""
        context = _local.tracing_context
        if context is None:
            yield None
            return
        before, context.output_strides = context.output_strides, []
        try:
            yield context.output_strides
        finally:
            context.output_strides = before


@contextlib.contextmanager
def compile_context(context: CompileContext | None) -> Iterator[CompileContext | None]:
    """Inside, the thread is in that compilation."""
    before, _local.compile_context = _local.compile_context, context
    try:
        yield context
    finally:
        _local.compile_context = before


@contextlib.contextmanager
def tracing(context: TracingContext | None) -> Iterator[TracingContext | None]:
    """Inside, the thread is in that trace. An error that leaves it tells the user's frames."""
    before, _local.tracing_context = _local.tracing_context, context
    try:
        yield context
    except Exception as error:
        if not hasattr(error, "real_stack") and context is not None:
            with contextlib.suppress(AttributeError, TypeError):
                error.real_stack = TracingContext.extract_stack()
        raise
    finally:
        if context is not None and context.fake_mode is not None:
            shape_env = getattr(context.fake_mode, "shape_env", None)
            cleanup = getattr(shape_env, "cleanup", None)
            if cleanup is not None:
                cleanup()
        _local.tracing_context = before


# ---- fake modes


def active_fake_mode() -> FakeTensorMode | None:
    """The FakeTensorMode in force on this thread."""
    return _C._get_dispatch_mode(_C._TorchDispatchModeKey.FAKE)


def detect_fake_mode(inputs: object = None) -> FakeTensorMode | None:
    """The FakeTensorMode of a trace: of the tracing context, the active one, or the one that made
    the fake tensors among the inputs. They must agree."""
    from torch._subclasses.fake_tensor import maybe_get_fake_mode

    found: list[tuple[FakeTensorMode, str]] = []
    context = TracingContext.try_get()
    if context is not None and context.fake_mode is not None:
        found.append((context.fake_mode, "tracing context"))
    active = active_fake_mode()
    if active is not None:
        found.append((active, "active fake mode"))
    for i, leaf in enumerate(pytree.tree_leaves(inputs)):
        mode = maybe_get_fake_mode(leaf) if isinstance(leaf, torch.Tensor) else None
        if mode is not None:
            found.append((mode, f"fake tensor input {i}"))
    for mode, where in found[1:]:
        if mode is not found[0][0]:
            raise AssertionError(
                f"fake mode ({found[0][0]}) from {found[0][1]} doesn't match mode ({mode}) "
                f"from {where}"
            )
    return found[0][0] if found else None
