#include "nn/io/safetensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/atomic_file.h"
#include "core/json_text.h"
#include "core/names.h"

namespace plumb::nn {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

using HeaderJson = nlohmann::json;                     // finds a name in logarithmic time, unlike ordered_json
constexpr std::uint64_t longest_header = 100'000'000;  // the limit in the official library of the format
constexpr const char* metadata_entry = "__metadata__";
constexpr const char* from_torch =
    " (from torch.save? In Python: safetensors.torch.save_file(model.state_dict(), \"weights.safetensors\"))";

struct Format {
  const char* name;
  std::uint64_t bytes;  // size of an element in the file
  DType dtype;          // dtype in memory after reading
};
constexpr Format formats[] = {{"F64", 8, DType::f64}, {"F32", 4, DType::f32}, {"I64", 8, DType::i64},
                              {"U8", 1, DType::u8},   {"F16", 2, DType::f32}, {"BF16", 2, DType::f32}};

float from_f16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent == 31
                         ? fraction ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity()
                     : exponent ? std::ldexp(static_cast<float>(1024 + fraction), exponent - 25)
                                : std::ldexp(static_cast<float>(fraction), -24);
  return bits >> 15 ? -size : size;
}

float from_bf16(std::uint16_t bits) { return bfloat16::from_bits(bits); }

// Returns whether the text can be the name of a dtype that Plumb does not read, such as "I32" or "F8_E4M3".
bool may_be_dtype(const std::string& text) {
  return !text.empty() && text.size() <= 16 &&
         text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == text.npos;
}

// Throws Error if a name or a string of the file has a NUL. Programs that read names as C strings would otherwise see
// other names than Plumb.
void check_no_nul(const std::string& text, const std::string& path) {
  check(text.find('\0') == text.npos, "{}: expected names and metadata without a NUL, got one after \"{}\"", path,
        text.c_str());
}

