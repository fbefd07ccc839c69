"""Replacing a file so that a crash, a full disk or a kill at any moment leaves either the old
content or the new one, never a mixture: write a temporary file beside it, force it to the disk,
rename it over the target, force the folder to the disk. Where the system can, the temporary file
has no name until it is whole, so that a killed process leaves nothing behind. All writes go through
the functions below, which tests replace to make the k-th one fail."""

from __future__ import annotations

import contextlib
import errno
import os
import stat

__all__ = ["replacing"]

fsync = os.fsync
rename = os.replace
_naming = {}  # number of a file system -> whether files there can get their name late
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF, errno.EACCES, errno.EROFS)


def open_for_writing(path, flags, mode):
    """A buffered binary file on a new descriptor."""
    return os.fdopen(os.open(path, flags | getattr(os, "O_CLOEXEC", 0), mode), "wb", 1 << 20)


def _mode_of(path) -> int | None:
    """The permission bits of a file to keep, or None if there is no regular file."""
    try:
        info = os.stat(path)
    except FileNotFoundError:
        return None
    return stat.S_IMODE(info.st_mode) if stat.S_ISREG(info.st_mode) else -1


def give_name(descriptor, folder, path) -> None:
    """Enters the file of a descriptor, which has no name as yet, into its folder."""
    place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Only with a folder does os.link follow the link in /proc.
        os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=place, follow_symlinks=True)
    finally:
        os.close(place)


def _sync_folder(folder) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        # Some file systems cannot flush a folder, and some folders cannot be opened.
        if error.errno not in _NO_SYNC:
            raise


def _names_late(folder, path):
    """Whether a file in the folder can be written first and get its name afterwards. Tried once for
    each file system: kernels, file systems and sandboxes differ in it."""
    if not hasattr(os, "O_TMPFILE"):
        return False
    device = os.stat(folder).st_dev
    if device not in _naming:
        try:
            descriptor = os.open(folder, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
            try:
                give_name(descriptor, folder, path)
            finally:
                os.close(descriptor)
            os.unlink(path)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.EACCES):
                return False  # says nothing about the file system
            _naming[device] = False
        else:
            _naming[device] = True
    return _naming[device]


def _open_temporary(folder, path):
    """A new file in the folder, and whether it has the name `path` already."""
    if _names_late(folder, path):
        return open_for_writing(folder, os.O_WRONLY | os.O_TMPFILE, 0o666), False
    return open_for_writing(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), True


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
    name = f".{os.fsencode(base)[:180].decode(errors='ignore')}.{os.urandom(6).hex()}.tmp"
    temporary = os.path.join(folder, name)
    file, named = _open_temporary(folder, temporary)
    try:
        with file:
            yield file
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            fsync(file.fileno())
            if not named:
                give_name(file.fileno(), folder, temporary)
        rename(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)
