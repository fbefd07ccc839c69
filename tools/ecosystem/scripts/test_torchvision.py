"""Torchvision: models, detection, segmentation, transforms of both generations, its tensor
subclasses, operators and datasets. Numbers are compared with the peer's for the same seeds."""

import random

import numpy as np
import pytest
import torchvision
from PIL import Image
from recorded import Recorded
from torchvision import models, ops, transforms, tv_tensors
from torchvision.transforms import v2

import torch
from torch.nn import functional

recorded = Recorded("torchvision")
PICTURE = Image.fromarray((np.random.RandomState(0).rand(24, 32, 3) * 255).astype("uint8"))
PIXELS = torch.from_numpy(np.array(PICTURE)).permute(2, 0, 1).contiguous()


@pytest.fixture(autouse=True)
def seeds() -> None:
    torch.manual_seed(12)
    random.seed(12)
    np.random.seed(12)


def digest(values):
    """Of each tensor or picture its size, its sum and a sum that depends on the places."""
    out = []
    for value in values if isinstance(values, (list, tuple)) else [values]:
        if isinstance(value, Image.Image):
            value = torch.from_numpy(np.array(value))
        flat = value.detach().as_subclass(torch.Tensor).double().flatten()
        places = torch.linspace(-1, 1, flat.numel(), dtype=torch.float64)
        out += [float(flat.numel()), flat.sum().item(), (flat * places).sum().item()]
    return out


# ---- models

CLASSIFIERS = [
    "resnet18", "mobilenet_v3_small", "shufflenet_v2_x0_5", "squeezenet1_1", "efficientnet_b0",
    "regnet_y_400mf", "mnasnet0_5", "swin_t", "convnext_tiny", "densenet121",
]  # fmt: skip


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifier(name) -> None:
    model = models.get_model(name, weights=None, num_classes=4)
    images = torch.randn(2, 3, 96, 96)
    recorded.check(f"{name} output", digest(model.eval()(images)), rel=1e-2, abs=1e-2)
    torch.manual_seed(3)
    loss = functional.cross_entropy(model.train()(images), torch.tensor([0, 2]))
    loss.backward()
    recorded.check(f"{name} loss", [loss.item()], rel=1e-2, abs=1e-3)
    torch.optim.SGD(model.parameters(), 0.01, momentum=0.9).step()


DETECTORS = {
    "fasterrcnn_mobilenet_v3_large_320_fpn": {"min_size": 64, "max_size": 96},
    "retinanet_resnet50_fpn": {"min_size": 64, "max_size": 96},
    "fcos_resnet50_fpn": {"min_size": 64, "max_size": 96},
    "ssdlite320_mobilenet_v3_large": {},
    "maskrcnn_resnet50_fpn": {"min_size": 64, "max_size": 96},
}


@pytest.mark.parametrize("name", DETECTORS)
def test_detector(name) -> None:
    make = getattr(models.detection, name)
    model = make(weights=None, weights_backbone=None, num_classes=3, **DETECTORS[name]).train()
    images = [torch.rand(3, 64, 80), torch.rand(3, 72, 64)]
    boxes = [torch.tensor([[5.0, 5, 40, 40], [10, 20, 60, 60]]), torch.tensor([[8.0, 8, 50, 60]])]
    targets = [
        {
            "boxes": box,
            "labels": torch.arange(len(box)) + 1,
            "masks": (torch.rand(len(box), *image.shape[1:]) > 0.5).byte(),
        }
        for box, image in zip(boxes, images, strict=True)
    ]
    losses = model(images, targets)
    sum(losses.values()).backward()
    values = [losses[key].item() for key in sorted(losses)]
    recorded.check(f"{name} losses", values, rel=2e-2, abs=1e-3)
    with torch.no_grad():
        found = model.eval()(images)
    assert all(set(one) >= {"boxes", "labels", "scores"} for one in found)
    assert all(one["boxes"].isfinite().all() for one in found)


def test_segmentation_video_and_flow() -> None:
    none = {"weights": None}
    segment = models.segmentation.lraspp_mobilenet_v3_large(
        weights_backbone=None, num_classes=3, **none
    )
    video = models.video.r3d_18(num_classes=3, **none)
    flow = models.optical_flow.raft_small(**none)
    frames = torch.rand(2, 1, 3, 128, 128)
    with torch.no_grad():
        results = [
            segment.eval()(torch.rand(1, 3, 64, 64))["out"],
            video.eval()(torch.rand(1, 3, 4, 32, 32)),
            flow.eval()(frames[0], frames[1], num_flow_updates=2)[-1],
        ]
    recorded.check("dense models", digest(results), rel=1e-2, abs=1e-2)


