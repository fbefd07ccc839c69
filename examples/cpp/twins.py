"""The C++ programs of this folder once more in Python, with the data and first weights of both.

    twins.py DATA        writes the data and the weights into the folder DATA

Each function named like a program returns the lines that the program prints, as (name, value): the
same numbers to the last few bits, since both languages call the same library.
"""

import argparse
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Lines = list[tuple[str, float]]
NOISE = 16


# ---- data ------------------------------------------------------------------------------------
def digits(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Pictures of ten kinds: a bright bar whose place says the kind, on a noisy ground."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % 10
    pictures = torch.randint(0, 60, (count, 28, 28), generator=generator)
    for picture, label in zip(pictures, labels.tolist(), strict=True):
        picture[3 + 2 * label : 6 + 2 * label, 4:24] += 180
    return pictures.to(torch.uint8), labels.to(torch.uint8)


def write_mnist(folder: Path) -> None:
    """The four files of the MNIST database, with our pictures in them."""
    for prefix, count, seed in (("train", 64, 1), ("t10k", 32, 2)):
        pictures, labels = digits(count, seed)
        header = struct.pack(">IIII", 0x803, count, 28, 28)
        images = header + bytes(pictures.flatten().tolist())
        (folder / f"{prefix}-images-idx3-ubyte").write_bytes(images)
        header = struct.pack(">II", 0x801, count)
        (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(header + bytes(labels.tolist()))


def write_table(folder: Path) -> None:
    x = torch.linspace(-2, 2, 72).sin().view(24, 3)
    y = x @ torch.tensor([1.0, -2.0, 0.5]) + 0.25
    rows = torch.cat([x, y.unsqueeze(1)], 1).tolist()
    text = "".join(",".join(f"{value:.6f}" for value in row) + "\n" for row in rows)
    (folder / "table.csv").write_text(text)


def write_all(folder: Path) -> None:
    """Data, and for each program START.pt: a state_dict of its model."""
    write_mnist(folder)
    write_table(folder)
    for name, make in MODELS.items():
        torch.manual_seed(len(name))
        torch.save(make().state_dict(), folder / f"{name}.pt")


# ---- models ----------------------------------------------------------------------------------
class Regression(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.output = nn.Linear(2, 8), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(torch.tanh(self.hidden(x)))


class Digits(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 4, 5), nn.Conv2d(4, 8, 5)
        self.fc1, self.fc2 = nn.Linear(128, 16), nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(F.max_pool2d(self.conv1(x), 2))
        x = torch.relu(F.max_pool2d(self.conv2(x), 2))
        return torch.log_softmax(self.fc2(torch.relu(self.fc1(x.flatten(1)))), 1)


class Gan(nn.Module):
    def __init__(self) -> None:
        super().__init__()

        def grow(inputs: int, outputs: int, size: int, stride: int, padding: int) -> nn.Module:
            return nn.ConvTranspose2d(inputs, outputs, size, stride, padding, bias=False)

        self.generate = nn.Sequential(
            *(grow(NOISE, 16, 4, 1, 0), nn.BatchNorm2d(16), nn.ReLU()),
            *(grow(16, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU()),
            *(grow(8, 4, 4, 2, 1), nn.BatchNorm2d(4), nn.ReLU()),
            *(grow(4, 1, 4, 2, 1), nn.Tanh()),
        )
        self.discriminate = nn.Sequential(
            *(nn.Conv2d(1, 4, 4, 2, 1, bias=False), nn.LeakyReLU(0.2)),
            *(nn.Conv2d(4, 8, 4, 2, 1, bias=False), nn.BatchNorm2d(8), nn.LeakyReLU(0.2)),
            *(nn.Conv2d(8, 1, 7, bias=False), nn.Sigmoid()),
        )


class Classifier(nn.Module):
    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8), nn.Tanh()
        )
        self.head = nn.Linear(8, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


def trained_classifier() -> Classifier:
    """What a program in Python would have left: running statistics that are not the first ones."""
    net = Classifier()
    for _ in range(3):
        net(torch.randn(8, 4))
    return net


MODELS: dict[str, Callable[[], nn.Module]] = {
    "regression": Regression,
    "mnist": Digits,
    "dcgan": Gan,
    "custom_dataset": lambda: nn.Linear(3, 1),
    "transfer": trained_classifier,
}


# ---- programs --------------------------------------------------------------------------------
def step(optimizer: torch.optim.Optimizer, loss: Tensor) -> tuple[str, float]:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return "loss", loss.item()


def loaded(net: nn.Module, folder: Path, name: str) -> nn.Module:
    net.load_state_dict(torch.load(folder / f"{name}.pt"))
    return net


def batches(count: int, seed: int, mean: float, scale: float) -> Iterator[tuple[Tensor, Tensor]]:
    pictures, labels = digits(count, seed)
    for at in range(0, count, 16):
        x = pictures[at : at + 16].unsqueeze(1).float() / 255
        yield (x - mean) / scale, labels[at : at + 16].long()


def regression(folder: Path, steps: int) -> Lines:
    net = loaded(Regression(), folder, "regression")
    x = torch.linspace(-1, 1, 32).view(16, 2)
    y = (x[:, 0] * x[:, 1]).unsqueeze(1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    return [step(optimizer, F.mse_loss(net(x), y)) for _ in range(steps)]


def mnist(folder: Path, epochs: int) -> Lines:
    net = loaded(Digits(), folder, "mnist")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.5)
    lines: Lines = []
    for _ in range(epochs):
        for x, y in batches(64, 1, 0.1307, 0.3081):
            lines.append(step(optimizer, F.nll_loss(net(x), y)))
        with torch.no_grad():
            test = list(batches(32, 2, 0.1307, 0.3081))
            right = sum(int((net(x).argmax(1) == y).sum()) for x, y in test)
        lines += [("right", right), ("of", 32)]
    return lines


def dcgan(folder: Path, epochs: int) -> Lines:
    gan = Gan()
    loaded(gan, folder, "dcgan")
    torch.manual_seed(7)
    generator = torch.optim.Adam(gan.generate.parameters(), lr=2e-3, betas=(0.5, 0.999))
    discriminator = torch.optim.Adam(gan.discriminate.parameters(), lr=2e-3, betas=(0.5, 0.999))

    def verdict(pictures: Tensor, label: float) -> Tensor:
        found = gan.discriminate(pictures).view(-1)
        return F.binary_cross_entropy(found, torch.full_like(found, label))

    lines: Lines = []
    for _ in range(epochs):
        for x, _y in batches(64, 1, 0.5, 0.5):
            discriminator.zero_grad()
            real = verdict(x, 0.9)
            real.backward()
            drawn = gan.generate(torch.randn(len(x), NOISE, 1, 1))
            false = verdict(drawn.detach(), 0)
            false.backward()
            discriminator.step()
            lines.append(("discriminator", (real + false).item()))
            lines.append(("generator", step(generator, verdict(drawn, 1))[1]))
    return lines


def custom_dataset(folder: Path, epochs: int) -> Lines:
    rows = [line.split(",") for line in (folder / "table.csv").read_text().splitlines()]
    table = torch.tensor([[float(cell) for cell in row] for row in rows])
    model = loaded(nn.Linear(3, 1), folder, "custom_dataset")
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    lines: Lines = []
    for _ in range(epochs):
        for part in table.split(8):
            x, y = part[:, :3], part[:, 3]
            lines.append(step(optimizer, F.mse_loss(model(x).squeeze(1), y)))
    return lines


def transfer(folder: Path, steps: int) -> tuple[Lines, dict[str, Tensor]]:
    """Also the weights at the end, which the program saves."""
    pretrained = Classifier()
    loaded(pretrained, folder, "transfer")
    net = Classifier(2)
    net.features = pretrained.features.requires_grad_(False).eval()
    with torch.no_grad():
        net.head.weight.copy_(pretrained.head.weight[:2])
        net.head.bias.zero_()
    x = torch.linspace(-2, 2, 64).sin().view(16, 4)
    y = (x.sum(1) > 0).long()
    optimizer = torch.optim.AdamW(net.head.parameters(), lr=0.05)
    lines = [step(optimizer, F.cross_entropy(net(x), y)) for _ in range(steps)]
    return lines, net.state_dict()


def autograd(size: int) -> Lines:
    x = torch.linspace(-1, 1, size, requires_grad=True)
    (first,) = torch.autograd.grad((x.exp() * x).sum(), x)
    lines = [("backward", first.sum().item())]
    value = x.pow(3).sum()
    (slope,) = torch.autograd.grad(value, x, create_graph=True)
    penalty = (slope.norm() - 1).square()
    (penalized,) = torch.autograd.grad(value + penalty, x)
    lines += [("penalty", penalty.item()), ("penalized", penalized.abs().sum().item())]
    hidden = x.sin()
    hidden.register_hook(lambda grad: grad * 2)
    (hooked,) = torch.autograd.grad((hidden * hidden).sum(), x)
    lines.append(("hooked", hooked.square().sum().item()))
    # The function clips the gradient of x * x, which is 3 before it.
    lines.append(("clipped", (2 * x * torch.tensor(3.0).clamp(-1, 1)).abs().sum().item()))
    return lines


def custom_op(smooth: Callable[[Tensor, float], Tensor], steps: int) -> Lines:
    """`smooth` is torch.ops.example.smooth, or a function that is the same."""
    x = torch.linspace(-3, 3, 31)
    shift = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([shift], lr=0.5)
    return [
        step(optimizer, (smooth(x + shift, 2.0) - torch.relu(x + 1)).square().mean())
        for _ in range(steps)
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    folder = parser.parse_args().data
    folder.mkdir(parents=True, exist_ok=True)
    write_all(folder)
