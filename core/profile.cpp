#include "core/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "core/backend.h"

namespace plumb {
namespace {

thread_local Profile* current = nullptr;

std::int64_t now() { return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double bytes_of(const Array& a) { return a.defined() ? static_cast<double>(a.numel()) * static_cast<double>(size_of(a.dtype())) : 0; }
double bytes_of(const Heads&) { return 0; }  // attention's are counted by its extents
double bytes_of(const LinearCall& c) { return bytes_of(c.mean) + bytes_of(c.rstd) + bytes_of(c.slope) + bytes_of(c.skip); }
double bytes_of(const LinearGradients& d) { return bytes_of(d.dx) * (d.add_to_dx ? 2 : 1) + bytes_of(d.dw) + bytes_of(d.db); }
double bytes_of(std::span<const Array> arrays) {
  double sum = 0;
  for (const Array& a : arrays) sum += bytes_of(a);
  return sum;
}
double bytes_of(std::span<const AdamWUpdate> updates) {  // reads four arrays, writes three
  double sum = 0;
  for (const AdamWUpdate& u : updates) sum += 7 * bytes_of(u.parameter);
  return sum;
}
template <class T>
double bytes_of(const T&) {
  return 0;
}

double elements(const Array& a) { return static_cast<double>(a.numel()); }

// Floating-point operations of the kernels that are matrix products, by the member of the table.
template <auto entry>
struct Operations {
  template <class... Args>
  static double of(const Args&...) {
    return 0;
  }
};
template <>
struct Operations<&Kernels::matmul> {
  static double of(const Array& a, bool transpose_a, const Array&, bool, const Array& y) {
    return 2 * elements(y) * static_cast<double>(a.dim(transpose_a ? -2 : -1));
  }
};
template <>
struct Operations<&Kernels::linear_forward> {
  static double of(const LinearCall&, const Array& x, const Array&, const Array&, const Array& y) {
    return 2 * elements(y) * static_cast<double>(x.dim(-1));
  }
};
template <>
struct Operations<&Kernels::linear_backward> {
  static double of(const LinearCall&, const Array& dy, const Array&, const Array& w, const Array&, const LinearGradients& d) {
    return 2 * elements(dy) * static_cast<double>(w.dim(1)) * (d.dx.defined() + d.dw.defined());
  }
};
template <>
struct Operations<&Kernels::conv2d_forward> {
  static double of(const Array&, const Array& w, const Array&, const Conv2dOptions&, const Array& y) {
    return 2 * elements(y) * elements(w) / static_cast<double>(w.dim(0));
  }
};
template <>
struct Operations<&Kernels::conv2d_backward> {
  static double of(const Array& dy, const Array&, const Array& w, const Conv2dOptions&, const Array& dx, const Array& dw, const Array&) {
    return 2 * elements(dy) * elements(w) / static_cast<double>(w.dim(0)) * (dx.defined() + dw.defined());
  }
};
double attention_product(const AttentionCall& c) { return 2.0 * static_cast<double>(c.batch * c.heads * c.queries * c.keys * c.head_dim); }
template <>
struct Operations<&Kernels::attention_forward> {
  template <class... Rest>
  static double of(const AttentionCall& call, const Rest&...) {
    return 2 * attention_product(call);
  }
};
template <>
struct Operations<&Kernels::attention_backward> {
  template <class... Rest>
  static double of(const AttentionCall& call, const Rest&...) {
    return 5 * attention_product(call);
  }
};

}  // namespace

struct ProfileRecorder {
  static void record(const char* kernel, std::int64_t start, double operations, double bytes) {
    Profile& p = *current;
    const std::uint64_t allocated = memory_stats().allocated;
    p.events_.push_back({kernel, current_path(), current_phase(), random_state().step, start - p.began_, now() - p.began_, operations, bytes,
                         static_cast<double>(allocated - p.allocated_)});
    p.allocated_ = allocated;
  }
};

namespace {

// Stands in the table for one kernel of a device.
template <Device device, auto entry>
struct Timed;
template <Device device, class Result, class... Args, Result (*Kernels::*entry)(Args...)>
struct Timed<device, entry> {
  static inline const char* name = "";

