#include "experiments/vision/options/gate_init.h"

#include "nn/gates/layerscale.h"
#include "nn/gates/method.h"
#include "nn/gates/method_text.h"

namespace plumb::vision {

bool take_init_of_gate(Cli& cli, const std::string& gate, std::int64_t depth, double& init) {
  const nn::MethodText text = nn::method_text(gate);
  const auto value = text.values.find("init");
  if (text.name != "layerscale" || value == text.values.end()) return false;
  const double start = value->second.value_or(nn::layerscale_init(depth));
  usage_check(!cli.given("--init") || init == start,
              "--init {} and --gate {} give different initial values; give only one of them", init, gate);
  init = start;
  cli.explain("--init", "--gate " + gate);
  return true;
}

}  // namespace plumb::vision
