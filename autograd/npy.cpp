// NumPy's file format (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html): "\x93NUMPY"; two bytes
// of version; the length of the header in two bytes (version 1) or four; the header, a Python literal padded with
// spaces; and the elements.
#include "autograd/npy.h"

#include <bit>
#include <charconv>
#include <cstring>

#include "autograd/ops.h"
#include "core/atomic_file.h"

namespace plumb {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are written as they lie in memory");

constexpr std::string_view magic = "\x93NUMPY";

struct Kind {
  std::string_view descr;
  DType dtype;
};
constexpr Kind kinds[] = {
    {"<f4", DType::f32}, {"<f8", DType::f64}, {"<i8", DType::i64}, {"|u1", DType::u8}, {"|b1", DType::u8}};

// Parses the header from left to right.
class Header {
 public:
  Header(std::string_view text, const std::filesystem::path& path) : rest_(text), path_(path) {}

  bool take(char c) {
    skip_spaces();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) refuse();
  }
  std::string_view quoted() {
    skip_spaces();
    const char quote = rest_.empty() ? ' ' : rest_[0];
    const std::size_t end = quote == '\'' || quote == '"' ? rest_.find(quote, 1) : rest_.npos;
    if (end == rest_.npos) refuse();
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool truth() {
    skip_spaces();
    for (const std::string_view word : {"True", "False"})
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return word == "True";
      }
    refuse();
  }
  // Parses a shape: "(2, 3)", "(2,)" or "()".
  std::vector<std::int64_t> extents() {
    std::vector<std::int64_t> dims;
    expect('(');
    while (!take(')')) {
      skip_spaces();
      std::int64_t extent = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
      if (error != std::errc() || extent < 0) refuse();
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      dims.push_back(extent);
      take(',');
    }
    return dims;
  }

 private:
  void skip_spaces() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  [[noreturn]] void refuse() const {
    fail(fmt::format("[load_npy] expected the header of a .npy file, got an invalid one near \"{}\" in {}",
                     rest_.substr(0, 20), path_.string()));
  }

  std::string_view rest_;
  const std::filesystem::path& path_;
};

}  // namespace

void save_npy(const std::filesystem::path& path, const Tensor& x) {
  detail::check_defined("save_npy", x);
  const auto* const kind = std::ranges::find(kinds, x.dtype(), &Kind::dtype);
  check(kind != std::end(kinds),
        "[save_npy] expected f32, f64, i64 or u8, got {}, which NumPy does not have: cast() it to f32",
        enum_name(x.dtype()));
  std::string shape;
  for (const std::int64_t extent : x.shape()) shape += fmt::format("{}, ", extent);
  if (x.shape().rank() > 1) shape.resize(shape.size() - 2);
  if (x.shape().rank() == 1) shape.pop_back();
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", kind->descr, shape);
  const std::size_t before = magic.size() + 4;
  header.append(63 - (before + header.size()) % 64, ' ');  // makes the elements begin at a multiple of 64
  header += '\n';
  std::string content(magic);
  content += {'\1', '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  content += header;
  const Array host = on_host(x.array());
  if (host.numel() > 0) content.append(static_cast<const char*>(host.bytes()), host.size_in_bytes());
  write_output(path, content);
}

Tensor load_npy(const std::filesystem::path& path, Device device) {
  const std::string content = read_file(path);
  const std::string_view all = content;
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(all[i])); };
  check(all.size() >= magic.size() + 4 && all.starts_with(magic),
        "[load_npy] expected a .npy file, which begins with \\x93NUMPY, got {}", path.string());
  const std::size_t version = byte(6), wide = version == 1 ? 2 : 4, begin = 8 + wide;
  check(1 <= version && version <= 3 && all.size() >= begin,
        "[load_npy] expected format version 1, 2 or 3 and a header, got version {} in {}", version, path.string());
  std::size_t length = 0;
  for (std::size_t i = wide; i-- > 0;) length = length << 8 | byte(8 + i);
  check(length <= all.size() - begin,
        "[load_npy] expected a header of {} bytes, got the end of {}: is the file truncated?", length, path.string());

  Header header(all.substr(begin, length), path);
  std::string_view descr;
  bool fortran = false;
  std::vector<std::int64_t> dims;
  header.expect('{');
  while (!header.take('}')) {
    const std::string_view key = header.quoted();
    header.expect(':');
    if (key == "descr")
      descr = header.quoted();
    else if (key == "fortran_order")
      fortran = header.truth();
    else
      dims = header.extents();
    header.take(',');
  }
  const auto* const kind = std::ranges::find(kinds, descr, &Kind::descr);
  check(kind != std::end(kinds),
        "[load_npy] expected float32, float64, int64, uint8 or bool, little-endian, got '{}' in {}: convert it, as in "
        "a.astype(\"float32\")",
        descr, path.string());
  const Shape shape(dims), stored(fortran ? std::vector<std::int64_t>(dims.rbegin(), dims.rend()) : dims);
  const std::size_t bytes = static_cast<std::size_t>(shape.numel()) * size_of(kind->dtype), data = begin + length;
  check(all.size() - data == bytes, "[load_npy] expected {} bytes of elements for {} {}, got {} in {}", bytes,
        enum_name(kind->dtype), shape, all.size() - data, path.string());
  const Out host(Array(stored, kind->dtype, Device::cpu));
  if (bytes > 0) std::memcpy(host.mutable_bytes(), all.data() + data, bytes);
  Tensor x(host);
  if (fortran) {
    Axes reversed;
    for (int i = shape.rank() - 1; i >= 0; --i) reversed.push_back(i);
    x = permute(x, reversed);
  }
  return Tensor(to_device(x.array(), device));
}

}  // namespace plumb