  static Result call(Args... args) {
    struct Record {  // written when the kernel has returned, whatever it returns
      std::int64_t start;
      double operations, bytes;
      ~Record() { ProfileRecorder::record(name, start, operations, bytes); }
    } const record{now(), Operations<entry>::of(args...), (bytes_of(args) + ... + 0.0)};
    return ((device == Device::cpu ? cpu_kernels() : reference_kernels()).*entry)(args...);
  }
};

template <Device device, auto entry>
void add(Kernels& table, const char* name) {
  table.*entry = &Timed<device, entry>::call;
  Timed<device, entry>::name = name;
}

template <Device device>
Kernels timed_kernels() {
  Kernels t{};
  add<device, &Kernels::fill>(t, "fill");
  add<device, &Kernels::cast>(t, "cast");
  add<device, &Kernels::unary>(t, "unary");
  add<device, &Kernels::binary>(t, "binary");
  add<device, &Kernels::where>(t, "where");
  add<device, &Kernels::broadcast>(t, "broadcast");
  add<device, &Kernels::reduce>(t, "reduce");
  add<device, &Kernels::matmul>(t, "matmul");
  add<device, &Kernels::permute>(t, "permute");
  add<device, &Kernels::slice>(t, "slice");
  add<device, &Kernels::assign_slice>(t, "assign_slice");
  add<device, &Kernels::gather>(t, "gather");
  add<device, &Kernels::scatter_add>(t, "scatter_add");
  add<device, &Kernels::linear_forward>(t, "linear_forward");
  add<device, &Kernels::linear_backward>(t, "linear_backward");
  add<device, &Kernels::conv2d_forward>(t, "conv2d_forward");
  add<device, &Kernels::conv2d_backward>(t, "conv2d_backward");
  add<device, &Kernels::gelu_forward>(t, "gelu_forward");
  add<device, &Kernels::softmax_forward>(t, "softmax_forward");
  add<device, &Kernels::softmax_backward>(t, "softmax_backward");
  add<device, &Kernels::log_softmax_forward>(t, "log_softmax_forward");
  add<device, &Kernels::log_softmax_backward>(t, "log_softmax_backward");
  add<device, &Kernels::layer_norm_forward>(t, "layer_norm_forward");
  add<device, &Kernels::layer_norm_backward>(t, "layer_norm_backward");
  add<device, &Kernels::rms_norm_forward>(t, "rms_norm_forward");
  add<device, &Kernels::rms_norm_backward>(t, "rms_norm_backward");
  add<device, &Kernels::dyt_forward>(t, "dyt_forward");
  add<device, &Kernels::dyt_backward>(t, "dyt_backward");
  add<device, &Kernels::attention_forward>(t, "attention_forward");
  add<device, &Kernels::attention_backward>(t, "attention_backward");
  add<device, &Kernels::cross_entropy_forward>(t, "cross_entropy_forward");
  add<device, &Kernels::cross_entropy_backward>(t, "cross_entropy_backward");
  add<device, &Kernels::dropout>(t, "dropout");
  add<device, &Kernels::gated_residual_forward>(t, "gated_residual_forward");
  add<device, &Kernels::gated_residual_backward>(t, "gated_residual_backward");
  add<device, &Kernels::adamw>(t, "adamw");
  add<device, &Kernels::sgd>(t, "sgd");
  add<device, &Kernels::adagrad>(t, "adagrad");
  add<device, &Kernels::sum_of_squares>(t, "sum_of_squares");
  return t;
}

// What rows of a table add up.
struct Sum {
  std::int64_t calls = 0;
  double forward = 0, backward = 0, other = 0;  // ms
  double operations = 0, bytes = 0, allocated = 0;

