"""Writes tests/golden/images/*: small pictures, and the pixels that Pillow reads from them and prepares for evaluation.

Usage: python3 make_images.py      (Pillow 13, NumPy, safetensors)
"""

import io
import math
import pathlib
import zlib

import numpy as np
from PIL import Image
from safetensors.numpy import save_file

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY, RGB, PALETTE, GREY_ALPHA, RGB_ALPHA = 0, 2, 3, 4, 6  # PNG's numbers of these colour types
KINDS = {  # all kinds of PNG except 16-bit grey, which Pillow clips to 255
    **{f"grey {bits}": (GREY, 1, bits) for bits in (1, 2, 4, 8)},
    **{f"rgb {bits}": (RGB, 3, bits) for bits in (8, 16)},
    **{f"palette {bits}": (PALETTE, 1, bits) for bits in (1, 2, 4, 8)},
    **{f"grey alpha {bits}": (GREY_ALPHA, 2, bits) for bits in (8, 16)},
    **{f"rgb alpha {bits}": (RGB_ALPHA, 4, bits) for bits in (8, 16)},
}


def some_pixels(count, seed):
    """Returns the bytes of tests/vision/data/data_files.h, from which the test draws its pictures."""
    return bytes(((i + seed) * 2654435761 >> 13) & 255 for i in range(count))


def png_chunk(name, data):
    return len(data).to_bytes(4, "big") + name + data + zlib.crc32(name + data).to_bytes(4, "big")


def drawn_png(colour_type, channels, bits, transparent=False, height=13, width=21):
    """Returns a PNG file with the picture that tests/vision/data/png_test.cpp draws."""
    row = (width * channels * bits + 7) // 8
    pixels = some_pixels(height * row, 1)
    colours = min(2**bits, 200)  # fewer colours than an 8-bit picture uses
    chunks = png_chunk(b"IHDR", b"".join(n.to_bytes(4, "big") for n in (width, height)) + bytes([bits, colour_type, 0, 0, 0]))
    if colour_type == PALETTE:
        chunks += png_chunk(b"PLTE", some_pixels(3 * colours, 2))
    if transparent:  # marks the value of the first pixel, or gives each colour of a palette an alpha value
        first = [pixels[2 * i] * 256 + pixels[2 * i + 1] if bits == 16 else pixels[i] >> (8 - bits) for i in range(channels)]
        chunks += png_chunk(b"tRNS", some_pixels(colours, 3) if colour_type == PALETTE else b"".join(v.to_bytes(2, "big") for v in first))
    lines = b"".join(b"\0" + pixels[y * row : (y + 1) * row] for y in range(height))
    return SIGNATURE + chunks + png_chunk(b"IDAT", zlib.compress(lines)) + png_chunk(b"IEND", b"")


here = pathlib.Path(__file__).parent / "images"
here.mkdir(exist_ok=True)
height, width = 23, 37
y, x = np.mgrid[0:height, 0:width]
colours = np.stack([x * 6, y * 10, 128 + 100 * np.sin(x / 5.0) * np.cos(y / 4.0)], -1).astype(np.uint8)
image = Image.fromarray(colours)
grey = image.convert("L")
alpha = image.copy()
alpha.putalpha(Image.fromarray((255 - x * 5).astype(np.uint8)))

image.save(here / "colours.png")
grey.save(here / "grey.png")
alpha.save(here / "transparent.png")
image.quantize(16).save(here / "palette.png")
grey.point(lambda v: 255 * (v > 100)).convert("1").save(here / "bits.png")
image.save(here / "colours.jpg", quality=90)
image.save(here / "progressive.jpg", quality=80, progressive=True, subsampling=0)
grey.save(here / "grey.jpg", quality=85)
image.convert("CMYK").save(here / "cmyk.jpg")
with open(here / "gamma.png", "wb") as file:  # Pillow ignores the gamma value
    plain = (here / "colours.png").read_bytes()
    file.write(plain[:33] + png_chunk(b"gAMA", (100000).to_bytes(4, "big")) + plain[33:])


def evaluated(picture, side, crop):
    """Applies torchvision's Resize (bicubic) and CenterCrop, with timm's crop_pct."""
    to = math.floor(side / crop)
    w, h = picture.size
    w, h = (to, int(to * h / w)) if w <= h else (int(to * w / h), to)
    picture = picture.resize((w, h), Image.BICUBIC)
    top, left = int(round((h - side) / 2.0)), int(round((w - side) / 2.0))
    return picture.crop((left, top, left + side, top + side))


def planes(picture):
    return np.ascontiguousarray(np.asarray(picture.convert("RGB")).transpose(2, 0, 1))


expected = {path.name: planes(Image.open(path)) for path in sorted(here.iterdir()) if path.suffix in (".png", ".jpg")}
for side, crop in ((16, 1.0), (16, 0.875), (32, 0.9), (64, 1.0)):
    expected[f"evaluated {side} {crop:g}"] = planes(evaluated(image, side, crop))
    expected[f"evaluated upright {side} {crop:g}"] = planes(evaluated(image.transpose(Image.TRANSPOSE), side, crop))
for kind, description in KINDS.items():
    expected[kind] = planes(Image.open(io.BytesIO(drawn_png(*description))))
    if description[0] in (GREY, RGB, PALETTE):
        expected[f"{kind} chunk"] = planes(Image.open(io.BytesIO(drawn_png(*description, transparent=True))))
save_file(expected, here / "expected.safetensors")
