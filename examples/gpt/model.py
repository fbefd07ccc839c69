"""A small GPT in the parts of torch.nn: token and position embeddings, blocks that normalise
before attention and before a two-layer network, and an output layer that shares the weights of
the token embedding."""

import math
from dataclasses import asdict, dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Config:
    """The size of a model."""

    vocabulary: int
    context: int = 64
    layers: int = 4
    heads: int = 4
    width: int = 128
    dropout: float = 0.1

    def to_dict(self):
        """The fields, for a checkpoint."""
        return asdict(self)


class CausalSelfAttention(nn.Module):
    """Each position gathers from those before it, in several heads at once."""

    def __init__(self, config) -> None:
        super().__init__()
        self.heads = config.heads
        self.mix = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x):
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        query, key, value = (
            part.reshape(shape).transpose(1, 2) for part in self.mix(x).split(width, dim=2)
        )
        gathered = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.dropout(self.out(gathered.transpose(1, 2).reshape(batch, length, width)))


class Block(nn.Module):
    """Attention, then a network applied to each position; both add to what they were given."""

    def __init__(self, config) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(config.width)
        self.attention = CausalSelfAttention(config)
        self.norm2 = nn.LayerNorm(config.width)
        self.network = nn.Sequential(
            nn.Linear(config.width, 4 * config.width),
            nn.GELU(),
            nn.Linear(4 * config.width, config.width),
            nn.Dropout(config.dropout),
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.network(self.norm2(x))


class GPT(nn.Module):
    """Predicts the next token at every position of a text."""

    def __init__(self, config) -> None:
        super().__init__()
        if config.width % config.heads:
            raise ValueError(f"width {config.width} is not a multiple of {config.heads} heads")
        self.config = config
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.positions = nn.Embedding(config.context, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList([Block(config) for _ in range(config.layers)])
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Small normal weights; those that end a residual branch shrink with the depth, so that
        the sum of the branches starts with the same variance in models of any depth."""
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        for block in self.blocks:
            for last in (block.attention.out, block.network[2]):
                nn.init.normal_(last.weight, std=0.02 / math.sqrt(2 * len(self.blocks)))

    def forward(self, tokens, targets=None):
        """The scores of the next token, or the mean loss if `targets` are given."""
        length = tokens.size(1)
        if length > self.config.context:
            raise ValueError(f"{length} tokens, the model reads {self.config.context} at most")
        x = self.tokens(tokens) + self.positions(torch.arange(length, device=tokens.device))
        x = self.dropout(x)
        for block in self.blocks:
            x = block(x)
        scores = self.head(self.norm(x))
        if targets is None:
            return scores
        return F.cross_entropy(scores.reshape(-1, scores.size(-1)), targets.reshape(-1))

    @torch.no_grad()
    def generate(self, tokens, count, temperature=0.8, top=20):
        """Appends `count` tokens, each drawn from the `top` most likely ones."""
        training = self.training
        self.eval()
        for _ in range(count):
            scores = self(tokens[:, -self.config.context :])[:, -1] / temperature
            least = scores.topk(min(top, scores.size(-1))).values[:, -1:]
            scores = scores.masked_fill(scores < least, float("-inf"))
            drawn = torch.multinomial(F.softmax(scores, dim=-1), 1)
            tokens = torch.cat([tokens, drawn], dim=1)
        self.train(training)
        return tokens
