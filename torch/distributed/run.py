"""torchrun: starts the workers of a distributed program on this machine, restarts them when one
fails, and reports the first failure. `python -m torch.distributed.run [options] script.py args`."""

from __future__ import annotations

import argparse
import os
import sys
import uuid
from collections.abc import Callable, Sequence
from importlib import metadata

import torch
from torch.distributed.argparse_util import check_env, env
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, LogsSpecs, Std
from torch.distributed.elastic.multiprocessing.errors import record
from torch.distributed.elastic.rendezvous.utils import _parse_rendezvous_config
from torch.distributed.elastic.utils import macros
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

__all__ = [
    "config_from_args",
    "determine_local_world_size",
    "get_args_parser",
    "get_rdzv_endpoint",
    "get_use_env",
    "main",
    "parse_args",
    "parse_min_max_nnodes",
    "run",
    "run_script_path",
]


_OPTIONS: tuple[tuple[str, str, str], ...] = (
    ("nnodes", "1:1", "number of nodes, or min:max"),
    ("nproc-per-node", "1", "workers per node: a number, auto, cpu or gpu"),
    ("rdzv-backend", "static", "how nodes find each other: static or c10d"),
    ("rdzv-endpoint", "", "host:port of the rendezvous"),
    ("rdzv-id", "none", "name of the job, the same on all nodes"),
    ("rdzv-conf", "", "further settings: key1=value1,key2=value2"),
    ("max-restarts", "0", "how often all workers are started anew"),
    ("monitor-interval", "0.1", "seconds between looks at the workers"),
    ("start-method", "spawn", "how functions are started"),
    ("role", "default", "name of the workers"),
    ("log-dir", "", "where output and reports are kept"),
    ("redirects", "0", "output into files: 0 none, 1 out, 2 err, 3 both"),
    ("tee", "0", "output into files and here: as redirects"),
    ("node-rank", "0", "number of this node, for static rendezvous"),
    ("master-addr", "127.0.0.1", "address of node 0, for static rendezvous"),
    ("master-port", "29500", "port on node 0, for static rendezvous"),
    ("local-addr", "", "address of this node"),
    ("local-ranks-filter", "", "ranks whose output is shown here: 0,2"),
    ("duplicate-stdout-filters", "", "words; lines with one go to a common file, too"),
    ("duplicate-stderr-filters", "", "the same for the error stream"),
    ("logs-specs", "", "entry point (torchrun.logs_specs) that says where output goes"),
    ("event-log-handler", "null", "where events go: null or console"),
    ("shutdown-timeout", "", "seconds between the end signal and SIGKILL"),
    ("signals-to-handle", "SIGTERM,SIGINT,SIGHUP,SIGQUIT", "signals that are passed to workers"),
)
_SHORT = {"redirects": "-r", "tee": "-t"}


def get_args_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="torchrun", description=__doc__)

    def words(name: str) -> list[str]:
        under = name.replace("-", "_")
        return [f"--{name}", *([f"--{under}"] if under != name else [])]

    for name, default, text in _OPTIONS:
        short = [_SHORT[name]] if name in _SHORT else []
        parser.add_argument(
            *short, *words(name), dest=name.replace("-", "_"), action=env, default=default,
            help=text,
        )  # fmt: skip
    for name, text in (
        ("standalone", "one node, a free port"),
        ("no-python", "the script is a program of its own"),
        ("run-path", "run the script as a function of a process, by its path"),
        ("virtual-local-rank", "every worker sees LOCAL_RANK 0"),
    ):
        parser.add_argument(*words(name), dest=name.replace("-", "_"), action=check_env, help=text)
    parser.add_argument("-m", "--module", action=check_env, help="the script is a module's name")
    parser.add_argument("training_script", help="what to run")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    """The parsed command line."""
    return get_args_parser().parse_args(args)


def parse_min_max_nnodes(nnodes: str) -> tuple[int, int]:
    """The least and the largest number of nodes in "2" or "1:4"."""
    parts = nnodes.split(":")
    if len(parts) not in (1, 2):
        raise RuntimeError(f'nnodes={nnodes} is not in "MIN:MAX" format')
    return int(parts[0]), int(parts[-1])


def determine_local_world_size(nproc_per_node: str) -> int:
    """The number of workers that a word or number means here."""
    if nproc_per_node.isdigit():
        return int(nproc_per_node)
    if nproc_per_node == "cpu":
        return os.cpu_count() or 1
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if nproc_per_node in ("gpu", "auto"):
        if nproc_per_node == "gpu" and gpus == 0:
            raise ValueError("Cuda is not available.")
        return gpus or os.cpu_count() or 1
    raise ValueError(f"Unsupported nproc_per_node value: {nproc_per_node}")


