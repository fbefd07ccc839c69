"""BlockMask: which blocks of the score matrix a mask touches, kept as lists of block columns per
block row (and the transposed lists), apart from blocks that are allowed as a whole."""

from __future__ import annotations

import math

import torch

_DEFAULT_SPARSE_BLOCK_SIZE = 128


def noop_mask(batch, head, token_q, token_kv):
    """A mask that allows everything."""
    return batch.new_ones(size=(), dtype=torch.bool, device=batch.device)


def _lists_from_dense(dense) -> tuple[torch.Tensor, torch.Tensor]:
    """(..., rows, columns) of 0 and 1 to (how many columns per row, column numbers with those in
    use first)."""
    dense = dense.to(torch.int32)
    count = dense.sum(dim=-1)
    order = torch.argsort(dense, dim=-1, descending=True, stable=True)
    return count.to(torch.int32).contiguous(), order.to(torch.int32).contiguous()


def _dense_from_lists(count, indices, columns) -> torch.Tensor:
    """The inverse of _lists_from_dense."""
    place = torch.arange(indices.shape[-1], device=indices.device)
    used = (place < count.unsqueeze(-1)).to(torch.int32)
    dense = torch.zeros((*indices.shape[:-1], columns + 1), dtype=torch.int32, device=count.device)
    # Places beyond the count write to a column that is cut off again.
    target = torch.where(used.bool(), indices.long(), columns)
    return dense.scatter_(-1, target, used)[..., :columns].contiguous()


def _pair(size) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else tuple(size)


def _sliced_mask_mod_error(batch, head, token_q, token_kv):
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask. When you slice a BlockMask using [], you "
        "need to manually set a new mask_mod function to match the sliced dimensions."
    )


