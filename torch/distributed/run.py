"""torchrun: starts the workers of a distributed program on this machine, restarts them when one
fails, and reports the first failure. `python -m torch.distributed.run [options] script.py args`."""

from __future__ import annotations

import argparse
import os
import sys
import uuid
from collections.abc import Callable, Sequence

import torch
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

__all__ = ["config_from_args", "get_args_parser", "main", "parse_args", "run"]


class _Env(argparse.Action):
    """An option whose default is an environment variable."""

    def __init__(self, dest: str, default: str = "", **kwargs: object) -> None:
        default = os.environ.get(f"PET_{dest.upper()}", default)
        super().__init__(dest=dest, default=default, **kwargs)

    def __call__(
        self, parser: object, namespace: object, values: str, option: object = None
    ) -> None:
        setattr(namespace, self.dest, values)


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
)
_SHORT = {"redirects": "-r", "tee": "-t"}


def get_args_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="torchrun", description=__doc__)
    for name, default, text in _OPTIONS:
        words = [f"--{name}"]
        if "-" in name:
            words.append(f"--{name.replace('-', '_')}")
        if name in _SHORT:
            words.insert(0, _SHORT[name])
        parser.add_argument(
            *words, dest=name.replace("-", "_"), action=_Env, default=default, help=text
        )
    parser.add_argument("--standalone", action="store_true", help="one node, a free port")
    parser.add_argument("-m", "--module", action="store_true", help="the script is a module's name")
    for name in ("no-python", "run-path"):
        parser.add_argument(
            f"--{name}", f"--{name.replace('-', '_')}", dest=name.replace("-", "_"),
            action="store_true",
        )  # fmt: skip
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


def _settings(text: str) -> dict[str, str]:
    pairs = [part.split("=", 1) for part in text.split(",") if part.strip()]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"--rdzv-conf is not key=value,...: {text}")
    return {key.strip(): value.strip() for key, value in pairs}


def config_from_args(
    args: argparse.Namespace,
) -> tuple[LaunchConfig, Callable | str, list[str]]:
    """What to start and how, from the command line."""
    least, most = parse_min_max_nnodes(args.nnodes)
    if not 0 < least <= most:
        raise AssertionError(f"nnodes must be 0 < min <= max, got {args.nnodes}")
    conf = _settings(args.rdzv_conf)
    backend, endpoint, run_id = args.rdzv_backend, args.rdzv_endpoint, args.rdzv_id
    if args.standalone:
        backend, endpoint, run_id = "c10d", "localhost:0", uuid.uuid4().hex
        conf["is_host"] = "true"
    elif backend == "static":
        conf["rank"] = str(int(args.node_rank))
        endpoint = endpoint or f"{args.master_addr}:{args.master_port}"
    config = LaunchConfig(
        min_nodes=least,
        max_nodes=most,
        nproc_per_node=determine_local_world_size(args.nproc_per_node),
        run_id=run_id,
        role=args.role,
        rdzv_endpoint=endpoint,
        rdzv_backend=backend,
        rdzv_configs=conf,
        max_restarts=int(args.max_restarts),
        monitor_interval=float(args.monitor_interval),
        start_method=args.start_method,
        log_dir=args.log_dir or None,
        redirects=int(args.redirects),
        tee=int(args.tee),
    )
    command, words = _command(args)
    return config, command, words


def _command(args: argparse.Namespace) -> tuple[str, list[str]]:
    if args.no_python:
        if args.module:
            raise ValueError("Don't use both the '--no-python' flag and the '--module' flag")
        return args.training_script, args.training_script_args
    words = ["-u", *(["-m"] if args.module else []), args.training_script]
    return os.environ.get("PYTHON_EXEC", sys.executable), [*words, *args.training_script_args]


def run(args: argparse.Namespace) -> None:
    """Runs what the command line says; raises ChildFailedError."""
    config, command, words = config_from_args(args)
    elastic_launch(config, command)(*words)


def main(args: Sequence[str] | None = None) -> None:
    """The command torchrun."""
    try:
        run(parse_args(args))
    except ChildFailedError as error:
        print(error, file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
