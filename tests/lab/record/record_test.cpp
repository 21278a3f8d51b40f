// Tests of points, of records and of the files that are written from records.
#include "experiments/lab/record/record.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "experiments/lab/record/csv.h"
#include "tests/support/catch.h"
#include "tests/support/not_finite.h"

using namespace plumb;
using namespace plumb::lab;
using plumb::test::contains;
using plumb::test::error_of;
using plumb::test::infinity;

namespace {

Record a_record() {
  return {.point = {{"gate", "rezero"}, {"depth", 48}, {"lr", 1e-3}, {"seed", 7}},
          .steps = 200,
          .seconds = 12.5,
          .values = {{"train_loss", 0.1 + 0.2}, {"val_loss", 1.0 / 3.0}},
          .metrics = {{.step = 0, .values = {{"loss", 2.3}}}, {.step = 1, .values = {{"loss", unknown}}}},
          .model = R"({"model":"vit","depth":48,"gate":"rezero"})",
          .attachments = {R"({"a":[1,2.5]})"}};
}

}  // namespace

TEST_CASE("The label of a point names the axis of every value except a text in first place") {
  const Point point{{"gate", "pre"}, {"depth", 6}, {"lr", 1e-3}, {"kind", "plain"}, {"seed", 0}};
  CHECK(point.label() == "pre depth 6 lr 0.001 kind plain seed 0");
  CHECK(point.file_stem() == "pre-depth-6-lr-0.001-kind-plain-seed-0");
  CHECK(Point{{"seed", 3}}.label() == "seed 3");
  CHECK(Point{{"gate", "a/b c"}}.file_stem() == "a%2Fb-c");
  const std::string longest = Point{{"gate", std::string(300, 'x')}}.file_stem(),
                    other = Point{{"gate", std::string(301, 'x')}}.file_stem();
  CHECK(longest.size() < 200);
  CHECK(longest != other);
}

TEST_CASE("Points are compared by value in any order of axes and for any number type") {
  const Point point{{"epsilon", 0.0}, {"depth", 6}};
  CHECK(point == Point{{"depth", 6}, {"epsilon", 0}});
  CHECK(point.contains({{"epsilon", 0}}));
  CHECK_FALSE(point.contains({{"epsilon", 1}}));
  CHECK_FALSE(point.contains({{"depth", "6"}}));
  CHECK_FALSE(point.contains({{"width", 6}}));
  CHECK_FALSE(point == Point{{"depth", 6}});
  CHECK(point.without("depth") == Point{{"epsilon", 0}});
  CHECK(point.get<double>("depth") == 6);
  CHECK(point.get<std::int64_t>("depth") == 6);
  CHECK_THAT(error_of([&] { (void)point.get<std::int64_t>("width"); }),
             contains("expected a trial with the axis width, got epsilon 0 depth 6"));
  CHECK_THAT(error_of([&] { (void)point.get<std::string>("depth"); }),
             contains("expected a value of another type on the axis depth, got 6"));
  CHECK_THAT(error_of([&] { (void)point.get<std::int64_t>("epsilon"); }), contains("another type"));
}

TEST_CASE("A record is read back bit by bit and numbers that are not finite become NaN") {
  Record record = a_record();
  record.status = Status::diverged;
  record.reason = "because of \"x\"\tand more";
  record.values.emplace_back("odd", infinity);
  const Record back = record_from_json(to_json(record));
  CHECK(back.point == record.point);
  CHECK(back.point.label() == record.point.label());
  CHECK(back.status == Status::diverged);
  CHECK(back.steps == 200);
  CHECK(back.seconds == 12.5);
  CHECK(back.reason == record.reason);
  CHECK(back.value("train_loss") == 0.1 + 0.2);
  CHECK(back.value("val_loss") == 1.0 / 3.0);
  CHECK(std::isnan(back.value("odd")));
  CHECK(std::isnan(back.value("absent")));
  CHECK(back.value("steps") == 200);
  CHECK(to_json(back) == to_json(record));
  CHECK(back.model == record.model);
  CHECK(back.attachments == record.attachments);
  CHECK(to_json(back) == to_json(record));
  for (const char* wrong :
       {"", "{}", "[1]",
        R"({"arm":{},"status":"well","steps":1,"seconds":1,"values":{},"metrics":[],"attachments":[]})"})
    CHECK_THAT(error_of([&] { record_from_json(wrong); }),
               contains("expected the record of a trial as one JSON object"));
}

TEST_CASE("A record says whether its weights were saved") {
  Record record = a_record();
  CHECK_THAT(to_json(record), !contains("weights_saved"));
  CHECK(record_from_json(to_json(record)).weights_saved == std::nullopt);
  for (const bool saved : {false, true}) {
    record.weights_saved = saved;
    CHECK(record_from_json(to_json(record)).weights_saved == saved);
  }
}

TEST_CASE("results.csv has the axes and status and steps and then the study's columns and all other values") {
  Record other = a_record();
  other.point.set("gate", "a \"b\", c");
  other.status = Status::diverged;
  other.values = {{"diverged_at", 37}, {"odd", infinity}};
  const std::vector<std::string> axes{"gate", "depth", "lr", "seed"};
  CHECK(results_csv(axes, {}, {a_record(), other}) ==
        "gate,depth,lr,seed,status,steps,seconds,train_loss,val_loss,diverged_at,odd\n"
        "rezero,48,0.001,7,ok,200,12.5,0.30000000000000004,0.3333333333333333,,\n"
        "\"a \"\"b\"\", c\",48,0.001,7,diverged,200,12.5,,,37,\n");
  CHECK(results_csv(axes, {"val_loss", "diverged_at", "seconds"}, {a_record()}) ==
        "gate,depth,lr,seed,status,steps,val_loss,diverged_at,seconds,train_loss\n"
        "rezero,48,0.001,7,ok,200,0.3333333333333333,,12.5,0.30000000000000004\n");
}

TEST_CASE("metrics.jsonl has each logged step with the point of its trial and null for NaN") {
  const std::string text = metrics_jsonl({a_record()});
  CHECK(text ==
        "{\"gate\":\"rezero\",\"depth\":48,\"lr\":0.001,\"seed\":7,\"step\":0,\"loss\":2.3}\n"
        "{\"gate\":\"rezero\",\"depth\":48,\"lr\":0.001,\"seed\":7,\"step\":1,\"loss\":null}\n");
}