class BlockMask:
    """A mask by blocks of BLOCK_SIZE queries and keys; see create_block_mask."""

    _TENSOR_ATTRS = [
        "kv_num_blocks",
        "kv_indices",
        "full_kv_num_blocks",
        "full_kv_indices",
        "q_num_blocks",
        "q_indices",
        "full_q_num_blocks",
        "full_q_indices",
    ]
    _ORDER_ATTRS = ["dq_write_order", "dq_write_order_full", "dq_kv_order", "dq_kv_order_spt"]

    def __init__(
        self,
        seq_lengths,
        kv_num_blocks,
        kv_indices,
        full_kv_num_blocks,
        full_kv_indices,
        q_num_blocks,
        q_indices,
        full_q_num_blocks,
        full_q_indices,
        BLOCK_SIZE=(_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod=noop_mask,
        *,
        dq_write_order=None,
        dq_write_order_full=None,
        dq_kv_order=None,
        dq_kv_order_spt=None,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both set or none")
        if (full_q_num_blocks is None) != (full_q_indices is None):
            raise AssertionError("full_q_num_blocks and full_q_indices must be both set or none")
        self.seq_lengths = tuple(seq_lengths)
        self.kv_num_blocks = kv_num_blocks
        self.kv_indices = kv_indices
        self.full_kv_num_blocks = full_kv_num_blocks
        self.full_kv_indices = full_kv_indices
        self.q_num_blocks = q_num_blocks
        self.q_indices = q_indices
        self.full_q_num_blocks = full_q_num_blocks
        self.full_q_indices = full_q_indices
        self.BLOCK_SIZE = _pair(BLOCK_SIZE)
        self.mask_mod = mask_mod
        self.dq_write_order = dq_write_order
        self.dq_write_order_full = dq_write_order_full
        self.dq_kv_order = dq_kv_order
        self.dq_kv_order_spt = dq_kv_order_spt

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks,
        kv_indices,
        full_kv_num_blocks=None,
        full_kv_indices=None,
        BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod=None,
        seq_lengths=None,
        compute_q_blocks=True,
        *,
        dq_write_order=None,
        dq_write_order_full=None,
        dq_kv_order=None,
    ) -> BlockMask:
        """A mask from the lists per block row; the transposed ones are computed."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both set or none")
        block = _pair(BLOCK_SIZE)
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * block[0], kv_indices.shape[-1] * block[1])
        columns = max(kv_indices.shape[-1], -(-seq_lengths[1] // block[1]))

        def transposed(count, indices) -> tuple[torch.Tensor | None, torch.Tensor | None]:
            if count is None or not compute_q_blocks:
                return None, None
            return _lists_from_dense(_dense_from_lists(count, indices, columns).transpose(-2, -1))

        return cls(
            seq_lengths,
            kv_num_blocks,
            kv_indices,
            full_kv_num_blocks,
            full_kv_indices,
            *transposed(kv_num_blocks, kv_indices),
            *transposed(full_kv_num_blocks, full_kv_indices),
            BLOCK_SIZE=block,
            mask_mod=mask_mod or noop_mask,
            dq_write_order=dq_write_order,
            dq_write_order_full=dq_write_order_full,
            dq_kv_order=dq_kv_order,
        )

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(batch, heads, queries, keys)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """How many scores the mask speaks of."""
        return math.prod(self.shape)

    def as_tuple(self, flatten=True):
        """Everything it is made of."""
        tensors = tuple(getattr(self, name) for name in self._TENSOR_ATTRS)
        tensors += tuple(getattr(self, name) for name in self._ORDER_ATTRS)
        if flatten:
            return (*self.seq_lengths, *tensors, *self.BLOCK_SIZE, self.mask_mod)
        return (self.seq_lengths, *tensors, self.BLOCK_SIZE, self.mask_mod)

    def __getitem__(self, index) -> BlockMask:
        """The mask of some batches, heads and block rows. It has no mask_mod: that depends on
        positions, which the new mask no longer knows."""
        index = index if isinstance(index, tuple) else (index,)
        # A dimension is never lost: a number i is the slice of that one entry.
        index = tuple(
            (slice(i, i + 1) if i != -1 else slice(i, None)) if isinstance(i, int) else i
            for i in index
        )
        parts = {}
        for name in ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices"):
            value = getattr(self, name)
            parts[name] = None if value is None else value[index]
        return BlockMask.from_kv_blocks(
            **parts,
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=_sliced_mask_mod_error,
            seq_lengths=self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
        )

    def _adjust(self, new_q_len, new_kv_len) -> BlockMask:
        """The upper left corner of this length."""
        rows = -(-new_q_len // self.BLOCK_SIZE[0])
        columns = -(-new_kv_len // self.BLOCK_SIZE[1])

        def cropped(count, indices):
            if count is None:
                return None, None
            dense = _dense_from_lists(count, indices, max(indices.shape[-1], columns))
            return _lists_from_dense(dense[..., :rows, :columns])

        return BlockMask.from_kv_blocks(
            *cropped(self.kv_num_blocks, self.kv_indices),
            *cropped(self.full_kv_num_blocks, self.full_kv_indices),
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod,
            seq_lengths=(new_q_len, new_kv_len),
        )

    def sparsity(self) -> float:
        """The percentage of scores in blocks that are left out."""
        count = self.kv_num_blocks.sum()
        if self.full_kv_num_blocks is not None:
            count = count + self.full_kv_num_blocks.sum()
        dense = count.item() * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1]
        return 100 * (1 - dense / self.numel())

    def to_dense(self) -> torch.Tensor:
        """One number per block: 1 where any of it is allowed."""
        columns = self.kv_indices.shape[-1]
        dense = _dense_from_lists(self.kv_num_blocks, self.kv_indices, columns)
        if self.full_kv_num_blocks is not None:
            dense |= _dense_from_lists(self.full_kv_num_blocks, self.full_kv_indices, columns)
        return dense

    def to_string(self, grid_size=(20, 20), limit=4) -> str:
        """A picture of the blocks: full, partial and empty ones."""
        dense = self.to_dense()
        *batch_dims, rows, columns = dense.shape
        high, wide = (rows, columns) if grid_size == -1 else _pair(grid_size)
        step_r, step_c = max(1, -(-rows // high)), max(1, -(-columns // wide))
        lines = []
        for number, position in enumerate(_positions(batch_dims)):
            if number == limit:
                lines.append("...")
                lines.append("To print out more, set BlockMask.to_string(limit=N)")
                lines.append(
                    "You can also index (BlockMask[batch, head]) to choose a specific batch or head"
                )
                break
            lines.append(str(position))
            values = dense[position].tolist()
            for r in range(0, rows, step_r):
                cells = []
                for c in range(0, columns, step_c):
                    part = [v for row in values[r : r + step_r] for v in row[c : c + step_c]]
                    share = sum(part) / len(part)
                    cells.append("██" if share == 1 else "░░" if share > 0 else "  ")
                lines.append("".join(cells))
            lines.append("")
        return "\n".join(lines)

    def to(self, device):
        """The same on another device."""
        moved = [
            value.to(device) if isinstance(value, torch.Tensor) else value
            for value in self.as_tuple(flatten=False)
        ]
        tensors = len(self._TENSOR_ATTRS)
        orders = dict(zip(self._ORDER_ATTRS, moved[1 + tensors : 5 + tensors], strict=True))
        return BlockMask(*moved[: 1 + tensors], moved[-2], moved[-1], **orders)

    def __str__(self) -> str:
        text = self.to_string(grid_size=(20, 20), limit=4)
        shape = tuple(int(n) for n in self.shape)
        return f"BlockMask(shape={shape}, sparsity={self.sparsity():.2f}%, \n{text.rstrip()}\n)"

    def __repr__(self) -> str:
        def shape_of(value) -> torch.Size | None:
            return None if value is None else value.shape

        lines = [f"    {name}={shape_of(getattr(self, name))},\n" for name in self._TENSOR_ATTRS]
        name = getattr(self.mask_mod, "__name__", self.mask_mod)
        return (
            "BlockMask(\n"
            + "".join(lines)
            + f"    BLOCK_SIZE={self.BLOCK_SIZE},\n    shape={self.shape},\n"
            + f"    sparsity={self.sparsity():.2f}%,\n    mask_mod={name}\n)"
        )


def _positions(dims):
    """All index tuples of these sizes, in order."""
    from itertools import product

    return product(*(range(n) for n in dims))
