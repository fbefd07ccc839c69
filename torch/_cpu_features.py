"""torch._C._cpu: what the processor offers, by name, read once from the operating system."""

import functools
import os
import platform

from torch.backends import cpu as _cpu

# Name here -> word of the operating system, where they differ in more than an underscore.
_WORDS = {
    "fma3": "fma",
    "bmi": "bmi1",
    "lzcnt": "abm",
    "sse3": "pni",
    "sha": "sha_ni",
    "avx_vnni": "avx_vnni",
    "avx512_bf16": "avx512_bf16",
    "avx512_fp16": "avx512_fp16",
    "avx512_vnni": "avx512_vnni",
    "avx512_vbmi2": "avx512_vbmi2",
    "avx512_bitalg": "avx512_bitalg",
    "avx512_vpopcntdq": "avx512_vpopcntdq",
    "avx512_vp2intersect": "avx512_vp2intersect",
    "avx512_4vnniw": "avx512_4vnniw",
    "avx512_4fmaps": "avx512_4fmaps",
    **{name: name for name in ("amx_bf16", "amx_fp16", "amx_int8", "amx_tile")},
    **{name: name for name in ("sse4_1", "sse4_2", "avx_vnni_int8", "avx_ne_convert")},
}
_SAME = (
    "aes avx avx2 bmi2 clflush clflushopt clwb f16c fma4 popcnt sse sse2 sse4a ssse3 avx512_bw "
    "avx512_cd avx512_dq avx512_f avx512_ifma avx512_vbmi avx512_vl"
).split()


def _cache_size(index: int) -> int:
    """Bytes of a cache of the first processor; 0 where the system does not say."""
    try:
        with open(f"/sys/devices/system/cpu/cpu0/cache/index{index}/size") as file:
            return int(file.read().strip().removesuffix("K")) * 1024
    except (OSError, ValueError):
        return 0


def _about(word: str) -> list[str]:
    """The values of a line of the processors' description."""
    try:
        with open("/proc/cpuinfo") as file:
            return [line.partition(":")[2].strip() for line in file if line.startswith(word)]
    except OSError:
        return []


@functools.cache
def _read() -> dict[str, object]:
    flags = _cpu._flags()
    found: dict[str, object] = {name: word in flags for name, word in _WORDS.items()}
    found.update({name: name.replace("_", "") in flags for name in _SAME})
    cores = set(zip(_about("physical id"), _about("core id"), strict=False))
    names = _about("model name")
    logical = os.cpu_count() or 1
    found.update(
        architecture=platform.machine(),
        cpu_name=names[0] if names else platform.processor(),
        num_sockets=len(set(_about("physical id"))) or 1,
        num_physical_cores=len(cores) or logical,
        num_logical_cores=logical,
        l1d_cache_size=_cache_size(0),
        l2_cache_size=_cache_size(2),
    )
    return found


def _get_cpu_capability() -> dict[str, object]:
    """Instruction sets as booleans, counts of cores and sizes of caches."""
    return dict(_read())


def _init_amx() -> bool:
    """Whether tiles can be used: no kernel here does."""
    return False
