// Embedding, pooling and Sequential.
#include "nn/layers/embedding.h"
#include "plumb/plumb.h"

#include <cmath>

#include "nn/layers/linear.h"
#include "nn/layers/pool2d.h"
#include "nn/layers/sequential.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

TEST_CASE("an embedding equals the product of one-hot rows with its table") {
  const DefaultsScope f64(reference_f64);
  nn::Embedding table({.rows = 5, .dim = 3});
  nn::initialize(table, 0);
  const Tensor index = integers({4, 0, 4, 2, 2, 4}, {2, 3});
  std::vector<double> rows(6 * 5);
  for (std::size_t i = 0; const double row : index.values()) rows[i++ * 5 + static_cast<std::size_t>(row)] = 1;
  const Tensor one_hot = tensor(rows, {2, 3, 5}), c = random_normal({2, 3, 3}, 0, "c");
  const Tensor expected = matmul(one_hot, table.weight());
  CHECK(table(index).values() == expected.values());
  // The row of the index 4 gets three gradients, those of the indices 1 and 3 get none.
  const Tensor gradient = grad(sum(table(index) * c), table.weight());
  CHECK(relative_error(gradient, grad(sum(expected * c), table.weight())) < 1e-15);
  CHECK(check_gradients([&](const Tensors& in) { return exp(embedding(index, in[0])); }, {table.weight()},
                        {.order = 2}) < 1e-6);
}

TEST_CASE("an embedding starts from N(0, 1) or another declared deviation, does not decay, and checks its indices") {
  nn::Embedding table({.rows = 100, .dim = 50}), narrow({.rows = 100, .dim = 50, .init = nn::Init::normal(0.1)});
  nn::initialize(table, 0), nn::initialize(narrow, 0);
  const auto deviation = [](const nn::Embedding& e) { return std::sqrt(mean(e.weight() * e.weight()).item()); };
  CHECK(deviation(table) == Approx(1).epsilon(0.05));
  CHECK(deviation(narrow) == Approx(0.1).epsilon(0.05));
  CHECK(table.own("weight").role == nn::Role::embedding);
  CHECK(table.own("weight").decay_factor() == 0);
  CHECK_THAT(error_of([&] { table(integers({100}, {1})); }), contains("100"));
  CHECK_THAT(error_of([&] { table(integers({-1}, {1})); }), contains("-1"));
  CHECK_THAT(error_of([&] { table(ones({2})); }), contains("f32 [2]"));
  CHECK(error_of([] { nn::Embedding({.rows = 0, .dim = 2}); }) ==
        "[embedding] expected positive extents, got 0 rows and dim 2");
}

TEST_CASE("pooling layers compute the values of PyTorch's definition") {
  const Tensor image = reshape(arange(16.0), {1, 1, 4, 4});
  CHECK(nn::MaxPool2d({.kernel = 2})(image).values() == std::vector<double>{5, 7, 13, 15});
  CHECK(nn::AvgPool2d({.kernel = 2})(image).values() == std::vector<double>{2.5, 4.5, 10.5, 12.5});
  const nn::MaxPool2d largest({.kernel = 3, .stride = 2, .padding = 1});
  CHECK(largest(image).values() == std::vector<double>{5, 7, 13, 15});
  const nn::AvgPool2d padded({.kernel = 3, .stride = 2, .padding = 1});  // zeros count
  CHECK(relative_error(padded(image), tensor({10.0 / 9, 24.0 / 9, 51.0 / 9, 10}, {1, 1, 2, 2})) < 1e-6);
  CHECK(nn::GlobalAvgPool2d()(concat({image, image + 1}, 1)).values() == std::vector<double>{7.5, 8.5});
  CHECK_THAT(error_of([&] { nn::GlobalAvgPool2d()(ones({4})); }),
             contains("[global_avg_pool2d] expected images [B, C, H, W], got [4]"));
}

TEST_CASE("gradients of pooling layers agree with finite differences") {
  const DefaultsScope f64(reference_f64);
  const Tensor images = random_normal({2, 2, 5, 4}, 0, "images");
  const nn::MaxPool2d largest({.kernel = 3, .stride = 2, .padding = 1});
  const nn::AvgPool2d means({.kernel = 3, .stride = 2, .padding = 1});
  const nn::GlobalAvgPool2d all;
  for (const nn::Layer* layer : std::initializer_list<const nn::Layer*>{&largest, &means, &all})
    CHECK(check_gradients([&](const Tensors& in) { return (*layer)(in[0]) * (*layer)(in[0]); }, {images},
                          {.order = 2}) < 1e-6);
}

TEST_CASE("a sequence calls layers and functions in order and has the names of PyTorch") {
  nn::Sequential model(nn::make<nn::Linear>({.in = 2, .out = 3}), relu);
  model.add(nn::make<nn::Linear>({.in = 3, .out = 1}));
  model.add([](const Tensor& x) { return x * 2; });
  nn::initialize(model, 0);
  std::vector<std::string> names;
  for (const nn::Parameter& p : model.parameters()) names.push_back(p.name);
  CHECK(names == std::vector<std::string>{"0.weight", "0.bias", "2.weight", "2.bias"});
  const Tensor x = random_normal({4, 2}, 0, "x");
  CHECK(model(x).values() == (model[2](relu(model[0](x))) * 2).values());
  CHECK(model.size() == 4);
  CHECK(*model[3].path() == "Sequential.3");
  int calls = 0;
  const Handle hook = model[1].on_forward([&](const nn::Layer&, const Tensor&, const Tensor&) {
    ++calls;
    return Tensor();
  });
  (void)model(x);
  CHECK(calls == 1);
  CHECK(nn::Sequential()(x).values() == x.values());
  CHECK(error_of([&] { model.add(std::unique_ptr<nn::Layer>()); }) == "[sequential] expected a layer, got null");
  CHECK(error_of([&] { model.add(nn::Sequential::Function()); }) ==
        "[sequential] expected a function to call, got an empty one");
}