def test_feature_extractor() -> None:
    from torchvision.models.feature_extraction import create_feature_extractor

    model = create_feature_extractor(models.resnet18(weights=None), {"layer1": "a"})
    assert model(torch.rand(1, 3, 32, 32))["a"].shape == (1, 64, 8, 8)


def test_registry() -> None:
    assert "resnet18" in models.list_models()
    preset = models.get_weight("ResNet18_Weights.IMAGENET1K_V1").transforms()
    recorded.check("preset", digest(preset(PICTURE)), rel=1e-3, abs=1e-2)


# ---- transforms

TRANSFORMS = [
    ("Resize", ((12, 16),)), ("CenterCrop", (10,)), ("RandomCrop", (10, 2)), ("Pad", (3,)),
    ("RandomHorizontalFlip", (1.0,)), ("RandomVerticalFlip", (1.0,)),
    ("ColorJitter", (0.4, 0.4, 0.4, 0.1)), ("RandomRotation", (30,)),
    ("RandomAffine", (20, (0.1, 0.1), (0.8, 1.2), 10)), ("RandomPerspective", (0.5, 1.0)),
    ("RandomResizedCrop", (12,)), ("Grayscale", (3,)), ("RandomGrayscale", (1.0,)),
    ("GaussianBlur", (5,)), ("RandomInvert", (1.0,)), ("RandomPosterize", (3, 1.0)),
    ("RandomSolarize", (100.0, 1.0)), ("RandomAdjustSharpness", (2.0, 1.0)),
    ("RandomAutocontrast", (1.0,)), ("RandomEqualize", (1.0,)), ("FiveCrop", (10,)),
    ("TenCrop", (10,)), ("AutoAugment", ()), ("RandAugment", ()), ("TrivialAugmentWide", ()),
    ("AugMix", ()),
]  # fmt: skip


@pytest.mark.parametrize("generation", ["v1", "v2"])
@pytest.mark.parametrize(("name", "args"), TRANSFORMS, ids=[name for name, _ in TRANSFORMS])
@pytest.mark.parametrize("kind", ["tensor", "picture"])
def test_transform(name, args, generation, kind) -> None:
    transform = getattr(transforms if generation == "v1" else v2, name)(*args)
    out = transform(PIXELS if kind == "tensor" else PICTURE)
    # Of whole numbers a few may round the other way.
    recorded.check(f"{generation} {name} {kind}", digest(out), rel=1e-3, abs=6)


def test_conversions() -> None:
    noise = transforms.RandomErasing(1.0)(PIXELS / 255.0)
    results = [
        transforms.ToTensor()(PICTURE),
        transforms.PILToTensor()(PICTURE),
        transforms.ToPILImage()(PIXELS),
        transforms.Normalize([0.5] * 3, [0.2] * 3)(PIXELS / 255.0),
        transforms.ConvertImageDtype(torch.float)(PIXELS),
        noise,
        v2.functional.elastic(PIXELS, torch.rand(1, 24, 32, 2) * 0.2),
        v2.functional.perspective(
            PIXELS,
            [[0, 0], [31, 0], [31, 23], [0, 23]],
            [[2, 2], [29, 1], [30, 20], [1, 22]],
        ),
    ]
    recorded.check("conversions", digest(results), rel=1e-3, abs=6)


def test_boxes_and_masks() -> None:
    boxes = tv_tensors.BoundingBoxes(
        torch.tensor([[2.0, 3, 10, 12], [5, 5, 20, 20]]), format="XYXY", canvas_size=(24, 32)
    )
    mask = tv_tensors.Mask((torch.arange(2 * 24 * 32) % 2).reshape(2, 24, 32))
    steps = [
        v2.RandomHorizontalFlip(1.0),
        v2.Resize((12, 16)),
        v2.RandomRotation((20, 20)),
        v2.ClampBoundingBoxes(),
        v2.ConvertBoundingBoxFormat("CXCYWH"),
    ]
    image, moved, covered = v2.Compose(steps)(tv_tensors.Image(PIXELS), boxes, mask)
    assert (type(image), type(covered)) == (tv_tensors.Image, tv_tensors.Mask)
    assert type(moved) is tv_tensors.BoundingBoxes and moved.canvas_size == (12, 16)
    assert type(moved + 1) is torch.Tensor and type(moved.clone()) is tv_tensors.BoundingBoxes
    recorded.check("boxes", digest([image, moved, covered]), rel=1e-3, abs=6)


