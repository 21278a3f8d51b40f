// The safetensors file format (github.com/huggingface/safetensors). A file consists of three parts: 8 bytes with the
// length of the header (little-endian); the header, which is JSON with dtype, shape and byte range of every tensor, and
// with strings under "__metadata__"; and the bytes of the tensors, row-major, without gaps.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "nn/io/named_tensors.h"

namespace plumb::nn {

// The content of a safetensors file: tensors by name, and text by key.
struct TensorFile {
  NamedTensors tensors;
  std::map<std::string, std::string> metadata;
  // The tensors of the file that read_safetensors() skips, because Plumb does not read their dtype: dtype by name.
  std::map<std::string, std::string> skipped = {};
};

// Reads a file. The tensors are on the default device. The dtypes F64, F32, I64 and U8 are kept; F16 and BF16 are
// converted to f32, without loss (weights are f32 even if products run in bf16). Tensors of other dtypes are skipped.
// The whole header is checked against the file before a tensor is allocated. If the file is invalid, throws an Error
// with the path, the expected content and the found content. The time is linear in the size of the file.
TensorFile read_safetensors(const std::filesystem::path& path);

// Throws Error if `needed` has a name of a tensor that read_safetensors() skipped. `what` begins the message.
void check_not_skipped(const NamedTensors& needed, const TensorFile& file, const std::string& what);
// Returns the skipped tensors as text, such as "index (I32), mask (BOOL)", or "" if there are none.
std::string skipped_text(const TensorFile& file);

// Writes a file, atomically: an existing file is replaced completely or not at all. bf16 tensors are written as BF16.
// Tensors are ordered by element size, then by name, so that each tensor is aligned to its element size without gaps.
// `skipped` is not written. Throws Error for a tensor that is undefined or named "__metadata__", for names and strings
// that are not UTF-8 or contain a NUL, and if the file cannot be written.
void write_safetensors(const std::filesystem::path& path, const TensorFile& file);

}  // namespace plumb::nn
