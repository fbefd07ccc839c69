"""What the kernel says of a process."""

from __future__ import annotations

__all__ = ["is_uninterruptible_state", "read_proc_state"]


def read_proc_state(pid: int) -> str | None:
    """The letter of the process's state in /proc, None where there is no such process."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            text = file.read()
    except OSError:
        return None
    # The name of the program stands in parentheses and may contain any character.
    after_name = text.rpartition(")")[2].split()
    return after_name[0] if after_name else None


def is_uninterruptible_state(state: str | None) -> bool:
    """True for a process that waits in the kernel and takes no signal."""
    return state == "D"
