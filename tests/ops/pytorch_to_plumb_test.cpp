// The rows of docs/pytorch_to_plumb.md. Each row is code that compiles and runs here; the page must show the same text.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/not_finite.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using namespace plumb::test;

namespace {

template <class... T>
void use(T&&... results) {
  (static_cast<void>(results), ...);
}

struct Row {
  const char *pytorch, *plumb;
  std::function<void()> run;
};
#define ROW(pytorch, ...)                            \
  Row {                                              \
    pytorch, #__VA_ARGS__, [&] { use(__VA_ARGS__); } \
  }

// A row that consists of statements.
#define RUN(pytorch, ...)                      \
  Row {                                        \
    pytorch, #__VA_ARGS__, [&] { __VA_ARGS__ } \
  }

// Modules that the page shows with the same text, except for line breaks and indentation.
#define SHOWN(...) \
  __VA_ARGS__      \
  constexpr const char* shown = #__VA_ARGS__;
// clang-format off
SHOWN(
struct Net : nn::Layer {
  nn::Child<nn::Embedding> words{this, "words", {.rows = 7, .dim = 8}};
  nn::Children<nn::Linear> layers{this, "layers"};
  nn::Child<nn::Linear> head{this, "head", {.in = 8, .out = 3}};
  explicit Net(int depth) {
    for (int i = 0; i < depth; ++i) layers.add({.in = 8, .out = 8});
  }
  Tensor forward(const Tensor& index) const override {
    Tensor h = words(index);
    for (const nn::Linear& layer : layers) h = h + gelu(layer(h));
    return head(h);
  }
};
)
// clang-format on

// Replaces each run of white space by one blank.
std::string in_one_line(const std::string& text) {
  std::istringstream in(text);
  std::string line;
  for (std::string word; in >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

std::vector<std::string> lines_of_page() {
  std::ifstream file(std::filesystem::path(test::source_dir()) / "docs/pytorch_to_plumb.md");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("each row of docs/pytorch_to_plumb.md runs, and the page has exactly these rows") {
  // The names that the rows use.
  const Defaults f64{DType::f64, Device::cpu};
  const Tensor x = variable(tensor({{1, 2, 3}, {4, 5, 6}})), y = variable(tensor({{2, 2, 2}, {3, 3, 3}})),
               v = tensor({1, 2, 3}), w = tensor({4, 5, 6});
  const Tensor single = ones({1, 3}), mask = x > 2, index = integers({0, 2}), places = integers({{0, 2}, {1, 1}}),
               labels = integers({2, 0});
  const Tensor logits = x, target = sigmoid(y).detach(), table = random_normal({7, 3}, 0, "table"),
               q = random_normal({2, 2, 5, 4}, 0, "q");
  const Tensor k = random_normal({2, 2, 5, 4}, 0, "k"), images = random_normal({1, 2, 6, 6}, 0, "images"),
               filters = random_normal({3, 2, 3, 3}, 0, "f");
  const Tensor weight = random_normal({4, 3}, 0, "w"), bias = zeros({4}), gain = ones({3}), offset = zeros({3});
  const Tensors parameters{x, y}, direction{ones({2, 3}), ones({2, 3})};
  const Tensor loss = sum(x * x * y);
  Net model(2);
  nn::initialize(model, 0);
  nn::AdamW optimizer(model.parameters(), {});
  nn::Linear first({.in = 3, .out = 4}), second({.in = 4, .out = 2});
  nn::initialize(first, 0), nn::initialize(second, 0);
  Gradients sum_of_parts;
  const TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  // clang-format off
  const std::vector<Row> rows{
      // makers
      ROW("torch.tensor([[1., 2.], [3., 4.]])", tensor({{1, 2}, {3, 4}})),
      ROW("torch.tensor([1, 2])", integers({1, 2})),
      ROW("torch.tensor(x, dtype=torch.float64)", tensor({{1, 2}, {3, 4}}, f64)),
      ROW("torch.zeros(2, 3), torch.ones(2, 3), torch.full((2, 3), 7.)", zeros({2, 3}), ones({2, 3}), full({2, 3}, 7)),
      ROW("torch.zeros_like(x), torch.ones_like(x), torch.full_like(x, 7)", zeros_like(x), ones_like(x), full_like(x, 7)),
      ROW("torch.arange(5), torch.arange(1, 7, 2)", arange(5), arange(1, 7, 2)),
      ROW("torch.arange(5.), torch.arange(0, 1, 0.1)", arange(5.0), arange(0, 1, 0.1)),
      ROW("torch.linspace(0, 1, 5)", linspace(0, 1, 5)),
      ROW("torch.eye(3)", eye(3)),
      ROW("F.one_hot(labels, 3).float()", one_hot(labels, 3)),
      ROW("torch.randn(2, 3), torch.randn_like(x)", random_normal({2, 3}, 0, "name"), random_normal_like(x, 0, "name")),
      ROW("torch.empty(2, 3).uniform_(-1, 1)", random_uniform({2, 3}, -1, 1, 0, "name")),
      ROW("torch.randperm(10)", random_permutation(10, 0, "name")),
      ROW("x.clone(), x.detach()", clone(x), x.detach()),
      ROW("x.double(), x.to(torch.bfloat16)", cast(x, DType::f64), cast(x, DType::bf16)),
      ROW("x.item(), x.tolist()", loss.item(), x.values()),
      ROW("x.shape, x.size(-1), x.numel(), x.dim()", x.shape(), x.dim(-1), x.numel(), x.shape().rank()),
      // shapes and indexing
      ROW("x[0], x[-1]", x[0], x[-1]),
      ROW("x.select(1, 0)", select(x, 1, 0)),
      ROW("x[:, 1:3]", slice(x, 1, 1, 3)),
      ROW("x.reshape(3, -1), x.view(3, 2)", reshape(x, {3, -1}), reshape(x, {3, 2})),
      ROW("x.flatten(0)", flatten(x, 0)),
      ROW("single.squeeze(0)", squeeze(single, 0)),
      ROW("x.unsqueeze(-1)", unsqueeze(x, -1)),
      ROW("x.permute(1, 0), x.transpose(0, 1), x.mT", permute(x, {1, 0}), transpose(x, 0, 1), transpose(x)),
      ROW("x.expand(4, 2, 3)", broadcast_to(x, {4, 2, 3})),
      ROW("torch.cat([x, y], 0)", cat({x, y}, 0)),
      ROW("torch.stack([x, y], 0)", stack({x, y}, 0)),
      ROW("torch.split(x, 2, 1), torch.split(x, [1, 2], 1)", split(x, 2, 1), split(x, {1, 2}, 1)),
      ROW("torch.chunk(x, 3, 1)", chunk(x, 3, 1)),
      ROW("torch.unbind(x, 0)", unbind(x, 0)),
      ROW("F.pad(x, (1, 2, 0, 0), value=7)", pad(x, {{0, 0}, {1, 2}}, 7)),
      ROW("x.repeat(2, 1)", repeat(x, {2, 1})),
      ROW("x.repeat_interleave(2, 1)", repeat_interleave(x, 2, 1)),
      ROW("torch.flip(x, [0])", flip(x, 0)),
      ROW("torch.roll(x, 1, 0)", roll(x, 1, 0)),
      ROW("torch.tril(x), torch.triu(x, 1)", tril(x), triu(x, 1)),
      ROW("torch.diag(v)", diag(v)),
      ROW("torch.trace(x)", trace(x)),
      ROW("x.index_select(1, index), x[:, index]", index_select(x, 1, index)),
      ROW("x[index]", gather(x, integers({0, 1}))),
      ROW("x.gather(1, places)", take_along_axis(x, places, 1)),
      ROW("x.scatter_add(1, places, y[:, :2])", scatter_add(x, 1, places, slice(y, 1, 0, 2))),
      ROW("F.embedding(index, table)", embedding(index, table)),
      // elementwise
      ROW("x + y, x - y, x * y, x / y, -x", x + y, x - y, x * y, x / y, -x),
      ROW("x ** 2, x ** y, x.pow(y)", pow(x, 2), pow(x, y)),
      ROW("x.exp(), x.expm1(), x.log(), x.log1p(), x.sqrt(), x.rsqrt()", exp(x), expm1(x), log(x), log1p(x), sqrt(x), rsqrt(x)),
      ROW("x.sin(), x.cos(), x.tanh(), x.erf()", sin(x), cos(x), tanh(x), erf(x)),
      ROW("x.abs(), x.sign(), x.floor(), x.round()", abs(x), sign(x), floor(x), round(x)),
      ROW("x.clamp(0, 1)", clamp(x, 0, 1)),
      ROW("torch.maximum(x, y), torch.minimum(x, y)", maximum(x, y), minimum(x, y)),
      ROW("x.clamp(min=2), x.clamp(max=2)", maximum(x, 2), minimum(x, 2)),
      ROW("x == y, x < y, x <= 2", equal(x, y), x < y, x <= 2),
      ROW("~mask", equal(mask, 0)),
      ROW("torch.where(mask, x, y), torch.where(mask, x, 0), torch.where(mask, 1., 0.)", where(mask, x, y), where(mask, x, 0), where(mask, 1, 0)),
      ROW("x.masked_fill(mask, 0)", masked_fill(x, mask, 0)),
      ROW("x.isnan(), x.isfinite()", isnan(x), isfinite(x)),
      ROW("torch.allclose(x, y)", allclose(x, y)),
      // reductions
      ROW("x.sum(), x.sum(-1), x.sum((0, 1), keepdim=True)", sum(x), sum(x, -1), sum(x, {0, 1}, true)),
      ROW("x.mean(-1), x.prod(-1)", mean(x, -1), prod(x, -1)),
      ROW("x.amax(-1), x.amin(-1)", max(x, -1), min(x, -1)),
      ROW("x.var(-1), x.std(-1)", var(x, -1, false, 1), stddev(x, -1, false, 1)),
      ROW("x.norm()", norm(x)),
      ROW("x.logsumexp(-1)", logsumexp(x, -1)),
      ROW("x.argmax(-1), x.argmin(-1)", argmax(x, -1), argmin(x, -1)),
      ROW("mask.any(), mask.all(-1)", any(mask), all(mask, -1)),
      ROW("mask.sum(), mask.sum(-1)", sum(cast(mask, DType::f32)), sum(cast(mask, DType::f32), -1)),
      ROW("x.cumsum(0)", cumsum(x, 0)),
      ROW("x.sort(-1), x.argsort(-1), x.topk(2)", sort(x, -1), argsort(x, -1), topk(x, 2)),
      // products
      ROW("x @ y.T", matmul(x, y, false, true)),
      ROW("x @ v, torch.mv(x, v)", matmul(x, v)),
      ROW("torch.dot(v, w), torch.outer(v, w)", dot(v, w), outer(v, w)),
      ROW("torch.einsum('bhid,bhjd->bhij', q, k)", einsum("bhid,bhjd->bhij", q, k)),
      // layers
      ROW("F.linear(x, weight, bias)", linear(x, weight, bias)),
      ROW("F.conv2d(images, filters, stride=2, padding=1)", conv2d(images, filters, {}, {.stride = 2, .padding = 1})),
      ROW("F.max_pool2d(images, 3, 2, 1)", max_pool2d(images, {.kernel = 3, .stride = 2, .padding = 1})),
      ROW("F.avg_pool2d(images, 2)", avg_pool2d(images, {.kernel = 2})),
      ROW("F.layer_norm(x, (3,), gain, offset)", layer_norm(x, gain, offset, 1e-5)),
      ROW("F.rms_norm(x, (3,), gain, 1e-6)", rms_norm(x, gain, 1e-6)),
      ROW("F.relu(x), F.gelu(x), F.silu(x), x.sigmoid(), F.softplus(x)", relu(x), gelu(x), silu(x), sigmoid(x), softplus(x)),
      ROW("F.softmax(x, -1), F.log_softmax(x, -1)", softmax(x, -1), log_softmax(x, -1)),
      ROW("F.scaled_dot_product_attention(q, k, k)", attention(q, k, k)),
      ROW("F.scaled_dot_product_attention(q, k, k, is_causal=True)", attention(q, k, k, {.causal = true})),
      ROW("F.scaled_dot_product_attention(q, k, k, attn_mask=torch.ones(5, 5, dtype=torch.bool).tril())", attention(q, k, k, {.keep = tril(ones({5, 5})) > 0})),
      // losses
      ROW("F.cross_entropy(logits, labels)", cross_entropy(logits, labels)),
      ROW("F.mse_loss(x, y), F.l1_loss(x, y), F.huber_loss(x, y)", mse_loss(x, y), l1_loss(x, y), huber_loss(x, y)),
      ROW("F.binary_cross_entropy_with_logits(x, target)", binary_cross_entropy_with_logits(x, target)),
      ROW("F.kl_div(x, target, reduction='batchmean')", kl_div(x, target)),
      // gradients
      ROW("x.requires_grad_()", variable(x)),
      ROW("loss.backward(); x.grad", backward(loss).find(x)),
      ROW("torch.autograd.grad(loss, x, create_graph=True)", grad(loss, x, {.create_graph = true})),
      ROW("torch.func.grad_and_value(lambda t: t.exp().sum())(x)", value_and_grad([](const Tensor& t) { return sum(exp(t)); }, x)),
      ROW("torch.func.grad(torch.func.grad(lambda t: t.sin()))(loss)", grad(grad([](const Tensor& t) { return sin(t); }))(loss)),
      RUN("with torch.no_grad():", NoGrad guard;),
      ROW("torch.autograd.functional.hvp(f, parameters, direction)", hvp(loss, parameters, direction)),
      ROW("torch.autograd.gradcheck(f, x)", check_gradients([](const Tensors& in) { return exp(in[0]); }, {ones({2}, f64)})),
      RUN("torch.manual_seed(0)", RandomScope scope({.seed = 0});),
      RUN("for index, labels in parts: (len(index) / batch * F.cross_entropy(model(index), labels)).backward()", const RandomScope part({.seed = 0, .step = 1, .first_sample = 4}); sum_of_parts += 2 * backward(cross_entropy(model(index), labels));),
      RUN("a, b = model(index), model(index)", Tensor a = model(index); const RandomScope other_draws({.seed = 0, .step = 1, .first_sample = 2}); Tensor b = model(index);),
      // modules and training
      ROW("nn.Linear(3, 4), nn.Linear(3, 4, bias=False)", nn::Linear({.in = 3, .out = 4}), nn::Linear({.in = 3, .out = 4, .bias = false})),
      ROW("nn.Conv2d(2, 3, 3, stride=2, padding=1)", nn::Conv2d({.in = 2, .out = 3, .kernel = 3, .stride = 2, .padding = 1})),
      ROW("nn.LayerNorm(3), nn.RMSNorm(3)", nn::LayerNorm(3), nn::RmsNorm(3)),
      ROW("nn.Dropout(0.1)", nn::Dropout(0.1)),
      ROW("nn.Embedding(7, 8)", nn::Embedding({.rows = 7, .dim = 8})),
      ROW("nn.MaxPool2d(3, 2, 1), nn.AvgPool2d(2)", nn::MaxPool2d({.kernel = 3, .stride = 2, .padding = 1}), nn::AvgPool2d({.kernel = 2})),
      ROW("nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())", nn::GlobalAvgPool2d()),
      ROW("nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))", nn::Sequential(nn::make<nn::Linear>({.in = 3, .out = 4}), relu, nn::make<nn::Linear>({.in = 4, .out = 2}))),
      ROW("nn.ModuleList(...)", model.layers),
      ROW("model.parameters(), model.named_parameters()", model.trainable(), model.parameters()),
      ROW("sum(p.numel() for p in model.parameters())", model.parameter_count()),
      RUN("model.train(); model.eval()", model.train(); model.eval();),
      RUN("model.requires_grad_(False); model.requires_grad_(True)", model.freeze(); model.freeze(false);),
      ROW("torch.optim.AdamW(model.parameters(), lr=1e-3)", nn::AdamW(model.parameters(), {.lr = 1e-3})),
      ROW("torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)", nn::Sgd(model.parameters(), {.lr = 0.1, .momentum = 0.9})),
      ROW("torch.optim.Adagrad(model.parameters()), timm.optim.Lamb(model.parameters())", nn::Adagrad(model.parameters(), {}), nn::Lamb(model.parameters(), {})),
      ROW("optimizer.param_groups", optimizer.describe_groups()),
      RUN("[{'params': head, 'lr': 1e-4}, {'params': rest}]", model.each_parameter([](const std::string& name, nn::Parameter& p) { if (name.starts_with("head.")) p.lr_factor() = 0.1; });),
      RUN("optimizer.zero_grad(); loss.backward(); optimizer.step()", optimizer.step(backward(cross_entropy(model(index), labels)));),
      ROW("clip_grad_norm_(model.parameters(), 1)", nn::AdamW(model.parameters(), {.clip_norm = 1})),
      ROW("CosineAnnealingLR(optimizer, 100)", nn::AdamW(model.parameters(), {.lr = nn::cosine(1e-3, 100)})),
      ROW("SequentialLR(optimizer, [LinearLR(optimizer, 0.1, total_iters=9), CosineAnnealingLR(optimizer, 90)], [10])", nn::warmup_cosine(1e-3, 10, 100)),
      ROW("MultiStepLR(optimizer, [30, 60]), StepLR(optimizer, 30)", nn::step_decay(0.1, {30, 60}), nn::exponential_decay(0.1, 0.1, 30)),
      ROW("LambdaLR(optimizer, f)", nn::LearningRate([](std::int64_t step) { return 1e-3 / static_cast<double>(step + 1); })),
      ROW("model.state_dict(), optimizer.state_dict()", nn::weights(model), optimizer.state()),
      RUN("optimizer.load_state_dict(state)", optimizer.load_state(optimizer.state());),
      RUN("torch.save(model.state_dict(), path)", nn::save_weights(model, path);),
      ROW("model.load_state_dict(torch.load(path))", nn::load_weights(model, path)),
      RUN("torch.save({'model': model.state_dict(), 'optimizer': optimizer.state_dict()}, path)", nn::save_checkpoint(path, model, optimizer); nn::load_checkpoint(path, model, optimizer);),
      RUN("AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))", nn::Ema ema(model, {.decay = 0.999}); ema.update(); const nn::EmaScope scope(ema);),
      ROW("torch.utils.checkpoint.checkpoint(f, x)", checkpoint([](const Tensors& in) { return exp(in[0]); }, {x})),
      RUN("torch.manual_seed(0) before Net()", nn::initialize(model, 0);),
  };
  // clang-format on
  std::set<std::string> expected;
  for (const Row& row : rows) {
    INFO(row.pytorch);
    CHECK_NOTHROW(row.run());
    expected.insert(fmt::format("| `{}` | `{}` |", row.pytorch, row.plumb));
  }
  CHECK(expected.size() == rows.size());
  std::set<std::string> found;
  for (const std::string& line : lines_of_page())
    if (line.starts_with("| `") && std::ranges::count(line, '|') > 3)
      found.insert(line.substr(0, line.find(" |", line.find("` | `") + 4) + 2));
  for (const std::string& row : expected) {
    INFO("missing in the page: " << row);
    CHECK(found.contains(row));
  }
  for (const std::string& row : found) {
    INFO("only in the page: " << row);
    CHECK(expected.contains(row));
  }
  std::string page;
  for (const std::string& line : lines_of_page()) page += line + "\n";
  CHECK_THAT(in_one_line(page), contains(in_one_line(shown)));
}

TEST_CASE("the twins that docs/pytorch_to_plumb.md names follow PyTorch's rules, except for the differences there") {
  // PyTorch 2.15: SGD with lr=1e-3 and SequentialLR([LinearLR(0.1, total_iters=9), CosineAnnealingLR(90)], [10]).
  const nn::LearningRate warmed = nn::warmup_cosine(1e-3, 10, 100), half = nn::cosine(1e-3, 100);
  for (const auto& [step, rate] : std::vector<std::pair<int, double>>{{0, 1e-4},
                                                                      {1, 2e-4},
                                                                      {8, 9e-4},
                                                                      {9, 1e-3},
                                                                      {10, 1e-3},
                                                                      {11, 9.996954135095479e-4},
                                                                      {55, 5e-4},
                                                                      {99, 3.0458649045211853e-07}})
    CHECK(warmed.at(step) == Approx(rate));
  CHECK(half.at(50) == Approx(5e-4));
  for (const int step : {100, 150, 200}) CHECK(half.at(step) == Approx(0).margin(1e-12));  // PyTorch at 150: 5e-4

  nn::Linear layer({.in = 1, .out = 1});
  nn::initialize(layer, 0);
  const auto set = [&](double value) { copy_into(full({1, 1}, value).array(), Out(layer.weight().array())); };
  set(1);
  nn::Ema slow(layer, {.decay = 0.9}), warm(layer, {.decay = 0.9, .warm_up = true});
  set(5);
  const auto averages = [&](nn::Ema& ema) {
    ema.update();
    const nn::EmaScope scope(ema);
    return layer.weight().item();
  };
  CHECK(averages(slow) == Approx(1.4));  // PyTorch's first average is 5
  CHECK(averages(warm) == Approx(0.1 * 1 + 0.9 * 5));
  for (int i = 1; i < 10; ++i) slow.update(), warm.update();  // 1 / (1 - decay) updates in all
  CHECK(averages(slow) == Approx(5 - 4 * std::pow(0.9, 11)));
  CHECK(averages(warm) > 4.99);

  // Causal attention of 2 queries and 5 keys. In PyTorch, the first query sees the first key only.
  const Tensor q = random_normal({1, 1, 2, 4}, 0, "q"), k = random_normal({1, 1, 5, 4}, 0, "k");
  const Tensor causal = attention(q, k, k, {.causal = true}),
               top_left = attention(q, k, k, {.keep = tril(ones({2, 5})) > 0});
  CHECK(allclose(slice(causal, 2, 1, 2), slice(attention(q, k, k), 2, 1, 2), 1e-5, 1e-6));
  const Tensor four = slice(k, 2, 0, 4);
  CHECK(allclose(slice(causal, 2, 0, 1), attention(slice(q, 2, 0, 1), four, four), 1e-5, 1e-6));
  CHECK(allclose(slice(top_left, 2, 0, 1), slice(k, 2, 0, 1), 1e-5, 1e-6));

  const Tensor at_bound = variable(tensor({0, 0.5, 1}));
  CHECK(grad(sum(clamp(at_bound, 0, 1)), at_bound).values() == std::vector<double>{1, 1, 1});
  CHECK(std::isnan(sign(tensor({not_a_number})).item()));
  CHECK(grad(sum(at_bound), variable(ones({2}))).values() == std::vector<double>{0, 0});
  CHECK_THAT(error_of([] { (void)cross_entropy(zeros({2, 3}), integers({-100, 1})); }), contains("cross_entropy"));
  const Tensor t = softmax(random_normal({2, 3, 4}, 0, "t"), -1), p = log_softmax(random_normal({2, 3, 4}, 0, "p"), -1);
  CHECK(kl_div(p, t).item() == Approx(sum(t * (log(t) - p)).item() / 6));
  CHECK(nn::LambOptions().clip_norm == 0);
}
