#include "experiments/common/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace plumb::lab {
namespace {

std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string cell(double value) { return std::isfinite(value) ? fmt::format("{}", value) : std::string(); }

template <class T>
std::string cell(const std::optional<T>& value) {
  if (!value) return {};
  if constexpr (std::is_floating_point_v<T>) return cell(*value);
  return fmt::format("{}", *value);
}

// Foreign text inside a one-line message: short, in quotes, without line ends.
std::string excerpt(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::string shown(text.substr(0, longest));
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return '"' + shown + (text.size() > longest ? "...\"" : "\"");
}

[[noreturn]] void malformed(const std::string& file, std::int64_t line, const std::string& expected, std::string_view got) {
  fail(fmt::format("{}, line {}: expected {}, got {}; mend or delete the line", file, line, expected, excerpt(got)));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// One row, read cell by cell in the order of the header.
class Row {
 public:
  Row(const std::string& file, std::int64_t line, std::string_view header, std::vector<std::string> cells)
      : file_(file), line_(line), names_(split(header, ',')), cells_(std::move(cells)) {
    if (cells_.size() != names_.size())
      malformed(file, line, fmt::format("{} cells", names_.size()), fmt::format("{} ({})", cells_.size(), cells_.front()));
  }

  std::string text() {
    if (cells_[next_].empty()) wrong("a name");
    return cells_[next_++];
  }

  template <class Int>
  Int integer(Int least = 0) {
    Int value = 0;
    if (!read(value) || value < least) wrong(fmt::format("a whole number of at least {}", least));
    ++next_;
    return value;
  }

  double number() {
    const std::optional<double> value = maybe_number();
    if (!value) {
      --next_;
      wrong("a finite number");
    }
    return *value;
  }

  std::optional<double> maybe_number() {
    double value = 0;
    if (cells_[next_].empty()) return ++next_, std::nullopt;
    if (!read(value) || !std::isfinite(value)) wrong("a finite number or nothing");
    ++next_;
    return value;
  }

  double number_or_nan() { return maybe_number().value_or(std::numeric_limits<double>::quiet_NaN()); }

  std::optional<std::int64_t> maybe_integer() {
    if (cells_[next_].empty()) return ++next_, std::nullopt;
    return integer<std::int64_t>();
  }

  Status status() {
    for (Status s : {Status::ok, Status::diverged, Status::failed})
      if (cells_[next_] == to_string(s)) return ++next_, s;
    wrong("ok, diverged or failed");
  }

 private:
  template <class T>
  bool read(T& value) const {
    const std::string& text = cells_[next_];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
  }

  [[noreturn]] void wrong(const std::string& expected) const {
    malformed(file_, line_, fmt::format("{} in column {}", expected, names_[next_]), cells_[next_]);
  }

  const std::string& file_;
  std::int64_t line_;
  std::vector<std::string_view> names_;
  std::vector<std::string> cells_;
  std::size_t next_ = 0;
};

// Reads one row from the front of `text` and takes it away. RFC 4180: a cell that begins with a quote ends with one, doubled inside.
std::vector<std::string> take_row(std::string_view& text, const std::string& file, std::int64_t& line) {
  const std::int64_t first_line = line;
  std::vector<std::string> cells(1);
  std::size_t i = 0;
  for (bool cell_begins = true; i < text.size() && text[i] != '\n'; ++i) {
    const char c = text[i];
    if (c == ',') {
      cells.emplace_back();
      cell_begins = true;
      continue;
    }
    if (c == '\r' && (i + 1 == text.size() || text[i + 1] == '\n')) continue;
    if (c == '"') {
      if (!cell_begins) malformed(file, first_line, "quotes around a whole cell or none", cells.back());
      for (++i;; ++i) {
        if (i >= text.size()) malformed(file, first_line, "a closing quote", text);
        if (text[i] == '"' && (++i >= text.size() || text[i] != '"')) break;
        if (text[i] == '\n') ++line;
        cells.back() += text[i];
      }
      if (i < text.size() && text[i] != ',' && text[i] != '\r' && text[i] != '\n')
        malformed(file, first_line, "a comma after a quoted cell", text.substr(i, 20));
      --i;
    } else {
      cells.back() += c;
    }
    cell_begins = false;
  }
  text.remove_prefix(std::min(i + 1, text.size()));
  ++line;
  return cells;
}

template <class ReadRow>
auto parse_csv(std::string_view text, const std::string& file, std::string_view header, ReadRow&& read_row) {
  std::vector<decltype(read_row(std::declval<Row&>()))> rows;
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view first = text.substr(0, end);
  if (first.ends_with('\r')) first.remove_suffix(1);
  if (first != header) malformed(file, 1, fmt::format("the header {}", header), first);
  text.remove_prefix(std::min(end + 1, text.size()));
  for (std::int64_t line = 2; !text.empty();) {
    const std::int64_t first_line = line;
    std::vector<std::string> cells = take_row(text, file, line);
    Row row(file, first_line, header, std::move(cells));
    rows.push_back(read_row(row));
  }
  return rows;
}

// One object of metrics.jsonl: fields by name.
class Object {
 public:
  Object(const std::string& file, std::int64_t line, std::string_view text)
      : file_(file), line_(line), text_(text), json_(nlohmann::json::parse(text.begin(), text.end(), nullptr, false)) {
    if (!json_.is_object()) malformed(file, line, "one JSON object", text);
  }

  std::string text(const char* name) const {
    const auto field = json_.find(name);
    if (field == json_.end() || !field->is_string()) wrong("a text", name);
    return field->get<std::string>();
  }

  std::string text_or_empty(const char* name) const { return json_.contains(name) ? text(name) : std::string(); }

  template <class Int>
  Int integer(const char* name) const {
    const auto field = json_.find(name);
    if (field == json_.end() || !field->is_number_integer() || (!field->is_number_unsigned() && field->get<std::int64_t>() < 0))
      wrong("a whole number of at least 0", name);
    return field->get<Int>();
  }

  double number(const char* name) const {
    const auto field = json_.find(name);
    if (field == json_.end() || !field->is_number()) wrong("a number", name);
    return field->get<double>();
  }

  double number_or_nan(const char* name) const {
    const auto field = json_.find(name);
    if (field == json_.end() || field->is_null()) return std::numeric_limits<double>::quiet_NaN();
    if (!field->is_number()) wrong("a number or null", name);
    return field->get<double>();
  }

 private:
  [[noreturn]] void wrong(const char* expected, const char* name) const {
    malformed(file_, line_, fmt::format("{} in field {}", expected, name), text_);
  }

  const std::string& file_;
  std::int64_t line_;
  std::string_view text_;
  nlohmann::json json_;
};

}  // namespace

std::string_view to_string(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::diverged:
      return "diverged";
    case Status::failed:
      break;
  }
  return "failed";
}