  void add(const Profile::Event& e) {
    const double ms = static_cast<double>(e.end - e.start) * 1e-6;
    const std::string_view phase = e.phase;
    (phase.starts_with("forward") ? forward : phase == "backward" ? backward : other) += ms;
    ++calls;
    operations += e.operations;
    bytes += e.bytes;
    allocated += e.allocated;
  }
  double ms() const { return forward + backward + other; }
};

// "ViT.blocks.3.attn.qkv" -> "ViT.blocks.*.attn.qkv"
std::string without_numbers(const Path& path) {
  if (!path) return "(outside modules)";
  std::string result;
  for (std::size_t i = 0; i < path->size();) {
    const std::size_t end = std::min(path->find('.', i), path->size());
    const std::string part = path->substr(i, end - i);
    result += std::ranges::all_of(part, [](char c) { return '0' <= c && c <= '9'; }) ? "*" : part;
    if (end < path->size()) result += '.';
    i = end + 1;
  }
  return result;
}

std::string sums_table(const char* title, const std::map<std::string, Sum>& sums, double total) {
  std::vector<std::pair<std::string, Sum>> rows(sums.begin(), sums.end());
  std::ranges::sort(rows, [](const auto& a, const auto& b) { return a.second.ms() > b.second.ms(); });
  std::size_t width = 24;
  for (const auto& [name, sum] : rows) width = std::max(width, name.size());
  const auto rate = [](double amount, double ms) { return amount > 0 && ms > 0 ? fmt::format("{:.1f}", amount / ms * 1e-6) : ""; };
  std::string text = fmt::format("{:<{}}  {:>7} {:>9} {:>9} {:>9} {:>6} {:>8} {:>7} {:>9}\n", title, width, "calls", "fwd ms", "bwd ms", "other ms",
                                 "share", "GFLOP/s", "GB/s", "MB alloc");
  for (const auto& [name, s] : rows)
    text += fmt::format("{:<{}}  {:>7} {:>9.3f} {:>9.3f} {:>9.3f} {:>5.1f}% {:>8} {:>7} {:>9.1f}\n", name, width, s.calls, s.forward, s.backward,
                        s.other, 100 * s.ms() / total, rate(s.operations, s.ms()), rate(s.bytes, s.ms()), s.allocated * 1e-6);
  return text;
}

std::string json_string(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + '"';
}

}  // namespace

const Kernels& detail::profiled_kernels(Device device) {
  static const Kernels cpu = timed_kernels<Device::cpu>(), reference = timed_kernels<Device::reference>();
  return device == Device::cpu ? cpu : reference;
}

Profile::Profile() : began_(now()), allocated_(memory_stats().allocated) {
  check(!current, "[profile] expected no other profile in this thread, got a second one while the first still records");
  current = this;
  detail::profiling = true;
}

Profile::~Profile() { stop(); }

void Profile::stop() {
  if (current != this) return;
  ended_ = now();
  current = nullptr;
  detail::profiling = false;
}

std::int64_t Profile::duration() const { return (ended_ ? ended_ : now()) - began_; }

std::string Profile::table() const {
  std::map<std::string, Sum> kernels, modules;
  Sum all;
  double in_products = 0, in_attention = 0;
  for (const Event& e : events_) {
    kernels[e.kernel].add(e);
    modules[without_numbers(e.path)].add(e);
    all.add(e);
    if (e.operations > 0)
      (std::string_view(e.kernel).starts_with("attention") ? in_attention : in_products) += static_cast<double>(e.end - e.start) * 1e-6;
  }
  const double total = static_cast<double>(duration()) * 1e-6;
  return fmt::format("{}\n{}\n{:.3f} ms: {:.1f} % in matrix products, {:.1f} % in attention, {:.1f} % in other kernels, {:.1f} % outside kernels\n",
                     sums_table("kernel", kernels, total), sums_table("module", modules, total), total, 100 * in_products / total,
                     100 * in_attention / total, 100 * (all.ms() - in_products - in_attention) / total, 100 * (total - all.ms()) / total);
}

std::string Profile::chrome_trace() const {
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  for (const Event& e : events_)
    text += fmt::format(
        "{{\"name\": {}, \"cat\": {}, \"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"ts\": {:.3f}, \"dur\": {:.3f}, \"args\": {{\"module\": {}, \"step\": "
        "{}, "
        "\"gflop\": {:.6f}, \"bytes\": {:.0f}, \"allocated\": {:.0f}}}}}{}\n",
        json_string(e.kernel), json_string(*e.phase ? e.phase : "other"), static_cast<double>(e.start) * 1e-3,
        static_cast<double>(e.end - e.start) * 1e-3, json_string(e.path ? *e.path : ""), e.step, e.operations * 1e-9, e.bytes, e.allocated,
        &e == &events_.back() ? "" : ",");
  return text + "]}\n";
}

}  // namespace plumb
