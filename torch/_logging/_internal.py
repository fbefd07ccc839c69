"""Which parts of the compiler say what. A *log* is the logger of a package under a short name
("dynamo"); an *artifact* is one kind of output ("graph_code"), with loggers of its own in each
module that makes it. TORCH_LOGS and set_logs choose levels of logs and switch artifacts on; this
module keeps the two registries, reads the choice, and puts handlers where they belong."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.util
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

DEFAULT_LOG_LEVEL = logging.WARNING
# What someone who looks for the cause of a surprise wants to see: set_logs(**DEFAULT_LOGGING).
DEFAULT_LOGGING = {
    "dynamo": logging.INFO,
    "aot": logging.INFO,
    "inductor": logging.INFO,
    "fsdp": logging.INFO,
    "dynamic": logging.INFO,
    "graph_breaks": True,
    "recompiles": True,
    "guards": True,
    "ddp_graphs": True,
}
LOG_ENV_VAR = "TORCH_LOGS"
LOG_OUT_ENV_VAR = "TORCH_LOGS_OUT"
LOG_FORMAT_ENV_VAR = "TORCH_LOGS_FORMAT"
LOG_TRACE_ENV_VAR = "TORCH_TRACE"
LOG_TRACE_ID_FILTER = "TORCH_LOGS_TRACE_ID_FILTER"

log = logging.getLogger(__name__)
# Records for TORCH_TRACE: no artifact, never shown on the terminal.
trace_log = logging.getLogger("torch.__trace")

_ITEM = re.compile(r"^(?P<sign>[+-]?)(?P<name>[\w.]+)$")


# ---- what there is


class Artifact(NamedTuple):
    """One kind of output."""

    description: str
    visible: bool  # in the list of names that TORCH_LOGS=help prints
    off_by_default: bool  # not part of the debug output of its log
    formatter: logging.Formatter | None


class LogRegistry:
    """The logs and artifacts that exist."""

    def __init__(self) -> None:
        self.log_alias_to_log_qnames: dict[str, list[str]] = {}
        self.artifacts: dict[str, Artifact] = {}
        self.artifact_log_qnames: set[str] = set()
        self.child_log_qnames: set[str] = set()

    @property
    def artifact_names(self) -> set[str]:
        """Names of all artifacts."""
        return set(self.artifacts)

    @property
    def visible_artifacts(self) -> set[str]:
        """Names of those that the help lists."""
        return {name for name, artifact in self.artifacts.items() if artifact.visible}

    def is_artifact(self, name: str) -> bool:
        """Whether an artifact has this name."""
        return name in self.artifacts

    def is_log(self, alias: str) -> bool:
        """Whether a log has this short name."""
        return alias in self.log_alias_to_log_qnames

    def is_off_by_default(self, artifact_name: str) -> bool:
        """Whether debug output of its log does not include an artifact."""
        return artifact_name in self.artifacts and self.artifacts[artifact_name].off_by_default

    def register_log(self, alias: str, log_qnames: str | list[str]) -> None:
        """A short name for loggers."""
        names = [log_qnames] if isinstance(log_qnames, str) else list(log_qnames)
        self.log_alias_to_log_qnames[alias] = names

    def register_artifact_log(self, artifact_log_qname: str) -> None:
        """The logger of an artifact in some module."""
        self.artifact_log_qnames.add(artifact_log_qname)

    def register_child_log(self, log_qname: str) -> None:
        """A logger below a registered one that has a level of its own."""
        self.child_log_qnames.add(log_qname)

    def get_log_qnames(self) -> set[str]:
        """Names of all registered loggers of packages."""
        return {name for names in self.log_alias_to_log_qnames.values() for name in names}

    def get_artifact_log_qnames(self) -> set[str]:
        """Names of all loggers of artifacts."""
        return set(self.artifact_log_qnames)

    def get_child_log_qnames(self) -> set[str]:
        """Names of the other loggers that got a level."""
        return set(self.child_log_qnames)


@dataclasses.dataclass
class LogState:
    """What is switched on: levels by logger, and artifacts."""

    log_qname_to_level: dict[str, int] = dataclasses.field(default_factory=dict)
    artifact_names: set[str] = dataclasses.field(default_factory=set)

    def enable_artifact(self, artifact_name: str) -> None:
        """Switches an artifact on."""
        self.artifact_names.add(artifact_name)

    def is_artifact_enabled(self, name: str) -> bool:
        """Whether an artifact is on."""
        return name in self.artifact_names

    def enable_log(self, log_qnames: str | list[str], log_level: int) -> None:
        """Sets the level of loggers."""
        for name in [log_qnames] if isinstance(log_qnames, str) else log_qnames:
            self.log_qname_to_level[name] = log_level

    def get_log_level_pairs(self) -> list[tuple[str, int]]:
        """Loggers and their levels."""
        return list(self.log_qname_to_level.items())

    def clear(self) -> None:
        """Switches everything off."""
        self.log_qname_to_level.clear()
        self.artifact_names.clear()


log_registry = LogRegistry()
log_state = LogState()


def register_log(setting_name: str, log_name: str | list[str]) -> None:
    """A short name for loggers, for TORCH_LOGS and set_logs."""
    log_registry.register_log(setting_name, log_name)


def register_artifact(
    setting_name: str,
    description: str,
    visible: bool = False,
    off_by_default: bool = False,
    log_format: str | None = None,
) -> None:
    """A kind of output, for TORCH_LOGS and set_logs."""
    formatter = None if log_format is None else logging.Formatter(log_format)
    log_registry.artifacts[setting_name] = Artifact(description, visible, off_by_default, formatter)


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:
    """The logger of a module for one artifact."""
    if not log_registry.is_artifact(artifact_name):
        raise ValueError(
            f"Artifact name: {artifact_name!r} not registered, please call "
            f"register_artifact({artifact_name!r}) in torch._logging.registrations."
        )
    qname = f"{module_qname}.__{artifact_name}"
    logger = logging.getLogger(qname)
    logger.artifact_name = artifact_name
    if qname not in log_registry.artifact_log_qnames:
        log_registry.register_artifact_log(qname)
        _configure_artifact_log(logger)
    return logger


def get_artifact_log_level(name: str) -> int:
    """DEBUG for an artifact that is on, INFO for others."""
    return logging.DEBUG if log_state.is_artifact_enabled(name) else logging.INFO


# ---- the choice


def _validate_name(name: str) -> bool:
    return (
        log_registry.is_artifact(name)
        or log_registry.is_log(name)
        or name in ("all", "help")
        or _is_valid_module(name)
    )


def _is_valid_module(qname: str) -> bool:
    try:
        return importlib.util.find_spec(qname) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def _invalid_settings_err_msg(settings: str) -> str:
    names = sorted([*log_registry.log_alias_to_log_qnames, *log_registry.visible_artifacts])
    listed = "\n".join(f"  {name}" for name in names)
    return (
        f"Invalid log settings: {settings}, must be a comma separated list of fully qualified "
        f"module names, registered log names or registered artifact names.\n"
        f'For more info on various settings, try TORCH_LOGS="help"\nValid settings:\n{listed}\n'
    )


def help_message(verbose: bool = False) -> str:
    """The names that TORCH_LOGS takes."""
    shown = log_registry.artifact_names if verbose else log_registry.visible_artifacts
    lines = [
        "TORCH_LOGS: a comma separated list of [+|-]name. `+` asks for debug output, `-` for errors"
        ' alone: TORCH_LOGS="+dynamo,-inductor,recompiles".',
        'TORCH_LOGS_FORMAT="%(levelname)s: %(message)s" sets the form of a line (keys: levelname,',
        "  levelno, message, name, filename, pathname, lineno); TORCH_LOGS_OUT=FILE adds a file.",
        "Logs:",
        *[f"  {alias}" for alias in ["all", *sorted(log_registry.log_alias_to_log_qnames)]],
        "Artifacts:",
        *[f"  {name}: {log_registry.artifacts[name].description}" for name in sorted(shown)],
        'Any module of torch can be named too: TORCH_LOGS="+torch._dynamo.guards".',
    ]
    return "\n".join(lines)


def _parse_log_settings(settings: str) -> LogState:
    state = LogState()
    if settings.strip() in ("", "help", "+help"):
        if settings.strip():
            raise ValueError(help_message(settings.strip().startswith("+")))
        return state
    for item in settings.split(","):
        match = _ITEM.match(item.strip())
        if match is None or not _validate_name(match["name"]):
            raise ValueError(_invalid_settings_err_msg(settings))
        level = {"+": logging.DEBUG, "-": logging.ERROR, "": logging.INFO}[match["sign"]]
        _choose(state, match["name"], level)
    return state


def _choose(state: LogState, name: str, level: int) -> None:
    if name == "all":
        for names in log_registry.log_alias_to_log_qnames.values():
            state.enable_log(names, level)
    elif log_registry.is_log(name):
        state.enable_log(log_registry.log_alias_to_log_qnames[name], level)
    elif log_registry.is_artifact(name):
        state.enable_artifact(name)
    else:
        state.enable_log(name, level)
        if name not in log_registry.get_log_qnames():
            log_registry.register_child_log(name)


def set_logs(
    *, all: int | None = None, modules: dict[str, int | bool] | None = None, **settings: int | bool
) -> None:
    """Chooses levels of logs (`dynamo=logging.DEBUG`) and artifacts (`graph_code=True`); `modules`
    names loggers in full. What is not named goes back to its default."""
    if os.environ.get(LOG_ENV_VAR) is not None:
        log.warning(
            "Using TORCH_LOGS environment variable for log settings, ignoring call to set_logs"
        )
        return
    log_state.clear()
    if all is not None:
        log_state.enable_log("torch", all)
        for names in log_registry.log_alias_to_log_qnames.values():
            log_state.enable_log(names, all)
    for name, value in {**settings, **(modules or {})}.items():
        _apply_setting(name, value, modules or {})
    _init_logs(log_file_name=os.environ.get(LOG_OUT_ENV_VAR))


def _apply_setting(name: str, value: int | bool | None, modules: dict[str, int | bool]) -> None:
    if value is None:
        return
    if log_registry.is_artifact(name):
        if not isinstance(value, bool):
            raise ValueError(f"Expected bool to enable artifact {name}, received {value}")
        if value:
            log_state.enable_artifact(name)
    elif log_registry.is_log(name) or name in modules:
        if isinstance(value, bool) or not isinstance(value, int) or value not in _LEVELS:
            raise ValueError(f"Unrecognized log level for log {name}: {value}")
        if log_registry.is_log(name):
            log_state.enable_log(log_registry.log_alias_to_log_qnames[name], value)
        else:
            log_registry.register_child_log(name)
            log_state.enable_log(name, value)
    else:
        raise ValueError(
            f"Unrecognized log or artifact name passed to set_logs: {name} (valid aliases are "
            f"{', '.join(log_registry.log_alias_to_log_qnames)})"
        )


_LEVELS = (
    logging.NOTSET, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL,
)  # fmt: skip


# ---- how lines look


class TorchLogsFormatter(logging.Formatter):
    """ "V1116 14:00:00.000000 pid file:line] [0/1] [__artifact] text", on every line of a text."""

    def __init__(self, *, trace: bool = False, trace_id_filter: set[str] | None = None) -> None:
        super().__init__()
        self._is_trace = trace
        self._trace_id_filter = trace_id_filter

    def format(self, record: logging.LogRecord) -> str:
        """The lines of a record."""
        from torch._guards import CompileContext

        artifact = getattr(logging.getLogger(record.name), "artifact_name", None)
        known = log_registry.artifacts.get(artifact)
        if known is not None and known.formatter is not None and not self._is_trace:
            return known.formatter.format(record)
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        if record.stack_info:
            text += "\n" + record.stack_info
        trace_id = CompileContext.current_trace_id()
        head = self._head(record)
        if self._is_trace:
            payload = getattr(record, "payload", None)
            lines = [f"{head} {record.metadata_text}"]
            if payload is not None:
                lines += [f"\t{line}" for line in payload.split("\n")]
            return "\n".join(lines)
        marks = f" [{trace_id}]" if trace_id is not None else ""
        marks += f" [__{artifact}]" if artifact else ""
        if self._trace_id_filter and str(trace_id) not in self._trace_id_filter:
            return ""
        return "\n".join(f"{head}{marks} {line}" for line in text.split("\n"))

    def _head(self, record: logging.LogRecord) -> str:
        when = time.strftime("%m%d %H:%M:%S", time.localtime(record.created))
        micro = int((record.created % 1) * 1e6)
        short = {"WARNING": "W", "INFO": "I", "DEBUG": "V", "ERROR": "E", "CRITICAL": "C"}
        level = short.get(record.levelname, record.levelname[0])
        rank = ""
        if not self._is_trace:
            found = _rank()
            rank = f"[rank{found}]:" if found is not None else ""
        path = _short_path(record.pathname)
        return f"{rank}{level}{when}.{micro:06d} {os.getpid()} {path}:{record.lineno}]"


def _rank() -> int | None:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank()


def _short_path(path: str) -> str:
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.path.relpath(path, root) if path.startswith(root) else path


class LazyTraceHandler(logging.StreamHandler):
    """Writes TORCH_TRACE records to a file that is made with the first of them."""

    def __init__(self, root_dir: str | None) -> None:
        logging.Handler.__init__(self)
        self.root_dir = root_dir
        self.stream = None

    def close(self) -> None:
        """Closes the file, if one was opened."""
        with self.lock:
            if self.stream is not None:
                self.stream.close()
                self.stream = None
        logging.Handler.close(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Writes a record."""
        if self.stream is None:
            if self.root_dir is None:
                return
            os.makedirs(self.root_dir, exist_ok=True)
            rank = _rank()
            prefix = "dedicated_log_torch_trace_" + (f"rank_{rank}_" if rank is not None else "")
            import tempfile

            file, _ = tempfile.mkstemp(suffix=".log", prefix=prefix, dir=self.root_dir)
            self.stream = os.fdopen(file, "w")
        super().emit(record)