// The description of one tensor in the header, after the checks.
struct Entry {
  std::string name, dtype;
  const Format* format;  // null if Plumb does not read the dtype
  Shape shape;
  std::uint64_t begin, end;  // the byte range of the tensor, counted from the end of the header
};

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path.string()) {
    std::error_code error;
    check(std::filesystem::is_regular_file(path, error), "{}: expected a safetensors file, got {}", path_,
          std::filesystem::exists(path, error) ? "something that is not a regular file" : "nothing at this path");
    size_ = std::filesystem::file_size(path, error);
    in_.open(path, std::ios::binary);
    check(!error && in_.is_open(), "{}: cannot be opened", path_);
  }

  TensorFile read() {
    check(size_ >= 8, "{}: expected a safetensors file of at least 8 bytes, got {}", path_, size_);
    std::uint64_t length = 0;
    bytes(&length, sizeof length);
    const bool possible = length <= std::min(size_ - 8, longest_header);
    check(length <= longest_header || (length & 0xffffffff) != 0x04034b50,
          "{}: expected a safetensors file, got a zip archive{}", path_, from_torch);
    check(length <= longest_header || (length & 0xffff) != 0x0280, "{}: expected a safetensors file, got a pickle{}",
          path_, from_torch);
    if (!possible) refuse_length(length);
    std::string text(length, '\0');
    bytes(text.data(), length);
    const HeaderJson header = parse(text);

    TensorFile file;
    std::vector<Entry> entries;
    for (const auto& [name, value] : header.items()) {
      check_no_nul(name, path_);
      if (name == metadata_entry)
        file.metadata = metadata_of(value);
      else
        entries.push_back(entry_of(name, value));
    }
    check_extents(entries, size_ - 8 - length);
    for (const Entry& e : entries)
      if (e.format)
        file.tensors[e.name] = Tensor(array_of(e, 8 + length + e.begin));
      else
        file.skipped[e.name] = e.dtype;
    return file;
  }

 private:
  // Throws the error for a file whose first 8 bytes are not the length of a header. If a header begins at byte 8, the
  // file is truncated. Otherwise the file is not a safetensors file.
  [[noreturn]] void refuse_length(std::uint64_t length) {
    constexpr std::uint64_t most_shown = 24;
    std::string start(std::min(size_, most_shown), '\0');
    in_.seekg(0);
    bytes(start.data(), start.size());
    check(start.size() <= 8 || start[8] != '{' || length > longest_header,
          "{}: expected a header of {} bytes, as the file says, got a file of {} bytes: it is probably cut off", path_,
          length, size_);
    check(!start.starts_with("version https://git-lfs"),
          "{}: expected a safetensors file, got a Git LFS pointer: download the file with git lfs pull", path_);
    const std::string line = start.substr(0, start.find_first_of("\r\n"));
    const bool is_text = !line.empty() && std::ranges::all_of(line, [](unsigned char c) { return 32 <= c && c < 127; });
    fail(fmt::format("{}: expected a safetensors file, got one {}", path_,
                     is_text ? fmt::format("that begins with \"{}\"", line) : "of another kind, or damaged"));
  }

  void bytes(void* to, std::uint64_t count) {
    in_.read(static_cast<char*>(to), static_cast<std::streamsize>(count));
    check(in_.good(), "{}: expected {} more bytes, got fewer: the file cannot be read, or it changed while it was read",
          path_, count);
  }

  // Parses a JSON object. Throws Error if a name occurs twice in an object, because the parser would keep the last
  // value.
  HeaderJson parse(const std::string& text) const {
    const std::optional<std::string> twice = doubled_json_name(shallow_json(text, path_));
    check(!twice, "{}: expected each name once in the header, got \"{}\" twice", path_, twice.value_or(""));
    try {
      HeaderJson header = HeaderJson::parse(text);
      check(header.is_object(), "{}: expected a JSON object as header, got {}", path_, header.type_name());
      return header;
    } catch (const HeaderJson::exception& e) {
      fail(fmt::format("{}: expected a header in JSON: {}", path_, e.what()));
    }
  }

  std::map<std::string, std::string> metadata_of(const HeaderJson& value) const {
    check(value.is_object(), "{}: expected strings by name under {}, got {}", path_, metadata_entry, value.type_name());
    std::map<std::string, std::string> metadata;
    for (const auto& [name, text] : value.items()) {
      check_no_nul(name, path_);
      check(text.is_string(), "{}: expected a string for {} \"{}\", got {}", path_, metadata_entry, name,
            text.type_name());
      check_no_nul(metadata[name] = text.get<std::string>(), path_);
    }
    return metadata;
  }

  // Returns the list of unsigned integers in value[key].
  std::vector<std::uint64_t> integers_of(const std::string& name, const HeaderJson& value, const char* key) const {
    const auto list = value.find(key);
    const bool good = list != value.end() && list->is_array() &&
                      std::ranges::all_of(*list, [](const HeaderJson& j) { return j.is_number_unsigned(); });
    check(good, "{}: expected a list of integers of at least 0 as {} of \"{}\"", path_, key, name);
    return list->get<std::vector<std::uint64_t>>();
  }

  Entry entry_of(const std::string& name, const HeaderJson& value) const {
    check(value.is_object(), "{}: expected dtype, shape and data_offsets for \"{}\", got {}", path_, name,
          value.type_name());
    const std::string dtype =
        value.contains("dtype") && value["dtype"].is_string() ? value["dtype"].get<std::string>() : "none";
    const auto found = std::ranges::find(formats, dtype, &Format::name);
    const Format* const format = found == std::end(formats) ? nullptr : &*found;
    check(format || may_be_dtype(dtype), "{}: expected a dtype such as F32 for \"{}\", got {}", path_, name, dtype);

    const std::vector<std::uint64_t> dims = integers_of(name, value, "shape"),
                                     offsets = integers_of(name, value, "data_offsets");
    std::uint64_t numel = 1;
    bool overflow = false;
    for (std::uint64_t d : dims)
      if (d) overflow |= __builtin_mul_overflow(numel, d, &numel);
    check(!overflow && numel < (std::uint64_t{1} << 59) && dims.size() <= Shape::max_rank,
          "{}: expected at most {} axes and fewer than 2^59 elements for \"{}\", got [{}]", path_, Shape::max_rank,
          name, fmt::join(dims, ", "));
    if (std::ranges::count(dims, 0u)) numel = 0;

    const bool in_order = offsets.size() == 2 && offsets[0] <= offsets[1];
    check(format || in_order, "{}: expected a begin and an end for \"{}\" {}, got [{}]", path_, name, dtype,
          fmt::join(offsets, ", "));
    check(!format || (in_order && offsets[1] - offsets[0] == numel * format->bytes),
          "{}: expected a begin and an end {} bytes apart for \"{}\" {} [{}], got [{}]", path_,
          format ? numel * format->bytes : 0, name, dtype, fmt::join(dims, ", "), fmt::join(offsets, ", "));
    const std::vector<std::int64_t> extents(dims.begin(), dims.end());
    return {name, dtype, format, Shape(extents), offsets[0], offsets[1]};
  }

  // Checks that the tensors, in the order of their bytes, fill the rest of the file without overlap or gap, and end
  // where the file ends.
  void check_extents(std::vector<Entry>& entries, std::uint64_t size) const {
    std::ranges::sort(entries, {}, [](const Entry& e) { return std::pair(e.begin, e.end); });
    std::uint64_t end = 0;
    for (const Entry& e : entries) {
      check(e.begin == end, "{}: expected \"{}\" to begin at byte {}, where the tensor before it ends, got {}", path_,
            e.name, end, e.begin);
      end = e.end;
    }
    check(end == size, "{}: expected {} bytes of tensors, got {}: the file is cut off or has bytes that belong to none",
          path_, end, size);
  }

  Array array_of(const Entry& e, std::uint64_t position) {
    in_.seekg(static_cast<std::streamoff>(position));
    const Device device = defaults().device;
    const Out a(Array(e.shape, e.format->dtype, in_host_memory(device) ? device : Device::cpu));
    if (e.format->bytes == size_of(e.format->dtype)) {
      bytes(a.mutable_bytes(), e.end - e.begin);
    } else {
      std::vector<std::uint16_t> half(static_cast<std::size_t>(a.numel()));
      bytes(half.data(), e.end - e.begin);
      std::ranges::transform(half, a.mutable_data<float>(),
                             std::string_view(e.format->name) == "F16" ? from_f16 : from_bf16);
    }
    return to_device(a, device);
  }

  std::string path_;
  std::uint64_t size_ = 0;
  std::ifstream in_;
};

