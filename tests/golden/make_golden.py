#!/usr/bin/env python3
"""Writes dtypes.safetensors, a file with one tensor of each dtype.

Usage: make_golden.py      Needs: pip install torch safetensors
"""
import os

import torch
from safetensors.torch import save_file

here = os.path.dirname(os.path.abspath(__file__))

# One tensor of each dtype that Plumb reads. tests/nn/safetensors_test.cpp expects these values.
inf = float("inf")
save_file(
    {
        "f64": torch.tensor([[1.0, -0.1], [1e300, 5e-324]], dtype=torch.float64),
        "f32": torch.tensor([0.5, -3.0, 1e-45], dtype=torch.float32),
        "f16": torch.tensor([1.5, -0.0, 65504.0, 2.0**-24, -(2.0**-15), -inf], dtype=torch.float16),
        "bf16": torch.tensor([[1.0], [-2.5], [3.3895313892515355e38]], dtype=torch.bfloat16),
        "i64": torch.tensor([-(2**62), 3]),
        "u8": torch.tensor([0, 7, 255], dtype=torch.uint8),
        "scalar": torch.tensor(4.0),
        "empty": torch.zeros(0, 3),
    },
    os.path.join(here, "dtypes.safetensors"),
    metadata={"made by": "safetensors", "quoted": 'a "b" \\ é'},
)
