#include "core/profile.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <sstream>

#include "core/backend.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"

using namespace plumb;
using test::contains;
using test::error_of;

namespace {

constexpr std::int64_t batch = 4, image = 16, patch = 4, dim = 32, heads = 2, depth = 3, classes = 10;
constexpr std::int64_t patches = (image / patch) * (image / patch), tokens = patches + 1;

// Takes training steps of a small ViT and returns the loss of each step.
struct Training {
  nn::ViT model{{.image = image,
                 .patch = patch,
                 .classes = classes,
                 .dim = dim,
                 .depth = depth,
                 .heads = heads,
                 .drop_key = {.rate = 0.1},
                 .pool = nn::Pool::token}};
  nn::AdamW optimizer{model.parameters(), {.lr = 1e-3, .clip_norm = 1}};
  Tensor images = random_normal({batch, 3, image, image}, 0, "images"), targets = integers({0, 1, 2, 3}, {batch});

  double step(std::uint32_t i) {
    const RandomScope random({.seed = 0, .step = i});
    const Gradients g = backward(cross_entropy(model(images), targets));
    optimizer.step(g);
    return g.loss();
  }
  std::vector<std::vector<double>> weights() {
    std::vector<std::vector<double>> all;
    for (const auto& p : model.parameters()) all.push_back(p.value.values());
    return all;
  }
};

std::string path_of(const Profile::Event& e) { return e.path ? *e.path : ""; }

std::vector<Profile::Event> events_at(const Profile& profile, const std::string& path, const std::string& phase) {
  std::vector<Profile::Event> found;
  for (const Profile::Event& e : profile.events())
    if (path_of(e) == path && e.phase == phase) found.push_back(e);
  return found;
}

// Returns the shares (column "%") in the part of a table that begins with the line `title`.
std::vector<double> shares(const std::string& table, const std::string& title) {
  std::istringstream lines(table.substr(table.find(title)));
  std::string line;
  std::getline(lines, line);
  std::vector<double> found;
  while (std::getline(lines, line) && !line.empty()) {
    if (line.starts_with("all kernels")) continue;
    const std::size_t percent = line.find(" %");
    REQUIRE(percent != std::string::npos);
    found.push_back(std::stod(line.substr(line.rfind(' ', percent - 1), percent)));
  }
  return found;
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

}  // namespace

TEST_CASE("a profile has a separate entry for every kernel of both backends") {
  Profile profile;
  for (const Device device : {Device::cpu, Device::reference}) {
    constexpr std::size_t entries = sizeof(Kernels) / sizeof(void (*)());
    void (*pointers[entries])();
    std::memcpy(pointers, &kernels(device), sizeof pointers);
    std::set<void (*)()> distinct(std::begin(pointers), std::end(pointers));
    CHECK_FALSE(distinct.contains(nullptr));
    CHECK(distinct.size() == entries);
  }
}

TEST_CASE("a profile of a training step knows kernel, module, phase, step, time and operations of each call") {
  Training training;
  training.step(0);
  Profile profile;
  training.step(1);
  const std::vector<Profile::Event>& events = profile.events();
  REQUIRE(events.size() > 30);

  std::int64_t last_end = 0;
  for (const Profile::Event& e : events) {
    CHECK(last_end <= e.start);
    CHECK(e.start <= e.end);
    last_end = e.end;
    CHECK(e.step == 1);
    CHECK(e.bytes > 0);
  }
  CHECK(last_end <= profile.duration());

  // The product of each layer appears under the layer's name in both passes.
  for (const std::string layer : {"ViT.patch_embed", "ViT.blocks.0.attn.qkv", "ViT.blocks.2.attn.proj",
                                  "ViT.blocks.1.mlp.fc1", "ViT.blocks.1.mlp.fc2", "ViT.head"})
    for (const std::string phase : {"forward", "backward"}) {
      CAPTURE(layer, phase);
      double operations = 0;
      for (const Profile::Event& e : events)
        if (path_of(e).starts_with(layer) && e.phase == phase) operations += e.operations;
      CHECK(operations > 0);
    }
  const auto forward = events_at(profile, "ViT.blocks.1.attn", "forward"),
             backward = events_at(profile, "ViT.blocks.1.attn", "backward");
  REQUIRE(forward.size() == 1);
  REQUIRE(backward.size() == 1);
  CHECK(std::string(forward[0].kernel) == "attention_forward");
  CHECK(std::string(backward[0].kernel) == "attention_backward");
  // The bytes of the forward call are those of q, k and v (parts of the packed qkv) and of the output, each [B, T, D],
  // and of two numbers for each row of the scores.
  constexpr double x = 4.0 * batch * tokens * dim, sums = 4.0 * batch * heads * tokens * 2;
  CHECK(forward[0].bytes == 4 * x + sums);
  CHECK(backward[0].bytes == 7 * x + sums);
  CHECK(events_at(profile, "", "optimizer").size() > 0);
  for (const Profile::Event& e : events)
    if (std::string_view(e.kernel) == "adamw") CHECK(std::string(e.phase) == "optimizer");

  // The formula of bench_step counts the forward pass once, and twice this number for the backward pass. The actual
  // number differs: the patch embedding computes no gradient of the images, and attention computes its scores again (5
  // products instead of 4).
  constexpr double block = 2.0 * tokens * 12 * dim * dim, attention = 4.0 * tokens * tokens * dim;
  constexpr double embed = 2.0 * patches * 3 * patch * patch * dim, head = 2.0 * dim * classes;
  double products = 0, in_attention = 0;
  for (const Profile::Event& e : events)
    (std::string_view(e.kernel).starts_with("attention") ? in_attention : products) += e.operations;
  CHECK(products == batch * (depth * 3 * block + 2 * embed + 3 * head));
  CHECK(in_attention == batch * depth * 3.5 * attention);
}

namespace {

// A branch reads a softmax-weighted mean of the outputs of all earlier branches.
struct DepthAttention : nn::Gate {
  explicit DepthAttention(const nn::GateContext& c) : first(c.index() == 0) {}
  Tensor read(const nn::Stream& s) const override { return first ? s.x : s.carried[0] / s.carried[1]; }
  void join(nn::Stream& s, const Tensor& branch, const Tensor&, const nn::Layer*) const override {
    const Tensor w = exp(a);
    s.carried[0] = gated_residual(s.carried[0], branch, w);
    s.carried[1] = s.carried[1] + w;
    s.x = s.x + branch;
  }
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + branch; }

