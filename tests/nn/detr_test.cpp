// DETR and its parts: positions, attention with positions and padding, and the whole model beside PyTorch.
#include <algorithm>
#include <filesystem>

#include "nn/evaluation_scope.h"
#include "nn/gates/method.h"
#include "nn/io/detr_card.h"
#include "nn/io/weights.h"
#include "nn/layers/attention_maps.h"
#include "nn/layers/heads.h"
#include "nn/layers/sine_positions.h"
#include "nn/models/detr.h"
#include "nn/optim/optimizer.h"
#include "plumb/plumb.h"
#include "tests/nn/shake.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using namespace plumb::test;

namespace {

nn::NamedTensors golden_tensors(const std::string& name) {
  return nn::read_safetensors(test::source_dir() + "/tests/golden/detection/" + name + ".safetensors").tensors;
}

// The small network of tests/golden/make_detection.py.
nn::DetrOptions small(const nn::MethodChoice& gate) {
  return {.channels = 2,
          .classes = 3,
          .backbone = {4, 6},
          .dim = 8,
          .heads = 2,
          .encoder = 1,
          .decoder = 2,
          .hidden = 12,
          .queries = 3,
          .method = gate};
}

// The entries of `all` whose names begin with `prefix`, without it.
nn::NamedTensors part(const nn::NamedTensors& all, const std::string& prefix) {
  nn::NamedTensors some;
  for (const auto& [name, tensor] : all)
    if (name.starts_with(prefix)) some.emplace(name.substr(prefix.size()), tensor);
  return some;
}

// Images of 12 x 16 pixels; the second image has 7 columns and the rest is padding.
Tensor padded_images() { return random_normal({2, 2, 12, 16}, 0, "images"); }
Tensor padding() { return less(broadcast_to(arange(16.0), {2, 12, 16}), reshape(tensor({16.0, 7.0}), {2, 1, 1})); }

}  // namespace

TEST_CASE("sine positions of a whole grid are those of a mask without padding") {
  const DefaultsScope f64(reference_f64);
  const Tensor whole = nn::sine_positions(5, 7, 12), masked = nn::sine_positions(greater(ones({1, 5, 7}), 0), 12);
  CHECK(whole.shape() == Shape{35, 12});
  CHECK(relative_error(masked[0], whole) < 1e-14);
  // The first number of row y is sin(2 pi (y + 1) / 5), the seventh that of column x.
  CHECK(whole[7].values()[0] == Approx(std::sin(2 * std::numbers::pi * 2 / 5)).margin(1e-5));
  CHECK(whole[3].values()[6] == Approx(std::sin(2 * std::numbers::pi * 4 / 7)).margin(1e-5));
  CHECK_THAT(error_of([] { (void)nn::sine_positions(2, 2, 6); }),
             contains("[sine_positions] expected a width that is a multiple of 4, got 6"));
  CHECK_THAT(error_of([] { (void)nn::sine_positions(ones({1, 2, 2}), 8); }), contains("expected a u8 mask"));
}

TEST_CASE("self-attention adds positions to queries and keys only and ignores padding") {
  const DefaultsScope f64(reference_f64);
  nn::Stack stack({.dim = 8, .depth = 1, .method = "pre", .junctions = {nn::self_attention({.heads = 2})}});
  nn::initialize(stack, 1);
  shake_trained(stack);
  const Tensor x = random_normal({2, 5, 8}, 0, "x"), position = random_normal({5, 8}, 1, "position");
  const auto named = nn::weights(stack);
  const auto of = [&](const char* name) { return named.at(fmt::format("blocks.0.{}", name)); };
  const auto composed = [&](const Tensor& tokens, const Tensor& places) {
    const Tensor u = layer_norm(tokens, of("norm1.weight"), of("norm1.bias"), 1e-6);
    const auto part = [&](const Tensor& in, std::int64_t i) {
      return nn::split_heads(linear(in, slice(of("attn.qkv.weight"), 0, 8 * i, 8 * i + 8),
                                    slice(of("attn.qkv.bias"), 0, 8 * i, 8 * i + 8)),
                             2);
    };
    const Tensor heads = attention(part(u + places, 0), part(u + places, 1), part(u, 2));
    return tokens + linear(nn::merge_heads(heads), of("attn.proj.weight"), of("attn.proj.bias"));
  };
  CHECK(relative_error(stack.run(x, {.position = position}).x, composed(x, position)) < 1e-13);
  const Tensor each = random_normal({2, 5, 8}, 2, "position of each sample");
  CHECK(relative_error(stack.run(x, {.position = each}).x, composed(x, each)) < 1e-13);
  // Without its last two tokens, the first sample gives the same result.
  const Tensor keep = less(broadcast_to(arange(5.0), {2, 5}), reshape(tensor({3.0, 5.0}), {2, 1}));
  const Tensor padded = stack.run(x, {.position = position, .keep = keep}).x;
  const Tensor first = slice(slice(x, 0, 0, 1), 1, 0, 3), short_one = composed(first, slice(position, 0, 0, 3));
  CHECK(relative_error(slice(padded[0], 0, 0, 3), short_one[0]) < 1e-13);
  CHECK(relative_error(padded[1], composed(x, position)[1]) < 1e-13);
}

