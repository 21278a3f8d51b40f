#include "experiments/lab/record/checkpoint.h"

#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "experiments/lab/hash.h"

namespace plumb::lab {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* format = "plumb trial 1";

}  // namespace

std::string checksum_of_checkpoint(const nn::TensorFile& file) {
  Hash hash;
  for (const auto& [name, value] : file.metadata)
    if (name != "sum") hash.add(name), hash.add(value);
  for (const auto& [name, tensor] : file.tensors) {
    const Array a = on_host(tensor.array());
    hash.add(name);
    hash.add(fmt::format("{} {}", enum_name(a.dtype()), a.shape()));
    hash.add({static_cast<const char*>(a.bytes()), a.size_in_bytes()});
  }
  return hash.text();
}

void write_checkpoint(const std::filesystem::path& file, const TrialCheckpoint& c) {
  std::filesystem::create_directories(file.parent_path());
  nn::TensorFile content{.tensors = c.tensors,
                         .metadata = {{"format", format},
                                      {"key", c.key},
                                      {"code", c.code},
                                      {"machine", c.machine},
                                      {"step", std::to_string(c.step)},
                                      {"record", to_json(c.record)},
                                      {"recent", Json(c.recent).dump()},
                                      {"entropies", Json(c.entropies).dump()},
                                      {"reached", Json(c.reached).dump()}}};
  content.metadata["sum"] = checksum_of_checkpoint(content);
  nn::write_safetensors(file, content);
}

TrialCheckpoint read_checkpoint(const std::filesystem::path& file) {
  nn::TensorFile content = nn::read_safetensors(file);
  const auto field = [&](const char* name) -> const std::string& {
    const auto found = content.metadata.find(name);
    check(found != content.metadata.end(), "{}: expected the state of a trial, got a file without \"{}\"",
          file.string(), name);
    return found->second;
  };
  check(field("format") == format, "{}: expected the state of a trial of format \"{}\", got \"{}\"", file.string(),
        format, field("format"));
  check(field("sum") == checksum_of_checkpoint(content),
        "{}: expected the state of a trial with a valid checksum, got a file that was changed", file.string());
  const auto json = [&](const char* name) { return Json::parse(shallow_json(field(name), file.string())); };
  try {
    TrialCheckpoint c{.key = field("key"),
                      .code = field("code"),
                      .machine = field("machine"),
                      .step = json("step"),
                      .record = record_from_json(field("record"))};
    for (const Json& loss : json("recent")) c.recent.push_back(loss.is_null() ? unknown : loss.get<double>());
    c.entropies = json("entropies").get<std::deque<double>>();
    check(c.entropies.size() == c.recent.size(), "{}: expected the state of a trial, got {} losses and {} entropies",
          file.string(), c.recent.size(), c.entropies.size());
    c.reached = json("reached").get<std::map<double, std::int64_t>>();
    c.tensors = std::move(content.tensors);
    return c;
  } catch (const Json::exception& e) {
    fail(fmt::format("{}: expected the state of a trial, got {}", file.string(), e.what()));
  }
}

}  // namespace plumb::lab
