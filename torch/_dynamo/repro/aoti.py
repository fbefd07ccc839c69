"""Failures of models compiled into files (torch._inductor.aoti_compile_and_package with the setting
`aot_inductor.dump_aoti_minifier`, or DUMP_AOTI_MINIFIER=1): the exported program is saved beside a
launcher, which compiles, loads and runs it again and can make it smaller.

`aot_inductor.repro_level` is 1 for the program as it is, 2 for a launcher that reduces it, 3 for a
launcher before anything is compiled, 4 to compare results too."""

from __future__ import annotations

import contextlib
import copy
import functools
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import fx
from torch._dynamo.debug_utils import (
    IMPORTS,
    InputWriter,
    NNModuleToString,
    generate_config_string,
    helper_for_dump_minify,
    minifier_dir,
    same_two_models,
)
from torch._dynamo.repro import _program
from torch._dynamo.utils import clone_inputs
from torch.utils import _pytree as pytree

if TYPE_CHECKING:
    from torch.export import ExportedProgram

__all__ = [
    "AOTIMinifierError",
    "dump_to_minify",
    "export_for_aoti_minifier",
    "get_module_string",
    "repro_load_args",
    "run_repro",
    "watched",
]

log = logging.getLogger(__name__)
_DESCRIPTION = "Runs or reduces an exported program that AOTInductor fails on."
# The tools compile programs themselves: those must leave no launchers.
_quiet = False


class AOTIMinifierError(Exception):
    """A graph on the way to a smaller one cannot be exported."""

    def __init__(self, original_exception: Exception) -> None:
        super().__init__(
            "This error is caused by a bug in the AOTI minifier, please report a bug to PyTorch: "
            f"{original_exception}"
        )
        self.original_exception = original_exception


def get_module_string(gm: fx.GraphModule) -> str:
    """The module as a comment of a written program."""
    return "".join(
        f"# {line}\n" if line.strip() else "\n"
        for line in NNModuleToString.convert(gm).splitlines()
    )


def export_for_aoti_minifier(
    gm: torch.nn.Module,
    tuple_inputs: Sequence[object],
    strict: bool = False,
    skip_export_error: bool = True,
) -> torch.nn.Module | None:
    """The exported graph, or None where the graph returns something else than tensors or cannot be
    exported."""
    from torch.export import export

    if isinstance(gm, fx.GraphModule):
        returned = gm.graph.output_node().args[0]
        many = returned if isinstance(returned, (list, tuple)) else [returned]
        for value in many:
            if not isinstance(value, fx.Node) or value.op == "get_attr":
                return None
    try:
        return export(gm, tuple(tuple_inputs), strict=strict).module()
    except Exception as error:
        if skip_export_error:
            return None
        raise AOTIMinifierError(error) from error


# ---- watching compilations ------------------------------------------------------------------


@contextlib.contextmanager
def _without_launchers() -> Iterator[None]:
    global _quiet
    before, _quiet = _quiet, True
    try:
        yield
    finally:
        _quiet = before


def watched(compile_it: Callable, ep: ExportedProgram, patches: dict[str, object] | None) -> object:
    """What compiling an exported program gives. If that fails, or what was compiled fails on the
    program's example inputs, a launcher is left, by `aot_inductor.repro_level`."""
    from torch._inductor import config

    level = config.aot_inductor.repro_level
    if _quiet:
        return compile_it()
    if level == 3:
        dump_to_minify(ep, patches)
    try:
        with _without_launchers():
            path = compile_it()
            wrong = level == 4 and not _same(ep, path)
            if level != 4 and isinstance(path, (str, os.PathLike)):
                _run_package(ep, path)
    except Exception as error:
        if level != 3:
            command = "run" if level == 1 else "minify"
            dump_to_minify(ep, patches, command=command, check_str=type(error).__name__)
        error.minifier_path = minifier_dir()
        raise
    if wrong:
        dump_to_minify(ep, patches, accuracy="accuracy")
        error = _program.bad_accuracy()
        error.minifier_path = minifier_dir()
        raise error
    return path


def _loaded(path: object) -> Callable:
    from torch._inductor import aoti_load_package

    return aoti_load_package(path)


def _run_package(ep: ExportedProgram, path: object) -> object:
    args, kwargs = ep.example_inputs
    with torch.no_grad():
        return _loaded(path)(*clone_inputs(args), **kwargs)


def _same(ep: ExportedProgram, path: object) -> bool:
    return _agree(*_flat(ep), _loaded(path))


def _agree(gm: fx.GraphModule, inputs: Sequence[object], compiled: Callable) -> bool:
    def run(*args: object) -> tuple:
        found = pytree.tree_leaves(compiled(*args))
        return tuple(found)

    with torch.no_grad():
        return same_two_models(gm, run, list(inputs), only_fwd=True)


# ---- texts ----------------------------------------------------------------------------------


def _flat(ep: ExportedProgram) -> tuple[fx.GraphModule, list[object]]:
    """The program as a graph of a flat list of inputs, with its example inputs."""
    args, kwargs = ep.example_inputs
    if kwargs:
        raise NotImplementedError("the AOTI minifier: a program with keyword arguments")
    gm = ep.module(check_guards=False)
    graph = copy.deepcopy(gm.graph)
    graph.set_codegen(fx.graph.CodeGen())
    return fx.GraphModule(gm, graph), pytree.tree_leaves(tuple(args))


