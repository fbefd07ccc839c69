"""SummaryWriter: what a training loop wants to look at, by name and step."""

from __future__ import annotations

import os
import time

import torch
from torch.utils.tensorboard import _events
from torch.utils.tensorboard._pictures import as_pixels, png
from torch.utils.tensorboard._plugins import Plugins

__all__ = ["FileWriter", "SummaryWriter"]


def _number(value) -> float:
    if isinstance(value, torch.Tensor):
        return float(value.detach().item())
    try:
        return float(value)
    except TypeError:
        raise NotImplementedError(
            f"Got {type(value)}, but numpy array or torch tensor are expected."
        ) from None


class FileWriter:
    """The event file of one folder."""

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix="") -> None:
        self._folder = str(log_dir)
        self._file = _events.EventFile(self._folder, filename_suffix)
        self._flush_secs = flush_secs
        self._max_queue = max_queue
        self._waiting = 0
        self._flushed = time.monotonic()

    def get_logdir(self):
        """The folder."""
        return self._folder

    def add_values(self, values, step=None, walltime=None) -> None:
        """Appends values; see torch.utils.tensorboard._events."""
        self._file.add(values, step, walltime)
        self._waiting += 1
        late = time.monotonic() - self._flushed > self._flush_secs
        if self._waiting >= self._max_queue or late:
            self.flush()

    def add_summary(self, summary, global_step=None, walltime=None) -> None:
        """Appends a summary made by torch.utils.tensorboard.summary, or a message of the package
        tensorboard."""
        if hasattr(summary, "SerializeToString"):
            summary = summary.SerializeToString()
        self.add_values(summary, global_step, walltime)

    def add_graph(self, message, walltime=None) -> None:
        """Appends a graph, given as the bytes of its message."""
        self._file.add_graph(message, walltime)

    def flush(self) -> None:
        """Writes what is waiting."""
        self._file.flush()
        self._waiting, self._flushed = 0, time.monotonic()

    def close(self) -> None:
        """Flushes and closes."""
        self._file.close()


class SummaryWriter(Plugins):
    """Writes values by tag and step into log_dir (runs/<time>_<host><comment> by default)."""

    def __init__(
        self,
        log_dir=None,
        comment="",
        purge_step=None,
        max_queue=10,
        flush_secs=120,
        filename_suffix="",
    ) -> None:
        if not log_dir:
            import socket

            stamp = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{stamp}_{socket.gethostname()}{comment}")
        self.log_dir = log_dir
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer = self.all_writers = None
        self._get_file_writer()

    def _new_writer(self, folder) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def _get_file_writer(self) -> FileWriter:
        if self.file_writer is None:
            self.file_writer = self._new_writer(self.log_dir)
            self.all_writers = {self.log_dir: self.file_writer}
        return self.file_writer

    def get_logdir(self) -> str:
        """The folder."""
        return str(self.log_dir)

    def add_scalar(
        self,
        tag,
        scalar_value,
        global_step=None,
        walltime=None,
        new_style=False,
        double_precision=False,
    ) -> None:
        """A number."""
        value = _events.scalar(tag, _number(scalar_value))
        self._get_file_writer().add_values(value, global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None) -> None:
        """Several numbers in one chart, each in a folder of its own."""
        self._get_file_writer()
        for tag, value in tag_scalar_dict.items():
            chart = _events.inside(main_tag.replace("/", "_") + "_" + tag)
            folder = os.path.join(str(self.log_dir), chart)
            if folder not in self.all_writers:
                self.all_writers[folder] = self._new_writer(folder)
            encoded = _events.scalar(main_tag, _number(value))
            self.all_writers[folder].add_values(encoded, global_step, walltime)

    def add_histogram(
        self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None
    ) -> None:
        """How values are distributed."""
        values = torch.as_tensor(values).detach().double().cpu().reshape(-1)
        if values.numel() == 0:
            raise ValueError("The input has no element.")
        count = bins if isinstance(bins, int) else min(64, max(1, values.numel()))
        low, high = values.min().item(), values.max().item()
        edge = high if high > low else low + 1.0
        buckets = torch.histc(values, count, low, edge).tolist()
        limits = torch.linspace(low, edge, count + 1, dtype=torch.float64)[1:].tolist()
        encoded = _events.histogram(
            tag,
            low,
            high,
            values.numel(),
            values.sum().item(),
            values.square().sum().item(),
            limits,
            buckets,
        )
        self._get_file_writer().add_values(encoded, global_step, walltime)

    def add_image(
        self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"
    ) -> None:
        """One image, floats from 0 to 1 or uint8."""
        pixels = as_pixels(img_tensor, dataformats)
        encoded = _events.image(tag, *pixels.shape, png(pixels))
        self._get_file_writer().add_values(encoded, global_step, walltime)

    def add_images(
        self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW"
    ) -> None:
        """A batch of images side by side."""
        batch = torch.as_tensor(img_tensor)
        place = dataformats.upper().index("N")
        each = dataformats.upper().replace("N", "")
        row = torch.cat([as_pixels(image, each) for image in batch.unbind(place)], dim=1)
        self.add_image(tag, row, global_step, walltime, dataformats="HWC")

    def add_text(self, tag, text_string, global_step=None, walltime=None) -> None:
        """A text, shown as Markdown."""
        self._get_file_writer().add_values(_events.text(tag, text_string), global_step, walltime)

    def add_hparams(
        self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None
    ) -> None:
        """Settings of a run and what came out, as numbers, in a folder of their own."""
        from torch.utils.tensorboard.summary import hparams

        summaries = hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(str(self.log_dir), run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as writer:
            for summary in summaries:
                writer._get_file_writer().add_summary(summary, global_step)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None) -> None:
        """A Matplotlib figure, as an image."""
        canvas = figure.canvas
        canvas.draw()
        width, height = canvas.get_width_height()
        data = torch.frombuffer(bytearray(canvas.buffer_rgba()), dtype=torch.uint8)
        pixels = data.view(height, width, 4)[..., :3]
        self.add_image(tag, pixels, global_step, walltime, dataformats="HWC")
        if close:
            import matplotlib.pyplot as plt

            plt.close(figure)

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True) -> None:
        """The modules of a model and what flows between them, seen while it runs once."""
        from torch.utils.tensorboard._graph import graph_of

        message, nodes = graph_of(model, input_to_model)
        if verbose:
            for name, kind, sources, shapes in nodes:
                print(f"{name}: {kind} {shapes} <- {', '.join(sources)}")
        self._get_file_writer().add_graph(message)

    def flush(self) -> None:
        """Writes what is waiting."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Closes all files."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, exc_type, exc_val, exc_tb) -> None:
        self.close()
