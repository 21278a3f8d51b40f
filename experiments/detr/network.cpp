#include "experiments/detr/network.h"

#include "experiments/lab/cli/cli.h"
#include "experiments/lab/options/study_options.h"

namespace plumb::vision {

void DetrNetwork::declare(Cli& cli) {
  cli.section("Model");
  const auto size = [&](const char* option, std::int64_t* value, const char* help) {
    cli.option(option, value, help).at_least(1).at_most(largest_size);
  };
  cli.option("--backbone", &backbone, "Channels of the convolutions of the backbone, each of stride 2")
      .at_least(1)
      .may_repeat();
  size("--dim", &dim, "Width of the transformer");
  size("--heads", &heads, "Attention heads");
  size("--encoder", &encoder, "Blocks of the encoder");
  size("--decoder", &decoder, "Blocks of the decoder");
  size("--hidden", &hidden, "Hidden width of the MLPs");
  size("--queries", &queries, "Queries: the largest number of objects that can be found in an image");
  cli.option("--dropout", &dropout, "Dropout rate in the MLPs and of each branch; the same in all arms")
      .at_least(0)
      .below(1);
  cli.option("--backbone-rate", &backbone_rate, "Factor of the learning rate of the backbone").above(0);
  cli.rule([this] {
    usage_check(dim % heads == 0 && dim % 4 == 0, "--dim {} is not a multiple of --heads {} and of 4", dim, heads);
  });
}

nn::DetrOptions DetrNetwork::options(std::int64_t classes, const nn::MethodChoice& gate, std::uint64_t seed) const {
  return {.classes = classes,
          .backbone = backbone,
          .dim = dim,
          .heads = heads,
          .encoder = encoder,
          .decoder = decoder,
          .hidden = hidden,
          .queries = queries,
          .method = gate,
          .dropout = dropout,
          .backbone_rate = backbone_rate,
          .seed = seed};
}

}  // namespace plumb::vision
