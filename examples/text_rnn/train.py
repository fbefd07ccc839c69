"""Teaches a recurrent network to read numbers written in words.

    python examples/text_rnn/train.py            about ten seconds on two cores
    python examples/text_rnn/train.py --quick    a shorter run, for a look

"six hundred and twelve" has 22 letters and "ten" has three. A batch is padded to its longest text;
to let the network read the padding would waste work and blur the end of short texts, so batches are
packed (pack_padded_sequence) and each text is read to its own end. The network reads letters, in
both directions, and names the three digits. A fifth of the numbers below a thousand is held out for
the test, so it has to understand how the words are put together."""

import argparse
import sys
import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
LETTERS = " abcdefghijklmnopqrstuvwxyz"


def in_words(number: int) -> str:
    """A number below a thousand as it is said."""
    if number < 20:
        return ONES[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return TENS[tens] + (f" {ONES[ones]}" if ones else "")
    hundreds, rest = divmod(number, 100)
    return f"{ONES[hundreds]} hundred" + (f" and {in_words(rest)}" if rest else "")


def encode(text: str) -> Tensor:
    """The letters of a text as numbers."""
    return torch.tensor([LETTERS.index(letter) for letter in text])


def make_batch(numbers: list[int]) -> tuple[Tensor, Tensor, Tensor]:
    """The texts of some numbers, padded (T, N), their lengths, and the digits (N, 3)."""
    texts = [encode(in_words(number)) for number in numbers]
    lengths = torch.tensor([len(text) for text in texts])
    digits = torch.tensor([[n // 100, n // 10 % 10, n % 10] for n in numbers])
    return pad_sequence(texts), lengths, digits


class Reader(nn.Module):
    """An LSTM in both directions over letters; the mean of what it says reads out the digits."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS), 16)
        self.read = nn.LSTM(16, width, bidirectional=True)
        self.digits = nn.Linear(4 * width, 3 * 10)

    def forward(self, texts: Tensor, lengths: Tensor) -> Tensor:
        """Scores (N, 3, 10) for the ten values of each of three digits."""
        packed = pack_padded_sequence(self.letters(texts), lengths, enforce_sorted=False)
        said, (last, _) = self.read(packed)
        # `last` holds what was known at the end of each text; the order is that of the input.
        padded, _ = pad_packed_sequence(said)
        mean = padded.sum(0) / lengths.unsqueeze(1)
        scores: Tensor = self.digits(torch.cat([last[0], last[1], mean], dim=1))
        return scores.view(-1, 3, 10)


@torch.no_grad()
def read(model: Reader, numbers: list[int]) -> list[int]:
    """What the model makes of the words of each number."""
    texts, lengths, _ = make_batch(numbers)
    digits = model(texts, lengths).argmax(2)
    found: list[int] = (digits * torch.tensor([100, 10, 1])).sum(1).tolist()
    return found


def accuracy(model: Reader, numbers: list[int]) -> float:
    """The share of numbers of which all three digits are right."""
    found = read(model, numbers)
    return sum(a == b for a, b in zip(found, numbers, strict=True)) / len(numbers)


def train_epoch(model: Reader, optimizer: torch.optim.Adam, numbers: list[int], size: int) -> float:
    """Goes through the numbers once, in random order; gives the mean loss."""
    losses = []
    for places in torch.randperm(len(numbers)).split(size):
        texts, lengths, digits = make_batch([numbers[place] for place in places.tolist()])
        optimizer.zero_grad()
        loss = F.cross_entropy(model(texts, lengths).flatten(0, 1), digits.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=5e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="six epochs")
    options = parser.parse_args(arguments)
    if options.quick:
        options.epochs = min(options.epochs, 6)

    torch.manual_seed(options.seed)
    order: list[int] = torch.randperm(1000).tolist()
    train, test = order[:800], order[800:]
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=options.rate)
    start = time.monotonic()
    for epoch in range(1, options.epochs + 1):
        loss = train_epoch(model, optimizer, train, options.batch)
        print(
            f"epoch {epoch}/{options.epochs}  loss {loss:.4f}  "
            f"test accuracy {100 * accuracy(model, test):.1f} %  {time.monotonic() - start:.1f} s"
        )
    for number, found in zip(test[:5], read(model, test[:5]), strict=True):
        print(f"{in_words(number)} -> {found}")
    print(f"result: {100 * accuracy(model, test):.1f} % of 200 unseen numbers read correctly")
    return 0


if __name__ == "__main__":
    sys.exit(main())
