"""Times transformers with dynamic 8-bit linear layers against their float32 form, on one thread.

    python benchmarks/dynamic_int8.py            # with any torch; run it with both and compare

Processor time, because it counts the work and not what else the machine does; float and quantized
forms take turns, and the least of the turns is shown, with the median ratio.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

TURNS = 15
SECONDS = 0.05  # of a turn


class Block(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.query, self.key, self.value, self.mix = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.heads, self.causal = heads, causal

    def attention(self, x: Tensor) -> Tensor:
        rows, length, width = x.shape
        parts = [
            layer(x).view(rows, length, self.heads, -1).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        ]
        mixed = functional.scaled_dot_product_attention(*parts, is_causal=self.causal)
        return self.mix(mixed.transpose(1, 2).reshape(rows, length, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first(x))
        return x + self.down(functional.gelu(self.up(self.second(x))))


class Transformer(nn.Module):
    def __init__(self, width: int, heads: int, layers: int, causal: bool, words: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(1024, width)
        self.blocks = nn.Sequential(*[Block(width, heads, causal) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words if causal else 2)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.blocks(x)))


BERT_TINY = (128, 2, 2, False, 2000)
GPT_SMALL = (768, 12, 12, True, 2000)
CASES = [
    ("BERT-tiny, 1 x 32", BERT_TINY, (1, 32)),
    ("BERT-tiny, 1 x 128", BERT_TINY, (1, 128)),
    ("BERT-tiny, 8 x 128", BERT_TINY, (8, 128)),
    ("GPT small, 1 x 1", GPT_SMALL, (1, 1)),
    ("GPT small, 1 x 128", GPT_SMALL, (1, 128)),
]


def turn(call: Callable[[], Tensor], times: int) -> float:
    begin = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - begin) / times


@torch.inference_mode()
def measure(name: str, sizes: tuple[int, int, int, bool, int], shape: tuple[int, int]) -> None:
    plain = Transformer(*sizes).eval()
    small = torch.ao.quantization.quantize_dynamic(plain, {nn.Linear}, dtype=torch.qint8)
    ids = torch.randint(0, sizes[-1], shape)
    exact, rounded = plain(ids), small(ids)
    times = max(1, int(SECONDS / max(turn(lambda: plain(ids), 2), 1e-5)))
    pairs = [
        (turn(lambda: plain(ids), times), turn(lambda: small(ids), times)) for _ in range(TURNS)
    ]
    floats, levels = (min(side) * 1e3 for side in zip(*pairs, strict=True))
    ratio = sorted(a / b for a, b in pairs)[TURNS // 2]
    error = ((exact - rounded).norm() / exact.norm()).item()
    print(
        f"{name:20s} float32 {floats:8.3f} ms  int8 {levels:8.3f} ms  {ratio:5.2f}x  "
        f"relative error {error:.4f}",
        flush=True,
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for case in CASES:
        measure(*case)
