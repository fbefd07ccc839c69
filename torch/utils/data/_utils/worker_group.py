"""The worker processes of one DataLoader iterator: starting them, noticing that one has died, and
ending them so that none stays behind. Deaths are seen through process descriptors in the same poll
as the data, so that no signal handler is needed and the result comes at once."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
import weakref

from torch.utils.data._utils import worker_loop
from torch.utils.data._utils.transport import Channel, Closed, channel_pair

__all__ = ["WorkerGroup"]

# Seconds that a worker has to finish what it is reading, and after SIGTERM.
_PATIENCE = 5.0
_GRACE = 0.5
_groups = weakref.WeakSet()


def _forget_in_child() -> None:
    """A forked process is not the one that workers belong to: its copies of the sockets would keep
    them from noticing the loader's end."""
    for group in list(_groups):
        group.abandon()


os.register_at_fork(after_in_child=_forget_in_child)


class _Member:
    """One process."""

    def __init__(self, process, channel) -> None:
        self.process = process
        self.channel = channel
        self.pid = process.pid
        try:
            self.handle = os.pidfd_open(process.pid)
            self.own_handle = True
        except (OSError, AttributeError):
            # Old kernels; also a process that has been reaped, whose sentinel says so.
            self.handle = process.sentinel
            self.own_handle = False

    def close(self) -> None:
        """Closes what this process holds open for it."""
        self.channel.close()
        if self.own_handle:
            os.close(self.handle)
            self.own_handle = False


def _cause(process) -> str:
    """Why a process ended, in words."""
    code = process.exitcode
    if code is None:
        return "exited unexpectedly"
    if code >= 0:
        return f"exited unexpectedly with exit code {code}"
    try:
        number = signal.Signals(-code)
        name = f"{signal.strsignal(number)} ({number.name})"
    except ValueError:
        name = f"signal {-code}"
    hint = ""
    if -code == signal.SIGKILL:
        hint = " It may have been stopped because the system ran out of memory."
    return f"is killed by signal: {name}.{hint}"


class WorkerGroup:
    """Processes with a channel to each. Belongs to the process that made it."""

    def __init__(self, context, setups) -> None:
        self.owner = os.getpid()
        self.members = []
        self._opening = None  # the channel of a worker that is being started
        self.poll = select.poll()
        self._by_descriptor = {}
        _groups.add(self)
        try:
            for setup in setups:
                self._start(context, setup)
        except BaseException:
            self.close(patience=0.0)
            raise

    def _start(self, context, setup) -> None:
        ours, theirs = channel_pair()
        name = f"DataLoader worker {setup['worker_id']}"
        process = context.Process(
            target=worker_loop.run, args=(setup, theirs), daemon=True, name=name
        )
        index = len(self.members)
        with theirs:
            channel = Channel(ours)
            # Known before the fork, so that the child drops its copy.
            self._opening = channel
            try:
                process.start()
            except BaseException:
                channel.close()
                raise
        member = _Member(process, channel)
        self.members.append(member)
        self._by_descriptor[channel.fileno()] = (index, "data")
        self._by_descriptor[member.handle] = (index, "end")
        self.poll.register(channel.fileno(), select.POLLIN)
        self.poll.register(member.handle, select.POLLIN)

    def abandon(self) -> None:
        """Closes this process's copies without touching the workers."""
        if self._opening is not None:
            self._opening.socket.close()
        for member in self.members:
            member.channel.socket.close()
            if member.own_handle:
                os.close(member.handle)
        self.members = []
        self.owner = None

    def send(self, index, message) -> None:
        """Queues a message; a worker that is gone is noticed by the next wait."""
        channel = self.members[index].channel
        try:
            if not channel.send(message):
                self.poll.modify(channel.fileno(), select.POLLIN | select.POLLOUT)
        except Closed:
            pass

    def wait(self, timeout, extra=None):
        """Waits for data or an end: yields (index, message), or (index, None) for a worker that
        has died, after all it had sent; (None, None) when `extra` is ready. `timeout` in seconds,
        None for ever."""
        if self.owner != os.getpid():
            raise RuntimeError("DataLoader: an iterator works only in the process that made it")
        if extra is not None:
            self.poll.register(extra, select.POLLIN)
        events = self.poll.poll(None if timeout is None else max(0, timeout) * 1000)
        for descriptor, event in sorted(events, key=self._data_first):
            if descriptor == extra:
                yield None, None
                continue
            index, kind = self._by_descriptor[descriptor]
            channel = self.members[index].channel
            if kind == "end":
                yield from self._drain(index, channel)
                self.poll.unregister(descriptor)
                yield index, None
                continue
            if event & select.POLLOUT:
                self._flush(channel)
            if event & ~select.POLLOUT:
                yield from self._drain(index, channel)

    def _data_first(self, event) -> bool:
        return self._by_descriptor.get(event[0], (0, "data"))[1] == "end"

    def _flush(self, channel) -> None:
        try:
            if channel.flush():
                self.poll.modify(channel.fileno(), select.POLLIN)
        except Closed:
            pass

    def _drain(self, index, channel):
        while True:
            try:
                message = channel.receive()
            except BlockingIOError:
                return
            except Closed:
                # The process descriptor tells of the end; without this, poll would not wait.
                with contextlib.suppress(KeyError, ValueError):
                    self.poll.unregister(channel.fileno())
                return
            yield index, message

    def describe_death(self, index) -> str:
        """A sentence with the pid and the cause."""
        process = self.members[index].process
        process.join(1.0)  # collects the exit code
        return f"DataLoader worker (pid {process.pid}) {_cause(process)}"

    def close(self, patience=_PATIENCE) -> None:
        """Ends all workers: asked first, then by SIGTERM, then by SIGKILL. Returns when they are
        gone."""
        if self.owner != os.getpid():
            return
        members, self.members = self.members, []
        self._opening = None
        for member in members:
            with contextlib.suppress(Closed, OSError):
                member.channel.send(None)
            member.channel.close()
        self._wait_for(members, patience)
        for end in ("terminate", "kill"):  # SIGKILL also ends stopped processes
            remaining = [member for member in members if member.process.is_alive()]
            for member in remaining:
                getattr(member.process, end)()
            self._wait_for(remaining, _GRACE if end == "terminate" else _PATIENCE)
        for member in members:
            member.close()

    @staticmethod
    def _wait_for(members, seconds) -> None:
        deadline = time.monotonic() + seconds
        for member in members:
            member.process.join(max(0.0, deadline - time.monotonic()))
