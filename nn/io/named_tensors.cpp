#include "nn/io/named_tensors.h"

#include <algorithm>

#include "core/backend.h"
#include "core/names.h"
#include "nn/io/name_remedies.h"

namespace plumb::nn {
namespace {

bool fits(const Tensor& to, const Tensor& from) {
  return from.defined() && to.shape() == from.shape() &&
         (to.dtype() == from.dtype() || (is_float(to.dtype()) && is_float(from.dtype())));
}

}  // namespace

NamedTensors copies(const NamedTensors& tensors) {
  NamedTensors all;
  for (const auto& [name, t] : tensors) {
    const Array copy = empty_like(t.array());
    copy_into(t.array(), copy);
    all[name] = Tensor(copy);
  }
  return all;
}

Leftovers assign(const NamedTensors& to, const NamedTensors& from, const std::string& what, Strictness strictness) {
  Leftovers left;
  std::vector<std::string> unfit;
  for (const auto& [name, target] : to) {
    const auto given = from.find(name);
    if (given == from.end())
      left.missing.push_back(name);
    else if (!fits(target, given->second))
      unfit.push_back(fmt::format("{} (expected {} {}, got {})", name, enum_name(target.dtype()), target.shape(),
                                  given->second.defined()
                                      ? fmt::format("{} {}", enum_name(given->second.dtype()), given->second.shape())
                                      : "an undefined tensor"));
  }
  for (const auto& [name, given] : from)
    if (!to.contains(name)) left.unexpected.push_back(name);

  std::vector<std::string> wrong;
  const auto list = [&](const char* kind, const std::vector<std::string>& names) {
    if (!names.empty()) wrong.push_back(fmt::format("{} {}: {}", names.size(), kind, some_of(names)));
  };
  if (!strictness.allow_missing) list("missing", left.missing);
  if (!strictness.allow_unexpected) list("unexpected", left.unexpected);
  list("of another shape or dtype", unfit);
  const bool refused = !wrong.empty() || (!to.empty() && left.missing.size() == to.size());
  const std::string remedy = refused ? remedy_for_names(to, from) : "", advice = remedy.empty() ? "" : "; " + remedy;
  check(wrong.empty(), "{}: expected {} tensors with the names and shapes they have here, got {}{}", what, to.size(),
        fmt::join(wrong, "; "), advice);
  check(to.empty() || left.missing.size() < to.size(),
        "{}: expected some of these {} tensors ({}), got {} others ({}): nothing would be loaded{}", what, to.size(),
        some_of(left.missing), from.size(), some_of(left.unexpected), advice);

  for (const auto& [name, given] : from)
    if (const auto target = to.find(name); target != to.end()) {
      const Array &x = given.array(), &y = target->second.array();
      if (x.dtype() == y.dtype()) {
        copy_into(x, y);
      } else {
        kernels(y).cast(x, Out(y));
        y.bump_version();
      }
    }
  return left;
}

void check_counter(const NamedTensors& from, const std::string& name, const std::string& what) {
  const auto given = from.find(name);
  if (given == from.end() || !given->second.defined() || given->second.dtype() != DType::i64 ||
      given->second.numel() != 1)
    return;
  const std::int64_t count = on_host(given->second.array()).data<std::int64_t>()[0];
  check(0 <= count && count <= std::int64_t{1} << 53, "{}: expected \"{}\" in 0..2^53, got {}", what, name, count);
}

}  // namespace plumb::nn
