"""Logging of the compiler's parts: plain loggers of the standard library."""

import logging

__all__ = ["getArtifactLogger", "set_logs", "trace_structured", "warning_once"]


def getArtifactLogger(module_qname, artifact_name):
    """The logger for one kind of output of a module."""
    return logging.getLogger(f"{module_qname}.__{artifact_name}")


def set_logs(*, all=None, modules=None, **levels) -> None:
    """Sets levels of loggers: of all of torch, or of the modules named."""
    if all is not None:
        logging.getLogger("torch").setLevel(all)
    for name, level in (modules or {}).items():
        logging.getLogger(name).setLevel(level)


def trace_structured(*args, **kwargs) -> None:
    """Notes something for a trace of the compiler; there is none."""
    return None


_said = set()


def warning_once(logger_obj, *args, **kwargs) -> None:
    """logger_obj.warning, once for the same text."""
    if args not in _said:
        _said.add(args)
        logger_obj.warning(*args, **kwargs)
