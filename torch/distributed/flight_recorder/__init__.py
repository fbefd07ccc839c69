"""Reads what the flight recorders of all ranks have written and says who is to blame.

Each process keeps its last operations (TORCH_FR_BUFFER_SIZE, 2048). With TORCH_FR_DUMP_TEMP_FILE
set, the first error of an operation makes every rank write them to that path followed by its rank;
`python -m torch.distributed.flight_recorder.fr_trace PATH` reads the files."""

from torch.distributed.flight_recorder.analysis import Finding, analyse
from torch.distributed.flight_recorder.loader import read_dumps

__all__ = ["Finding", "analyse", "read_dumps"]