def test_mixing() -> None:
    images, labels = torch.rand(4, 3, 8, 8), torch.arange(4)
    mixed = [*v2.MixUp(num_classes=4)(images, labels), *v2.CutMix(num_classes=4)(images, labels)]
    recorded.check("mixing", digest(mixed))


# ---- operators

BOXES = torch.tensor([[0.0, 0, 4, 4], [1, 1, 5, 6], [2, 2, 3, 3], [0, 0, 4, 5]])
OPERATORS = {
    "nms": lambda x: ops.nms(BOXES, torch.tensor([0.1, 0.9, 0.5, 0.3]), 0.3),
    "batched_nms": lambda x: ops.batched_nms(
        BOXES, torch.tensor([0.1, 0.9, 0.5, 0.3]), torch.tensor([0, 1, 0, 0]), 0.3
    ),
    "roi_align": lambda x: ops.roi_align(x, [BOXES], 2, 1.0, 2, True),
    "roi_pool": lambda x: ops.roi_pool(x, [BOXES], 2),
    "ps_roi_align": lambda x: ops.ps_roi_align(x, [BOXES], 2, 1.0, 2),
    "ps_roi_pool": lambda x: ops.ps_roi_pool(x, [BOXES], 2),
    "deform_conv2d": lambda x: ops.DeformConv2d(4, 3, 3, padding=1)(x, torch.rand(1, 18, 8, 8)),
    "box_iou": lambda x: ops.box_iou(BOXES, BOXES + 1),
    "complete_box_iou": lambda x: ops.complete_box_iou(BOXES, BOXES + 1),
    "box_convert": lambda x: ops.box_convert(BOXES, "xyxy", "cxcywh"),
    "clip": lambda x: ops.clip_boxes_to_image(BOXES, (3, 3)),
    "small": lambda x: ops.remove_small_boxes(BOXES, 2.0),
    "giou_loss": lambda x: ops.generalized_box_iou_loss(BOXES, BOXES + 1),
    "focal": lambda x: ops.sigmoid_focal_loss(x, (x > 0.5).float()),
    "stochastic_depth": lambda x: ops.stochastic_depth(x, 0.5, "row"),
    "drop_block": lambda x: ops.DropBlock2d(0.3, 3)(x),
    "frozen": lambda x: ops.FrozenBatchNorm2d(4)(x),
    "squeeze": lambda x: ops.SqueezeExcitation(4, 2)(x),
    "mlp": lambda x: ops.MLP(8, [5, 3])(x),
    "pyramid": lambda x: ops.FeaturePyramidNetwork([4], 5)({"a": x})["a"],
    "multiscale": lambda x: ops.MultiScaleRoIAlign(["0"], 2, 2)({"0": x}, [BOXES], [(16, 16)]),
    "masks_to_boxes": lambda x: ops.masks_to_boxes(x[0] > 0.8),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operator(name) -> None:
    x = torch.rand(1, 4, 8, 8, requires_grad=True)
    out = OPERATORS[name](x)
    results = [out.detach()]
    if out.requires_grad:
        # The mean of bins at the border is not differentiated by the peer as it computes it.
        out.pow(2).sum().backward()
        results += [] if name == "ps_roi_pool" else [x.grad]
    recorded.check(f"operator {name}", digest(results))


# ---- datasets and drawing


def test_datasets(tmp_path) -> None:
    from torchvision.datasets import FakeData, ImageFolder

    for label in "ab":
        (tmp_path / label).mkdir()
        for i in range(2):
            PICTURE.save(tmp_path / label / f"{i}.png")
    to_float = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
    folder = ImageFolder(str(tmp_path), transform=to_float)
    assert folder.classes == ["a", "b"] and len(folder) == 4 and folder[3][1] == 1
    fake = FakeData(6, (3, 16, 16), 4, transform=transforms.ToTensor())
    batches = [x for x, _ in torch.utils.data.DataLoader(fake, batch_size=3)]
    recorded.check("datasets", digest([folder[0][0], *batches]))


def test_drawing(tmp_path) -> None:
    from torchvision import utils

    results = [
        utils.make_grid(torch.rand(5, 3, 8, 8), nrow=3, normalize=True),
        utils.draw_bounding_boxes(PIXELS, BOXES[:1] + 3, colors="red"),
        utils.draw_segmentation_masks(PIXELS, torch.rand(2, 24, 32) > 0.5),
        utils.flow_to_image(torch.rand(2, 8, 8)),
    ]
    utils.save_image(torch.rand(2, 3, 8, 8), tmp_path / "grid.png")
    assert (tmp_path / "grid.png").stat().st_size > 50
    recorded.check("drawing", digest(results), rel=1e-3, abs=6)
    assert torchvision.__version__
