"""Replacing a file so that a crash, a full disk or a kill at any moment leaves either the old
content or the new one, never a mixture: write a temporary file beside it, force it to the disk,
rename it over the target, force the folder to the disk. All writes go through the functions
below, which tests replace to make the k-th one fail."""

import contextlib
import os
import secrets
import stat

__all__ = ["replacing"]

fsync = os.fsync
rename = os.replace


def open_for_writing(path, flags, mode):
    """A buffered binary file on a new descriptor."""
    return os.fdopen(os.open(path, flags | getattr(os, "O_CLOEXEC", 0), mode), "wb", 1 << 20)


def _mode_of(path):
    """The permission bits of a file to keep, or None if there is no regular file."""
    try:
        info = os.stat(path)
    except FileNotFoundError:
        return None
    return stat.S_IMODE(info.st_mode) if stat.S_ISREG(info.st_mode) else -1


def _sync_folder(folder):
    descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        fsync(descriptor)
    except OSError:
        # Some file systems cannot flush a folder; the rename itself has been done.
        pass
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def replacing(path):
    """Yields a binary file; when the block ends without an exception, its content is at `path`.

    A symbolic link is followed, so that the file it points to is replaced. Devices and pipes are
    written directly.
    """
    target = os.path.realpath(os.fsdecode(path))
    mode = _mode_of(target)
    if mode == -1:
        with open(target, "wb") as file:
            yield file
        return
    folder, base = os.path.split(target)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {os.path.dirname(os.fsdecode(path))} does not exist.")
    # The name of the temporary file must fit where the target's own does.
    name = f".{base.encode()[:180].decode(errors='ignore')}.{secrets.token_hex(6)}.tmp"
    temporary = os.path.join(folder, name)
    file = open_for_writing(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with file:
            yield file
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            fsync(file.fileno())
        rename(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)
