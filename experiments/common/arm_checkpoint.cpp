#include "experiments/common/arm_checkpoint.h"

#include <nlohmann/json.hpp>

#include "nn/io/safetensors.h"

namespace plumb::lab {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* format = "plumb arm 1";

}  // namespace

void write_checkpoint(const std::filesystem::path& file, const ArmCheckpoint& c) {
  std::filesystem::create_directories(file.parent_path());
  Json recent = Json::array();
  for (const double loss : c.recent) recent.push_back(loss);
  nn::write_safetensors(file, {.tensors = c.tensors,
                               .metadata = {{"format", format},
                                            {"key", c.key},
                                            {"code", c.code},
                                            {"step", std::to_string(c.step)},
                                            {"record", to_json(c.record)},
                                            {"recent", recent.dump()}}});
}

ArmCheckpoint read_checkpoint(const std::filesystem::path& file) {
  nn::TensorFile content = nn::read_safetensors(file);
  const auto field = [&](const char* name) -> const std::string& {
    const auto found = content.metadata.find(name);
    check(found != content.metadata.end(), "{}: expected the state of an arm, got a file without \"{}\"", file.string(), name);
    return found->second;
  };
  check(field("format") == format, "{}: expected the state of an arm of format \"{}\", got \"{}\"", file.string(), format, field("format"));
  try {
    ArmCheckpoint c{.key = field("key"), .code = field("code"), .step = Json::parse(field("step")), .record = record_from_json(field("record"))};
    for (const Json& loss : Json::parse(field("recent"))) c.recent.push_back(loss.is_null() ? unknown : loss.get<double>());
    c.tensors = std::move(content.tensors);
    return c;
  } catch (const Json::exception& e) {
    fail(fmt::format("{}: expected the state of an arm, got {}", file.string(), e.what()));
  }
}

nn::NamedTensors part_of(const nn::NamedTensors& tensors, const std::string& part) {
  nn::NamedTensors found;
  for (const auto& [name, tensor] : tensors)
    if (name.starts_with(part + ".")) found[name.substr(part.size() + 1)] = tensor;
  return found;
}

void add_part(nn::NamedTensors& tensors, const std::string& part, const nn::NamedTensors& of_part) {
  for (const auto& [name, tensor] : of_part) tensors[part + "." + name] = tensor;
}

}  // namespace plumb::lab
