#include "experiments/common/results.h"

#include <cmath>

#include "core/error.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::lab;
using plumb::test::contains;
using plumb::test::error_of;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

ArmResult an_arm() {
  return {.gate = "rezero",
          .depth = 48,
          .lr = 1e-3,
          .seed = 18446744073709551615u,
          .status = Status::ok,
          .steps = 200,
          .train_loss = 0.1 + 0.2,
          .val_loss = 1.0 / 3.0,
          .val_accuracy = 0.75,
          .diverged_at = std::nullopt,
          .seconds = 12.5,
          .images_per_second = 2048};
}

std::string with_row(const std::string& row) { return std::string(results_header) + "\n" + row; }

}  // namespace

TEST_CASE("results.csv has the agreed header and shortest exact numbers") {
  CHECK(format_results({an_arm()}) ==
        "gate,depth,lr,seed,status,steps,train_loss,val_loss,val_accuracy,diverged_at,seconds,images_per_second\n"
        "rezero,48,0.001,18446744073709551615,ok,200,0.30000000000000004,0.3333333333333333,0.75,,12.5,2048\n");
}

TEST_CASE("results survive a round trip to the bit, absent values included") {
  ArmResult died = an_arm();
  died.gate = "a \"b\", c\nd";
  died.status = Status::diverged;
  died.train_loss = died.val_loss = died.val_accuracy = std::nullopt;
  died.diverged_at = 37;
  const std::vector<ArmResult> back = parse_results(format_results({an_arm(), died, an_arm()}), "results.csv");
  REQUIRE(back.size() == 3);
  CHECK(back[0].seed == an_arm().seed);
  CHECK(*back[0].train_loss == 0.1 + 0.2);
  CHECK(*back[0].val_loss == 1.0 / 3.0);
  CHECK_FALSE(back[0].diverged_at);
  CHECK(back[1].gate == died.gate);
  CHECK(back[1].status == Status::diverged);
  CHECK_FALSE(back[1].train_loss);
  CHECK(*back[1].diverged_at == 37);
  CHECK(format_results(back) == format_results({an_arm(), died, an_arm()}));
}

TEST_CASE("a result that is not finite is an empty cell") {
  ArmResult a = an_arm();
  a.train_loss = not_a_number;
  a.val_loss = inf;
  a.images_per_second = not_a_number;
  CHECK(format_result(a) == "rezero,48,0.001,18446744073709551615,ok,200,,,0.75,,12.5,\n");
  const ArmResult back = parse_results(with_row(format_result(a)), "f").front();
  CHECK_FALSE(back.train_loss);
  CHECK(std::isnan(back.images_per_second));
}

TEST_CASE("results may have CR LF line ends and no last one") {
  std::string text = format_results({an_arm(), an_arm()});
  text.pop_back();
  for (std::size_t i = 0; (i = text.find('\n', i)) != std::string::npos; i += 2) text.insert(i, "\r");
  CHECK(parse_results(text, "f").size() == 2);
  CHECK(parse_results(results_header, "f").empty());
}

TEST_CASE("a malformed results.csv is refused with file, line and what was expected") {
  const std::string good = format_result(an_arm());
  const auto error_with = [&](const std::string& row) { return error_of([&] { parse_results(with_row(good + row), "runs/a/results.csv"); }); };
  CHECK(error_with("pre,six,0.001,0,ok,1,,,,,1,1\n") ==
        "runs/a/results.csv, line 3: expected a whole number of at least 1 in column depth, got \"six\"; mend or delete the line");
  CHECK_THAT(error_with("pre,0,0.001,0,ok,1,,,,,1,1\n"), contains("column depth"));
  CHECK_THAT(error_with("pre,6,,0,ok,1,,,,,1,1\n"), contains("a finite number in column lr"));
  CHECK_THAT(error_with("pre,6,0.001,-1,ok,1,,,,,1,1\n"), contains("column seed"));
  CHECK_THAT(error_with("pre,6,0.001,0,fine,1,,,,,1,1\n"), contains("ok, diverged or failed in column status, got \"fine\""));
  CHECK_THAT(error_with("pre,6,0.001,0,ok,1,nan,,,,1,1\n"), contains("a finite number or nothing in column train_loss, got \"nan\""));
  CHECK_THAT(error_with("pre,6,0.001,0,ok,1,1.5x,,,,1,1\n"), contains("column train_loss"));
  CHECK_THAT(error_with("pre,6,0.001,0,ok,1,,,,1.5,1,1\n"), contains("column diverged_at"));
  CHECK_THAT(error_with("pre,6,0.001,0,ok\n"), contains("expected 12 cells, got \"5 (pre)\""));
  CHECK_THAT(error_with("\"pre,6,0.001,0,ok,1,,,,,1,1\n"), contains("line 3: expected a closing quote"));
  CHECK_THAT(error_with("\"pre\"x,6,0.001,0,ok,1,,,,,1,1\n"), contains("a comma after a quoted cell"));
  CHECK_THAT(error_with("p\"r\"e,6,0.001,0,ok,1,,,,,1,1\n"), contains("quotes around a whole cell"));
  CHECK_THAT(error_with("\n"), contains("line 3: expected 12 cells"));
  CHECK_THAT(error_of([] { parse_results("gate,depth\n", "f.csv"); }), contains("f.csv, line 1: expected the header gate,depth,lr"));
  CHECK_THAT(error_of([] { parse_results("", "f.csv"); }), contains("line 1: expected the header"));
}

