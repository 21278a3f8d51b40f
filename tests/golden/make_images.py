"""Makes tests/golden/images/*: small pictures as files, and what Pillow reads from them and makes of them for evaluation.

Usage: python3 make_images.py      (Pillow 13, NumPy, safetensors)
"""

import math
import pathlib
import zlib

import numpy as np
from PIL import Image
from safetensors.numpy import save_file

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
with open(here / "gamma.png", "wb") as file:  # Pillow takes values as they are
    plain = (here / "colours.png").read_bytes()
    chunk = b"gAMA" + (100000).to_bytes(4, "big")
    file.write(plain[:33] + (4).to_bytes(4, "big") + chunk + zlib.crc32(chunk).to_bytes(4, "big") + plain[33:])


def evaluated(picture, side, crop):
    """torchvision's Resize (bicubic) and CenterCrop, with timm's crop_pct."""
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
save_file(expected, here / "expected.safetensors")