TEST_CASE("cross-attention reads the memory with its positions and ignores padding") {
  const DefaultsScope f64(reference_f64);
  nn::CrossAttention cross({.dim = 8, .heads = 2});
  nn::initialize(cross, 1);
  shake_trained(cross);
  const Tensor x = random_normal({2, 3, 8}, 0, "x"), position = random_normal({3, 8}, 1, "position"),
               memory = random_normal({2, 5, 8}, 2, "memory"), places = random_normal({5, 8}, 3, "places");
  const auto named = nn::weights(cross);
  const auto composed = [&](const Tensor& from) {
    const auto part = [&](const Tensor& in, std::int64_t i) {
      return nn::split_heads(linear(in, slice(named.at("qkv.weight"), 0, 8 * i, 8 * i + 8),
                                    slice(named.at("qkv.bias"), 0, 8 * i, 8 * i + 8)),
                             2);
    };
    const Tensor heads =
        attention(part(x + position, 0), part(from + slice(places, 0, 0, from.dim(1)), 1), part(from, 2));
    return linear(nn::merge_heads(heads), named.at("proj.weight"), named.at("proj.bias"));
  };
  const auto run = [&](const Tensor& keep) {
    return cross(x, {.position = position, .memory = {memory, places, keep}});
  };
  CHECK(relative_error(run({}), composed(memory)) < 1e-13);
  const Tensor keep = less(broadcast_to(arange(5.0), {2, 5}), 4);
  CHECK(relative_error(run(keep), composed(slice(memory, 1, 0, 4))) < 1e-13);
  CHECK_THAT(error_of([] { nn::CrossAttention({.dim = 8, .heads = 2, .causal = true}); }),
             contains("[cross_attention] expected attention to all of the memory, got the option causal"));
}

TEST_CASE("a DETR with padded images has the predictions and gradients of PyTorch") {
  const DefaultsScope f64(reference_f64);
  for (const char* gate : {"post", "pre"}) {
    INFO(gate);
    const nn::NamedTensors all = golden_tensors(fmt::format("detr_{}", gate));
    nn::Detr model(small(gate));
    const nn::NamedTensors ours = nn::weights(model, nn::facebook_names());
    nn::assign(ours, part(all, "model."), "golden", {});  // strict: both sides have the same names and shapes
    const nn::Detections found = model.detect(all.at("images"), all.at("keep"));
    CHECK(relative_error(found.logits, all.at("logits")) < 1e-10);
    CHECK(relative_error(found.boxes, all.at("boxes")) < 1e-10);
    std::vector<std::string> names;
    Tensors values;
    for (const nn::Parameter& p : model.parameters())
      if (!p.frozen()) names.push_back(nn::name_under(nn::facebook_names(), p.name)), values.push_back(p.value);
    const Tensors gradients =
        grad(sum(found.logits * all.at("cotangent.logits")) + sum(found.boxes * all.at("cotangent.boxes")), values);
    CHECK(names.size() == part(all, "gradient.").size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      INFO(names[i]);
      CHECK(relative_error(gradients[i], all.at("gradient." + names[i])) < 1e-9);
    }
    for (const auto& [name, after] : part(all, "after.")) {
      INFO(name);
      CHECK(relative_error(ours.at(name), after) < 1e-12);
    }
    const nn::EvaluationScope evaluation(model);
    const nn::Detections unpadded = model.detect(all.at("images"));
    CHECK(relative_error(unpadded.logits, all.at("eval.logits")) < 1e-10);
    CHECK(relative_error(unpadded.boxes, all.at("eval.boxes")) < 1e-10);
    // operator() gives the last layer.
    const Tensor last = model(all.at("images"));
    CHECK(relative_error(slice(last, 2, 0, 4), unpadded.logits[-1]) < 1e-14);
    CHECK(relative_error(slice(last, 2, 4, 8), unpadded.boxes[-1]) < 1e-14);
  }
}

