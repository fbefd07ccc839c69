"""Values that are set for a stretch of the compilation and asked for by name: V.fake_mode, V.graph,
V.ops. `with V.set_fake_mode(mode)` sets one."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

__all__ = ["NullHandler", "V", "Virtualized", "ops"]


class NullHandler:
    """What stands where nothing was set."""

    def __bool__(self) -> bool:
        return False


class Virtualized:
    """One such value, by thread."""

    def __init__(self, vname: str, default: Callable[[], object]) -> None:
        self._name = vname
        self._default = default
        self._local = threading.local()

    def get(self) -> object:
        """The value now."""
        return getattr(self._local, "value", None) or self._default()

    @contextlib.contextmanager
    def set(self, value: object) -> Iterator[None]:
        """The value inside of the context."""
        before = getattr(self._local, "value", None)
        self._local.value = value
        try:
            yield
        finally:
            self._local.value = before


def _index_handler() -> object:
    from torch._inductor.ops_handler import MockHandler

    return MockHandler()


def _choices() -> object:
    from torch._inductor.choices import InductorChoices

    return InductorChoices()


class _V:
    """The values by name."""

    def __init__(self) -> None:
        kinds = "graph kernel fake_mode real_inputs current_node aot_compilation interpreter debug"
        self._values = {name: Virtualized(name, NullHandler) for name in kinds.split()}
        self._values["ops"] = Virtualized("ops", _index_handler)
        self._values["choices"] = Virtualized("choices", _choices)
        self._values["extern_kernel_nodes"] = Virtualized("extern_kernel_nodes", list)

    def __getattr__(self, name: str) -> object:
        values = self.__dict__["_values"]
        if name in values:
            return values[name].get()
        for prefix in ("set_", "get_"):
            short = name.removeprefix(prefix).removesuffix("_handler")
            if name.startswith(prefix) and short in values:
                return values[short].set if prefix == "set_" else values[short].get
        raise AttributeError(f"V has no value {name!r}")

    @property
    def MockHandler(self) -> type:
        """The handler that writes operations as text."""
        from torch._inductor.ops_handler import MockHandler

        return MockHandler

    @property
    def WrapperHandler(self) -> type:
        """A handler that passes everything on."""
        from torch._inductor.ops_handler import WrapperHandler

        return WrapperHandler


V = _V()


class _Ops:
    """ops.add(a, b) is what the present handler makes of it."""

    def __getattr__(self, name: str) -> Callable:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(V.ops, name)


ops = _Ops()