# ---- handlers


def _is_torch_handler(handler: logging.Handler) -> bool:
    return getattr(handler, "_is_torch_handler", False)


def _track_handler(handler: logging.Handler) -> logging.Handler:
    handler._is_torch_handler = True
    return handler


def _clear_handlers(logger: logging.Logger) -> None:
    for handler in [h for h in logger.handlers if _is_torch_handler(h)]:
        logger.removeHandler(handler)
        handler.close() if isinstance(handler, (logging.FileHandler, LazyTraceHandler)) else None


def _default_formatter() -> logging.Formatter:
    given = os.environ.get(LOG_FORMAT_ENV_VAR)
    if given is not None:
        return logging.Formatter(
            {"short": "%(levelname)s %(message)s", "basic": "%(message)s"}.get(given, given)
        )
    ids = os.environ.get(LOG_TRACE_ID_FILTER)
    return TorchLogsFormatter(trace_id_filter={i.strip() for i in ids.split(",")} if ids else None)


DEFAULT_FORMATTER = _default_formatter()


def _setup_handlers(create_handler: Callable[[], logging.Handler], logger: logging.Logger) -> None:
    handler = _track_handler(create_handler())
    handler.setFormatter(DEFAULT_FORMATTER)
    handler.setLevel(logging.DEBUG)
    logger.addHandler(handler)


