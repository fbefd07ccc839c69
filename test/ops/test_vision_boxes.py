"""Rotated and quantised boxes of the vision operators, against geometry."""

import math

import pytest

import torch


@pytest.fixture
def vision():
    from torch import _supplied_vision

    _supplied_vision.register()
    return torch.ops.torchvision


def test_overlap_of_rotated_boxes(vision):
    square = torch.tensor([[0.0, 0.0, 1.0, 1.0, 0.0]])
    others = torch.tensor(
        [
            [0.0, 0.0, 1.0, 1.0, 0.0],  # itself
            [0.5, 0.0, 1.0, 1.0, 0.0],  # half of it
            [0.0, 0.0, 1.0, 1.0, 45.0],  # a regular octagon is common
            [0.0, 0.0, 1.0, 2.0, 90.0],  # within a lying one
            [3.0, 0.0, 1.0, 1.0, 30.0],
        ]
    )
    octagon = 2 * (math.sqrt(2) - 1)
    expected = torch.tensor([[1.0, 1 / 3, octagon / (2 - octagon), 0.5, 0.0]])
    torch.testing.assert_close(vision.box_iou_rotated(square, others), expected)
    torch.testing.assert_close(vision.box_iou_rotated(others, square), expected.T)
    assert vision.box_iou_rotated(square[:0], others).shape == (0, 5)
    with pytest.raises(RuntimeError, match=r"should have shape \(N, 5\)"):
        vision.box_iou_rotated(square[:, :4], others)


def test_quantized_boxes_and_regions(vision):
    boxes = torch.tensor([[0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30]], dtype=torch.uint8)
    scores = torch.tensor([5, 9, 7], dtype=torch.uint8)
    assert vision.qnms(boxes, scores, 0.5).tolist() == [1, 2]
    # Values (q - 3) * 0.5 of a ramp along x: the mean of a region is that of its middle.
    ramp = torch.arange(8, dtype=torch.uint8).expand(1, 1, 8, 8).contiguous()
    region = torch.tensor([[0, 0, 0, 6, 6]], dtype=torch.uint8)
    found = vision.qroi_align(ramp, region, 0.5, 3, 1.0, 0, 1.0, 1, 1, 2, False)
    assert found.dtype == torch.uint8 and found.flatten().tolist() == [3]
    with pytest.raises(NotImplementedError, match="qnms"):
        vision.qnms(boxes.float(), scores.float(), 0.5)
