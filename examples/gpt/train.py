"""Trains a small GPT on the text in data/ and lets it write.

    python examples/gpt/train.py                    a few minutes on two cores
    python examples/gpt/train.py --steps 100 --out /tmp/gpt
    python examples/gpt/train.py --device cuda --precision bfloat16

Ctrl-C saves a checkpoint; the same command goes on from it, and the losses are those of a run that
was never interrupted. They depend on the seed and not on the number of threads. At the end there
are a sample of text, the loss curve as a picture and the checkpoint in the output folder."""

import argparse
import math
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from model import GPT, Config
from plot import draw_losses
from text import Text, batch

import torch

WARMUP = 50


class Trainer:
    """Everything that a checkpoint has to hold, and one step of training."""

    def __init__(self, text, options) -> None:
        self.text, self.options = text, options
        torch.manual_seed(options.seed)
        self.config = Config(
            len(text.characters),
            context=options.context,
            layers=options.layers,
            heads=options.heads,
            width=options.width,
            dropout=options.dropout,
        )
        # Made on the CPU, so that every device starts from the same weights.
        self.device = torch.device(options.device)
        self.model = GPT(self.config).to(self.device)
        self.optimizer = torch.optim.AdamW(
            self._parameter_groups(), lr=options.rate, betas=(0.9, 0.99)
        )
        self.losses: list[float] = []
        self.tests: list[tuple[int, float]] = []

    def _parameter_groups(self):
        """Decay pulls matrices towards zero; scales and shifts are left where they are."""
        parameters = list(self.model.parameters())
        return [
            {"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.1},
            {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
        ]

    @property
    def step(self) -> int:
        """How many steps are done."""
        return len(self.losses)

    def learning_rate(self):
        """Rises at first, then falls along a cosine to a tenth."""
        o = self.options
        if self.step < WARMUP:
            return o.rate * (self.step + 1) / WARMUP
        done = min(1.0, (self.step - WARMUP) / max(1, o.steps - WARMUP))
        return o.rate * (0.1 + 0.45 * (1 + math.cos(math.pi * done)))

    def train_step(self):
        """One step; gives its loss."""
        o = self.options
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate()
        inputs, targets = batch(self.text.train, o.context, o.batch)
        self.optimizer.zero_grad()
        loss = self.loss(inputs, targets)
        loss.backward()
        self._clip_gradients(1.0)
        self.optimizer.step()
        self.losses.append(loss.item())
        return self.losses[-1]

    def loss(self, inputs, targets):
        """The mean loss of a batch, computed on the device in the precision asked for."""
        inputs, targets = inputs.to(self.device), targets.to(self.device)
        low = self.options.precision == "bfloat16"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=low):
            return self.model(inputs, targets)

    @torch.no_grad()
    def _clip_gradients(self, limit) -> None:
        """Scales all gradients down so that their common norm is at most `limit`."""
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        norm = math.sqrt(sum(torch.stack([(g * g).sum() for g in gradients]).tolist()))
        if norm > limit:
            for gradient in gradients:
                gradient.mul_(limit / norm)

    @torch.no_grad()
    def test_loss(self, batches=4):
        """The loss on text that is not trained on, always the same pieces of it."""
        o = self.options
        self.model.eval()
        total, test = 0.0, self.text.test
        count = min(batches * o.batch, (len(test) - 1) // o.context)
        starts = torch.arange(count).unsqueeze(1) * o.context
        pieces = test[starts + torch.arange(o.context + 1)]
        for first in range(0, count, o.batch):
            part = pieces[first : first + o.batch]
            inputs, targets = part[:, :-1].contiguous(), part[:, 1:].contiguous()
            total += float(self.loss(inputs, targets)) * len(part)
        self.model.train()
        return total / count

    def state(self):
        """What is needed to go on as if nothing had happened."""
        return {
            "config": self.config.to_dict(),
            "characters": self.text.characters,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
            "device_random": torch.cuda.get_rng_state() if self.device.type == "cuda" else None,
            "losses": self.losses,
            "tests": self.tests,
            "seed": self.options.seed,
            "batch": self.options.batch,
        }

    def restore(self, state) -> None:
        """Goes back to a saved state; refuses one of another model or text."""
        wanted = self.state()
        for key in ("config", "characters", "seed", "batch"):
            if state[key] != wanted[key]:
                raise SystemExit(
                    f"the checkpoint was made with another {key}: {state[key]}, not {wanted[key]};"
                    " remove it or choose another --out"
                )
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.losses, self.tests = list(state["losses"]), [tuple(t) for t in state["tests"]]
        torch.set_rng_state(state["random"])
        if self.device.type == "cuda" and state.get("device_random") is not None:
            torch.cuda.set_rng_state(state["device_random"])


class Progress:
    """A line that shows loss, speed and the time left; one line in fifty steps where the output is
    not a terminal."""

    def __init__(self, total, done, tokens_per_step) -> None:
        self._total, self._tokens = total, tokens_per_step
        self._first, self._start = done, time.monotonic()
        self._live = sys.stdout.isatty()
        self._loss = None

    def show(self, step, loss) -> None:
        """Draws the state after `step` steps."""
        self._loss = loss if self._loss is None else 0.95 * self._loss + 0.05 * loss
        if not self._live and step % 50 and step != self._total:
            return
        spent = time.monotonic() - self._start
        each = spent / max(1, step - self._first)
        left = round(each * (self._total - step))
        filled = 24 * step // self._total
        line = (
            f"[{'#' * filled}{'.' * (24 - filled)}] {step}/{self._total}  "
            f"loss {self._loss:.3f}  {self._tokens / each:,.0f} tokens/s  "
            f"{left // 60}:{left % 60:02d} left"
        )
        print("\r" + line if self._live else line, end="" if self._live else "\n", flush=True)

    def close(self) -> None:
        """Ends the line."""
        if self._live:
            print()


def parse(arguments):
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/gpt"))
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--dropout", type=float, default=0.05)
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--threads", type=int, default=None, help="default: all that there are")
    parser.add_argument("--sample", type=int, default=400, help="characters to write at the end")
    parser.add_argument("--restart", action="store_true", help="ignore an earlier checkpoint")
    return parser.parse_args(arguments)


class Interrupt:
    """Turns Ctrl-C into a question that is asked between two steps, so that what is saved is never
    half of one. A second Ctrl-C stops at once."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self):
        self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number, frame) -> None:
        self.asked = True
        signal.signal(signal.SIGINT, self._before)

    def __exit__(self, *exc_info) -> None:
        signal.signal(signal.SIGINT, self._before)


def train(trainer, checkpoint):
    """Trains to the end; Ctrl-C saves and stops. Gives whether the end was reached."""
    options = trainer.options
    progress = Progress(options.steps, trainer.step, options.batch * options.context)
    every = max(1, min(200, options.steps // 5))
    with Interrupt() as interrupt:
        while trainer.step < options.steps and not interrupt.asked:
            loss = trainer.train_step()
            progress.show(trainer.step, loss)
            due = trainer.step % every == 0 or trainer.step == options.steps
            if due:
                trainer.tests.append((trainer.step, trainer.test_loss()))
            if due or interrupt.asked:
                torch.save(trainer.state(), checkpoint)
    progress.close()
    return trainer.step >= options.steps


def draw(trainer, path) -> str:
    """Draws the loss curve; returns where it is, or why it is not."""
    size = sum(p.numel() for p in trainer.model.parameters())
    title = f"A character GPT of {size / 1e6:.1f} M parameters learning to write"
    try:
        draw_losses(path, trainer.losses, trainer.tests, title)
    except ImportError:
        return "no picture of the loss (pip install matplotlib)"
    return str(path)


def main(arguments=None) -> int:
    """The command."""
    options = parse(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    options.out.mkdir(parents=True, exist_ok=True)
    checkpoint = options.out / "checkpoint.pt"
    text = Text.bundled()
    trainer = Trainer(text, options)
    if checkpoint.exists() and not options.restart:
        trainer.restore(torch.load(checkpoint, map_location="cpu"))
        print(f"going on from step {trainer.step} of {checkpoint}")
    size = sum(p.numel() for p in trainer.model.parameters())
    print(
        f"{size:,} parameters, {len(text.train) + len(text.test):,} characters of "
        f"{len(text.characters)} kinds, {torch.get_num_threads()} threads, on {trainer.device}"
    )
    if not train(trainer, checkpoint):
        print(f"interrupted at step {trainer.step}; the same command goes on from {checkpoint}")
        return 130
    picture = draw(trainer, options.out / "loss.png")
    torch.manual_seed(options.seed)
    start = text.encode("The ").unsqueeze(0).to(trainer.device)
    print("\n" + text.decode(trainer.model.generate(start, options.sample)[0]) + "\n")
    print(
        f"loss {sum(trainer.losses[-50:]) / len(trainer.losses[-50:]):.3f} in training, "
        f"{trainer.tests[-1][1]:.3f} on text not trained on; see "
        f"{picture} and {checkpoint}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