  Tensor a = parameter("a", {1}, nn::Init::constant(0), nn::Role::gate);
  bool first;
};

// A plain sum whose scale is computed in each pass, as in examples/ramp_gate.cpp.
struct ComputedScale : nn::Gate {
  Tensor scale() const { return full({1}, 0.5); }
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return gated_residual(skip, branch, scale());
  }
  std::optional<Tensor> plain_scale() const override { return scale(); }
  Tensors scales() const override { return {}; }
};

}  // namespace

TEST_CASE("the work of a gate before its branch appears under the gate's name") {
  // Returns the kernels that the first gate of block 1 calls before its branch.
  const auto before_branch = [](const nn::Method& method) {
    const nn::ViT model(
        {.image = image, .patch = patch, .classes = classes, .dim = dim, .depth = 2, .heads = heads, .method = method});
    const Tensor images = random_normal({batch, 3, image, image}, 0, "images");
    Profile profile;
    (void)model(images);
    profile.stop();
    CHECK(events_at(profile, "ViT.blocks.1", "forward").empty());
    std::vector<std::string> called;
    for (const Profile::Event& e : profile.events()) {
      if (path_of(e).starts_with("ViT.blocks.1.attn")) break;
      if (path_of(e) == "ViT.blocks.1.gate1" && std::string_view(e.phase) == "forward") called.push_back(e.kernel);
    }
    return called;
  };
  const auto open_stream = [](const Tensor& x) {
    const Tensor none = zeros_like(x);
    return nn::Stream{x, {none, slice(none, 2, 0, 1)}};
  };
  // The division in read(), and the scale in plain_scale().
  CHECK(before_branch({.name = "depth_attention", .build = nn::gates_from<DepthAttention>, .open = open_stream}) ==
        std::vector<std::string>{"binary"});
  CHECK(before_branch({.name = "computed_scale", .build = nn::gates_from<ComputedScale>}) ==
        std::vector<std::string>{"fill"});
}

TEST_CASE("a profile changes no result") {
  Training plain, profiled;
  std::vector<double> losses;
  for (std::uint32_t i = 0; i < 3; ++i) losses.push_back(plain.step(i));
  Profile profile;
  for (std::uint32_t i = 0; i < 3; ++i) CHECK(profiled.step(i) == losses[i]);
  CHECK(profiled.weights() == plain.weights());
}

TEST_CASE("a thread has one profile at a time and stop ends it") {
  const Tensor x = ones({2, 3});
  {
    Profile profile;
    CHECK_THAT(error_of([] { Profile second; }),
               contains("[profile] expected at most one profile at a time in a thread"));
    softmax(x);
    const std::size_t recorded = profile.events().size();
    CHECK(recorded == 1);
    profile.stop();
    const std::int64_t duration = profile.duration();
    softmax(x);
    Profile next;  // a second profile is allowed now; the destructor of the former profile does not stop `next`
    softmax(x);
    profile.stop();
    softmax(x);
    CHECK(profile.events().size() == recorded);
    CHECK(profile.duration() == duration);
    CHECK(next.events().size() == 2);
  }
  CHECK(&kernels(Device::cpu) == &cpu_kernels());
}

