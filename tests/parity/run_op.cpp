// Runs cases of single ops, and of attention with a given mask.
#include "plumb/plumb.h"
#include "tests/parity/case.h"

namespace plumb::parity {
namespace {

using In = nn::NamedTensors;  // in.* without the prefix; floats that have a gradient are variables
using Op = Tensor (*)(const In& in, const nlohmann::json& settings);

Tensor optional(const In& in, const char* name) { return in.contains(name) ? in.at(name) : Tensor(); }

const std::map<std::string, Op>& ops() {
  using Json = nlohmann::json;
  static const std::map<std::string, Op> table{
      {"linear", [](const In& in, const Json&) { return linear(in.at("x"), in.at("weight"), optional(in, "bias")); }},
      {"layer_norm",
       [](const In& in, const Json& s) { return layer_norm(in.at("x"), in.at("weight"), in.at("bias"), s.at("eps")); }},
      {"rms_norm", [](const In& in, const Json& s) { return rms_norm(in.at("x"), in.at("weight"), s.at("eps")); }},
      {"dyt",
       [](const In& in, const Json&) { return dyt(in.at("x"), in.at("alpha"), in.at("weight"), in.at("bias")); }},
      {"gelu",
       [](const In& in, const Json& s) {
         const std::string form = s.at("approximate");
         check(form == "none" || form == "tanh", "expected gelu's approximate to be none or tanh, got \"{}\"", form);
         return gelu(in.at("x"), form == "tanh" ? Gelu::tanh : Gelu::erf);
       }},
      {"softmax", [](const In& in, const Json& s) { return softmax(in.at("x"), s.at("dim").get<int>()); }},
      {"layer_scale", [](const In& in, const Json&) { return in.at("x") * in.at("gamma"); }},
      {"cross_entropy",
       [](const In& in, const Json& s) {
         return cross_entropy(in.at("x"), in.at("labels"), s.at("label_smoothing").get<double>());
       }},
      {"soft_cross_entropy", [](const In& in, const Json&) { return soft_cross_entropy(in.at("x"), in.at("target")); }},
      {"matmul", [](const In& in, const Json&) { return matmul(in.at("a"), in.at("b")); }},
      {"conv2d",
       [](const In& in, const Json& s) {
         return conv2d(in.at("x"), in.at("weight"), optional(in, "bias"),
                       {.stride = s.at("stride"), .padding = s.at("padding")});
       }},
      {"batch_norm2d",
       [](const In& in, const Json& s) {
         check(s.at("training").get<bool>(),
               "expected batch_norm2d with the statistics of the batch (training), got evaluation");
         return batch_norm2d(in.at("x"), in.at("weight"), in.at("bias"), s.at("eps"));
       }},
  };
  return table;
}

}  // namespace

void run_op(const Case& c, Judge& judge) {
  const std::string name = c.settings.at("op");
  const auto op = ops().find(name);
  check(op != ops().end(), "expected a known op, got \"{}\"", name);
  In in;
  nn::NamedTensors variables;
  for (const std::string& input : c.names("in.")) {
    const bool differentiated = c.has("grad.in." + input);
    in[input] = differentiated ? c.variable("in." + input) : c.tensor("in." + input);
    if (differentiated) variables["in." + input] = in[input];
  }
  const Tensor y = op->second(in, c.settings);
  judge.answer("out.y", y);
  judge.gradients(y, variables);
}

void run_attention(const Case& c, Judge& judge) {
  const Tensor q = c.variable("in.q"), k = c.variable("in.k"), v = c.variable("in.v");
  const Tensor y = attention(q, k, v,
                             {.empty = enum_named<EmptyRow>("empty_row", c.settings.at("empty")),
                              .keep = c.has("in.keep") ? c.tensor("in.keep") : Tensor()});
  judge.answer("out.y", y);
  judge.gradients(y, {{"in.q", q}, {"in.k", k}, {"in.v", v}});
}

}  // namespace plumb::parity