def _configure_artifact_log(logger: logging.Logger) -> None:
    """An artifact that is on says everything; one that is off says nothing of its own, unless the
    log above it is in debug mode and the artifact is not left out there."""
    name = logger.artifact_name
    if log_state.is_artifact_enabled(name):
        logger.setLevel(logging.DEBUG)
        logger.propagate = True
    elif log_registry.is_off_by_default(name):
        logger.setLevel(logging.INFO)
        logger.propagate = False
    else:
        logger.setLevel(logging.NOTSET)
        logger.propagate = True


def _update_log_state_from_env() -> None:
    global log_state
    settings = os.environ.get(LOG_ENV_VAR)
    if settings is not None:
        log_state = _parse_log_settings(settings)


def _has_registered_parent(qname: str) -> bool:
    registered = log_registry.get_log_qnames()
    parts = qname.split(".")
    return any(".".join(parts[:i]) in registered for i in range(1, len(parts)))


def _reset_logs() -> None:
    names = [*log_registry.get_log_qnames(), *log_registry.get_child_log_qnames()]
    for name in [*names, *log_registry.get_artifact_log_qnames()]:
        logger = logging.getLogger(name)
        _clear_handlers(logger)
        logger.setLevel(logging.NOTSET)
        logger.propagate = True
    _clear_handlers(trace_log)


