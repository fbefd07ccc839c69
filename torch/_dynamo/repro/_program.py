"""What programs of all repro levels share: their text, their command line, checks in forked
children, and the loop that makes a graph smaller."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from torch import fx
from torch._dynamo.debug_utils import (
    IMPORTS,
    AccuracyError,
    InputReader,
    InputWriter,
    NNModuleToString,
    generate_config_string,
    minifier_dir,
)

if TYPE_CHECKING:
    import argparse

__all__ = [
    "arguments",
    "fails_in_child",
    "load_inputs",
    "parse",
    "reduce_graph",
    "write_program",
]

log = logging.getLogger(__name__)
Check = Callable[[fx.GraphModule, Sequence[object]], bool]


def write_program(
    gm: fx.GraphModule,
    args: Sequence[object],
    module: str,
    options: dict[str, object],
    *,
    save_dir: str | None = None,
    names: Sequence[str] | None = None,
    stable_output: bool = False,
) -> str:
    """A program that makes the graph and its inputs and calls `run_repro` of a module with
    options."""
    writer = InputWriter(save_dir)
    if names is None:
        names = [n.name for n in gm.graph.nodes if n.op == "placeholder"]
    for name, value in zip(names, args, strict=False):
        writer.any(name, value)
    given = "".join(f", {key}={value!r}" for key, value in options.items())
    parts = [
        IMPORTS,
        generate_config_string(stable_output=stable_output),
        "\nisolate_fails_code_str = None\n\n",
        NNModuleToString.convert(gm),
        "\nmod = Repro()\n",
        "\n".join(writer.lines()),
        "\n\nif __name__ == '__main__':",
        f"    from {module} import run_repro",
        f"    run_repro(mod, load_args{given})",
    ]
    return "\n".join(parts) + "\n"


def load_inputs(load_args: Callable | Sequence[object], save_dir: str | None) -> list[object]:
    """The inputs of a program."""
    if not callable(load_args):
        return list(load_args)
    reader = InputReader(save_dir)
    load_args(reader)
    return reader.args


# ---- the command line -----------------------------------------------------------------------


def arguments(defaults: dict[str, object], description: str) -> argparse.ArgumentParser:
    """The parser of a program: commands run, minify, and the rest."""
    import argparse

    parser = argparse.ArgumentParser(description=description)
    commands = parser.add_subparsers(dest="command", metavar="{run,minify}", required=False)
    run = commands.add_parser("run", help="run the program; it fails as the original did")
    minify = commands.add_parser("minify", help="look for a smaller program that fails")
    analyze = commands.add_parser("analyze", help="print the value of every node that differs")
    query = commands.add_parser("minifier-query", help="exit status 1 if the program fails")
    for one in (run, minify, analyze, query):
        _common(one, defaults)
    _minify_only(minify, defaults)
    return parser


def _common(parser: argparse.ArgumentParser, defaults: dict[str, object]) -> None:
    accuracy = parser.add_mutually_exclusive_group()
    accuracy.add_argument(
        "--no-accuracy", dest="accuracy", action="store_const", const="", default=None
    )
    accuracy.add_argument("--accuracy", action="store_const", const="accuracy", default=None)
    accuracy.add_argument(
        "--strict-accuracy", dest="accuracy", action="store_const", const="strict_accuracy"
    )
    parser.set_defaults(accuracy=defaults.get("accuracy") or "")
    parser.add_argument("--save-dir", default=defaults.get("save_dir"))
    parser.add_argument("--no-save-dir", dest="save_dir", action="store_const", const=None)
    parser.add_argument("--tracing-mode", default=defaults.get("tracing_mode", "real"))
    parser.add_argument("--only-fwd", action="store_true")
    parser.add_argument("--autocast", action="store_true", default=defaults.get("autocast", False))
    parser.add_argument("--backend", default=defaults.get("backend"))


def _minify_only(parser: argparse.ArgumentParser, defaults: dict[str, object]) -> None:
    isolate = parser.add_mutually_exclusive_group()
    isolate.add_argument("--isolate", action="store_true", default=bool(defaults.get("isolate")))
    isolate.add_argument("--no-isolate", dest="isolate", action="store_false")
    parser.add_argument("--skip-saving-eager-intermediates", action="store_true")
    parser.add_argument("--offload-to-disk", action="store_true")
    parser.add_argument("--skip-offload", action="store_true")
    parser.add_argument("--skip-sanity", action="store_true")
    parser.add_argument("--max-granularity", type=int, default=None)
    parser.add_argument("--check-str", default=defaults.get("check_str"))


def parse(parser: argparse.ArgumentParser, command: str) -> argparse.Namespace:
    """What the command line says; a program without a command does what it was written for."""
    given = sys.argv[1:]
    if not given or given[0].startswith("-"):
        given = [command, *given]
    return parser.parse_args(given)


# ---- reduction ------------------------------------------------------------------------------


def fails_in_child(check: Check, gm: fx.GraphModule, inputs: Sequence[object]) -> bool:
    """The check in a process of its own: one that dies has failed too."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = 2
        try:
            with contextlib.suppress(Exception):
                code = 1 if check(gm, inputs) else 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    return os.WEXITSTATUS(status) == 1


def reduce_graph(
    gm: fx.GraphModule,
    inputs: Sequence[object],
    check: Check,
    write: Callable[[fx.GraphModule, Sequence[object], str | None], str],
    options: argparse.Namespace,
) -> None:
    """Makes the graph smaller as long as the check says that it fails, and leaves the smallest in
    repro.py of the current folder and of the folder of launchers."""
    from torch._functorch.fx_minifier import minifier

    seen = 0

    def one(candidate: fx.GraphModule, given: Sequence[object]) -> bool:
        nonlocal seen
        seen += 1
        if options.isolate:
            return fails_in_child(check, candidate, given)
        return check(candidate, given)

    def dump(found: fx.GraphModule, given: Sequence[object]) -> None:
        _leave(write(found, given, options.save_dir))

    smallest, _ = minifier(
        gm,
        inputs,
        module_fails=one,
        dump_state=dump,
        save_dir=options.save_dir,
        offload_to_disk=options.offload_to_disk,
        skip_offload=options.skip_offload,
        skip_sanity=options.skip_sanity,
        max_granularity=options.max_granularity,
    )
    calls = sum(n.op not in ("placeholder", "output") for n in smallest.graph.nodes)
    print(f"Made {seen} queries; the smallest graph that fails has {calls} operators")


def _leave(text: str) -> None:
    for folder in (minifier_dir(), os.getcwd()):
        path = os.path.join(folder, "repro.py")
        try:
            with open(path, "w") as file:
                file.write(text)
        except OSError:
            log.warning("No write permissions for %s", path)
        else:
            log.warning("Writing minified repro to:\n%s", path)


def same_failure(error: Exception, wanted: str | None) -> bool:
    """Whether an error is the one looked for: the text of the first one occurs in it."""
    return wanted is None or wanted in repr(error) or wanted in type(error).__name__


def bad_accuracy() -> AccuracyError:
    """What programs raise whose compiled form computes something else."""
    return AccuracyError("Bad accuracy detected")
