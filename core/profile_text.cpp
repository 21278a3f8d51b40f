// The output of a profile: its table, and its trace for Chrome and Perfetto.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/profile.h"

namespace plumb {
namespace {

enum PhaseColumn { forward, backward, optimizer, other, phase_columns };

PhaseColumn column_of(std::string_view phase) {  // "forward (checkpoint)" counts as forward
  return phase.starts_with("forward") ? forward
         : phase == "backward"        ? backward
         : phase == "optimizer"       ? optimizer
                                      : other;
}

// The sums in a row of the table.
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

// Replaces the numbers in a path: "ViT.blocks.3.attn.qkv" -> "ViT.blocks.*.attn.qkv".
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

constexpr std::size_t name_width = 36;  // characters of the name column; a row has 120

std::string header(const char* title) {
  return fmt::format("{:<{}} {:>7} {:>9} {:>7} {:>8} {:>8} {:>9} {:>6} {:>7} {:>5} {:>8}\n", title, name_width, "calls",
                     "ms", "share", "forward", "backward", "optimizer", "other", "GFLOP/s", "GB/s", "alloc MB");
}

// A row of the table. A number that rounds to zero is left blank. A name that is too long loses its beginning, because
// the ends of names differ more.
std::string row(const std::string& name, const Sum& s, double total_ms) {
  const auto number = [](double value, int digits) {
    const std::string text = fmt::format("{:.{}f}", value, digits);
    return text.find_first_not_of("0.") == std::string::npos ? "" : text;
  };
  const double per_second = s.ms > 0 ? 1e-6 / s.ms : 0;  // factor from a count to 10^9 counts per second
  std::string text = fmt::format(
      "{:<{}} {:>7} {:>9.3f} {:>5.1f} % {:>8} {:>8} {:>9} {:>6} {:>7} {:>5} {:>8}",
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

// The recorded steps: "step 3" or "steps 3 to 7".
std::string steps_of(const std::vector<Profile::Event>& events) {
  const auto [first, last] = std::ranges::minmax(events, {}, &Profile::Event::step);
  return first.step == last.step ? fmt::format("step {}", first.step)
                                 : fmt::format("steps {} to {}", first.step, last.step);
}

// A line about a device other than the host: "cuda, per step: 132 launches, ...".
std::string text_of(const Traffic& t, Device device, std::int64_t steps) {
  const auto a_step = [&](std::uint64_t count) {
    return fmt::format("{:.4g}", static_cast<double>(count) / static_cast<double>(steps));
  };
  return fmt::format(
      "{}, per step: {} launches, {} uploads, {} copies, {} readbacks, {} waits, {} calls through the host, {} plain "
      "products, {:.4g} MB read and written (not counting the waits that time each call)\n",
      enum_name(device), a_step(t.launches), a_step(t.uploads), a_step(t.copies), a_step(t.readbacks),
      a_step(t.synchronizations), a_step(t.through_host), a_step(t.plain_products),
      static_cast<double>(t.bytes) * 1e-6 / static_cast<double>(steps));
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
      (std::string_view(e.kernel).starts_with("attention") ? in_attention : in_products) +=
          static_cast<double>(e.end - e.start) * 1e-6;
  }
  outside.ms = total - all.ms;
  const auto [first, last] = std::ranges::minmax(events_, {}, &Event::step);
  const std::string of_device =
      in_host_memory(device_) ? "" : text_of(traffic(), device_, std::int64_t{last.step} - first.step + 1);
  return fmt::format(
      "{}{}{}{}\n{}{}\n{}: {:.3f} ms, {:.1f} % in matrix products, {:.1f} % in attention, {:.1f} % in other kernels, "
      "{:.1f} % outside\n{}",
      header("kernel"), rows(kernels, total), row("all kernels", all, total), row("outside kernels", outside, total),
      header("module"), rows(modules, total), steps_of(events_), total, 100 * in_products / total,
      100 * in_attention / total, 100 * (all.ms - in_products - in_attention) / total, 100 * outside.ms / total,
      of_device);
}

std::string Profile::chrome_trace() const {
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  for (const Event& e : events_)
    text += fmt::format(
        "{{\"name\": {}, \"cat\": {}, \"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"ts\": {:.3f}, \"dur\": {:.3f}, "
        "\"args\": {{\"module\": {}, \"step\": "
        "{}, "
        "\"gflop\": {:.6f}, \"bytes\": {:.0f}, \"allocated\": {:.0f}}}}}{}\n",
        json_string(e.kernel), json_string(*e.phase ? e.phase : "other"), static_cast<double>(e.start) * 1e-3,
        static_cast<double>(e.end - e.start) * 1e-3, json_string(e.path ? *e.path : ""), e.step, e.operations * 1e-9,
        e.bytes, e.allocated, &e == &events_.back() ? "" : ",");
  return text + "]}\n";
}

}  // namespace plumb
