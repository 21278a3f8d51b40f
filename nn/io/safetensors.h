// The safetensors format (github.com/huggingface/safetensors): 8 bytes with the header's length, little-endian; the
// header, JSON that gives dtype, shape and extent of every tensor, and strings under "__metadata__"; then the tensors'
// bytes, row-major, without gaps.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "nn/named_tensors.h"

namespace plumb::nn {

struct TensorFile {
  NamedTensors tensors;
  std::map<std::string, std::string> metadata;
};

// Reads F64, F32, I64 and U8 as they are, F16 and BF16 as f32 (exact; weights are f32 even where products
// run in bf16), onto the default device. Everything the header says is checked
// against the file before a tensor is allocated. Throws Error with the path, what was expected and what came.
TensorFile read_safetensors(const std::filesystem::path& path);

// Replaces the file, whole or not at all; bf16 tensors are written as BF16. Tensors are ordered by element size, then
// name: so each is aligned to its elements, as the format, which allows no gaps, can have it. Throws Error for a tensor
// that is undefined or named "__metadata__", for names and strings that are not UTF-8, and when the file cannot be
// written.
void write_safetensors(const std::filesystem::path& path, const TensorFile& file);

}  // namespace plumb::nn
