"""What a compilation leaves behind for a reader: the folders of TORCH_COMPILE_DEBUG=1, the text of
the compiled program, and checks of results for NaN. Nothing of it is made unless asked for."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import fx
from torch._inductor import config

__all__ = ["DebugContext", "debug_context", "listen", "with_nan_asserts"]

log = logging.getLogger(__name__)
_listeners: list[Callable[[str], None]] = []


@contextlib.contextmanager
def listen(listener: Callable[[str], None]) -> Iterator[None]:
    """Calls a function with the text of every graph compiled inside of the context."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def _logs_code() -> bool:
    from torch._logging import getArtifactLogger

    return getArtifactLogger("torch._inductor.graph", "output_code").isEnabledFor(logging.DEBUG)


def _log_loops(gm: fx.GraphModule, inputs: Sequence[object], compiled: object | None) -> None:
    """Writes the loops before and after fusion to their artifacts, where somebody asks for them."""
    from torch._inductor.ir_text import post_fusion, pre_fusion
    from torch._logging import getArtifactLogger

    texts = {
        "ir_pre_fusion": lambda: pre_fusion(gm),
        "ir_post_fusion": lambda: post_fusion(gm, _steps(inputs, compiled)),
        "schedule": lambda: _schedule(gm, _steps(inputs, compiled)),
    }
    for name, text in texts.items():
        logger = getArtifactLogger("torch._inductor.debug", name)
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s\n%s", name.replace("ir_", "loops ").replace("_", " "), text())


def _schedule(gm: fx.GraphModule, steps: list[tuple[str, str, list[int]]] | None) -> str:
    """The steps of the plan in their order, each with the operators it computes."""
    if steps is None:
        return "not known before the sizes are"
    nodes = [n for n in gm.graph.nodes if n.op != "output"]
    lines = []
    for place, (kind, name, members) in enumerate(steps):
        operators = ", ".join(f"{nodes[i].name} ({nodes[i].target})" for i in members)
        lines.append(f"{place}: {kind} {name}: {operators}")
    return "\n".join(lines)


def is_traced() -> bool:
    """Whether TORCH_TRACE asks for the code."""
    from torch._logging import _internal

    return bool(_internal.trace_log.handlers)


class _Nothing:
    """Artifacts that nobody asked for."""

    def fx_graph(self, gm: fx.GraphModule, inputs: Sequence[object]) -> None:
        """The graph as it came."""

    def fx_graph_transformed(self, gm: fx.GraphModule, inputs: Sequence[object]) -> None:
        """The graph after the passes."""

    def not_lowered(self, gm: fx.GraphModule, reason: str) -> None:
        """The graph runs as it is."""
        self.plan(gm, [n.meta.get("val") for n in _inputs_of(gm)], None)

    def plan(
        self,
        gm: fx.GraphModule,
        inputs: Sequence[object],
        compiled: torch._C._inductor.Compiled | None,
    ) -> None:
        """The program."""
        _log_loops(gm, inputs, compiled)
        if not _listeners and not _logs_code() and not is_traced():
            return
        code = _program(gm, inputs, _steps(inputs, compiled))
        self.output_code(code)

    def output_code(self, code: str, path: str | None = None) -> None:
        """Tells whoever listens."""
        from torch._logging import getArtifactLogger, trace_structured

        for listener in list(_listeners):
            listener(code)
        if _logs_code():
            logger = getArtifactLogger("torch._inductor.graph", "output_code")
            if path is not None:
                logger.debug("Output code written to: %s", path)
            logger.debug("Output code: \n%s", code)
        trace_structured(
            "inductor_output_code", lambda: {"filename": path}, payload_fn=lambda: code
        )


def _inputs_of(gm: fx.GraphModule) -> list[fx.Node]:
    return [n for n in gm.graph.nodes if n.op == "placeholder"]


def _steps(
    inputs: Sequence[object], compiled: torch._C._inductor.Compiled | None
) -> list[tuple[str, str, list[int]]] | None:
    if compiled is None:
        return None
    from torch._inductor.graph import NotLowered, hinted

    try:
        with torch.utils._python_dispatch._disable_current_modes():
            return compiled.steps(hinted(inputs))
    except (NotLowered, RuntimeError):
        return None  # shapes that are not known before it runs


def _program(gm: fx.GraphModule, inputs: Sequence[object], steps: list | None) -> str:
    from torch._inductor.codegen.wrapper import write_module

    return write_module(gm, inputs, steps)


