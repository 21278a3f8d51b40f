// PyTorch's answers to small problems, in f64. They lie outside the repository: PLUMB_TEST_DATA/reference/cases.
#pragma once

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/op_case.h"

namespace plumb::test {

inline std::filesystem::path reference_cases() {
  const char* set = std::getenv("PLUMB_TEST_DATA");
  return std::filesystem::path(set ? set : std::string(PLUMB_SOURCE_DIR) + "/../shared") / "reference/cases";
}

struct ReferenceCase {
  nlohmann::json settings;
  std::map<std::string, Tensor> tensors;  // f64, labels i64
  double floor = 0;                       // of the size that an error is judged by: 1e-3 x the largest gradient
};

// A safetensors file: length of the header, header (JSON), data.
inline ReferenceCase read_case(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  ReferenceCase c{.settings = nlohmann::json::parse(header["__metadata__"]["case"].get<std::string>()), .tensors = {}};
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const Shape shape(entry["shape"].get<std::vector<std::int64_t>>());
    const char* data = bytes.data() + 8 + length + entry["data_offsets"][0].get<std::size_t>();
    const auto values = [&]<class T>(T) {
      std::vector<T> v(static_cast<std::size_t>(shape.numel()));
      std::memcpy(v.data(), data, sizeof(T) * v.size());
      return v;
    };
    if (entry["dtype"] == "I64") {
      const DefaultsScope where(reference_f64);
      c.tensors[name] = integers(values(std::int64_t{}), shape);
      continue;
    }
    REQUIRE(entry["dtype"] == "F64");
    c.tensors[name] = tensor(values(double{}), shape, reference_f64);
    if (name.starts_with("grad."))
      for (double v : c.tensors[name].values()) c.floor = std::max(c.floor, 1e-3 * std::abs(v));
  }
  return c;
}

// The measure of the cases' authors: largest difference / max(largest entry, floor).
inline double error_of_case(const Tensor& ours, const Tensor& theirs, double floor) {
  const std::vector<double> a = ours.values(), b = theirs.values();
  double difference = 0, size = floor;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference = std::max(difference, std::abs(a.at(i) - b[i]));
    size = std::max(size, std::abs(b[i]));
  }
  return difference / size;
}

}  // namespace plumb::test
