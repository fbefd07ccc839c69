"""What `import torch` costs over a bare interpreter: milliseconds (median of warm runs) and
resident memory, in fresh processes; given an interpreter that has the peer, both and the ratio.

    python tools/measure_import.py [PEER_PYTHON]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

MEMORY = "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"


def seconds(python: str, code: str) -> float:
    start = time.perf_counter()
    subprocess.run([python, "-c", code], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def import_cost(python: str, runs: int = 11) -> tuple[float, float]:
    """(milliseconds over bare Python, resident MB after the import)."""
    seconds(python, "import torch")
    bare = statistics.median(seconds(python, "pass") for _ in range(runs))
    full = statistics.median(seconds(python, "import torch") for _ in range(runs))
    memory = subprocess.run(
        [python, "-c", f"import torch; {MEMORY}"], check=True, capture_output=True, text=True
    )
    return (full - bare) * 1e3, int(memory.stdout) / 1024


def main() -> int:
    ours, memory = import_cost(sys.executable)
    print(f"import torch: {ours:.1f} ms over bare Python, {memory:.1f} MB resident")
    peer = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("PEER")
    if peer:
        os.environ.pop("PYTHONPATH", None)
        theirs, their_memory = import_cost(peer, runs=5)
        print(f"peer:         {theirs:.1f} ms over bare Python, {their_memory:.1f} MB resident")
        print(f"ratio:        {theirs / ours:.1f}x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
