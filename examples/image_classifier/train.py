"""Teaches a small convolutional network to read digits.

    python examples/image_classifier/train.py            about ten seconds on two cores
    python examples/image_classifier/train.py --quick    a shorter run, for a look

The digits are drawn here, turned, stretched, moved and covered with noise at random, so nothing has
to be downloaded. The run depends on the seed alone: a second one prints the same losses."""

import argparse
import sys
import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

SIZE = 20

# Ten digits of 3 x 5 points, row by row from the top.
GLYPHS = (
    "111101101101111", "010110010010111", "111001111100111", "111001111001111", "101101111001001",
    "111100111001111", "111100111101111", "111001010010010", "111101111101111", "111101111001111",
)  # fmt: skip


def draw(labels: Tensor) -> Tensor:
    """One picture of each digit asked for, (N, 1, SIZE, SIZE), no two alike."""
    glyphs = torch.tensor([[float(bit) for bit in glyph] for glyph in GLYPHS]).view(10, 1, 5, 3)
    glyphs = F.pad(glyphs, (2, 2, 1, 1))  # 7 x 7 points with the digit in the middle
    count = len(labels)
    angle = torch.empty(count).uniform_(-0.35, 0.35)
    stretch = torch.empty(count, 2).uniform_(0.8, 1.25)
    shift = torch.empty(count, 2).uniform_(-0.3, 0.3)
    # Each point of the new picture looks up a place in the old one: `places` says which.
    matrix = torch.zeros(count, 2, 3)
    matrix[:, 0, 0] = angle.cos() * stretch[:, 0]
    matrix[:, 0, 1] = -angle.sin() * stretch[:, 1]
    matrix[:, 1, 0] = angle.sin() * stretch[:, 0]
    matrix[:, 1, 1] = angle.cos() * stretch[:, 1]
    matrix[:, :, 2] = shift
    places = F.affine_grid(matrix, [count, 1, SIZE, SIZE], align_corners=False)
    pictures = F.grid_sample(glyphs[labels], places, align_corners=False)
    return pictures + 0.2 * torch.randn_like(pictures)


def make_data(count: int) -> TensorDataset:
    """Pictures and what they show."""
    labels = torch.randint(10, (count,))
    return TensorDataset(draw(labels), labels)


class Net(nn.Module):
    """Two layers of filters, each halving the picture, and a linear layer that decides."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.decide = nn.Linear(32 * (SIZE // 4) ** 2, 10)

    def forward(self, pictures: Tensor) -> Tensor:
        """A score for each of the ten digits."""
        scores: Tensor = self.decide(self.features(pictures).flatten(1))
        return scores


@torch.no_grad()
def accuracy(model: Net, data: TensorDataset) -> float:
    """The share of pictures that are read correctly."""
    model.eval()
    pictures, labels = data.tensors
    return float((model(pictures).argmax(1) == labels).float().mean())


def train_epoch(
    model: Net,
    loader: DataLoader[tuple[Tensor, ...]],
    optimizer: torch.optim.AdamW,
    schedule: torch.optim.lr_scheduler.OneCycleLR,
) -> float:
    """Goes through the data once; gives the mean loss."""
    model.train()
    total = 0.0
    for pictures, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(pictures), labels)
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item()
    return total / len(loader)


def text_picture(picture: Tensor) -> str:
    """A picture in characters."""
    shades = " .:-=+*#"
    levels = (picture.clamp(0, 0.999) * len(shades)).int().tolist()
    return "\n".join("".join(2 * shades[level] for level in row) for row in levels)


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--pictures", type=int, default=5000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="fewer pictures, three epochs")
    options = parser.parse_args(arguments)
    if options.quick:
        options.pictures, options.epochs = 3000, min(options.epochs, 3)

    torch.manual_seed(options.seed)
    data, test = make_data(options.pictures), make_data(1000)
    loader = DataLoader(data, batch_size=options.batch, shuffle=True)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, options.rate, total_steps=max(1, options.epochs * len(loader))
    )
    size = sum(p.numel() for p in model.parameters())
    print(f"{size:,} parameters, {len(data)} pictures such as this one:")
    print(text_picture(data.tensors[0][0, 0]))

    start = time.monotonic()
    for epoch in range(1, options.epochs + 1):
        loss = train_epoch(model, loader, optimizer, schedule)
        print(
            f"epoch {epoch}/{options.epochs}  loss {loss:.4f}  "
            f"test accuracy {100 * accuracy(model, test):.1f} %  {time.monotonic() - start:.1f} s"
        )
    print(f"result: {100 * accuracy(model, test):.1f} % of 1000 new pictures read correctly")
    return 0


if __name__ == "__main__":
    sys.exit(main())
