"""Thirty architectures of timm from random weights: forward in evaluation mode, a training pass
with its loss and gradients, one step of an optimizer. Numbers are compared with the peer's for the
same seeds."""

import pytest
import timm
from recorded import Recorded

import torch
from torch.nn import functional

recorded = Recorded("timm")

# Name and image size. Sizes are chosen so that no batch norm of two images is left with a single
# pixel, where rounding would decide.
MODELS = {
    "resnet18": 64,
    "efficientnet_b0": 96,
    "vit_tiny_patch16_224": 224,
    "convnext_atto": 64,
    "mobilenetv3_small_050": 96,
    "regnetx_002": 64,
    "densenet121": 64,
    "swin_tiny_patch4_window7_224": 224,
    "mixer_s32_224": 224,
    "deit_tiny_patch16_224": 224,
    "mobilenetv2_050": 96,
    "resnext26ts": 64,
    "ghostnet_050": 96,
    "mobilevit_xxs": 96,
    "edgenext_xx_small": 64,
    "poolformer_s12": 64,
    "crossvit_tiny_240": 240,
    "xcit_nano_12_p16_224": 224,
    "nfnet_l0": 64,
    "seresnext26d_32x4d": 64,
    "dla34": 64,
    "coatnet_nano_rw_224": 224,
    "cait_xxs24_224": 224,
    "pvt_v2_b0": 64,
    "gmlp_s16_224": 224,
    "repvgg_a0": 64,
    "fastvit_t8": 64,
    "resmlp_12_224": 224,
    "cspresnet50": 64,
    "visformer_tiny": 224,
}


@pytest.mark.parametrize("name", MODELS)
def test_model(name) -> None:
    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, num_classes=5)
    images, labels = torch.randn(2, 3, MODELS[name], MODELS[name]), torch.tensor([1, 3])
    model.eval()
    with torch.no_grad():
        out = model(images)
    assert out.shape == (2, 5)
    recorded.check(f"{name} output", out.flatten(), rel=1e-3, abs=1e-3)
    model.train()
    torch.manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    loss = functional.cross_entropy(model(images), labels)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9)
    recorded.check(f"{name} loss", [loss.item(), norm.item()], rel=1e-2, abs=1e-3)
    optimizer.step()
    changed = [not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True)]
    assert sum(changed) > 0.5 * len(changed)
    assert all(parameter.isfinite().all() for parameter in model.parameters())


def test_features_and_heads() -> None:
    torch.manual_seed(0)
    model = timm.create_model("resnet18", features_only=True, out_indices=(1, 3)).eval()
    parts = model(torch.randn(1, 3, 64, 64))
    assert [tuple(part.shape) for part in parts] == [(1, 64, 16, 16), (1, 256, 4, 4)]
    model = timm.create_model("vit_tiny_patch16_224", num_classes=0, img_size=64).eval()
    assert model(torch.randn(1, 3, 64, 64)).shape == (1, 192)
    model.reset_classifier(7)
    assert model(torch.randn(1, 3, 64, 64)).shape == (1, 7)


def test_state_is_interchanged(tmp_path) -> None:
    torch.manual_seed(0)
    model = timm.create_model("mobilenetv3_small_050").eval()
    torch.save(model.state_dict(), tmp_path / "model.pth")
    again = timm.create_model("mobilenetv3_small_050").eval()
    again.load_state_dict(torch.load(tmp_path / "model.pth"))
    images = torch.randn(1, 3, 64, 64)
    assert torch.equal(model(images), again(images))


@pytest.mark.parametrize(
    "name", ["lamb", "adamw", "lookahead_radam", "madgrad", "adafactor", "lion"]
)
def test_optimizer(name) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    from timm.optim import create_optimizer_v2

    optimizer, losses = create_optimizer_v2(model, opt=name, lr=1e-2, weight_decay=0.01), []
    x, y = torch.randn(16, 8), torch.arange(16) % 3
    for _ in range(8):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    recorded.check(f"optimizer {name}", losses)


def test_training_parts() -> None:
    from timm.data import Mixup, create_transform
    from timm.loss import LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
    from timm.scheduler import CosineLRScheduler
    from timm.utils import ModelEmaV3, accuracy

    torch.manual_seed(0)
    model = torch.nn.Linear(8, 3)
    average = ModelEmaV3(model, decay=0.9)
    scores, labels = torch.randn(6, 3), torch.arange(6) % 3
    smooth = LabelSmoothingCrossEntropy(0.1)(scores, labels)
    soft = SoftTargetCrossEntropy()(scores, functional.one_hot(labels, 3).float())
    torch.nn.init.zeros_(model.weight)
    average.update(model)
    kept = average.module.weight.sum().item()
    recorded.check("parts", [smooth.item(), soft.item(), kept, accuracy(scores, labels)[0].item()])
    schedule = CosineLRScheduler(torch.optim.SGD(model.parameters(), lr=1.0), t_initial=4)
    schedule.step(2)
    assert schedule.optimizer.param_groups[0]["lr"] == pytest.approx(0.5)
    assert create_transform(32, is_training=True) is not None
    mixed, targets = Mixup(num_classes=3)(torch.rand(4, 3, 8, 8), torch.arange(4) % 3)
    assert mixed.shape == (4, 3, 8, 8) and targets.shape == (4, 3)
