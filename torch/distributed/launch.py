"""The older command: `python -m torch.distributed.launch`, which is torchrun, except that the local
rank comes as the argument --local-rank unless --use-env is given."""

from __future__ import annotations

from collections.abc import Sequence

from torch.distributed.argparse_util import check_env
from torch.distributed.run import get_args_parser, run

__all__ = ["launch", "main", "parse_args"]


def parse_args(args: Sequence[str] | None) -> object:
    """The parsed command line."""
    parser = get_args_parser()
    parser.add_argument(
        "--use-env",
        "--use_env",
        default=False,
        action=check_env,
        help="the local rank only in the environment (LOCAL_RANK), not as an argument",
    )
    return parser.parse_args(args)


def launch(args: object) -> None:
    """Runs what the command line says."""
    if args.no_python and not args.use_env:
        raise ValueError(
            "When using the '--no-python' flag, you must also set the '--use-env' flag."
        )
    run(args)


def main(args: Sequence[str] | None = None) -> None:
    """The command."""
    launch(parse_args(args))


if __name__ == "__main__":
    main()