std::string format_result(const ArmResult& a) {
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}\n", cell(a.gate), a.depth, a.lr, a.seed, to_string(a.status), a.steps, cell(a.train_loss),
                     cell(a.val_loss), cell(a.val_accuracy), cell(a.diverged_at), cell(a.seconds), cell(a.images_per_second));
}

std::string format_loss(const LossPoint& p) {
  // nlohmann-json writes a number that is not finite as null.
  nlohmann::ordered_json json = {{"gate", p.gate}, {"depth", p.depth}, {"lr", p.lr},         {"seed", p.seed},
                                 {"step", p.step}, {"loss", p.loss},   {"lr_now", p.lr_now}, {"grad_norm", p.grad_norm}};
  if (!p.divergence.empty()) json["divergence"] = p.divergence;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

std::string format_layer(const LayerPoint& p) {
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", cell(p.gate), p.depth, p.lr, p.seed, p.step, p.block, cell(p.branch),
                     cell(p.stream_norm), cell(p.branch_norm), cell(p.ratio), cell(p.gate_mean), cell(p.gate_max), cell(p.grad_norm),
                     cell(p.drop_ratio), cell(p.empty_rows), cell(p.change));
}

std::string format_results(const std::vector<ArmResult>& arms) {
  std::string text = std::string(results_header) + '\n';
  for (const ArmResult& a : arms) text += format_result(a);
  return text;
}

std::string format_layers(const std::vector<LayerPoint>& points) {
  std::string text = std::string(layers_header) + '\n';
  for (const LayerPoint& p : points) text += format_layer(p);
  return text;
}

// Braces around initialisers fix the order of the calls: it is that of the columns.
std::vector<ArmResult> parse_results(std::string_view text, const std::string& file) {
  return parse_csv(text, file, results_header, [](Row& r) {
    return ArmResult{.gate = r.text(),
                     .depth = r.integer<std::int64_t>(1),
                     .lr = r.number(),
                     .seed = r.integer<std::uint64_t>(),
                     .status = r.status(),
                     .steps = r.integer<std::int64_t>(),
                     .train_loss = r.maybe_number(),
                     .val_loss = r.maybe_number(),
                     .val_accuracy = r.maybe_number(),
                     .diverged_at = r.maybe_integer(),
                     .seconds = r.number_or_nan(),
                     .images_per_second = r.number_or_nan()};
  });
}

std::vector<LossPoint> parse_losses(std::string_view text, const std::string& file) {
  std::vector<LossPoint> points;
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.empty()) return points;
  std::int64_t line = 0;
  for (std::string_view one : split(text, '\n')) {
    const Object o(file, ++line, one);
    points.push_back({.gate = o.text("gate"),
                      .depth = o.integer<std::int64_t>("depth"),
                      .lr = o.number("lr"),
                      .seed = o.integer<std::uint64_t>("seed"),
                      .step = o.integer<std::int64_t>("step"),
                      .loss = o.number_or_nan("loss"),
                      .lr_now = o.number_or_nan("lr_now"),
                      .grad_norm = o.number_or_nan("grad_norm"),
                      .divergence = o.text_or_empty("divergence")});
  }
  return points;
}

std::vector<LayerPoint> parse_layers(std::string_view text, const std::string& file) {
  return parse_csv(text, file, layers_header, [](Row& r) {
    return LayerPoint{.gate = r.text(),
                      .depth = r.integer<std::int64_t>(1),
                      .lr = r.number(),
                      .seed = r.integer<std::uint64_t>(),
                      .step = r.integer<std::int64_t>(),
                      .block = r.integer<std::int64_t>(),
                      .branch = r.text(),
                      .stream_norm = r.number_or_nan(),
                      .branch_norm = r.number_or_nan(),
                      .ratio = r.number_or_nan(),
                      .gate_mean = r.maybe_number(),
                      .gate_max = r.maybe_number(),
                      .grad_norm = r.number_or_nan(),
                      .drop_ratio = r.maybe_number(),
                      .empty_rows = r.maybe_number(),
                      .change = r.number_or_nan()};
  });
}

}  // namespace plumb::lab
