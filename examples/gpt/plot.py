"""Line charts as PNG pictures, drawn point by point and encoded with zlib alone, so that the
example needs no plotting library."""

import itertools
import math
import struct
import zlib

WHITE, BLACK, GREY = (255, 255, 255), (40, 40, 40), (225, 225, 225)
COLOURS = ((31, 90, 160), (205, 92, 40), (60, 140, 70))

# Glyphs of 3 x 5 points, a row to each group of three bits from the top.
_ROWS = {
    " ": "000 000 000 000 000", "-": "000 000 111 000 000", ".": "000 000 000 000 010",
    ",": "000 000 000 010 100", ":": "000 010 000 010 000", "/": "001 001 010 100 100",
    "0": "111 101 101 101 111", "1": "010 110 010 010 111", "2": "111 001 111 100 111",
    "3": "111 001 111 001 111", "4": "101 101 111 001 001", "5": "111 100 111 001 111",
    "6": "111 100 111 101 111", "7": "111 001 010 010 010", "8": "111 101 111 101 111",
    "9": "111 101 111 001 111", "a": "000 011 101 101 011", "b": "100 110 101 101 110",
    "c": "000 011 100 100 011", "d": "001 011 101 101 011", "e": "010 101 111 100 011",
    "f": "011 100 110 100 100", "g": "011 101 011 001 110", "h": "100 110 101 101 101",
    "i": "010 000 010 010 010", "j": "001 000 001 101 010", "k": "100 101 110 101 101",
    "l": "110 010 010 010 111", "m": "000 111 111 101 101", "n": "000 110 101 101 101",
    "o": "000 010 101 101 010", "p": "110 101 110 100 100", "q": "011 101 011 001 001",
    "r": "000 101 110 100 100", "s": "011 100 010 001 110", "t": "010 111 010 010 011",
    "u": "000 101 101 101 011", "v": "000 101 101 101 010", "w": "000 101 101 111 111",
    "x": "000 101 010 010 101", "y": "101 101 011 001 110", "z": "000 111 010 100 111",
}  # fmt: skip


class Picture:
    """Points in RGB, from the upper left."""

    def __init__(self, width, height, colour=WHITE):
        self.width, self.height = width, height
        self._rows = [bytearray(bytes(colour) * width) for _ in range(height)]

    def point(self, x, y, colour):
        """Colours one point; those outside are left out."""
        if 0 <= x < self.width and 0 <= y < self.height:
            self._rows[y][3 * x : 3 * x + 3] = bytes(colour)

    def line(self, x0, y0, x1, y1, colour):
        """A straight line."""
        steps = max(abs(x1 - x0), abs(y1 - y0), 1)
        for i in range(steps + 1):
            x = x0 + (x1 - x0) * i / steps
            y = y0 + (y1 - y0) * i / steps
            self.point(math.floor(x + 0.5), math.floor(y + 0.5), colour)

    def text(self, x, y, text, colour=BLACK, scale=2):
        """Small letters and digits."""
        for character in text.lower():
            for row, bits in enumerate(_ROWS.get(character, _ROWS["-"]).split()):
                for column, bit in enumerate(bits):
                    if bit == "1":
                        self._block(x + column * scale, y + row * scale, scale, colour)
            x += 4 * scale

    def _block(self, x, y, size, colour):
        for dy in range(size):
            for dx in range(size):
                self.point(x + dx, y + dy, colour)

    def png(self):
        """The picture as the bytes of a PNG file."""
        header = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        pixels = zlib.compress(b"".join(b"\0" + bytes(row) for row in self._rows), 9)
        parts = ((b"IHDR", header), (b"IDAT", pixels), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind, data):
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)


def text_width(text, scale=2):
    """How many points a text takes."""
    return 4 * scale * len(text) - scale


def ticks(low, high, count=6):
    """Round numbers from `low` to `high`."""
    rough = max(high - low, 1e-9) / count
    power = 10 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def chart(series, title, x_label, y_label, width=800, height=480):
    """A Picture of the lines in `series`, a dict from name to a list of (x, y)."""
    picture = Picture(width, height)
    points = [point for line in series.values() for point in line]
    if not points:
        raise ValueError("nothing to draw: all series are empty")
    x_low, x_high = min(p[0] for p in points), max(p[0] for p in points)
    y_low, y_high = min(p[1] for p in points), max(p[1] for p in points)
    margin = 0.05 * (y_high - y_low) or 0.5
    y_low, y_high = y_low - margin, y_high + margin
    left, right, top, bottom = 70, width - 24, 44, height - 56

    def place(x, y):
        across = (x - x_low) / (x_high - x_low or 1)
        up = (y - y_low) / (y_high - y_low)
        return round(left + across * (right - left)), round(bottom - up * (bottom - top))

    _axes(picture, place, (x_low, x_high, y_low, y_high), (left, right, top, bottom))
    for number, (name, line) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        places = [place(x, y) for x, y in line]
        for (x0, y0), (x1, y1) in itertools.pairwise(places):
            picture.line(x0, y0, x1, y1, colour)
            picture.line(x0, y0 + 1, x1, y1 + 1, colour)
        spot = right - 150
        picture.line(spot - 26, top + 12 + 18 * number, spot - 8, top + 12 + 18 * number, colour)
        picture.text(spot, top + 7 + 18 * number, name, colour)
    picture.text((width - text_width(title, 3)) // 2, 14, title, scale=3)
    picture.text((left + right - text_width(x_label)) // 2, height - 20, x_label)
    picture.text(8, top - 20, y_label)
    return picture


def _axes(picture, place, limits, frame):
    x_low, x_high, y_low, y_high = limits
    left, right, top, bottom = frame
    for value in ticks(y_low, y_high):
        y = place(x_low, value)[1]
        picture.line(left, y, right, y, GREY)
        label = f"{value:g}"
        picture.text(left - 8 - text_width(label), y - 5, label)
    for value in ticks(x_low, x_high):
        x = place(value, y_low)[0]
        picture.line(x, top, x, bottom, GREY)
        label = f"{value:g}"
        picture.text(x - text_width(label) // 2, bottom + 8, label)
    for x0, y0, x1, y1 in ((left, top, left, bottom), (left, bottom, right, bottom)):
        picture.line(x0, y0, x1, y1, BLACK)
