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
double bytes_of(const LinearCall& c) {
  return bytes_of(c.gamma) + bytes_of(c.beta) + bytes_of(c.mean) + bytes_of(c.rstd) + bytes_of(c.slope) + bytes_of(c.skip) + bytes_of(c.gate) +
         bytes_of(c.row_scale);
}
double bytes_of(const LinearGradients& d) {
  return bytes_of(d.dx) * (d.add_to_dx ? 2 : 1) + bytes_of(d.dw) + bytes_of(d.db) + bytes_of(d.dgamma) + bytes_of(d.dbeta) + bytes_of(d.dgate);
}
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

// Of the arrays that a kernel gets, by the member of the table. Heads lie among others in a wider buffer, so the call's extents count them.
template <auto entry>
struct Bytes {
  template <class... Args>
  static double of(const Args&... args) {
    return (bytes_of(args) + ... + 0.0);
  }
};
double bytes_of_heads(const AttentionCall& c, const Heads& any, int of_queries, int of_keys) {
  const std::int64_t tokens = of_queries * c.queries + of_keys * c.keys;
  return static_cast<double>(c.batch * c.heads * tokens * c.head_dim) * static_cast<double>(size_of(any.array.dtype()));
}
template <>
struct Bytes<&Kernels::attention_forward> {
  static double of(const AttentionCall& c, const Heads& q, const Heads&, const Heads&, const Heads&, const Array& sums) {
    return bytes_of_heads(c, q, 2, 2) + bytes_of(sums) + bytes_of(c.keep);  // q, out; k, v
  }
};
template <>
struct Bytes<&Kernels::attention_backward> {
  template <class... Gradients>
  static double of(const AttentionCall& c, const Heads&, const Heads& q, const Heads&, const Heads&, const Array& sums, const Gradients&...) {
    return bytes_of_heads(c, q, 3, 4) + bytes_of(sums) + bytes_of(c.keep);  // dout, q, dq; k, v, dk, dv
  }
};

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
  // Makes room for an event and starts the clock: record() is called by a destructor and must not throw.
  static std::int64_t start() {
    std::vector<Profile::Event>& events = current->events_;
    if (events.size() == events.capacity()) events.reserve(std::max<std::size_t>(4096, 2 * events.size()));
    return now();
  }
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
    struct Record {  // written when the kernel has returned, whatever it returns or throws
      double operations, bytes;
      std::int64_t start;
      ~Record() { ProfileRecorder::record(name, start, operations, bytes); }
    } const record{Operations<entry>::of(args...), Bytes<entry>::of(args...), ProfileRecorder::start()};
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

enum PhaseColumn { forward, backward, optimizer, other, phase_columns };

PhaseColumn column_of(std::string_view phase) {  // "forward (checkpoint)" is forward
  return phase.starts_with("forward") ? forward : phase == "backward" ? backward : phase == "optimizer" ? optimizer : other;
}

// What rows of a table add up.
struct Sum {
  std::int64_t calls = 0;
  double ms = 0, by_phase[phase_columns] = {};
  double operations = 0, bytes = 0, allocated = 0;

  void add(const Profile::Event& e) {
    const double took = static_cast<double>(e.end - e.start) * 1e-6;
    ms += took;
    by_phase[column_of(e.phase)] += took;
    ++calls;
    operations += e.operations;
    bytes += e.bytes;
    allocated += e.allocated;
  }
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

constexpr std::size_t name_width = 36;  // a row has 120 columns

std::string header(const char* title) {
  return fmt::format("{:<{}} {:>7} {:>9} {:>7} {:>8} {:>8} {:>9} {:>6} {:>7} {:>5} {:>8}\n", title, name_width, "calls", "ms", "share", "forward",
                     "backward", "optimizer", "other", "GFLOP/s", "GB/s", "alloc MB");
}

// What rounds to zero stays blank. A name that is too long loses its beginning: the end tells it apart.
std::string row(const std::string& name, const Sum& s, double total_ms) {
  const auto number = [](double value, int digits) {
    const std::string text = fmt::format("{:.{}f}", value, digits);
    return text.find_first_not_of("0.") == std::string::npos ? "" : text;
  };
  const double per_second = s.ms > 0 ? 1e-6 / s.ms : 0;  // in billions
  std::string text = fmt::format("{:<{}} {:>7} {:>9.3f} {:>5.1f} % {:>8} {:>8} {:>9} {:>6} {:>7} {:>5} {:>8}",
                                 name.size() > name_width ? "..." + name.substr(name.size() - name_width + 3) : name, name_width,
                                 s.calls > 0 ? fmt::format("{}", s.calls) : "", s.ms, 100 * s.ms / total_ms, number(s.by_phase[forward], 2),
                                 number(s.by_phase[backward], 2), number(s.by_phase[optimizer], 2), number(s.by_phase[other], 2),
                                 number(s.operations * per_second, 1), number(s.bytes * per_second, 1), number(s.allocated * 1e-6, 1));
  return text.substr(0, text.find_last_not_of(' ') + 1) + '\n';
}

std::string rows(const std::map<std::string, Sum>& sums, double total_ms) {
  std::vector<std::pair<std::string, Sum>> sorted(sums.begin(), sums.end());
  std::ranges::stable_sort(sorted, std::ranges::greater{}, [](const auto& entry) { return entry.second.ms; });
  std::string text;
  for (const auto& [name, sum] : sorted) text += row(name, sum, total_ms);
  return text;
}

// "step 3", "steps 3 to 7"
std::string steps_of(const std::vector<Profile::Event>& events) {
  const auto [first, last] = std::ranges::minmax(events, {}, &Profile::Event::step);
  return first.step == last.step ? fmt::format("step {}", first.step) : fmt::format("steps {} to {}", first.step, last.step);
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
  const double total = static_cast<double>(duration()) * 1e-6;
  if (events_.empty()) return fmt::format("{:.3f} ms without a kernel call\n", total);
  std::map<std::string, Sum> kernels, modules;
  Sum all, outside;
  double in_products = 0, in_attention = 0;
  for (const Event& e : events_) {
    kernels[e.kernel].add(e);
    modules[without_numbers(e.path)].add(e);
    all.add(e);
    if (e.operations > 0)
      (std::string_view(e.kernel).starts_with("attention") ? in_attention : in_products) += static_cast<double>(e.end - e.start) * 1e-6;
  }
  outside.ms = total - all.ms;
  return fmt::format(
      "{}{}{}{}\n{}{}\n{}: {:.3f} ms, {:.1f} % in matrix products, {:.1f} % in attention, {:.1f} % in other kernels, {:.1f} % outside\n",
      header("kernel"), rows(kernels, total), row("all kernels", all, total), row("outside kernels", outside, total), header("module"),
      rows(modules, total), steps_of(events_), total, 100 * in_products / total, 100 * in_attention / total,
      100 * (all.ms - in_products - in_attention) / total, 100 * outside.ms / total);
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