TEST_CASE("errors count the lines inside quoted cells") {
  ArmResult a = an_arm();
  a.gate = "two\nlines";
  const std::string text = with_row(format_result(a) + "pre,x\n");
  const std::string message = error_of([&] { parse_results(text, "f"); });
  CHECK_THAT(message, contains("f, line 4"));
  CHECK(message.find('\n') == std::string::npos);
}

TEST_CASE("metrics lines are JSON with null for what is not finite") {
  const LossPoint p{.gate = "a\"b", .depth = 6, .lr = 1e-5, .seed = 3, .step = 10, .loss = 0.1 + 0.2, .lr_now = not_a_number, .grad_norm = inf};
  CHECK(format_loss(p) ==
        "{\"gate\":\"a\\\"b\",\"depth\":6,\"lr\":1e-05,\"seed\":3,\"step\":10,\"loss\":0.30000000000000004,\"lr_now\":null,\"grad_norm\":null}\n");
  const std::vector<LossPoint> back = parse_losses(format_loss(p) + format_loss(p), "metrics.jsonl");
  REQUIRE(back.size() == 2);
  CHECK(back[1].gate == p.gate);
  CHECK(back[1].lr == 1e-5);
  CHECK(back[1].loss == 0.1 + 0.2);
  CHECK(std::isnan(back[1].lr_now));
  CHECK(std::isnan(back[1].grad_norm));
}

TEST_CASE("metrics may miss a measurement and may hold more, but are JSON and say whose they are") {
  const auto parse = [](const std::string& text) { return parse_losses(text, "metrics.jsonl"); };
  const std::string arm = R"({"gate":"pre","depth":6,"lr":0.001,"seed":0)";
  CHECK(std::isnan(parse(arm + R"(,"step":1,"temperature":[1]})").front().loss));
  CHECK(parse("").empty());
  CHECK_THAT(error_of([&] { parse(arm + R"(,"step":1})" + "\n" + arm + R"(,"step":)"); }),
             contains("metrics.jsonl, line 2: expected one JSON object, got \"{"));
  CHECK_THAT(error_of([&] { parse(arm + R"(,"step":1,"loss":NaN})"); }), contains("line 1: expected one JSON object"));
  CHECK_THAT(error_of([&] { parse(arm + ",\"step\":1} // note"); }), contains("expected one JSON object"));
  CHECK_THAT(error_of([&] { parse("[1]"); }), contains("expected one JSON object"));
  CHECK_THAT(error_of([&] { parse(arm + "}"); }), contains("expected a whole number of at least 0 in field step"));
  CHECK_THAT(error_of([&] { parse(arm + R"(,"step":-1})"); }), contains("in field step"));
  CHECK_THAT(error_of([&] { parse(arm + R"(,"step":1,"loss":"low"})"); }), contains("expected a number or null in field loss"));
}

TEST_CASE("layers.csv has the agreed header, empty cells, and survives a round trip") {
  LayerPoint gated{.gate = "layerscale",
                   .depth = 24,
                   .lr = 5e-4,
                   .seed = 1,
                   .step = 200,
                   .block = 23,
                   .branch = "mlp",
                   .stream_norm = 8,
                   .branch_norm = 0.1,
                   .ratio = 0.0125,
                   .gate_mean = -1e-6,
                   .gate_max = 1e-5,
                   .grad_norm = 0.5,
                   .drop_ratio = 0.25,
                   .empty_rows = 0,
                   .change = 2.5};
  LayerPoint plain = gated;
  plain.gate = "post";
  plain.branch = "attn";
  plain.gate_mean = plain.gate_max = plain.drop_ratio = plain.empty_rows = std::nullopt;
  plain.branch_norm = inf;
  plain.ratio = plain.change = not_a_number;
  const std::string text = format_layers({gated, plain});
  CHECK(text ==
        "gate,depth,lr,seed,step,block,branch,stream_norm,branch_norm,ratio,gate_mean,gate_max,grad_norm,drop_ratio,empty_rows,change\n"
        "layerscale,24,0.0005,1,200,23,mlp,8,0.1,0.0125,-1e-06,1e-05,0.5,0.25,0,2.5\n"
        "post,24,0.0005,1,200,23,attn,8,,,,,0.5,,,\n");
  const std::vector<LayerPoint> back = parse_layers(text, "layers.csv");
  REQUIRE(back.size() == 2);
  CHECK(back[0].gate_mean == -1e-6);
  CHECK_FALSE(back[1].gate_max);
  CHECK(std::isnan(back[1].ratio));
  CHECK(format_layers(back) == text);
  CHECK_THAT(error_of([&] { parse_layers(text + "post,24,0.0005,1,200,x,attn,8,,,,,0.5,,,\n", "layers.csv"); }), contains("layers.csv, line 4"));
}
