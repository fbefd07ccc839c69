"""Runs recorded operator calls with every tensor moved to CUDA.

    python tools/gpu/conformance.py FOLDER [options of FOLDER/run.py]

FOLDER holds run.py, which runs the records of its data folder in one process per operator, and
codec.py, whose decode() makes the arguments and whose differs() compares a result. Only these two
are changed: arguments go to the device, results come back with their strides. Random operators
differ by nature, since the device has a generator of its own.
"""

import sys


def moved(value, torch):
    """`value` with its dense tensors on the device."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            return value
        there = value.detach().cuda()
        return there.requires_grad_() if value.requires_grad else there
    if isinstance(value, (list, tuple)):
        return type(value)(moved(v, torch) for v in value)
    if isinstance(value, dict):
        return {k: moved(v, torch) for k, v in value.items()}
    return value


def returned(value, torch):
    """`value` with its tensors back on the CPU, in the same order in memory."""
    if isinstance(value, torch.Tensor):
        if not value.is_cuda or value.is_conj() or value.is_neg():
            return value.detach().cpu()
        storage = value.untyped_storage().cpu()
        host = torch.empty(0, dtype=value.dtype)
        return host.set_(storage, value.storage_offset(), value.shape, value.stride())
    if isinstance(value, (list, tuple)):
        parts = [returned(v, torch) for v in value]
        return parts if isinstance(value, list) else tuple(parts)
    if isinstance(value, dict):
        return {k: returned(v, torch) for k, v in value.items()}
    return value


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    folder = sys.argv.pop(1)
    sys.path.insert(0, folder)
    import codec
    import run

    decode, differs = codec.decode, codec.differs
    codec.decode = lambda node, arrays, torch: moved(decode(node, arrays, torch), torch)
    codec.differs = lambda out, want, torch, *rest: differs(
        returned(out, torch), want, torch, *rest
    )
    run.main()


if __name__ == "__main__":
    main()