class DebugContext(_Nothing):
    """The artifacts of one graph in a folder of their own."""

    _counter = itertools.count()

    def __init__(self, folder: str) -> None:
        self.path = folder

    @staticmethod
    def create_debug_dir(folder_name: str) -> str | None:
        """A new folder below that of this run."""
        from torch._dynamo.debug_utils import run_folder

        root = config.trace.debug_dir
        base = os.path.join(root, "torchinductor") if root else run_folder("torchinductor")
        for number in itertools.count():
            path = os.path.join(base, f"{folder_name}.{number}")
            if not os.path.exists(path):
                os.makedirs(path)
                return path
        return None

    @contextlib.contextmanager
    def fopen(self, filename: str, write_mode: str = "w") -> Iterator[object]:
        """A file of the folder."""
        with open(os.path.join(self.path, filename), write_mode) as file:
            yield file

    def filename(self, suffix: str) -> str:
        """The path of a file of the folder."""
        return os.path.join(self.path, suffix)

    def _write(self, name: str, text: str) -> None:
        with self.fopen(name) as file:
            file.write(text)

    def fx_graph(self, gm: fx.GraphModule, inputs: Sequence[object]) -> None:
        if not config.trace.fx_graph:
            return
        from torch._dynamo.repro.after_aot import save_graph_repro

        with self.fopen("fx_graph_runnable.py") as file:
            save_graph_repro(
                file, gm, inputs, "inductor", save_dir=self.path if _real_tensors() else None
            )
        self._write("fx_graph_readable.py", gm.print_readable(print_output=False))

    def fx_graph_transformed(self, gm: fx.GraphModule, inputs: Sequence[object]) -> None:
        if config.trace.fx_graph_transformed:
            self._write("fx_graph_transformed.py", gm.print_readable(print_output=False))

    def plan(
        self,
        gm: fx.GraphModule,
        inputs: Sequence[object],
        compiled: torch._C._inductor.Compiled | None,
    ) -> None:
        from torch._inductor.ir_text import post_fusion, pre_fusion

        _log_loops(gm, inputs, compiled)
        steps = _steps(inputs, compiled)
        if config.trace.ir_pre_fusion:
            self._write("ir_pre_fusion.txt", pre_fusion(gm))
        if config.trace.ir_post_fusion:
            self._write("ir_post_fusion.txt", post_fusion(gm, steps))
        if config.trace.output_code:
            code = _program(gm, inputs, steps)
            self._write("output_code.py", code)
            self.output_code(code, self.filename("output_code.py"))

    def close(self) -> None:
        """Says where the folder is."""
        log.warning("%s debug trace: %s", _graph_name(), self.path)
        if config.trace.upload_tar is not None:
            self.upload_tar()

    def upload_tar(self) -> None:
        """Hands the folder as an archive to the function of the setting."""
        import tarfile

        archive = f"{self.path}.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(self.path, arcname=os.path.basename(self.path))
        config.trace.upload_tar(archive)


def _real_tensors() -> bool:
    return bool(config.trace.save_real_tensors)


def _graph_name() -> str:
    from torch._functorch.aot_autograd import get_aot_graph_name

    return get_aot_graph_name()


@contextlib.contextmanager
def debug_context(gm: fx.GraphModule, inputs: Sequence[object]) -> Iterator[_Nothing]:
    """What receives the artifacts of a graph."""
    if not config.trace.enabled:
        yield _Nothing()
        return
    name = re.sub(r"\W+", "_", _graph_name())
    made = DebugContext(DebugContext.create_debug_dir(name))
    try:
        yield made
    finally:
        made.close()


# ---- NaN ------------------------------------------------------------------------------------


class _Watched(fx.Interpreter):
    """Runs a graph and stops at the first value that is not finite although all it was made of
    were."""

    def run_node(self, n: fx.Node) -> object:
        found = super().run_node(n)
        if n.op == "output":
            return found
        for value in found if isinstance(found, (list, tuple)) else [found]:
            _check(value, n)
        return found


def _check(value: object, node: fx.Node) -> None:
    if not isinstance(value, torch.Tensor) or not (value.is_floating_point() or value.is_complex()):
        return
    if value.isnan().any():
        raise AssertionError(f"{node.name} ({node.target}) has NaN:{_where(node)}")
    if value.isinf().any():
        raise AssertionError(f"{node.name} ({node.target}) has infinities:{_where(node)}")


def _where(node: fx.Node) -> str:
    trace = node.meta.get("stack_trace")
    return f"\n{trace}" if trace else f" {node.format_node()}"


def with_nan_asserts(
    compiled: Callable[[list[object]], Sequence[object]], gm: fx.GraphModule
) -> Callable[[list[object]], Sequence[object]]:
    """The compiled function with a look at what goes in and comes out. If a result is not finite,
    the graph is run again operator by operator and the first bad one named."""

    def run(args: list[object]) -> Sequence[object]:
        given = list(args)
        for node, value in zip(_inputs_of(gm), given, strict=True):
            _check(value, node)
        before = [a.clone() if isinstance(a, torch.Tensor) else a for a in given]
        found = compiled(args)
        if any(_is_bad(value) for value in found):
            _Watched(gm).run(*before)
            raise AssertionError(
                "a result of the compiled graph has NaN or infinities, and no operator run by "
                "itself has: a kernel is wrong"
            )
        return found

    run._boxed_call = True
    return run


# ---- synchronisation ------------------------------------------------------------------------


class _Synchronised(fx.Interpreter):
    """Runs a graph and waits for the device after every operator, so that an error is that of the
    operator it names."""

    def run_node(self, n: fx.Node) -> object:
        found = super().run_node(n)
        if n.op == "call_function":
            try:
                torch.cuda.synchronize()
            except RuntimeError as error:
                raise RuntimeError(f"{n.name} ({n.target}): {error}{_where(n)}") from error
        return found


def _is_on_cuda(gm: fx.GraphModule) -> bool:
    values = [n.meta.get("val") for n in gm.graph.nodes]
    return any(isinstance(v, torch.Tensor) and v.device.type == "cuda" for v in values)


def with_syncs(
    compiled: Callable[[list[object]], Sequence[object]], gm: fx.GraphModule
) -> Callable[[list[object]], Sequence[object]]:
    """A compiled function of a device that waits for it: after every operator, which then run one
    by one (triton.debug_sync_kernel), or at the end (triton.debug_sync_graph)."""
    one_by_one = config.triton.debug_sync_kernel
    if not (one_by_one or config.triton.debug_sync_graph) or not _is_on_cuda(gm):
        return compiled

    def run(args: list[object]) -> Sequence[object]:
        if one_by_one:
            found = _Synchronised(gm).run(*args)
            return found if isinstance(found, (list, tuple)) else [found]
        found = compiled(args)
        torch.cuda.synchronize()
        return found

    run._boxed_call = True
    return run


def _is_bad(value: object) -> bool:
    if not isinstance(value, torch.Tensor) or not (value.is_floating_point() or value.is_complex()):
        return False
    return not bool(value.isfinite().all())
