"""Embeds the device programs into the library: writes cuda_embedded.cpp with the tables that
ATen/cuda/Program.h declares, beside two files of bytes that it takes in with .incbin.

Texts are every device source and every header it can reach, named as they are included, so that the
run-time compiler sees the same code as the build. Machine code is what nvcc made of the programs;
there may be none.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
from pathlib import Path

_INCLUDE = re.compile(r"^\s*#include <([^>]+)>", re.MULTILINE)
_OWN = "ATen/cuda/device/include/"
_BANNER = "// Written by tools/build/cuda_embed.py.\n"


def _find(root: Path, name: str) -> Path | None:
    for folder in (root / "aten/src", root):
        path = folder / name
        if path.is_file():
            return path
    return None


def collect_texts(root: Path) -> dict[str, str]:
    """Include name to text, for all device sources and what they include."""
    base = root / "aten/src"
    native = base / "ATen/native"
    start = [p.relative_to(base).as_posix() for p in sorted(base.glob("ATen/**/*.cuh"))]
    start += [p.relative_to(base).as_posix() for p in sorted((base / _OWN).glob("**/*.h"))]
    # Functors reach device code by name alone, from the programs that are written at run time.
    functors = [p for p in sorted(native.glob("*/*.h")) if "CRESSET_FN" in p.read_text()]
    start += [p.relative_to(base).as_posix() for p in functors]
    texts: dict[str, str] = {}
    waiting = start
    while waiting:
        name = waiting.pop()
        if name in texts:
            continue
        path = _find(root, name)
        if path is None:
            continue  # a standard header
        texts[name] = text = path.read_text()
        for spelling in _INCLUDE.findall(text):
            # The device's own form of a header hides the host's, which may reach anything.
            waiting.append(_OWN + spelling if _find(root, _OWN + spelling) else spelling)
    return dict(sorted(texts.items()))


def _pack(parts: dict[str, bytes], align: int) -> tuple[bytes, list[tuple[str, int, int]]]:
    blob = bytearray()
    rows = []
    for name, data in parts.items():
        blob += b"\0" * (-len(blob) % align)
        rows.append((name, len(blob), len(data)))
        blob += data
    return bytes(blob + b"\0"), rows


def _table(kind: str, name: str, count: str, rows: list[tuple[str, int, int]]) -> str:
    lines = "".join(f'    {{"{n}", {offset}, {size}}},\n' for n, offset, size in rows)
    end = '    {"", 0, 0}};\n'
    return f"const {kind} {name}[] = {{\n{lines}{end}const size_t {count} = {len(rows)};\n"


def _incbin(symbol: str, path: Path) -> str:
    return (
        f'asm(".pushsection .rodata\\n.balign 64\\n{symbol}:\\n'
        f'.incbin \\"{path.as_posix()}\\"\\n.popsection\\n");\n'
        f'extern "C" __attribute__((visibility("hidden"))) const char {symbol}[];\n'
    )


def write_if_changed(path: Path, data: bytes) -> None:
    if not path.exists() or path.read_bytes() != data:
        path.write_bytes(data)
    else:
        os.utime(path)  # Ninja looks at times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, required=True, help="the source tree")
    parser.add_argument("--images", type=Path, required=True, help="lines name=file")
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    options = parser.parse_args()
    lines = [line for line in options.images.read_text().splitlines() if line.strip()]
    images = {n: Path(file).read_bytes() for n, _, file in (x.partition("=") for x in lines)}
    texts = {name: text.encode() for name, text in collect_texts(options.root).items()}
    text_blob, text_rows = _pack(texts, 1)
    image_blob, image_rows = _pack(dict(sorted(images.items())), 64)
    # A compiler cache sees this file but not the bytes beside it, hence their hash.
    digest = hashlib.sha256(text_blob + image_blob).hexdigest()
    out = options.out.resolve()
    source = [
        _BANNER,
        f"// Content: {digest}\n",
        "#include <ATen/cuda/Program.h>\n\n",
        _incbin("cresset_cuda_texts", out / "texts.bin"),
        _incbin("cresset_cuda_images", out / "images.bin"),
        "\nnamespace at::cuda::embedded {\n",
        _table("File", "files", "file_count", text_rows),
        _table("Image", "images", "image_count", image_rows),
        "const char* text_data() { return cresset_cuda_texts; }\n",
        "const char* image_data() { return cresset_cuda_images; }\n",
        "} // namespace at::cuda::embedded\n",
    ]
    write_if_changed(options.out / "texts.bin", text_blob)
    write_if_changed(options.out / "images.bin", image_blob)
    write_if_changed(options.out / "cuda_embedded.cpp", "".join(source).encode())
    print(
        f"device programs: {len(texts)} files, {len(text_blob) >> 10} KB of text, "
        f"{len(images)} images, {len(image_blob) >> 10} KB"
    )


if __name__ == "__main__":
    main()
