"""Starting workers and reporting on those that failed."""

from torch import _later

globals().update(_later.names(__name__, "DefaultLogsSpecs Std start_processes"))
