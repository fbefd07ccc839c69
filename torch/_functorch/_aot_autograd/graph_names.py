"""The name of the graph that is being compiled, for compilers that want to tell graphs apart."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from torch._functorch._aot_autograd.schemas import AOTConfig

__all__ = [
    "get_aot_compilation_context",
    "get_aot_graph_name",
    "get_graph_being_compiled",
    "graph_being_compiled",
    "set_model_name",
]


class _State(threading.local):
    names: tuple[str, ...] = ()
    model = "model"
    number = 0


_state = _State()


def set_model_name(name: str) -> None:
    """The first part of the names of graphs."""
    _state.model = name


def get_aot_compilation_context() -> tuple[list[str], str, int]:
    """The graphs being compiled, the name of the model, and how many graphs there were before."""
    return list(_state.names), _state.model, _state.number


def get_aot_graph_name() -> str:
    """A name for the graph, of the model, its kind and its number."""
    return f"{_state.model}__{'_'.join(_state.names)}_{_state.number}"


get_graph_being_compiled = get_aot_graph_name


@contextlib.contextmanager
def graph_being_compiled(config: AOTConfig, kind: str) -> Iterator[None]:
    """Inside, a graph of that kind is being compiled."""
    before = _state.names
    _state.names = (f"{config.aot_id}_{kind}",)
    try:
        yield
    finally:
        _state.number += 1
        _state.names = before