def _call(patches: dict[str, object] | None, options: dict[str, object]) -> str:
    given = "".join(f", {key}={value!r}" for key, value in options.items())
    return f"    run_repro(exported_program, config_patches={patches or {}!r}{given})"


def _launcher(ep: ExportedProgram, patches: dict | None, options: dict[str, object]) -> str:
    """A launcher for an exported program, which is saved beside it."""
    folder = str(options["save_dir"])
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "exported_program.pt2")
    torch.export.save(ep, path)
    parts = [
        IMPORTS,
        generate_config_string(),
        "\nisolate_fails_code_str = None\n",
        get_module_string(_flat(ep)[0]),
        "\nif __name__ == '__main__':",
        "    from torch._dynamo.repro.aoti import run_repro",
        f"    exported_program = torch.export.load({path!r})",
        _call(patches, options),
    ]
    return "\n".join(parts) + "\n"


def _repro(gm: fx.GraphModule, args: Sequence[object], patches: dict | None, options: dict) -> str:
    """A program that has a small graph as its text."""
    writer = InputWriter(options["save_dir"])
    names = [n.name for n in gm.graph.nodes if n.op == "placeholder"]
    for name, value in zip(names, args, strict=False):
        writer.any(name, value)
    parts = [
        IMPORTS,
        generate_config_string(),
        "\nisolate_fails_code_str = None\n\n",
        NNModuleToString.convert(gm),
        "\nmod = Repro()\n",
        "\n".join(writer.lines()),
        "\n\nif __name__ == '__main__':",
        "    from torch._dynamo.repro.aoti import repro_load_args, run_repro",
        f"    args = repro_load_args(load_args, save_dir={options['save_dir']!r})",
        "    exported_program = torch.export.export(mod, args)",
        _call(patches, options),
    ]
    return "\n".join(parts) + "\n"


def dump_to_minify(
    exported_program: ExportedProgram,
    patches: dict[str, object] | None = None,
    *,
    command: str = "minify",
    accuracy: str = "",
    check_str: str | None = None,
) -> None:
    """Leaves a launcher for an exported program."""
    options: dict[str, object] = {
        "accuracy": accuracy,
        "command": command,
        "save_dir": os.path.join(minifier_dir(), "checkpoints"),
        "check_str": check_str,
    }
    helper_for_dump_minify(_launcher(exported_program, patches, options))


# ---- programs -------------------------------------------------------------------------------


def repro_load_args(load_args: Callable | Sequence[object], save_dir: str | None) -> tuple:
    """The inputs of a written program."""
    return tuple(_program.load_inputs(load_args, save_dir))


def _fails(
    gm: fx.GraphModule,
    inputs: Sequence[object],
    *,
    patches: dict[str, object] | None,
    accuracy: str,
    check_str: str | None,
    strict: bool = False,
) -> bool:
    """Whether a graph fails on its way through AOTInductor."""
    from torch.export import export

    if export_for_aoti_minifier(gm, inputs, strict=strict) is None:
        return False
    try:
        with torch.no_grad():
            gm(*clone_inputs(inputs))
            ep = export(gm, tuple(inputs), strict=strict)
    except Exception:
        return False  # the graph itself does not run
    try:
        compiled = _compiled(ep, patches)
        if accuracy:
            return not _agree(copy.deepcopy(gm), inputs, compiled)
        compiled(*clone_inputs(inputs))
    except Exception as error:
        return not accuracy and _program.same_failure(error, check_str)
    return False


def _compiled(ep: ExportedProgram, patches: dict[str, object] | None) -> Callable:
    from torch._inductor import aoti_compile_and_package

    with _without_launchers(), torch.no_grad():
        return _loaded(aoti_compile_and_package(ep, inductor_configs=patches))


def run_repro(
    exported_program: ExportedProgram,
    *,
    config_patches: dict[str, object] | None = None,
    command: str = "run",
    accuracy: bool | str = "",
    save_dir: str | None = None,
    check_str: str | None = None,
    minifier_export_mode: str = "python",
    **unused: object,
) -> None:
    """The main function of a written program."""
    defaults = {
        "accuracy": "accuracy" if accuracy is True else accuracy,
        "save_dir": save_dir,
        "check_str": check_str,
    }
    options = _program.parse(_program.arguments(defaults, _DESCRIPTION), command)
    check = functools.partial(
        _fails,
        patches=config_patches,
        accuracy=options.accuracy,
        check_str=getattr(options, "check_str", check_str),
        strict=minifier_export_mode == "strict",
    )
    if options.command == "minify":
        _minify(exported_program, check, config_patches, options)
        return
    compiled = _compiled(exported_program, config_patches)
    args, kwargs = exported_program.example_inputs
    if options.accuracy:
        if not _agree(*_flat(exported_program), compiled):
            raise _program.bad_accuracy()
        return
    with torch.no_grad():
        compiled(*clone_inputs(args), **kwargs)


def _minify(
    ep: ExportedProgram, check: Callable, patches: dict[str, object] | None, options: object
) -> None:
    gm, inputs = _flat(ep)

    def write(found: fx.GraphModule, given: Sequence[object], save_dir: str | None) -> str:
        kept = {
            "accuracy": options.accuracy,
            "command": "run",
            "save_dir": save_dir,
            "check_str": options.check_str,
        }
        return _repro(found, given, patches, kept)

    with torch.no_grad():
        _program.reduce_graph(gm, inputs, check, write, options)
