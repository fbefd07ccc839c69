"""The rarer operators of torchvision, in terms of other operators: those on quantized values and
the overlap of rotated boxes. The common ones are compiled (torch/csrc/autograd/vision.cpp)."""

import torch
from torch import _C

_INTEGERS = (torch.uint8, torch.int8, torch.int32)
# Pairs of boxes handled at once: each needs 24 points.
_PAIRS = 1 << 14

_library = None


def register() -> None:
    """Defines all operators of torchvision."""
    global _library
    _C._register_vision_operators()
    if _library is not None:
        return
    _library = torch.library.Library("torchvision", "FRAGMENT")
    _library.define(
        "qroi_align(Tensor input, Tensor rois, float input_scale, int input_zero_point, "
        "float rois_scale, int rois_zero_point, float spatial_scale, SymInt pooled_height, "
        "SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor"
    )
    _library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _library.define("box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor")
    _library.impl("qroi_align", _quantized_roi_align, "CPU")
    _library.impl("qnms", _quantized_nms, "CPU")
    _library.impl("box_iou_rotated", _overlap_of_rotated, "CPU")


def _require_integers(name, tensor) -> None:
    if tensor.dtype not in _INTEGERS:
        kind = str(tensor.dtype).removeprefix("torch.")
        raise NotImplementedError(f"{name!r} not implemented for {kind!r}")


def _quantized_roi_align(
    input, rois, input_scale, input_zero_point, rois_scale, rois_zero_point, *options
):
    _require_integers("qroi_align", input)
    if input.dtype != rois.dtype:
        raise RuntimeError("Expected tensor for input to have the same type as tensor for rois")
    boxes = (rois.float() - rois_zero_point) * rois_scale
    boxes[:, 0] = boxes[:, 0].trunc()
    pooled = torch.ops.torchvision.roi_align(
        (input.float() - input_zero_point) * input_scale, boxes, *options
    )
    limits = torch.iinfo(input.dtype)
    steps = torch.round(pooled / input_scale) + input_zero_point
    return steps.clamp(limits.min, limits.max).to(input.dtype)


def _quantized_nms(dets, scores, iou_threshold):
    # Overlaps do not depend on the scale, nor the order of the scores.
    _require_integers("qnms", dets)
    if dets.dtype != scores.dtype:
        raise RuntimeError("dets should have the same type as scores")
    return torch.ops.torchvision.nms(dets.float(), scores.float(), iou_threshold)


def _overlap_of_rotated(boxes1, boxes2):
    for name, boxes in (("boxes1", boxes1), ("boxes2", boxes2)):
        if boxes.dim() != 2 or boxes.size(1) != 5:
            raise RuntimeError(f"{name} should have shape (N, 5), got {list(boxes.shape)}")
        if boxes.dtype not in (torch.float32, torch.float64):
            kind = str(boxes.dtype).removeprefix("torch.")
            raise NotImplementedError(f"'box_iou_rotated' not implemented for {kind!r}")
    if boxes1.dtype != boxes2.dtype:
        raise RuntimeError("boxes1 and boxes2 must have the same dtype")
    rows = max(1, _PAIRS // max(1, len(boxes2)))
    parts = [_overlaps(part, boxes2) for part in boxes1.double().split(rows)]
    return torch.cat(parts).float() if parts else boxes1.new_empty(0, len(boxes2)).float()


def _corners(boxes):
    """(N, 4, 2): around the box, from (centre x, centre y, width, height, angle in degrees)."""
    x, y, width, height, angle = boxes.unbind(1)
    cosine, sine = torch.deg2rad(angle).cos(), torch.deg2rad(angle).sin()
    along = torch.stack([cosine * width, -sine * width], 1) / 2
    across = torch.stack([sine * height, cosine * height], 1) / 2
    centre = torch.stack([x, y], 1)
    return torch.stack(
        [
            centre + along + across,
            centre - along + across,
            centre - along - across,
            centre + along - across,
        ],
        1,
    )


def _cross(a, b):
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _inside(points, corners):
    """Which of the points (..., P, 2) lie in the convex quadrilateral (..., 4, 2)."""
    edges = corners.roll(-1, -2) - corners
    sides = _cross(edges.unsqueeze(-3), points.unsqueeze(-2) - corners.unsqueeze(-3))
    slack = 1e-12 * edges.square().sum(-1).amax(-1)[..., None, None]
    return ((sides >= -slack).all(-1)) | ((sides <= slack).all(-1))


def _overlaps(boxes1, boxes2):
    """Intersection over union of all pairs: the corners of the intersection are corners of one box
    within the other, and crossings of their edges."""
    boxes2 = boxes2.double()
    shape = (len(boxes1), len(boxes2))
    a = _corners(boxes1).unsqueeze(1).expand(*shape, 4, 2)
    b = _corners(boxes2).unsqueeze(0).expand(*shape, 4, 2)
    start1, start2 = a.unsqueeze(-2), b.unsqueeze(-3)
    edge1, edge2 = (a.roll(-1, -2) - a).unsqueeze(-2), (b.roll(-1, -2) - b).unsqueeze(-3)
    turn = _cross(edge1, edge2)
    safe = torch.where(turn == 0, 1.0, turn)
    at1 = _cross(start2 - start1, edge2) / safe
    at2 = _cross(start2 - start1, edge1) / safe
    crosses = (turn != 0) & (at1 >= 0) & (at1 <= 1) & (at2 >= 0) & (at2 <= 1)
    crossings = start1 + at1.unsqueeze(-1) * edge1
    points = torch.cat([a, b, crossings.flatten(-3, -2)], -2)
    valid = torch.cat([_inside(a, b), _inside(b, a), crosses.flatten(-2)], -1)
    count = valid.sum(-1)
    centre = (points * valid.unsqueeze(-1)).sum(-2) / count.clamp(min=1).unsqueeze(-1)
    # Points that are none stand at the centre, where they add no area in any order.
    offset = torch.where(valid.unsqueeze(-1), points - centre.unsqueeze(-2), 0.0)
    angle = torch.where(valid, torch.atan2(offset[..., 1], offset[..., 0]), torch.inf)
    order = angle.argsort(-1).unsqueeze(-1).expand_as(offset)
    ring = offset.gather(-2, order)
    last = ring.gather(-2, (count - 1).clamp(min=0)[..., None, None].expand(*shape, 1, 2))
    area = (
        _cross(ring[..., :-1, :], ring[..., 1:, :]).sum(-1) + _cross(last, ring[..., :1, :])[..., 0]
    ) / 2
    area = torch.where(count > 2, area.abs(), 0.0)
    total = (boxes1[:, 2] * boxes1[:, 3]).unsqueeze(1) + boxes2[:, 2] * boxes2[:, 3] - area
    return torch.where(total > 0, area / torch.where(total > 0, total, 1.0), 0.0)
