// A problem of your own: which gates let deep stacks of MLPs learn waves? Own data, own loss, own measure.
#include <plumb/lab.h>
using namespace plumb;

struct Waves : lab::Problem {  // y = sin(x W) for normal x [B, 1, 16] and a fixed W; the loss is the mean squared error
  static Tensor error(const nn::Layer& model, std::int64_t count, std::uint64_t seed, std::int64_t step) {
    const Tensor x = random_normal({count, 1, 16}, seed, fmt::format("inputs {}", step));
    return model(x) - sin(matmul(x, random_normal({16, 16}, 0, "W") * 0.25));
  }
  lab::DataFacts facts() const override {  // the variance of y, 0.43, is the loss of a constant guess
    return {.name = "waves",
            .text = "waves, new inputs in each step",
            .hash = "1",
            .measures = {{.name = "train_loss", .title = "train MSE", .chance = 0.43},
                         {.name = "val_loss", .title = "val MSE", .chance = 0.43},
                         {.name = "val_largest", .title = "largest error"}}};
  }
  std::unique_ptr<lab::Task> task(const lab::TaskSettings& s, const nn::Layer& model) const override {
    return lab::task_of([&](std::int64_t step) { return mean(pow(error(model, s.study.batch, s.seed, step), 2)); });
  }
  lab::Values evaluate(nn::Layer& model) const override {
    const Tensor e = error(model, 1000, 0, -1);
    return {{"val_loss", mean(pow(e, 2)).item()}, {"val_largest", max(abs(e)).item()}};
  }
};

int main(int argc, char** argv) {
  lab::Study study("own_problem", "Which gates let deep stacks of MLPs learn waves?");
  study.problem([](const lab::StudyOptions&) { return std::make_unique<Waves>(); });
  const auto gate = study.methods({"pre", "rezero", "post"});
  const auto depth = study.depths({6, 48});
  study.claim("at depth 48, ReZero ends lower than post-norm", "this example",
              lower(lab::val_loss, gate == "rezero", gate == "post").at(depth == 48));
  return study.run(argc, argv, [&](lab::Trial& trial) {
    nn::Stack model({.dim = 16,
                     .depth = trial[depth],
                     .method = trial[gate],
                     .junctions = {nn::mlp({.hidden = 64})},
                     .recipe = nn::Recipe{.base = nn::Base::scaled_normal}});
    nn::initialize(model, trial.seed());
    trial.train(model);
  });
}
