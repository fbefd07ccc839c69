"""What SummaryWriter offers beyond scalars, histograms, images and text: sound, curves of precision
and recall, meshes, embeddings for the projector, and layouts of charts. Each is a message of one of
TensorBoard's plugins, written field by field as torch.utils.tensorboard._events does it."""

from __future__ import annotations

import io
import json
import math
import os
import wave

import torch
from torch.utils.tensorboard import _events
from torch.utils.tensorboard._pictures import as_pixels, png

__all__ = ["Plugins"]

_FLOAT, _INT64, _STRING = 1, 9, 7
# Kinds of a mesh's parts: of a plugin's field `content_type`.
_VERTEX, _FACE, _COLOR = 1, 2, 3


def _shape(sizes) -> bytes:
    return _events.chunk(2, b"".join(_events.chunk(2, _events.integer(1, n)) for n in sizes))


def _numbers(tensor) -> bytes:
    """A tensor of numbers, as float32 or int64."""
    tensor = torch.as_tensor(tensor).detach().cpu()
    whole = not tensor.is_floating_point() and tensor.dtype == torch.int64
    tensor = (tensor if whole else tensor.to(torch.float32)).contiguous()
    content = bytes(tensor.view(torch.uint8).reshape(-1).tolist()) if tensor.numel() else b""
    kind = _INT64 if whole else _FLOAT
    return _events.integer(1, kind) + _shape(tensor.shape) + _events.chunk(4, content)


def _value(tag, tensor, plugin, content=b"") -> bytes:
    data = _events.chunk(1, plugin) + (_events.chunk(2, content) if content else b"")
    metadata = _events.chunk(9, _events.chunk(1, data))
    return _events.chunk(1, _events.chunk(1, tag) + _events.chunk(8, tensor) + metadata)


def _counts(labels, predictions, thresholds, weights) -> torch.Tensor:
    """True and false positives and negatives, precision and recall, by equally spaced threshold."""
    labels = torch.as_tensor(labels).detach().cpu().reshape(-1).double()
    predictions = torch.as_tensor(predictions).detach().cpu().reshape(-1).double()
    weights = torch.as_tensor(1.0 if weights is None else weights).double().expand_as(labels)
    place = torch.floor(predictions * (thresholds - 1)).long().clamp(0, thresholds - 1)
    zeros = torch.zeros(thresholds, dtype=torch.float64)
    right = zeros.index_add(0, place, labels * weights)
    wrong = zeros.index_add(0, place, (1 - labels) * weights)
    tp, fp = right.flip(0).cumsum(0).flip(0), wrong.flip(0).cumsum(0).flip(0)
    tn, fn = fp[0] - fp, tp[0] - tp
    tiny = 1e-7
    precision, recall = tp / (tp + fp).clamp(min=tiny), tp / (tp + fn).clamp(min=tiny)
    return torch.stack([tp, fp, tn, fn, precision, recall])


def _sound(samples, rate) -> tuple[bytes, int]:
    """Samples between -1 and 1 as a WAV file of one channel."""
    samples = torch.as_tensor(samples).detach().cpu().squeeze().double()
    if samples.abs().max() > 1:
        print("warning: audio amplitude out of range, auto clipped.")
        samples = samples.clamp(-1, 1)
    if samples.dim() != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    values = (samples * 32767).to(torch.int16)
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(bytes(values.view(torch.uint8).tolist()))
    return file.getvalue(), len(values)


def _chart(kind, title, tags):
    if kind == "Margin":
        value, lower, upper = tags
        series = _events.chunk(1, value) + _events.chunk(2, lower) + _events.chunk(3, upper)
        return _events.chunk(1, title) + _events.chunk(3, _events.chunk(1, series))
    lines = b"".join(_events.chunk(1, tag) for tag in tags)
    return _events.chunk(1, title) + _events.chunk(2, lines)


def _layout(categories) -> bytes:
    parts = []
    for category, charts in categories.items():
        body = _events.chunk(1, category)
        for title, (kind, tags) in charts.items():
            body += _events.chunk(2, _chart(kind, title, tags))
        parts.append(_events.chunk(2, body))
    tensor = _events.integer(1, _STRING) + _events.chunk(8, b"".join(parts))
    return _value("custom_scalars__config__", tensor, "custom_scalars")


