"""Command-line options whose defaults come from environment variables: --nnodes from PET_NNODES."""

from __future__ import annotations

import os
from argparse import Action, ArgumentParser, Namespace

__all__ = ["check_env", "env"]


def _variable(dest: str) -> str | None:
    return os.environ.get(f"PET_{dest.upper()}")


class env(Action):
    """An option with a value. One that the environment gives is not required."""

    def __init__(
        self, dest: str, default: object = None, required: bool = False, **kwargs: object
    ) -> None:
        default = default if _variable(dest) is None else _variable(dest)
        super().__init__(dest=dest, default=default, required=required and not default, **kwargs)

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Takes the value of the command line."""
        setattr(namespace, self.dest, values)


class check_env(Action):
    """A switch. In the environment 1 is on and 0 is off."""

    def __init__(self, dest: str, default: bool = False, **kwargs: object) -> None:
        word = _variable(dest)
        super().__init__(
            dest=dest, const=True, default=default if word is None else bool(int(word)), nargs=0,
            **kwargs,
        )  # fmt: skip

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Switches it on."""
        setattr(namespace, self.dest, self.const)
