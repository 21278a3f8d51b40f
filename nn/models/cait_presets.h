// CaiT's published configurations, each constant with where it comes from.
//
//   nn::CaiT model(nn::options_of(nn::cait_preset("cait-paper-xxs24"), {.classes = 100}));
#pragma once

#include "nn/models/cait.h"

namespace plumb::nn {

struct Constant {
  double value;
  // A paper, a file of the authors' or of timm; "reported in .., not verified" where we have it at second hand; "rule:
  // .." where nobody states it for this size and we derive it.
  std::string source;
};

// cait-paper-SIZE: the paper's rules, with what the authors' code states beside them. cait-timm-SIZE: what timm's
// cait_SIZE builds. SIZE is xxs, xs, s or m with 24, 36 or 48 blocks; not all of them were ever released.
struct CaitPreset {
  std::string name;
  std::vector<std::pair<std::string, Constant>> constants;  // model, then training recipe; one of value 0 is off

  const Constant& at(const std::string& constant) const;  // throws for one that it does not have
  Constant& at(const std::string& constant);
};

std::vector<std::string> cait_preset_names();
CaitPreset cait_preset(const std::string& name);  // throws for an unknown name, with those nearest to it

// What a preset leaves to the data and the run.
struct CaitTask {
  std::int64_t image = 224, channels = 3, classes = 1000;
  std::uint64_t seed = 0;
};
CaiTOptions options_of(const CaitPreset& preset, const CaitTask& task = {});

// The constants whose values differ.
struct CaitDifference {
  std::string name;
  Constant a, b;
};
std::vector<CaitDifference> differences(const CaitPreset& a, const CaitPreset& b);

}  // namespace plumb::nn
