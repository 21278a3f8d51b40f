#!/usr/bin/env python3
"""Writes positions.safetensors: position embeddings that timm has resized for another image size.

Usage: make_positions.py      Needs: pip install torch timm safetensors
"""
import os

import torch
from safetensors.torch import save_file
from timm.layers import resample_abs_pos_embed

torch.manual_seed(0)
tensors = {}
for prefix, old, new in ((1, 14, 24), (1, 14, 7), (0, 14, 16), (0, 3, 8), (1, 8, 3), (0, 5, 4)):
    given = torch.randn(1, prefix + old * old, 6)
    tensors[f"{prefix} {old} {new} given"] = given
    tensors[f"{prefix} {old} {new} resized"] = resample_abs_pos_embed(given, [new, new], [old, old], num_prefix_tokens=prefix).contiguous()
save_file(tensors, os.path.join(os.path.dirname(os.path.abspath(__file__)), "positions.safetensors"))
