"""A graph module that generates its code when it is first run, printed or asked for. Compilers make
many modules that nobody runs; for them the text would be wasted."""

import contextlib
from collections.abc import Iterator
from typing import Any

from torch.fx.graph_module import (
    GraphModule,
    _deserialize_graph_module,
    _forward_from_src,
)

_use_lazy_graph_module_flag = False
_force_skip_lazy_graph_module_flag = False


@contextlib.contextmanager
def _use_lazy_graph_module(should_use: bool) -> Iterator[None]:
    """While it lasts, traces make lazy modules, or not."""
    global _use_lazy_graph_module_flag
    before = _use_lazy_graph_module_flag
    _use_lazy_graph_module_flag = should_use and not _force_skip_lazy_graph_module_flag
    try:
        yield
    finally:
        _use_lazy_graph_module_flag = before


@contextlib.contextmanager
def _force_skip_lazy_graph_module() -> Iterator[None]:
    """While it lasts, nobody makes lazy modules, whatever _use_lazy_graph_module says."""
    global _force_skip_lazy_graph_module_flag
    before = _force_skip_lazy_graph_module_flag
    _force_skip_lazy_graph_module_flag = True
    try:
        with _use_lazy_graph_module(False):
            yield
    finally:
        _force_skip_lazy_graph_module_flag = before


def _get_graph_module_cls() -> type[GraphModule]:
    """The class that traces make now."""
    return _LazyGraphModule if _use_lazy_graph_module_flag else GraphModule


def _make_graph_module(
    *args: Any, graph_module_cls: type[GraphModule] | None = None, **kwargs: Any
) -> GraphModule:
    """A graph module of the class given, or of the one traces make now."""
    cls = _get_graph_module_cls() if graph_module_cls is None else graph_module_cls
    return cls(*args, **kwargs)


def reduce_lazy_graph_module(body: dict[Any, Any], import_block: str) -> Any:
    """A lazy module from its pickled attributes and the import lines of its text."""
    forward = _forward_from_src(f"{import_block}\n{body['_code']}", {})
    return _deserialize_graph_module(forward, body, graph_module_cls=_LazyGraphModule)


class _LazyGraphModule(GraphModule):
    """`recompile` only notes that code is needed; `real_recompile` generates it."""

    @classmethod
    def from_graphmodule(cls, gm: GraphModule) -> "_LazyGraphModule":
        """A lazy module with the same graph; a lazy one itself."""
        if isinstance(gm, _LazyGraphModule):
            return gm
        return cls(gm, gm.graph)

    @staticmethod
    def force_recompile(gm: Any) -> None:
        """Generates the code of a lazy module now."""
        if isinstance(gm, _LazyGraphModule):
            gm.real_recompile()

    def real_recompile(self) -> None:
        """Generates the code, if that has not been done."""
        if self._needs_recompile():
            GraphModule.recompile(self)

    @classmethod
    def _needs_recompile(cls) -> bool:
        return vars(cls).get("forward", cls._lazy_forward) is cls._lazy_forward

    def _lazy_forward(self, *args: Any, **kwargs: Any) -> Any:
        self.real_recompile()
        if self._needs_recompile():
            raise AssertionError("recompile left the lazy forward in place")
        return self(*args, **kwargs)

    forward = _lazy_forward

    def recompile(self) -> None:
        """Forgets the code; it is generated when it is needed."""
        type(self).forward = type(self)._lazy_forward

    @property
    def code(self) -> str:
        """The text of forward."""
        self.real_recompile()
        return super().code

    def __str__(self) -> str:
        self.real_recompile()
        return super().__str__()

    def __reduce__(self) -> tuple:
        self.real_recompile()
        _, state = super().__reduce__()
        return reduce_lazy_graph_module, state

    def __reduce_package__(self, exporter: Any) -> tuple:
        self.real_recompile()
        return super().__reduce_package__(exporter)
