"""Images and volumes: kornia and monai. Numbers are compared with the peer's for the same seeds."""

import pytest
from recorded import Recorded

import torch

recorded = Recorded("vision")


def image(seed=0, channels=3, size=16):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(2, channels, size, size, generator=generator)


# ---- kornia

FUNCTIONS = {
    "rgb_to_hsv": lambda k, x: k.color.rgb_to_hsv(x),
    "rgb_to_lab": lambda k, x: k.color.rgb_to_lab(x),
    "rgb_to_grayscale": lambda k, x: k.color.rgb_to_grayscale(x),
    "rgb_to_ycbcr": lambda k, x: k.color.rgb_to_ycbcr(x),
    "gaussian_blur2d": lambda k, x: k.filters.gaussian_blur2d(x, (3, 3), (1.5, 1.5)),
    "sobel": lambda k, x: k.filters.sobel(x),
    "canny": lambda k, x: k.filters.canny(x)[0],
    "median_blur": lambda k, x: k.filters.median_blur(x, (3, 3)),
    "bilateral_blur": lambda k, x: k.filters.bilateral_blur(x, (3, 3), 0.1, (1.5, 1.5)),
    "laplacian": lambda k, x: k.filters.laplacian(x, 3),
    "unsharp_mask": lambda k, x: k.filters.unsharp_mask(x, (3, 3), (1.5, 1.5)),
    "resize": lambda k, x: k.geometry.resize(x, (9, 11), antialias=True),
    "rotate": lambda k, x: k.geometry.rotate(x, torch.tensor([30.0, 45.0])),
    "warp": lambda k, x: k.geometry.warp_perspective(x, torch.eye(3).expand(2, 3, 3) * 1.1, (8, 8)),
    "elastic": lambda k, x: k.geometry.elastic_transform2d(x, torch.ones(2, 2, 16, 16) * 0.1),
    "pyrdown": lambda k, x: k.geometry.pyrdown(x),
    "equalize": lambda k, x: k.enhance.equalize(x),
    "clahe": lambda k, x: k.enhance.equalize_clahe(x, grid_size=(4, 4)),
    "brightness": lambda k, x: k.enhance.adjust_brightness(x, 0.2),
    "contrast": lambda k, x: k.enhance.adjust_contrast(x, 0.2),
    "saturation": lambda k, x: k.enhance.adjust_saturation(x, 0.2),
    "posterize": lambda k, x: k.enhance.posterize(x, 3),
    "sharpness": lambda k, x: k.enhance.sharpness(x, 0.5),
    "zca": lambda k, x: k.enhance.zca_whiten(x.flatten(1)[:, :8]),
    "dilation": lambda k, x: k.morphology.dilation(x, torch.ones(3, 3)),
    "erosion": lambda k, x: k.morphology.erosion(x, torch.ones(3, 3)),
    "harris": lambda k, x: k.feature.harris_response(x[:, :1]),
    "gftt": lambda k, x: k.feature.gftt_response(x[:, :1]),
    "distance": lambda k, x: k.contrib.distance_transform((x > 0.9).float()),
    "ssim": lambda k, x: k.metrics.ssim(x, x.flip(-1), 5),
    "psnr": lambda k, x: k.metrics.psnr(x, x.flip(-1), 1.0),
    "ms_ssim": lambda k, x: k.losses.MS_SSIMLoss()(x, x.flip(-1)),
    "total_variation": lambda k, x: k.losses.total_variation(x),
    "focal": lambda k, x: k.losses.focal_loss(
        x, (x[:, 0] > 0.5).long(), alpha=0.5, gamma=2.0, reduction="mean"
    ),
    "dice": lambda k, x: k.losses.dice_loss(x, (x[:, 0] > 0.5).long()),
    "lovasz": lambda k, x: k.losses.lovasz_softmax_loss(x, (x[:, 0] > 0.5).long()),
    "homography": lambda k, x: k.geometry.find_homography_dlt(
        torch.tensor([[[0.0, 0], [1, 0], [1, 1], [0, 1]]]),
        torch.tensor([[[0.0, 0], [2, 0], [2, 3], [0, 3]]]),
    ),
    "quaternion": lambda k, x: k.geometry.axis_angle_to_rotation_matrix(torch.rand(2, 3) * 0 + 0.3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_kornia_function(name) -> None:
    import kornia

    value = FUNCTIONS[name](kornia, image())
    flat = value.double().flatten()
    recorded.check(f"kornia {name}", [*flat[:5].tolist(), flat.mean().item()], rel=2e-3, abs=1e-4)


@pytest.mark.parametrize("name", ["gaussian_blur2d", "sobel", "rotate", "resize", "rgb_to_lab"])
def test_kornia_gradients(name):
    import kornia

    x = image(size=6).double().requires_grad_()
    if name == "rotate":
        return FUNCTIONS[name](kornia, x.float()).sum().backward()
    FUNCTIONS[name](kornia, x).square().sum().backward()
    return recorded.check(f"kornia gradient {name}", x.grad.flatten()[:6], rel=1e-3)


AUGMENTATIONS = [
    "RandomHorizontalFlip",
    "RandomVerticalFlip",
    "RandomAffine",
    "RandomPerspective",
    "RandomRotation",
    "RandomCrop",
    "RandomResizedCrop",
    "RandomErasing",
    "RandomGrayscale",
    "ColorJitter",
    "RandomGaussianBlur",
    "RandomGaussianNoise",
    "RandomSolarize",
    "RandomPosterize",
    "RandomElasticTransform",
    "RandomThinPlateSpline",
    "RandomPlasmaShadow",
    "RandomMixUpV2",
    "RandomCutMixV2",
    "RandomEqualize",
    "RandomMotionBlur",
]
ARGUMENTS = {
    "RandomAffine": {"degrees": 20.0, "translate": (0.1, 0.1)},
    "RandomRotation": {"degrees": 30.0},
    "RandomCrop": {"size": (8, 8)},
    "RandomResizedCrop": {"size": (8, 8)},
    "ColorJitter": {"brightness": 0.2, "contrast": 0.2, "saturation": 0.2, "hue": 0.1},
    "RandomGaussianBlur": {"kernel_size": (3, 3), "sigma": (0.1, 2.0)},
    "RandomMotionBlur": {"kernel_size": 3, "angle": 35.0, "direction": 0.5},
}


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_kornia_augmentation(name) -> None:
    import kornia.augmentation as augmentation

    options = {"p": 1.0, **ARGUMENTS.get(name, {})}
    torch.manual_seed(3)
    transform = getattr(augmentation, name)(**options)
    if "Mix" in name:
        out = transform(image(), torch.tensor([0, 1]))
    else:
        out = transform(image())
    flat = out.double().flatten()
    recorded.check(f"augment {name}", [*flat[:4].tolist(), flat.mean().item()], rel=5e-3, abs=1e-3)


def test_kornia_sequential() -> None:
    import kornia.augmentation as augmentation

    torch.manual_seed(0)
    chain = augmentation.AugmentationSequential(
        augmentation.RandomAffine(20.0, p=1.0),
        augmentation.RandomHorizontalFlip(p=1.0),
        data_keys=["input", "mask", "keypoints"],
    )
    x = image()
    out, mask, points = chain(x, (x[:, :1] > 0.5).float(), torch.rand(2, 4, 2) * 16)
    assert out.shape == x.shape
    assert mask.shape == (2, 1, 16, 16)
    assert points.shape == (2, 4, 2)
    assert chain.inverse(out, data_keys=["input"]).shape == x.shape


def test_kornia_features() -> None:
    import kornia.feature as feature

    torch.manual_seed(0)
    x = image(channels=1, size=48)
    detector = feature.ScaleSpaceDetector(10)
    frames, _ = detector(x)
    assert frames.shape == (2, 10, 2, 3)
    patches = feature.extract_patches_from_pyramid(x, frames, 16)
    descriptors = feature.SIFTDescriptor(16)(patches.flatten(0, 1))
    assert descriptors.shape == (20, 128)
    _, matches = feature.match_mnn(descriptors[:10], descriptors[:10])
    assert len(matches) > 0


# ---- monai

NETS = {
    "UNet": lambda n: n.UNet(2, 1, 2, (4, 8, 16), (2, 2)),
    "BasicUNet": lambda n: n.BasicUNet(2, 1, 2, features=(4, 4, 8, 8, 16, 4)),
    "SegResNet": lambda n: n.SegResNet(2, 8, 1, 2, blocks_down=(1, 1), blocks_up=(1,)),
    "VNet": lambda n: n.VNet(3, 1, 2),
    "DenseNet": lambda n: n.DenseNet(2, 1, 2, init_features=8, growth_rate=4, block_config=(2, 2)),
    "ResNet": lambda n: n.resnet10(spatial_dims=2, n_input_channels=1, num_classes=2),
    "UNETR": lambda n: n.UNETR(
        1, 2, (32, 32), feature_size=4, hidden_size=24, mlp_dim=32, num_heads=4, spatial_dims=2
    ),
    "SwinUNETR": lambda n: n.SwinUNETR(1, 2, feature_size=12, spatial_dims=2),
    "AttentionUnet": lambda n: n.AttentionUnet(2, 1, 2, (4, 8), (2,)),
    "AutoEncoder": lambda n: n.AutoEncoder(2, 1, 1, (4, 8), (2, 2)),
    "HighResNet": lambda n: n.HighResNet(2, 1, 2),
    "DynUNet": lambda n: n.DynUNet(
        2, 1, 2, (3, 3, 3), (1, 2, 2), (2, 2), filters=(4, 8, 16), deep_supervision=False
    ),
}


@pytest.mark.parametrize("name", NETS)
def test_monai_net(name) -> None:
    from monai.networks import nets

    torch.manual_seed(0)
    net = NETS[name](nets)
    size = 64 if name == "SwinUNETR" else 32
    shape = (1, 1, 32, 32, 32) if name == "VNet" else (2, 1, size, size)
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(shape, generator=generator)
    torch.manual_seed(2)
    out = net(x)
    out.square().mean().backward()
    values = [out.double().mean().item(), out.double().std().item()]
    recorded.check(f"monai {name}", values, rel=5e-3, abs=1e-4)


LOSSES = [
    "DiceLoss",
    "DiceCELoss",
    "GeneralizedDiceLoss",
    "TverskyLoss",
    "FocalLoss",
    "HausdorffDTLoss",
]


@pytest.mark.parametrize("name", LOSSES)
def test_monai_loss(name) -> None:
    from monai import losses

    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 2, 8, 8, generator=generator, requires_grad=True)
    y = torch.randint(0, 2, (2, 1, 8, 8), generator=generator)
    options = {} if name == "FocalLoss" else {"softmax": True}
    loss = getattr(losses, name)(to_onehot_y=True, **options)(x, y)
    loss.backward()
    recorded.check(f"monai {name}", loss.item(), rel=1e-3)


def test_monai_transforms() -> None:
    from monai import transforms

    transform = transforms.Compose(
        [
            transforms.EnsureChannelFirst(channel_dim="no_channel"),
            transforms.ScaleIntensity(),
            transforms.RandRotate(range_x=0.3, prob=1.0),
            transforms.RandFlip(prob=1.0, spatial_axis=0),
            transforms.RandGaussianNoise(prob=1.0),
            transforms.RandAffine(prob=1.0, scale_range=(0.1, 0.1)),
            transforms.Resize((12, 12)),
            transforms.ToTensor(),
        ]
    )
    transform.set_random_state(0)
    out = transform(image(channels=1)[0, 0])
    assert out.shape == (1, 12, 12)
    recorded.check("monai transforms", out.double().mean().item(), rel=1e-2)


def test_monai_pipeline(tmp_path) -> None:
    from monai.data import CacheDataset, DataLoader, decollate_batch
    from monai.inferers import sliding_window_inference
    from monai.metrics import DiceMetric
    from monai.networks import nets
    from monai.transforms import Compose, EnsureTyped, RandFlipd

    rows = [{"x": image(i, 1)[0], "y": (image(i, 1)[0] > 0.5).float()} for i in range(4)]
    steps = Compose([EnsureTyped(["x", "y"]), RandFlipd(["x", "y"], prob=0.5)])
    data = CacheDataset(rows, steps, progress=False)
    torch.manual_seed(0)
    net = nets.UNet(2, 1, 1, (4, 8), (2,))
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    for batch in DataLoader(data, batch_size=2):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(net(batch["x"]), batch["y"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert len(decollate_batch(batch)) == 2
    net.eval()
    with torch.no_grad():
        whole = sliding_window_inference(image(9, 1, 24), (16, 16), 2, net, overlap=0.5)
    assert whole.shape == (2, 1, 24, 24)
    metric = DiceMetric()
    metric((whole > 0).float(), (image(9, 1, 24) > 0.5).float())
    assert metric.aggregate().shape == (1,)


def test_msssim() -> None:
    from pytorch_msssim import ms_ssim, ssim

    x, y = image(0, 3, 192), image(1, 3, 192)
    values = [ssim(x, y, data_range=1.0).item(), ms_ssim(x, y, data_range=1.0).item()]
    recorded.check("msssim", values, rel=1e-2)