TEST_CASE("weights of a DETR survive a file under the names of facebookresearch/detr") {
  const TemporaryFolder folder;
  nn::DetrOptions o = small("post");
  const nn::Detr written(o);
  nn::save_weights(written, folder / "detr.safetensors", nn::facebook_names());
  o.seed = 1;
  nn::Detr read(o);
  (void)nn::load_weights(read, folder / "detr.safetensors", nn::facebook_names());
  const auto a = nn::weights(written), b = nn::weights(read);
  for (const auto& [name, tensor] : a) CHECK(b.at(name).values() == tensor.values());
  const auto names = nn::read_safetensors(folder / "detr.safetensors").tensors;
  for (const char* name : {"transformer.encoder.layers.0.self_attn.in_proj_weight",
                           "transformer.decoder.layers.1.multihead_attn.out_proj.bias",
                           "transformer.decoder.layers.0.norm3.weight", "transformer.decoder.norm.weight",
                           "query_embed.weight", "bbox_embed.layers.2.weight", "input_proj.weight", "class_embed.bias"})
    CHECK(names.contains(name));
}

TEST_CASE("the card of a DETR must not ask for a larger network than its file") {
  const auto saved = [](const nn::MethodChoice& gate) {
    const nn::Detr model(small(gate));
    return nn::TensorFile{.tensors = nn::weights(model, nn::facebook_names()),
                          .metadata = nn::metadata_of(nn::DetrCard{.options = model.options()})};
  };
  const auto error = [](const nn::TensorFile& file) { return error_of([&] { nn::detr_card_of(file, "w"); }); };
  const auto edited = [](nn::TensorFile file, const std::string& from, const std::string& to) {
    std::string& text = file.metadata.at("plumb");
    REQUIRE(text.find(from) != text.npos);
    text.replace(text.find(from), from.size(), to);
    return file;
  };
  for (const std::string& gate : nn::method_names()) CHECK_NOTHROW(nn::detr_card_of(saved(gate), "w"));
  const nn::TensorFile whole = saved("post");
  for (const char* name :
       {"query_embed.weight", "class_embed.weight", "backbone.conv.1.weight",
        "transformer.encoder.layers.0.self_attn.in_proj_weight",
        "transformer.decoder.layers.0.multihead_attn.in_proj_weight", "transformer.decoder.layers.0.linear1.weight"}) {
    INFO(name);
    nn::TensorFile other = whole;
    other.tensors.erase(name);
    CHECK_THAT(error(other), contains(fmt::format("w: cannot be read as a Detr: expected \"{}\" with ", name)));
  }
  nn::TensorFile deep = edited(whole, "\"decoder\":2", "\"decoder\":1048576");
  for (const char* name : {"self_attn.in_proj_weight", "multihead_attn.in_proj_weight", "linear1.weight"})
    deep.tensors[std::string("transformer.decoder.layers.1048575.") + name] =
        whole.tensors.at(std::string("transformer.decoder.layers.1.") + name);
  CHECK_THAT(error(deep),
             contains("expected \"transformer.decoder.layers.2.self_attn.in_proj_weight\" with 3 x 8 x 8"));
  for (const char* size : {"2.5", "true", "\"2\"", "1e300"})
    CHECK_THAT(error(edited(whole, "\"decoder\":2", fmt::format("\"decoder\":{}", size))),
               contains("expected a whole number as decoder, got "));
  CHECK_THAT(error(edited(whole, "\"backbone\":[4,6]", "\"backbone\":[4,6.5]")),
             contains("a whole number as backbone"));
  CHECK_THAT(error(edited(whole, "\"image_side\":0", "\"image_side\":1048576")), contains("from 0 to 4096"));
  CHECK_THAT(error(edited(saved("hyper_connections:streams=2"), "streams=2", "streams=1024")),
             contains("expected a description of a network of this size"));
}

TEST_CASE("every method makes a DETR and padding does not change its predictions") {
  const DefaultsScope f64(reference_f64);
  for (const std::string& gate : nn::method_names()) {
    INFO(gate);
    nn::Detr model(small(gate));
    shake_trained(model);
    const nn::EvaluationScope evaluation(model);
    // The convolutions read the padding near the edge of an image. More columns of zeros there change nothing.
    const Tensor kept = padded_images() * reshape(cast(padding(), DType::f64), {2, 1, 12, 16});
    const Tensor image = slice(kept, 0, 1, 2), wider = concat({image, zeros({1, 2, 12, 4})}, 3);
    const Tensor keep = slice(padding(), 0, 1, 2), wider_keep = concat({keep, greater(zeros({1, 12, 4}), 0)}, 2);
    CHECK(relative_error(model.detect(wider, wider_keep).logits, model.detect(image, keep).logits) < 1e-10);
    CHECK_NOTHROW(check_gradients([&] { return model.detect(image, keep).logits; }, {model.parameters().front().value},
                                  {.elements = 2, .directions = 1}));
  }
}