TEST_CASE("a kernel that throws is recorded and its error is passed on") {
  const Out x(Array({2, 3}, DType::f32, Device::cpu));
  const Array labels({2, 3}, DType::i64, Device::cpu);
  Profile profile;
  CHECK_THAT(error_of([&] { kernels(x).softmax_forward(labels, x); }),
             contains("to be read with data<std::int64_t>(), got data<float>()"));
  kernels(x).fill(1, x);
  REQUIRE(profile.events().size() == 2);
  CHECK(std::string(profile.events()[0].kernel) == "softmax_forward");
  CHECK(std::string(profile.events()[1].kernel) == "fill");
}

TEST_CASE("a profile's trace is JSON in Chrome's trace event format") {
  Training training;
  Profile profile;
  training.step(7);
  {
    const PathScope odd(std::make_shared<const std::string>("a \"quoted\\\" \n name"));
    kernels(Device::cpu).fill(1, Array({2, 3}, DType::f32, Device::cpu));
  }
  profile.stop();
  const auto trace = nlohmann::json::parse(profile.chrome_trace());
  const auto& events = trace.at("traceEvents");
  REQUIRE(events.size() == profile.events().size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Profile::Event& e = profile.events()[i];
    CHECK(events[i].at("name") == e.kernel);
    CHECK(events[i].at("ph") == "X");
    CHECK(events[i].at("pid").is_number());
    CHECK(events[i].at("tid").is_number());
    CHECK(events[i].at("ts").get<double>() == Approx(static_cast<double>(e.start) * 1e-3).margin(1e-3));
    CHECK(events[i].at("dur").get<double>() == Approx(static_cast<double>(e.end - e.start) * 1e-3).margin(1e-3));
    CHECK(events[i].at("cat") == (*e.phase ? e.phase : "other"));
    CHECK(events[i].at("args").at("bytes") == e.bytes);
    CHECK(events[i].at("args").at("gflop").get<double>() == Approx(e.operations * 1e-9).margin(1e-6));
    if (i + 1 < events.size()) CHECK(events[i].at("args").at("module") == path_of(e));
    if (e.path && e.path->starts_with("ViT")) CHECK(events[i].at("args").at("step") == 7);
  }
  CHECK(events.back().at("args").at("module") == "a \"quoted\\\"   name");
  CHECK(nlohmann::json::parse(Profile().chrome_trace()).at("traceEvents").empty());
}

TEST_CASE("a profile's table adds up, names modules once for all blocks and fits a terminal") {
  Training training;
  Profile profile;
  training.step(3);
  training.step(4);
  const std::string deep = "CaiT.a_module_with_a_long_name.another_one.attn.qkv";
  {
    const RandomScope random({.seed = 0, .step = 4});
    const PathScope scope(std::make_shared<const std::string>(deep));
    softmax(ones({2, 3}));
  }
  profile.stop();
  const std::string table = profile.table();
  INFO(table);
  const std::vector<double> kernels = shares(table, "kernel "), modules = shares(table, "module ");
  CHECK(kernels.size() > 5);
  CHECK(sum(kernels) ==
        Approx(100).margin(0.05 *
                           static_cast<double>(kernels.size())));  // the shares include the time outside of kernels
  // The second table lists the same calls by module, without the time outside of kernels.
  CHECK(sum(modules) ==
        Approx(100 - kernels.back()).margin(0.05 * static_cast<double>(kernels.size() + modules.size())));
  // The columns in ms are the sums over the events.
  const std::string row = table.substr(table.find("\nall kernels") + 1, table.find('\n'));
  double forward = 0, backward = 0, optimizer = 0, other = 0;
  for (const Profile::Event& e : profile.events()) {
    const std::string_view phase = e.phase;
    (phase == "forward"     ? forward
     : phase == "backward"  ? backward
     : phase == "optimizer" ? optimizer
                            : other) += static_cast<double>(e.end - e.start) * 1e-6;
  }
  for (const auto& [title, ms] : {std::pair<std::string, double>{"  ms", forward + backward + optimizer + other},
                                  {"forward", forward},
                                  {"backward", backward},
                                  {"optimizer", optimizer},
                                  {"other", other}}) {
    CAPTURE(title);
    const std::size_t end = table.find(title) + title.size(), space = row.rfind(' ', end - 1);
    const bool blank = row.size() < end || row[end - 1] == ' ';  // a blank cell is a number that rounds to 0
    CHECK((blank ? 0 : std::stod(row.substr(space, end - space))) == Approx(ms).margin(0.006));
  }
  CHECK_THAT(table, contains("ViT.blocks.*.attn.qkv ") && contains("ViT.head ") && contains("(outside modules)") &&
                        !contains("blocks.0"));
  CHECK_THAT(table, contains("..." + deep.substr(deep.size() - 33) + " "));
  CHECK_THAT(table, contains("steps 3 to 4: "));
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    CHECK(line.size() <= 120);
    CHECK_FALSE(line.ends_with(' '));
  }
  CHECK_THAT(Profile().table(), contains("without a kernel call"));
}
