// Tensors as text.
#include <algorithm>
#include <optional>

#include "autograd/tensor.h"

namespace plumb {
namespace {

constexpr std::int64_t whole = 200;  // largest number of elements of a tensor that is shown in full
constexpr std::int64_t edge = 3;     // elements shown at each end of a shortened axis

// Returns the indices of an axis that are shown; nullopt stands for the omitted indices.
std::vector<std::optional<std::int64_t>> shown(std::int64_t extent, bool shorten) {
  std::vector<std::optional<std::int64_t>> indices;
  for (std::int64_t i = 0; i < extent; ++i) {
    if (!shorten || extent <= 2 * edge || i < edge || i >= extent - edge)
      indices.emplace_back(i);
    else if (i == edge)
      indices.emplace_back();
  }
  return indices;
}

// Calls f with the flat index of each element that is shown.
template <class F>
void each_shown(const Shape& shape, int axis, std::int64_t first, bool shorten, F&& f) {
  if (axis == shape.rank()) return f(first);
  for (const auto i : shown(shape[axis], shorten))
    if (i) each_shown(shape, axis + 1, first * shape[axis] + *i, shorten, f);
}

struct Writer {
  const Shape& shape;
  bool shorten;
  std::vector<std::string> texts;  // texts of the shown elements, in order, padded to one width
  std::size_t next = 0;

  std::string block(int axis) {
    if (axis == shape.rank()) return texts[next++];
    const bool innermost = axis == shape.rank() - 1;
    const std::string between = innermost ? ", " : ",\n" + std::string(static_cast<std::size_t>(axis) + 1, ' ');
    std::string text = "[";
    for (const auto i : shown(shape[axis], shorten)) {
      if (text.size() > 1) text += between;
      text += i ? block(axis + 1) : "...";
    }
    return text + "]";
  }
};

}  // namespace

std::string to_string(const Tensor& t) {
  if (!t.defined()) return "undefined tensor";
  const Shape& shape = t.shape();
  const bool shorten = t.numel() > whole || t.numel() == 0;
  std::vector<std::string> texts;
  std::size_t width = 0;
  const Array host = on_host(t.array());
  dispatch_any(t.dtype(), [&]<class T>() {
    each_shown(shape, 0, 0, shorten, [&](std::int64_t i) {
      const T value = host.data<T>()[i];
      if constexpr (std::is_integral_v<T>)
        texts.push_back(fmt::format("{}", value));
      else
        texts.push_back(fmt::format("{:.4g}", static_cast<double>(value)));
      width = std::max(width, texts.back().size());
    });
  });
  if (shape.rank() > 1)
    for (std::string& text : texts) text.insert(0, width - text.size(), ' ');
  Writer writer{shape, shorten, std::move(texts)};
  return fmt::format("{}{}{}", describe(t), shape.rank() > 1 ? "\n" : " ", writer.block(0));
}

}  // namespace plumb
