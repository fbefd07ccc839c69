"""The classes behind torch._C._distributed_c10d: options, work, backends and groups. The work
itself is done in C++ (torch._c10d); here are the signatures that programs call. It stands apart
from torch.distributed, which imports it."""
