"""For loaders of other packages that run worker processes of their own: a worker that died is
reported as an error in the process that waits for it. Our own loader watches its workers by other
means (worker_group)."""

import os
import signal
import threading

# Who started workers -> their pids.
_workers = {}
_before = None
_installed = False


def _set_worker_pids(loader_id, pids) -> None:
    """Remembers the workers of a loader."""
    _workers[loader_id] = tuple(pids)


def _remove_worker_pids(loader_id) -> None:
    """Forgets the workers of a loader, which may end now."""
    _workers.pop(loader_id, None)


def _error_if_any_worker_fails() -> None:
    """Raises where a remembered worker was killed or ended with an error."""
    for loader_id, pids in list(_workers.items()):
        for pid in pids:
            try:
                # Looks without collecting the status: that is for whoever started the worker.
                found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                continue
            if found is None or (found.si_code == os.CLD_EXITED and found.si_status == 0):
                continue
            _remove_worker_pids(loader_id)
            how = f"exited unexpectedly with exit code {found.si_status}"
            if found.si_code != os.CLD_EXITED:
                how = f"is killed by signal: {signal.strsignal(found.si_status)}"
            raise RuntimeError(f"DataLoader worker (pid {pid}) {how}.")


def _on_child(number, frame) -> None:
    _error_if_any_worker_fails()
    if callable(_before):
        _before(number, frame)


def _set_SIGCHLD_handler() -> None:
    """Looks after the workers whenever a child of this process ends."""
    global _before, _installed
    if _installed or threading.current_thread() is not threading.main_thread():
        return
    _before = signal.signal(signal.SIGCHLD, _on_child)
    _installed = True


def _set_worker_signal_handlers() -> None:
    """Called in a worker: it inherited its parent's handler, and has no workers of its own."""
    global _installed
    _workers.clear()
    if _installed:
        signal.signal(signal.SIGCHLD, _before or signal.SIG_DFL)
        _installed = False