// Returns the name of a dtype in a written file. bf16 is written as BF16, although BF16 is read as f32.
const char* format_name(DType dtype) {
  return dtype == DType::bf16 ? "BF16" : std::ranges::find(formats, dtype, &Format::dtype)->name;
}

}  // namespace

TensorFile read_safetensors(const std::filesystem::path& path) { return Reader(path).read(); }

void check_not_skipped(const NamedTensors& needed, const TensorFile& file, const std::string& what) {
  for (const auto& [name, dtype] : file.skipped)
    check(!needed.contains(name), "{}: expected dtype F64, F32, F16, BF16, I64 or U8 for \"{}\", got {}", what, name,
          dtype);
}

std::string skipped_text(const TensorFile& file) {
  std::vector<std::string> names;
  for (const auto& [name, dtype] : file.skipped) names.push_back(fmt::format("{} ({})", name, dtype));
  return some_of(names);
}

void write_safetensors(const std::filesystem::path& path, const TensorFile& file) {
  std::vector<std::pair<std::string, Array>> order;
  for (const auto& [name, t] : file.tensors) {
    check(t.defined() && name != metadata_entry, "{}: expected defined tensors under names other than {}, got \"{}\"{}",
          path.string(), metadata_entry, name, t.defined() ? "" : ", which is not defined");
    order.emplace_back(name, t.array());
  }
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [](const auto& entry) { return size_of(entry.second.dtype()); });

  std::string text = "{";
  const auto add = [&](const std::string& name, const std::string& value) {
    check_no_nul(name, path.string());
    text += fmt::format("{}{}:{}", text.size() > 1 ? "," : "", HeaderJson(name).dump(), value);
  };
  std::uint64_t end = 0;
  try {
    for (const auto& [name, value] : file.metadata)
      check_no_nul(name, path.string()), check_no_nul(value, path.string());
    if (!file.metadata.empty()) add(metadata_entry, HeaderJson(file.metadata).dump());
    for (const auto& [name, a] : order) {
      const std::uint64_t begin = std::exchange(end, end + a.size_in_bytes());
      add(name, fmt::format(R"({{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", format_name(a.dtype()),
                            fmt::join(a.shape().begin(), a.shape().end(), ","), begin, end));
    }
  } catch (const HeaderJson::exception& e) {
    fail(fmt::format("{}: expected names and metadata in UTF-8: {}", path.string(), e.what()));
  }
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');
  check(text.size() <= longest_header,
        "{}: expected a header of at most {} bytes, got {}: fewer tensors or shorter names", path.string(),
        longest_header, text.size());

  const std::uint64_t length = text.size();
  std::vector<std::string_view> parts{{reinterpret_cast<const char*>(&length), sizeof length}, text};
  for (auto& [name, a] : order) {
    a = on_host(a);
    parts.emplace_back(static_cast<const char*>(a.bytes()), a.size_in_bytes());
  }
  write_file_atomically(path, parts);
}

}  // namespace plumb::nn
