#!/usr/bin/env python3
"""Writes augment.safetensors: the results of timm's RandAugment operations and of Pillow's resizing for two small images.

Usage: make_augment.py      Needs: pip install numpy pillow safetensors, and pip install --no-deps timm
"""
import importlib.metadata
import importlib.util
import os
import random

import numpy as np
from PIL import Image
from safetensors.numpy import save_file

here = os.path.dirname(os.path.abspath(__file__))

# Loads only this file of timm, because the whole package requires PyTorch.
path = importlib.util.find_spec("timm").submodule_search_locations[0]
spec = importlib.util.spec_from_file_location("auto_augment", os.path.join(path, "data", "auto_augment.py"))
timm = importlib.util.module_from_spec(spec)
spec.loader.exec_module(timm)

OURS = {  # timm's list rand-m9-mstd0.5-inc1, in timm's order
    "AutoContrast": "auto_contrast", "Equalize": "equalize", "Invert": "invert", "Rotate": "rotate",
    "PosterizeIncreasing": "posterize", "SolarizeIncreasing": "solarize", "SolarizeAdd": "solarize_add",
    "ColorIncreasing": "colour", "ContrastIncreasing": "contrast", "BrightnessIncreasing": "brightness",
    "SharpnessIncreasing": "sharpness", "ShearX": "shear_x", "ShearY": "shear_y",
    "TranslateXRel": "translate_x", "TranslateYRel": "translate_y",
}
assert list(OURS) == timm._RAND_INCREASING_TRANSFORMS, timm._RAND_INCREASING_TRANSFORMS
GEOMETRIC = {"Rotate", "ShearX", "ShearY", "TranslateXRel", "TranslateYRel"}


def planes(image):
    array = np.asarray(image)
    return np.ascontiguousarray(array[None] if array.ndim == 2 else array.transpose(2, 0, 1))


def image_of(channels, height, width, seed):
    """Returns a gradient with an edge, noise, and values at both ends."""
    rng = np.random.RandomState(seed)
    y, x = np.mgrid[:height, :width]
    base = np.stack([40 + 7 * x + 3 * y, 200 - 5 * x, 30 + 9 * y][:channels], -1) + 60 * (x > width // 2)[..., None]
    array = np.clip(base + rng.normal(0, 12, base.shape), 0, 255).astype(np.uint8)
    array[2, 3], array[4, 5] = 0, 255
    return Image.fromarray(array[..., 0] if channels == 1 else array)


tensors = {}
for kind, image in (("colour", image_of(3, 20, 24, 1)), ("grey", image_of(1, 17, 16, 2))):
    tensors[f"{kind}/image"] = planes(image)
    fill = (120, 110, 100) if kind == "colour" else 120
    for name, ours in OURS.items():
        for level in (0, 3, 9, 10):
            if name == "PosterizeIncreasing" and level == 10:
                continue  # earlier versions of Pillow posterize to 0 bits as black, later versions refuse 0 bits
            for sign in (1, -1):
                random.random = lambda: 0.25 if sign > 0 else 0.75  # timm inverts the sign if the number is above one half
                level_to_arg = timm.LEVEL_TO_ARG[name]
                arguments = level_to_arg(level, {}) if level_to_arg else ()
                for resample, word in ((Image.BILINEAR, "bilinear"), (Image.BICUBIC, "bicubic")):
                    if word == "bicubic" and name not in GEOMETRIC:
                        continue
                    out = timm.NAME_TO_OP[name](image, *arguments, fillcolor=fill, resample=resample)
                    tensors[f"{kind}/{ours}/{level}/{'+' if sign > 0 else '-'}/{word}"] = planes(out)
    for top, left, height, width, to_height, to_width in ((0, 0, 16, 16, 16, 16), (2, 3, 9, 11, 16, 16), (1, 0, 16, 13, 5, 7), (0, 0, 17, 16, 40, 33)):
        box = image.crop((left, top, left + width, top + height))
        for resample, word in ((Image.BILINEAR, "bilinear"), (Image.BICUBIC, "bicubic")):
            name = f"{kind}/resize/{top},{left},{height},{width},{to_height},{to_width}/{word}"
            tensors[name] = planes(box.resize((to_width, to_height), resample))
save_file(tensors, os.path.join(here, "augment.safetensors"),
          metadata={"made by": f"timm {importlib.metadata.version('timm')}, Pillow {importlib.metadata.version('pillow')}"})
