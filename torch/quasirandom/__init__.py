"""Sobol sequences: points that fill a cube more evenly than random ones.

A dimension of the sequence is a primitive polynomial over GF(2) and a few odd starting numbers.
`joe_kuo.bin` holds them for 21,201 dimensions: the direction numbers new-joe-kuo-6.21201 that
S. Joe and F. Y. Kuo computed and published (SIAM J. Sci. Comput. 30, 2635-2654, 2008; licence in
THIRD_PARTY.md), packed into bits: for each polynomial of degree s its s - 1 middle coefficients,
then, for i from 2 to s, the upper i - 1 bits of the odd number m_i. Polynomials stand in the order
of their degree, so that a reader needs only the beginning for few dimensions.
"""

from __future__ import annotations

import functools
import os
from typing import Any as _Any

import torch

__all__ = ["SobolEngine"]

# How many primitive polynomials there are of degree 1, 2, 3, ...
_POLYNOMIALS = (1, 1, 2, 2, 6, 6, 18, 16, 48, 60, 176, 144, 630, 756, 1800, 2048, 7710, 7776)
_BITS = 30
# Numbers of a table that an engine keeps between two draws.
_KEPT = 1 << 16


def _bits_of(degree) -> int:
    return degree - 1 + degree * (degree - 1) // 2


class _Bits:
    """Reads numbers of given widths from the front of some bytes."""

    def __init__(self, data) -> None:
        self.value = int.from_bytes(data, "big")
        self.left = 8 * len(data)

    def take(self, width) -> _Any:
        """The next `width` bits as a number."""
        self.left -= width
        return self.value >> self.left & (1 << width) - 1


