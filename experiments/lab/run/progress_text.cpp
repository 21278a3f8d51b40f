#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/lab/run/progress.h"

namespace plumb::lab {
namespace {

constexpr const char *reset = "\033[0m", *dim = "\033[2m", *green = "\033[32m", *red = "\033[31m", *cyan = "\033[36m";

std::string coloured(const char* colour, const std::string& text, ProgressStyle style) {
  return style.colour ? colour + text + reset : text;
}

std::string shortened(const std::string& text, int width, ProgressStyle style) {
  if (display_width(text) <= width) return text;
  const std::string dots = style.utf8 ? "…" : "..";
  const int kept = width - display_width(dots);
  if (kept < 1) return "";
  std::size_t end = 0;
  for (int seen = 0; end < text.size(); ++end)
    if ((text[end] & 0xC0) != 0x80 && seen++ == kept) break;
  return text.substr(0, end) + dots;
}

// A gauge of `width` columns. The width includes the frame of the gauge.
std::string gauge(double fraction, int width, ProgressStyle style) {
  static const char* eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int inner = width - 2, parts = style.utf8 ? 8 : 1;
  const int filled = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * inner * parts);
  std::string blocks;
  for (int i = 0; i < filled / parts; ++i) blocks += style.utf8 ? "█" : "#";
  if (style.utf8) blocks += eighths[filled % parts];
  const std::string rest(static_cast<std::size_t>(inner - display_width(blocks)), ' ');
  return (style.utf8 ? "▕" : "[") + coloured(cyan, blocks, style) + rest + (style.utf8 ? "▏" : "]");
}

std::string shown_loss(double loss) {
  if (!std::isfinite(loss)) return "loss not finite";
  return std::abs(loss) < 1000 ? fmt::format("loss {:.3f}", loss) : fmt::format("loss {:.1e}", loss);
}
std::string shown_step(const ProgressState& s) {
  return fmt::format("step {:{}}/{}", s.step, fmt::formatted_size("{}", s.steps), s.steps);
}
std::string shown_speed(double speed) {
  return speed < 10 ? fmt::format("{:.2f} steps/s", speed) : fmt::format("{:.0f} steps/s", speed);
}

}  // namespace

std::string duration(double seconds) {
  const auto s = static_cast<std::int64_t>(std::clamp(seconds, 0.0, 1e12) + 0.5);
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

int display_width(const std::string& text) {
  int width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033')
      i = std::min(text.find('m', i), text.size());
    else if ((text[i] & 0xC0) != 0x80)
      ++width;
  }
  return width;
}

std::string progress_bar(const ProgressState& s, int width, ProgressStyle style) {
  constexpr int gap = 2, narrowest_gauge = 6, widest_gauge = 40, narrowest_label = 12;
  // A field of the line. Fields are listed in the order of the line. Fields with the highest rank are left out first,
  // and fields of rank 0 are never left out.
  struct Field {
    std::string text;
    const char* colour = "";
    int rank = 0;
  };
  const std::string room_for_gauge(narrowest_gauge, ' ');
  std::vector<Field> fields{{fmt::format("{:{}}/{}", s.run, fmt::formatted_size("{}", s.runs), s.runs), dim},
                            {s.label},
                            {room_for_gauge, "", 4}};
  if (s.steps > 0) fields.push_back({shown_step(s), "", 3});
  if (s.step > 0 && s.loss) fields.push_back({shown_loss(*s.loss), "", 1});
  if (!std::isnan(s.lr)) fields.push_back({fmt::format("lr {:.1e}", s.lr), dim, 6});
  if (!std::isnan(s.steps_per_second)) fields.push_back({shown_speed(s.steps_per_second), dim, 5});
  if (!std::isnan(s.seconds_left)) fields.push_back({"ETA " + duration(s.seconds_left), "", 2});

  const auto too_wide = [&] {
    int sum = -gap;
    for (const Field& field : fields) sum += gap + display_width(field.text);
    return sum - width;
  };
  std::string& label = fields[1].text;  // stays valid, because no field is erased before it or added after this line
  for (int excess; (excess = too_wide()) > 0;) {
    const auto least =
        std::max_element(fields.begin(), fields.end(), [](const Field& a, const Field& b) { return a.rank < b.rank; });
    const int label_width = display_width(label);
    if (least->rank <= 2 && label_width > narrowest_label)
      label = shortened(label, std::max(label_width - excess, narrowest_label), style);
    else if (least->rank > 0)
      fields.erase(least);
    else if (label_width > excess)
      label = shortened(label, label_width - excess, style);
    else
      return "";
  }
  if (label != s.label)
    // The label uses the columns of the fields that were left out.
    label = shortened(s.label, display_width(label) - too_wide(), style);
  std::string line;
  for (const Field& field : fields) {
    if (!line.empty()) line += std::string(gap, ' ');
    if (field.text == room_for_gauge)
      line += gauge(s.fraction, std::min(narrowest_gauge - too_wide(), widest_gauge), style);
    else
      line += *field.colour ? coloured(field.colour, field.text, style) : field.text;
  }
  return line;
}

std::string progress_line(const ProgressState& s) {
  std::string line = fmt::format("{}/{}  {}", s.run, s.runs, s.label);
  if (s.steps > 0) line += "  " + shown_step(s);
  if (s.step > 0 && s.loss) line += "  " + shown_loss(*s.loss);
  if (!std::isnan(s.lr)) line += fmt::format("  lr {:.1e}", s.lr);
  if (!std::isnan(s.steps_per_second)) line += "  " + shown_speed(s.steps_per_second);
  if (!std::isnan(s.seconds_left)) line += "  ETA " + duration(s.seconds_left);
  return line;
}

std::string finished_line(bool trained, const std::string& label, const std::string& outcome, double seconds,
                          ProgressStyle style) {
  const std::string mark = style.utf8 ? (trained ? "✓" : "✗") : (trained ? "ok  " : "FAIL");
  return fmt::format("{} {}  {}  {}", coloured(trained ? green : red, mark, style), label, outcome,
                     coloured(dim, duration(seconds), style));
}

}  // namespace plumb::lab
