"""Stops a training run in the middle of an epoch and goes on from the checkpoint, bit for bit.

    python examples/dataloader_resume/train.py            a few seconds on two cores
    python examples/dataloader_resume/train.py --quick    a shorter run, for a look

Data is read by worker processes, in random order, and each sample gets noise of its own in the
worker that reads it. All of that has to be continued, not only the weights: `state_dict()` of the
DataLoader says where in the epoch it is, in which order, and how the workers go on drawing. The run
is made twice, once in one go and once in two parts, and the losses and weights are compared."""

import argparse
import pathlib
import sys
import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class Waves(Dataset[tuple[Tensor, Tensor]]):
    """Noisy waves of three kinds; the task is to tell the kind."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.time = torch.linspace(0, 6.28, 64)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        kind = index % 3
        phase = 6.28 * torch.rand(1)  # drawn in the worker
        wave = torch.sin((kind + 1) * self.time + phase) + torch.randn(64)
        return wave, torch.tensor(kind)


class Run:
    """A model, its optimizer, its data and the losses so far: what a checkpoint has to hold."""

    def __init__(self, options: argparse.Namespace) -> None:
        torch.manual_seed(options.seed)
        self.epochs = options.epochs
        self.model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3)
        self.loader = DataLoader(
            Waves(options.samples),
            batch_size=32,
            shuffle=True,
            num_workers=options.workers,
            generator=torch.Generator().manual_seed(options.seed),
        )
        self.losses: list[float] = []

    def train(self, until: int | None = None) -> None:
        """Trains to the end, or until so many steps are done."""
        start = time.monotonic()
        while len(self.losses) < self.epochs * len(self.loader):
            for waves, kinds in self.loader:
                self.optimizer.zero_grad()
                loss = F.cross_entropy(self.model(waves), kinds)
                loss.backward()
                self.optimizer.step()
                self.losses.append(loss.item())
                if len(self.losses) == until:
                    return
            epoch, recent = len(self.losses) // len(self.loader), self.losses[-len(self.loader) :]
            print(
                f"  epoch {epoch}/{self.epochs}  last {len(recent)} losses "
                f"{sum(recent) / len(recent):.4f}  {time.monotonic() - start:.1f} s",
                flush=True,
            )

    def save(self, path: pathlib.Path) -> None:
        """Writes everything. A file that is there is replaced in one step or not at all."""
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "loader": self.loader.state_dict(),
            "losses": self.losses,
        }
        torch.save(state, path)

    def load(self, path: pathlib.Path) -> None:
        """Goes back to what save() wrote."""
        state = torch.load(path)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.loader.load_state_dict(state["loader"])
        self.losses = state["losses"]


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/dataloader_resume"))
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--samples", type=int, default=3000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="fewer samples, three epochs")
    options = parser.parse_args(arguments)
    if options.quick:
        options.samples, options.epochs = 1500, 3
    options.out.mkdir(parents=True, exist_ok=True)
    checkpoint = options.out / "checkpoint.pt"

    print("in one go:")
    whole = Run(options)
    whole.train()

    half = int((options.epochs - 0.5) * len(whole.loader))
    print(f"the same, stopped after step {half} of {len(whole.losses)}:")
    first = Run(options)
    first.train(until=half)
    first.save(checkpoint)
    del first

    print(f"continued from {checkpoint}:")
    second = Run(options)
    second.load(checkpoint)
    second.train()

    same_losses = whole.losses == second.losses
    pairs = zip(whole.model.parameters(), second.model.parameters(), strict=True)
    same_weights = all(torch.equal(a, b) for a, b in pairs)
    print(f"loss {whole.losses[0]:.4f} at first, {sum(whole.losses[-10:]) / 10:.4f} at the end")
    print(
        f"result: {len(second.losses)} losses {'equal' if same_losses else 'DIFFER'}, "
        f"weights {'equal' if same_weights else 'DIFFER'}, bit for bit"
    )
    return 0 if same_losses and same_weights else 1


if __name__ == "__main__":
    sys.exit(main())
