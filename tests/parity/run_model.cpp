// Runs cases of stacks with one residual method, of whole models, and of short training runs.
#include "nn/io/weights.h"
#include "plumb/plumb.h"
#include "tests/parity/case.h"

namespace plumb::parity {
namespace {

nn::MethodChoice method_of(const nlohmann::json& settings) {
  const std::string method = settings.at("method");
  if (method == "deepnorm" && settings.contains("alpha")) return nn::methods::deepnorm(settings["alpha"].get<double>());
  if (method == "branch_scale" && settings.contains("multiplier"))
    return nn::methods::branch_scale(settings["multiplier"].get<double>());
  return method;
}

nn::StackOptions stack_options(const nlohmann::json& s, bool final_norm) {
  const std::int64_t dim = s.at("dim");
  return {.dim = dim,
          .depth = s.at("depth"),
          .method = method_of(s),
          .junctions = nn::transformer_block({.heads = s.at("heads")}, {.hidden = 4 * dim}),
          .norm_eps = s.at("norm_eps"),
          .final_norm = final_norm};
}

// Gives the model the parameters of the case. Returns the variables by their names in the case.
nn::NamedTensors load(const Case& c, const nn::Module& model, const nn::KeyMap& map = {}) {
  nn::NamedTensors given, variables;
  for (const std::string& name : c.names("param.")) given[name] = c.tensor("param." + name);
  const nn::NamedTensors buffers = nn::weights(model, map);
  nn::assign(buffers, given, "[parity] parameters");
  for (const nn::Parameter& p : model.parameters())
    for (const auto& [name, buffer] : buffers)
      if (buffer.array().shares_buffer_with(p.value.array())) variables["param." + name] = p.value;
  return variables;
}

}  // namespace

void run_stack(const Case& c, Judge& judge) {
  const nn::Stack stack(stack_options(c.settings, c.has("param.norm.weight")));
  nn::NamedTensors variables = load(c, stack);
  variables["in.x"] = c.variable("in.x");
  const Tensor y = stack(variables["in.x"]);
  judge.answer("out.y", y);
  judge.gradients(y, variables);
}

void run_model(const Case& c, Judge& judge) {
  const nlohmann::json& s = c.settings;
  const std::string kind = s.at("model");
  const bool layerscale = s.contains("init_values");
  const std::int64_t channels = s.at("in_chans");
  std::unique_ptr<nn::Classifier> model;
  if (kind == "vit")
    model = std::make_unique<nn::ViT>(nn::ViTOptions{
        .image = s.at("img_size"),
        .patch = s.at("patch_size"),
        .channels = channels,
        .classes = s.at("num_classes"),
        .dim = s.at("embed_dim"),
        .depth = s.at("depth"),
        .heads = s.at("num_heads"),
        .method = layerscale ? nn::methods::layerscale(s.at("init_values").get<double>()) : nn::methods::pre(),
        .norm_eps = s.at("norm_eps"),
        .pool = nn::Pool::token});
  else if (kind == "cait")
    model = std::make_unique<nn::CaiT>(nn::CaiTOptions{.image = s.at("img_size"),
                                                       .patch = s.at("patch_size"),
                                                       .channels = channels,
                                                       .classes = s.at("num_classes"),
                                                       .dim = s.at("embed_dim"),
                                                       .depth = s.at("depth"),
                                                       .heads = s.at("num_heads"),
                                                       .depth_token_only = s.at("depth_token_only"),
                                                       .norm_eps = s.at("norm_eps")});
  check(model != nullptr, "expected a known model, got \"{}\"", kind);
  nn::NamedTensors variables = load(c, *model, kind == "cait" ? nn::timm_cait(channels) : nn::timm_vit(channels));
  variables["in.x"] = c.variable("in.x");
  const Tensor y = (*model)(variables["in.x"]), loss = cross_entropy(y, c.tensor("in.labels"));
  judge.answer("out.y", y);
  judge.answer("out.loss", loss);
  judge.gradients(loss, variables);
}

namespace {

struct Net : nn::Layer {  // embed -> stack -> mean over tokens -> head
  Net(const Case& c)
      : embed{this, "embed", {.in = c.tensors.at("param.embed.weight").dim(1), .out = c.settings.at("dim")}},
        stack(this, "stack", stack_options(c.settings, c.has("param.stack.norm.weight"))),
        head{this, "head", {.in = c.settings.at("dim"), .out = c.tensors.at("param.head.weight").dim(0)}} {}
  Tensor forward(const Tensor& x) const override { return head(mean(stack(embed(x)), {1})); }

  nn::Child<nn::Linear> embed;
  nn::Child<nn::Stack> stack;
  nn::Child<nn::Linear> head;
};

}  // namespace

void run_training(const Case& c, Judge& judge) {
  const nlohmann::json& s = c.settings;
  check(s.at("pooling") == "mean over tokens", "expected pooling \"mean over tokens\", got {}", s.at("pooling").dump());
  const Net net(c);
  const nn::NamedTensors variables = load(c, net);
  nn::AdamW optimizer(net.parameters(), {.lr = s.at("lr").get<double>(),
                                         .beta1 = s.at("betas").at(0),
                                         .beta2 = s.at("betas").at(1),
                                         .eps = s.at("eps"),
                                         .weight_decay = s.at("weight_decay")});
  std::vector<double> losses;
  for (std::int64_t i = 0; i < s.at("steps").get<std::int64_t>(); ++i) {
    const Gradients g =
        backward(cross_entropy(net(c.tensor(fmt::format("step.{}.x", i))), c.tensor(fmt::format("step.{}.labels", i))));
    losses.push_back(g.loss());
    optimizer.step(g);
  }
  const auto steps = static_cast<std::int64_t>(losses.size());
  judge.answer("out.losses", tensor(losses, {steps}, {DType::f64, Device::reference}));
  for (const auto& [name, value] : variables) judge.report("out." + name, value);
}

}  // namespace plumb::parity