def _sprite(images) -> bytes:
    """Images in a grid as near to square as their number allows, on a square canvas."""
    images = torch.as_tensor(images).detach().cpu()
    across = math.ceil(math.sqrt(len(images)))
    missing = across * across - len(images)
    images = torch.cat([images, images.new_zeros(missing, *images.shape[1:])])
    grid = torch.cat([torch.cat(list(row), 2) for row in images.split(across)], 1)
    side = max(grid.shape[1:])
    canvas = grid.new_zeros(len(grid), side, side)
    canvas[:, : grid.shape[1], : grid.shape[2]] = grid
    return png(as_pixels(canvas, "CHW"))


def _quoted(text) -> str:
    """Text between quotation marks in a file of settings."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _table(path, rows, header=None) -> None:
    with open(path, "w", encoding="utf-8") as file:
        if header:
            file.write("\t".join(map(str, header)) + "\n")
        for row in rows:
            cells = row if isinstance(row, (list, tuple)) else [row]
            file.write("\t".join(map(str, cells)) + "\n")


class Plugins:
    """The part of SummaryWriter that is about plugins."""

    def _add(self, value, global_step=None, walltime=None) -> None:
        self._get_file_writer().add_values(value, global_step, walltime)

    def add_tensor(self, tag, tensor, global_step=None, walltime=None) -> None:
        """A tensor as it is."""
        self._add(_value(tag, _numbers(tensor), "tensor"), global_step, walltime)

    def add_histogram_raw(
        self, tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts, global_step=None,
        walltime=None,
    ) -> None:  # fmt: skip
        """A histogram that was counted elsewhere."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        limits, counts = map(float, bucket_limits), map(float, bucket_counts)
        encoded = _events.histogram(
            tag, min, max, num, sum, sum_squares, list(limits), list(counts)
        )
        self._add(encoded, global_step, walltime)

    def add_pr_curve(
        self, tag, labels, predictions, global_step=None, num_thresholds=127, weights=None,
        walltime=None,
    ) -> None:  # fmt: skip
        """Precision and recall of scores between 0 and 1 against labels 0 and 1."""
        count = min(num_thresholds, 127)
        self._add_curve(tag, _counts(labels, predictions, count, weights), global_step, walltime)

    def add_pr_curve_raw(
        self, tag, true_positive_counts, false_positive_counts, true_negative_counts,
        false_negative_counts, precision, recall, global_step=None, num_thresholds=127,
        weights=None, walltime=None,
    ) -> None:  # fmt: skip
        """A curve that was counted elsewhere."""
        rows = [true_positive_counts, false_positive_counts, true_negative_counts,
                false_negative_counts, precision, recall]  # fmt: skip
        data = torch.stack([torch.as_tensor(row).double() for row in rows])
        self._add_curve(tag, data, global_step, walltime)

    def _add_curve(self, tag, data, global_step, walltime) -> None:
        content = _events.integer(2, data.shape[1])
        self._add(_value(tag, _numbers(data), "pr_curves", content), global_step, walltime)

    def add_audio(
        self, tag, snd_tensor, global_step=None, sample_rate=44100, walltime=None
    ) -> None:
        """Samples between -1 and 1, one channel."""
        file, length = _sound(snd_tensor, sample_rate)
        body = _events.single(1, sample_rate) + _events.integer(2, 1) + _events.integer(3, length)
        body += _events.chunk(4, file) + _events.chunk(5, "audio/wav")
        value = _events.chunk(1, _events.chunk(1, tag) + _events.chunk(6, body))
        self._add(value, global_step, walltime)

    def add_video(self, tag, vid_tensor, global_step=None, fps=4, walltime=None) -> None:
        """Moving pictures need a package that encodes them."""
        print("add_video needs package moviepy")

    def add_mesh(
        self, tag, vertices, colors=None, faces=None, config_dict=None, global_step=None,
        walltime=None,
    ) -> None:  # fmt: skip
        """Points in space, with colours and with triangles between them."""
        parts = [(_VERTEX, "VERTEX", vertices), (_FACE, "FACE", faces), (_COLOR, "COLOR", colors)]
        present = sum(1 << kind for kind, _, data in parts if data is not None)
        for kind, name, data in parts:
            if data is None:
                continue
            data = torch.as_tensor(data).float()
            content = _events.chunk(2, tag) + _events.integer(3, kind)
            content += _events.chunk(5, json.dumps(config_dict or {}, sort_keys=True))
            content += (
                _events.chunk(6, bytes(data.shape))
                if max(data.shape) < 128
                else b"".join(_events.integer(6, n) for n in data.shape)
            )
            content += _events.integer(7, present)
            self._add(
                _value(f"{tag}_{name}", _numbers(data), "mesh", content), global_step, walltime
            )

    def add_custom_scalars(self, layout) -> None:
        """Charts of several scalars: {category: {title: ["Multiline" or "Margin", tags]}}."""
        self._add(_layout(layout))

    def add_custom_scalars_multilinechart(self, tags, category="default", title="untitled") -> None:
        """One chart of several lines."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags, category="default", title="untitled") -> None:
        """One chart of a line between two others: its tag, then those of the margins."""
        if len(tags) != 3:
            raise AssertionError(f"a margin chart has 3 tags, got {len(tags)}")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_image_with_boxes(
        self, tag, img_tensor, box_tensor, global_step=None, walltime=None, rescale=1,
        dataformats="CHW", labels=None,
    ) -> None:  # fmt: skip
        """An image with rectangles (x1, y1, x2, y2) drawn into it, and their labels."""
        from PIL import Image, ImageDraw

        pixels = as_pixels(img_tensor, dataformats)
        if pixels.shape[2] == 1:
            pixels = pixels.expand(-1, -1, 3)
        height, width = pixels.shape[:2]
        data = bytes(pixels[..., :3].contiguous().view(-1).tolist())
        picture = Image.frombytes("RGB", (width, height), data)
        draw = ImageDraw.Draw(picture)
        names = [labels] if isinstance(labels, str) else labels
        for i, box in enumerate(torch.as_tensor(box_tensor).tolist()):
            draw.rectangle([int(v) for v in box], outline="Red", width=2)
            if names is not None:
                draw.text((int(box[0]), int(box[1])), str(names[i]), fill="Red")
        picture = picture.resize((int(width * rescale), int(height * rescale)))
        drawn = torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8)
        drawn = drawn.view(picture.height, picture.width, 3)
        self.add_image(tag, drawn, global_step, walltime, dataformats="HWC")

    def add_embedding(
        self, mat, metadata=None, label_img=None, global_step=None, tag="default",
        metadata_header=None,
    ) -> None:  # fmt: skip
        """Points (one in each row of mat) for the projector, with labels and small images."""
        mat = torch.as_tensor(mat).detach().cpu()
        folder = os.path.join(f"{global_step or 0:05d}", _events.inside(tag))
        place = os.path.join(self.get_logdir(), folder)
        if os.path.isdir(place):
            print("warning: Embedding dir exists, did you set global_step for add_embedding()?")
        if metadata is not None and len(metadata) != len(mat):
            raise AssertionError("#labels should equal with #data points")
        if label_img is not None and len(label_img) != len(mat):
            raise AssertionError("#images should equal with #data points")
        if mat.dim() != 2:
            raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
        os.makedirs(place, exist_ok=True)
        entry = [f'  tensor_name: "{_quoted(tag)}:{global_step or 0:05d}"']
        if metadata is not None:
            _table(os.path.join(place, "metadata.tsv"), metadata, metadata_header)
            entry.append(f'  metadata_path: "{_quoted(folder)}/metadata.tsv"')
        if label_img is not None:
            with open(os.path.join(place, "sprite.png"), "wb") as file:
                file.write(_sprite(label_img))
            size = len(label_img[0][0][0])
            entry += ["  sprite {", f'    image_path: "{_quoted(folder)}/sprite.png"']
            entry += [f"    single_image_dim: {size}"] * 2 + ["  }"]
        _table(os.path.join(place, "tensors.tsv"), mat.tolist())
        entry.append(f'  tensor_path: "{_quoted(folder)}/tensors.tsv"')
        with open(os.path.join(self.get_logdir(), "projector_config.pbtxt"), "a") as file:
            file.write("\n".join(["embeddings {", *entry, "}"]) + "\n")
