"""The text that ships with the example, as numbers: one token for each distinct character."""

import pathlib

import torch

DATA = pathlib.Path(__file__).resolve().parent / "data"


class Text:
    """Texts as tensors of tokens: a part to learn from, and the end of each text to test on."""

    def __init__(self, texts, held_out=0.1) -> None:
        self.characters = "".join(sorted(set("".join(texts))))
        self._index = {character: i for i, character in enumerate(self.characters)}
        train, test = [], []
        for tokens in map(self.encode, texts):
            cut = int(len(tokens) * (1 - held_out))
            train.append(tokens[:cut])
            test.append(tokens[cut:])
        self.train, self.test = torch.cat(train), torch.cat(test)

    @classmethod
    def bundled(cls):
        """The files in data/, in the order of their names."""
        return cls([file.read_text(encoding="utf-8") for file in sorted(DATA.glob("*.txt"))])

    def encode(self, text):
        """The tokens of a text; characters that the data lacks are left out."""
        return torch.tensor([self._index[c] for c in text if c in self._index], dtype=torch.int64)

    def decode(self, tokens) -> str:
        """The text of tokens."""
        return "".join(self.characters[i] for i in tokens.tolist())


def batch(tokens, context, size):
    """`size` random pieces of `context` tokens, and the same moved by one."""
    starts = torch.randint(len(tokens) - context, (size, 1))
    pieces = tokens[starts + torch.arange(context + 1)]
    return pieces[:, :-1].contiguous(), pieces[:, 1:].contiguous()
