"""Teaches a variational autoencoder to draw shapes, and lets it draw new ones.

    python examples/vae/train.py            about twenty seconds on two cores
    python examples/vae/train.py --quick    a shorter run, for a look

The encoder turns a picture into a distribution over a few numbers, the decoder turns numbers into a
picture. Training raises the evidence lower bound (ELBO): pictures must come back as they were, and
the numbers must look like standard normal ones, so that decoding random numbers draws something
new. Shapes are drawn here; the result is a PNG picture, written with zlib alone."""

import argparse
import pathlib
import struct
import sys
import time
import zlib

import torch
from torch import Tensor, nn
from torch.distributions import Bernoulli, Normal, kl_divergence
from torch.utils.data import DataLoader, TensorDataset

SIZE = 20
LATENT = 8


def draw(count: int) -> Tensor:
    """Discs, boxes and rings of random sizes in random places, (N, SIZE * SIZE) in 0 .. 1."""
    ticks = torch.linspace(-1, 1, SIZE)
    middle = torch.empty(2, count, 1, 1).uniform_(-0.35, 0.35)
    radius = torch.empty(count, 1, 1).uniform_(0.35, 0.6)
    x, y = ticks.view(1, 1, -1) - middle[0], ticks.view(1, -1, 1) - middle[1]
    disc = torch.hypot(x, y) - radius
    box = torch.maximum(x.abs(), y.abs()) - 0.8 * radius
    ring = disc.add(0.12).abs() - 0.12
    kind = torch.randint(3, (count, 1, 1))
    outside = torch.where(kind == 0, disc, torch.where(kind == 1, box, ring))
    return torch.sigmoid(-outside * 2 * SIZE).flatten(1)  # a soft edge of about one point


class VAE(nn.Module):
    """An encoder and a decoder of two layers each."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        points = SIZE * SIZE
        self.encoder = nn.Sequential(
            nn.Linear(points, width), nn.ReLU(), nn.Linear(width, 2 * LATENT)
        )
        self.decoder = nn.Sequential(nn.Linear(LATENT, width), nn.ReLU(), nn.Linear(width, points))

    def posterior(self, pictures: Tensor) -> Normal:
        """Which numbers could have made each picture."""
        mean, log_scale = self.encoder(pictures).chunk(2, dim=1)
        return Normal(mean, log_scale.exp())

    def loss(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        """The two parts of minus the ELBO, in nats to a picture: what comes back wrong, and how far
        the numbers are from standard normal."""
        posterior = self.posterior(pictures)
        numbers = posterior.rsample()  # drawn so that gradients reach the encoder
        likelihood = Bernoulli(logits=self.decoder(numbers), validate_args=False)
        wrong = -likelihood.log_prob(pictures).sum(1).mean()
        prior = Normal(torch.zeros(LATENT), torch.ones(LATENT))
        return wrong, kl_divergence(posterior, prior).sum(1).mean()

    @torch.no_grad()
    def sample(self, count: int) -> Tensor:
        """New pictures."""
        pictures: Tensor = self.decoder(torch.randn(count, LATENT)).sigmoid()
        return pictures.view(count, SIZE, SIZE)


@torch.no_grad()
def test_loss(model: VAE, pictures: Tensor) -> float:
    """Minus the ELBO of pictures that are not trained on."""
    wrong, distance = model.loss(pictures)
    return float(wrong + distance)


def png(grey: Tensor) -> bytes:
    """A picture of bytes (H, W) as a PNG file: header, compressed rows, end."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    height, width = grey.shape
    rows = b"".join(b"\0" + bytes(row) for row in grey.tolist())
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, body) for kind, body in parts)


def sheet(pictures: Tensor, columns: int = 10, scale: int = 3) -> Tensor:
    """Pictures side by side with a thin frame, enlarged, as bytes."""
    framed = nn.functional.pad(pictures, (1, 1, 1, 1), value=0.4)
    rows = [torch.cat(list(row), dim=1) for row in framed.split(columns)]
    whole = torch.cat(rows, dim=0).repeat_interleave(scale, 0).repeat_interleave(scale, 1)
    return (255 * whole).round().to(torch.uint8)


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/vae"))
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--pictures", type=int, default=8000)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="fewer pictures, five epochs")
    options = parser.parse_args(arguments)
    if options.quick:
        options.pictures, options.epochs = 4000, min(options.epochs, 5)

    torch.manual_seed(options.seed)
    pictures, test = draw(options.pictures), draw(1000)
    loader = DataLoader(TensorDataset(pictures), batch_size=options.batch, shuffle=True)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=options.rate)
    before = test_loss(model, test)
    print(f"untrained: {before:.1f} nats to a picture")

    start = time.monotonic()
    for epoch in range(1, options.epochs + 1):
        totals = torch.zeros(2)
        for (batch,) in loader:
            optimizer.zero_grad()
            wrong, distance = model.loss(batch)
            (wrong + distance).backward()
            optimizer.step()
            totals += torch.stack([wrong, distance]).detach() / len(loader)
        wrong_mean, distance_mean = totals.tolist()
        print(
            f"epoch {epoch}/{options.epochs}  loss {wrong_mean + distance_mean:.2f} "
            f"(picture {wrong_mean:.2f}, numbers {distance_mean:.2f})  "
            f"{time.monotonic() - start:.1f} s"
        )

    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "samples.png"
    path.write_bytes(png(sheet(model.sample(60))))
    after = test_loss(model, test)
    print(f"result: ELBO {-after:.1f} on new pictures, {-before:.1f} untrained; see {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