def get_use_env(args: argparse.Namespace) -> bool:
    """Whether the local rank is only in the environment; the older command says so itself."""
    return getattr(args, "use_env", True)


def get_rdzv_endpoint(args: argparse.Namespace) -> str:
    """host:port of the rendezvous; for a static one that of node 0."""
    if args.rdzv_backend == "static" and not args.rdzv_endpoint:
        return f"{args.master_addr}:{args.master_port}"
    return args.rdzv_endpoint


def run_script_path(training_script: str, *training_script_args: str) -> None:
    """Runs a script in this process as if it were the program."""
    import runpy

    sys.argv = [training_script, *training_script_args]
    runpy.run_path(training_script, run_name="__main__")


def _words(text: str) -> list[str] | None:
    return [word.strip() for word in text.split(",")] if text else None


def _logs_specs_class(name: str) -> type[LogsSpecs]:
    if not name:
        return DefaultLogsSpecs
    found = metadata.entry_points().select(group="torchrun.logs_specs")
    try:
        return found[name].load()
    except KeyError as error:
        raise ValueError(
            f"Could not find entrypoint under 'torchrun.logs_specs[{name}]' key"
        ) from error


def _logs_specs(args: argparse.Namespace) -> LogsSpecs:
    ranks = _words(args.local_ranks_filter)
    try:
        chosen = None if ranks is None else {int(rank) for rank in ranks}
    except ValueError as error:
        raise ValueError(
            "--local_ranks_filter must be a comma-separated list of integers e.g. "
            f"--local_ranks_filter=0,1,2, got {args.local_ranks_filter}"
        ) from error
    return _logs_specs_class(args.logs_specs)(
        log_dir=args.log_dir or None,
        redirects=Std.from_str(args.redirects),
        tee=Std.from_str(args.tee),
        local_ranks_filter=chosen,
    )


def config_from_args(
    args: argparse.Namespace,
) -> tuple[LaunchConfig, Callable | str, list[str]]:
    """What to start and how, from the command line."""
    least, most = parse_min_max_nnodes(args.nnodes)
    if not 0 < least <= most:
        raise AssertionError(f"nnodes must be 0 < min <= max, got {args.nnodes}")
    if int(args.max_restarts) < 0:
        raise AssertionError(f"max_restarts must not be negative, got {args.max_restarts}")
    conf = _parse_rendezvous_config(args.rdzv_conf)
    backend, endpoint, run_id = args.rdzv_backend, get_rdzv_endpoint(args), args.rdzv_id
    if args.standalone:
        backend, endpoint, run_id = "c10d", "localhost:0", uuid.uuid4().hex
        conf["is_host"] = "true"
    elif backend == "static":
        conf["rank"] = str(int(args.node_rank))
    config = LaunchConfig(
        min_nodes=least,
        max_nodes=most,
        nproc_per_node=determine_local_world_size(args.nproc_per_node),
        logs_specs=_logs_specs(args),
        run_id=run_id,
        role=args.role,
        rdzv_endpoint=endpoint,
        rdzv_backend=backend,
        rdzv_configs=conf,
        max_restarts=int(args.max_restarts),
        monitor_interval=float(args.monitor_interval),
        start_method=args.start_method,
        log_line_prefix_template=os.environ.get("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"),
        local_addr=args.local_addr or None,
        event_log_handler=args.event_log_handler,
        signals_to_handle=args.signals_to_handle,
        duplicate_stdout_filters=_words(args.duplicate_stdout_filters),
        duplicate_stderr_filters=_words(args.duplicate_stderr_filters),
        virtual_local_rank=args.virtual_local_rank,
        shutdown_timeout=int(args.shutdown_timeout) if args.shutdown_timeout else None,
    )
    return (config, *_command(args))


def _command(args: argparse.Namespace) -> tuple[Callable | str, list[str]]:
    script, words = args.training_script, list(args.training_script_args)
    if args.run_path:
        return run_script_path, [script, *words]
    if args.no_python:
        if args.module:
            raise ValueError("Don't use both the '--no-python' flag and the '--module' flag")
        return script, words
    if not get_use_env(args):
        words.insert(0, f"--local-rank={macros.local_rank}")
    interpreter = os.environ.get("PYTHON_EXEC", sys.executable)
    return interpreter, ["-u", *(["-m"] if args.module else []), script, *words]


def run(args: argparse.Namespace) -> None:
    """Runs what the command line says; raises ChildFailedError."""
    config, command, words = config_from_args(args)
    elastic_launch(config, command)(*words)


@record
def main(args: Sequence[str] | None = None) -> None:
    """The command torchrun."""
    run(parse_args(args))


if __name__ == "__main__":
    main()