def _read_table(dimension):
    """(degree, middle coefficients, starting numbers) of the dimensions from the second on."""
    wanted = dimension - 1
    sizes = []
    for degree, count in enumerate(_POLYNOMIALS, 1):
        used = min(count, wanted - sum(n for _, n in sizes))
        if used:
            sizes.append((degree, used))
    path = os.path.join(os.path.dirname(__file__), "joe_kuo.bin")
    with open(path, "rb") as file:
        data = file.read(sum(_bits_of(degree) * count for degree, count in sizes) // 8 + 1)
    # Shifting one long number by a little each time would cost the square of its length.
    step = 512
    rows, start, offset = [], 0, 0
    order = [degree for degree, count in sizes for _ in range(count)]
    while start < len(order):
        part = order[start : start + step]
        end = offset + sum(map(_bits_of, part))
        bits = _Bits(data[offset // 8 : -(-end // 8)])
        bits.take(offset % 8)
        for degree in part:
            middle = bits.take(degree - 1)
            numbers = [1] + [bits.take(i) << 1 | 1 for i in range(1, degree)]
            rows.append((degree, middle, numbers))
        start, offset = start + step, end
    return rows


@functools.lru_cache(maxsize=8)
def _directions(dimension) -> torch.Tensor:
    """The direction numbers, (dimension, 30), scaled so that the first bit is the highest."""
    out = torch.empty(dimension, _BITS, dtype=torch.int64)
    out[0] = 1 << torch.arange(_BITS - 1, -1, -1)
    rows = _read_table(dimension)
    start = 0
    while start < len(rows):
        degree = rows[start][0]
        end = start
        while end < len(rows) and rows[end][0] == degree:
            end += 1
        group = torch.zeros(end - start, max(_BITS, degree), dtype=torch.int64)
        group[:, :degree] = torch.tensor([numbers for _, _, numbers in rows[start:end]])
        middle = torch.tensor([coefficients for _, coefficients, _ in rows[start:end]])
        # m_j = 2^s m_{j-s} ^ m_{j-s} ^ sum of 2^k a_k m_{j-k}, the recurrence of the polynomial.
        for j in range(degree, _BITS):
            value = group[:, j - degree] ^ (group[:, j - degree] << degree)
            for k in range(1, degree):
                chosen = middle >> (degree - 1 - k) & 1
                value = value ^ chosen * (group[:, j - k] << k)
            group[:, j] = value
        out[start + 1 : end + 1] = group[:, :_BITS] << torch.arange(_BITS - 1, -1, -1)
        start = end
    return out


class SobolEngine:
    """The Sobol sequence in a number of dimensions, as it is or scrambled (Owen and Matousek: a
    random lower triangular matrix over the bits of each dimension and a random shift)."""

    MAXBIT = _BITS
    MAXDIM = 1 + sum(_POLYNOMIALS)
    _table: torch.Tensor | None = None

    def __init__(self, dimension, scramble=False, seed=None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]"
            )
        self.dimension = dimension
        self.scramble = scramble
        self.seed = seed
        # On the CPU whatever the default device: the sequence must be the same everywhere.
        with torch.device("cpu"):
            self.sobolstate = _directions(int(dimension)).clone()
            self.shift = torch.zeros(dimension, dtype=torch.int64)
            if scramble:
                self._scramble()
        self.reset()

    def _scramble(self) -> None:
        generator = None
        if self.seed is not None:
            generator = torch.Generator().manual_seed(self.seed)
        places = torch.arange(_BITS)
        flips = torch.randint(2, (self.dimension, _BITS), generator=generator)
        self.shift = (flips << places).sum(-1)
        matrix = torch.randint(2, (self.dimension, _BITS, _BITS), generator=generator).tril_()
        matrix.diagonal(dim1=-2, dim2=-1).fill_(1)
        down = _BITS - 1 - places
        bits = self.sobolstate.unsqueeze(-1) >> down & 1
        mixed = (matrix.unsqueeze(1) & bits.unsqueeze(-2)).sum(-1) & 1
        self.sobolstate = (mixed << down).sum(-1)

    def _point(self, index: int) -> torch.Tensor:
        """One point, as integers of 30 bits: the direction numbers of the bits of its Gray code."""
        gray = index ^ (index >> 1)
        point = self.shift.clone()
        for bit in range(_BITS):
            if gray >> bit & 1:
                point ^= self.sobolstate[:, bit]
        return point

    def _table_of(self, bits: int) -> torch.Tensor:
        """At least the first 2**bits points of the sequence without its shift, as integers.

        Bit j of a number appears in bits j and j - 1 of its Gray code, so the point of one with
        one more bit is that of the number without it and one exclusive or: the table doubles with
        each bit. A small one is kept for the next draw."""
        table = self._table
        if table is None or len(table) < 1 << bits:
            steps = self.sobolstate.clone()
            steps[:, 1:] ^= self.sobolstate[:, :-1]
            table = self.shift.new_zeros(1 << bits, self.dimension)
            for bit in range(bits):
                half = 1 << bit
                torch.bitwise_xor(table[:half], steps[:, bit], out=table[half : 2 * half])
            if table.numel() <= _KEPT:
                self._table = table
        return table

    def _points(self, count: int) -> torch.Tensor:
        """The next points, as integers of 30 bits. One exclusive or moves the whole table to where
        a block of its length begins in the sequence; the last point tells where that is."""
        table = self._table_of(min(int(count).bit_length(), _BITS))
        parts, number, last = [], self.num_generated, self.quasi
        end = number + count
        while number < end:
            start = number % len(table)
            stop = min(len(table), start + end - number)
            if number:
                lowest = (number & -number).bit_length() - 1
                last = last ^ self.sobolstate[:, lowest] if lowest < _BITS else last
            parts.append(table[start:stop] ^ (last ^ table[start]))
            last = parts[-1][-1]
            number += stop - start
        if not parts:
            return self.shift.new_empty(0, self.dimension)
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def draw(self, n=1, out=None, dtype=None) -> _Any:
        """The next n points, (n, dimension), in [0, 1)."""
        dtype = torch.get_default_dtype() if dtype is None else dtype
        if not dtype.is_floating_point:
            raise NotImplementedError(f"SobolEngine.draw is not implemented for dtype {dtype}")
        if n < 0:
            raise RuntimeError(f"SobolEngine.draw: n must not be negative, got {n}")
        points = self._points(n)
        if n:
            self.quasi = points[-1].clone()
        self.num_generated += n
        # Halving is exact, so that a number is rounded once; half types cannot hold it before.
        wide = dtype if dtype.itemsize >= 4 else torch.float64
        values = points.to(wide).mul_(2.0**-_BITS).to(dtype)
        if out is None:
            return values.to(torch.get_default_device())
        out.resize_(values.shape).copy_(values)
        return out

    def draw_base2(self, m, out=None, dtype=None) -> _Any:
        """The next 2**m points; together with those before, there must be a power of two."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1) != 0:
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to take this many "
                "points, use draw()."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> _Any:
        """Back to the first point."""
        self.num_generated = 0
        self.quasi = self.shift.clone()
        return self

    def fast_forward(self, n) -> _Any:
        """Leaves n points out."""
        if n < 0:
            raise ValueError(f"SobolEngine.fast_forward: n must not be negative, got {n}")
        self.num_generated += n
        if self.num_generated:
            self.quasi = self._point(self.num_generated - 1)
        return self

    def __repr__(self) -> _Any:
        settings = [f"dimension={self.dimension}"]
        if self.scramble:
            settings.append("scramble=True")
        if self.seed is not None:
            settings.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(settings)})"