TEST_CASE("drops act in the attention that they name and only in training") {
  const RandomScope random({.seed = 1, .step = 0});
  const auto found = [](nn::DetrOptions o, bool training) {
    nn::Detr model(o);
    model.train(training);
    return model.detect(padded_images()).logits.values();
  };
  const auto with = [&](nn::DetrDrops nn::DetrOptions::*where, const nn::DetrDrops& drops, bool training) {
    nn::DetrOptions o = small("post");
    o.*where = drops;
    return found(o, training);
  };
  const nn::DetrDrops key{.drop_key = {.rate = 0.4}}, out{.dropout = 0.4};
  std::vector<std::vector<double>> all{found(small("post"), true)};
  for (const auto where :
       {&nn::DetrOptions::encoder_attention, &nn::DetrOptions::decoder_attention, &nn::DetrOptions::cross_attention})
    for (const nn::DetrDrops& drops : {key, out}) {
      all.push_back(with(where, drops, true));
      CHECK(with(where, drops, false) == found(small("post"), false));
    }
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) CHECK(all[i] != all[j]);
}

TEST_CASE("attention maps of a DETR have rows that sum to 1 over the kept keys") {
  nn::Detr model(small("post"));
  model.eval();
  const nn::AttentionMaps maps(model);
  (void)model.detect(padded_images(), padding());
  std::vector<std::string> paths;
  for (const nn::AttentionMap& map : maps.all()) paths.push_back(map.path);
  CHECK(paths == std::vector<std::string>{"encoder.blocks.0.attn", "decoder.blocks.0.attn", "decoder.blocks.0.cross",
                                          "decoder.blocks.1.attn", "decoder.blocks.1.cross"});
  const Tensor cross = maps.all()[2].probabilities;  // 3 x 4 cells
  CHECK(cross.shape() == Shape{2, 2, 3, 12});
  CHECK(allclose(sum(cross, 3), ones({2, 2, 3})));
  const Tensor second = reshape(cross[1], {2, 3, 3, 4});
  CHECK(max(slice(second, 3, 2, 4)).item() == 0);  // 7 of 16 columns are the image: cells 0 and 1
  CHECK(min(slice(second, 3, 0, 2)).item() > 0);
}

TEST_CASE("activation checkpoints change neither predictions nor gradients of a DETR") {
  const DefaultsScope f64(reference_f64);
  const RandomScope random({.seed = 1, .step = 0});
  nn::DetrOptions o = small("post");
  o.dropout = 0.1, o.cross_attention.drop_key.rate = 0.3;
  nn::Detr model(o);
  shake_trained(model);
  const auto gradients = [&](bool again) {
    model.encoder().checkpoint_blocks(again), model.decoder().checkpoint_blocks(again);
    const nn::Detections d = model.detect(padded_images(), padding());
    return grad(sum(d.logits * d.logits) + sum(d.boxes), model.trainable());
  };
  const Tensors plain = gradients(false), repeated = gradients(true);
  for (std::size_t i = 0; i < plain.size(); ++i) CHECK(relative_error(repeated[i], plain[i]) < 1e-10);
}

TEST_CASE("a DETR refuses masks of other shapes and images of padding only") {
  nn::Detr model(small("post"));
  CHECK_THAT(error_of([&] { (void)model.detect(padded_images(), slice(padding(), 1, 0, 5)); }),
             contains("[detr] expected a u8 mask of the pixels [2, 12, 16]"));
  CHECK_THAT(error_of([&] {
               (void)model.detect(padded_images(), less(zeros({2, 12, 16}), 0));
             }),
             contains("[detr] expected pixels in every image, got an image that is padding only"));
  CHECK_THAT(error_of([] { nn::Detr({.backbone = {}}); }), contains("at least one convolution in the backbone"));
  CHECK_THAT(error_of([] { nn::Detr({.queries = 0}); }), contains("at least one class and one query"));
  CHECK(model.grid(13, 16) == std::pair<std::int64_t, std::int64_t>{4, 4});
}
