"""The settings of torch.save and torch.load, by the dotted names under which
torch.utils.serialization.config shows them. Those without a dot are set by functions only."""

MAP_SHARED, MAP_PRIVATE = 1, 2

settings = {
    "load.mmap": False,
    "load.endianness": None,
    "load.mmap_flags": MAP_PRIVATE,
    "load.calculate_storage_offsets": False,
    "save.compute_crc32": True,
    "save.use_pinned_memory_for_d2h": False,
    "save.storage_alignment": 64,
    "skip": False,
    "room": None,
}