def _init_logs(log_file_name: str | None = None) -> None:
    """Puts levels and handlers where the present choice wants them."""
    _reset_logs()
    _update_log_state_from_env()
    out = os.environ.get(LOG_OUT_ENV_VAR)
    if out is not None:
        log_file_name = out
    for name in log_registry.get_log_qnames():
        # Loggers that nobody named say warnings, whatever the root logger says.
        logging.getLogger(name).setLevel(DEFAULT_LOG_LEVEL)
    for name, level in log_state.get_log_level_pairs():
        logging.getLogger(name).setLevel(level)
    registered = log_registry.get_log_qnames()
    for name in [*registered, *log_registry.get_child_log_qnames()]:
        logger = logging.getLogger(name)
        # Other loggers below a registered one propagate to it: one handler prints a record.
        if name not in registered and _has_registered_parent(name):
            continue
        _setup_handlers(lambda: logging.StreamHandler(sys.stderr), logger)
        if log_file_name is not None:
            _setup_handlers(functools.partial(logging.FileHandler, log_file_name), logger)
        logger.propagate = False
    for name in log_registry.get_artifact_log_qnames():
        _configure_artifact_log(logging.getLogger(name))
    _init_trace()


def _init_trace() -> None:
    root = os.environ.get(LOG_TRACE_ENV_VAR)
    trace_log.propagate = False
    trace_log.setLevel(logging.DEBUG)
    if root is None:
        return
    handler = _track_handler(LazyTraceHandler(root))
    handler.setFormatter(TorchLogsFormatter(trace=True))
    trace_log.addHandler(handler)


def _set_log_state(state: LogState) -> None:
    global log_state
    log_state = state


def _get_log_state() -> LogState:
    return log_state


@contextlib.contextmanager
def _temporary_state(state: LogState) -> Iterator[None]:
    before = log_state
    _set_log_state(state)
    _init_logs()
    try:
        yield
    finally:
        _set_log_state(before)
        _init_logs()


# ---- small helpers


@functools.lru_cache(None)
def warning_once(logger_obj: logging.Logger, *args: object, **kwargs: object) -> None:
    """logger_obj.warning, once for the same text."""
    logger_obj.warning(*args, **kwargs)


class LazyString:
    """A text that is made when it is printed."""

    def __init__(self, func: Callable[..., str], *args: object, **kwargs: object) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs

    def __str__(self) -> str:
        return self.func(*self.args, **self.kwargs)


def hide_warnings(warn_func: Callable) -> contextlib.AbstractContextManager:
    """A context in which warnings go to `warn_func`."""
    import warnings

    @contextlib.contextmanager
    def hidden() -> Iterator[None]:
        before = warnings.showwarning
        warnings.showwarning = warn_func
        try:
            yield
        finally:
            warnings.showwarning = before

    return hidden()
