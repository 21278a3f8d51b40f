// Times every kernel of a training step with the shapes of three models, and compares each kernel with the best speed
// of the machine. The best speed of operations is the speed of a large product. The best speed of bytes is the speed of
// a copy. `cold` times several sets of operands in turn, so that the operands are in memory rather than in the cache,
// as in most of a training step. `warm` calls the kernel repeatedly with one set.
#include <fmt/format.h>

#include <cmath>

#include "bench/op_rows.h"
#include "core/atomic_file.h"
#include "core/backend.h"
#include "experiments/lab/cli/cli.h"

using namespace plumb;

namespace {

using namespace bench;

// The best speeds of the machine, per second.
struct Limits {
  std::size_t cache_bytes;
  double gemm, memory, cache;
};

struct Timing {
  double seconds, share;  // share: the reached part of the limit's speed
};

struct Result {
  std::string model, name, bound;
  double bytes, flops;
  std::optional<Timing> cold, warm;
};

// Returns the seconds per call of each kernel: the best of several batches of some milliseconds. The calls take turns.
double seconds_a_call(const std::vector<Call>& calls) {
  const auto time = [&](int turns) {
    return bench::elapsed([&] {
             for (int i = 0; i < turns; ++i)
               for (const Call& call : calls) call();
           }) /
           static_cast<double>(turns) / static_cast<double>(calls.size());
  };
  time(1);
  const int turns = std::max(1, static_cast<int>(3e-3 / (time(1) * static_cast<double>(calls.size()))));
  double best = time(turns);
  for (int i = 0; i < 8; ++i) best = std::min(best, time(turns));
  return best;
}

Result measure(const Model& m, const Row& row, const Limits& limits) {
  Result result{m.name, row.name, "", row.bytes, row.flops, {}, {}};
  const std::size_t before = memory_stats().in_use;
  std::vector<Call> sets{row.make()};
  const std::size_t set = memory_stats().in_use - before;
  const auto timing = [&](double copy) {
    const double seconds = seconds_a_call(sets);
    return Timing{seconds, std::max(row.flops / limits.gemm, row.bytes / copy) / seconds};
  };
  result.warm = timing(2 * set < limits.cache_bytes ? limits.cache : limits.memory);
  if (row.bytes == 0) return result;
  result.bound = row.flops / limits.gemm > row.bytes / limits.memory ? "products" : "memory";
  const std::size_t wanted = std::clamp<std::size_t>(1 + 4 * limits.cache_bytes / set, 2, 1000);
  while (sets.size() < wanted) sets.push_back(row.make());
  result.cold = timing(limits.memory);
  return result;
}

std::string cells(const Result& r, const std::optional<Timing>& t) {
  if (!t) return fmt::format("{:>10} {:>14} {:>5}", "", "", "");
  const std::string time = fmt::format("{:>10.2f}", t->seconds * 1e6);
  if (r.bytes == 0) return time + fmt::format(" {:>14} {:>5}", "", "");
  const std::string rate = r.bound == "products" ? fmt::format("{:.0f} GFLOP/s", r.flops / t->seconds * 1e-9)
                                                 : fmt::format("{:.1f} GB/s", r.bytes / t->seconds * 1e-9);
  return time + fmt::format(" {:>14} {:>4.0f}%", rate, 100 * t->share);
}

std::string csv_line(const Result& r) {
  const auto numbers = [](const std::optional<Timing>& t) {
    return t ? fmt::format("{:.1f},{:.4f}", t->seconds * 1e9, t->share) : std::string(",");
  };
  return fmt::format("{},\"{}\",{},{:.0f},{:.0f},{},{}\n", r.model, r.name, r.bound, r.bytes, r.flops, numbers(r.cold),
                     numbers(r.warm));
}

struct Options {
  std::vector<std::string> models;
  std::string filter, csv;
  std::int64_t threads = 0;
};

// The limits are measured again for each model, because the speed of the memory changes on a shared machine.
Limits measure_limits() {
  const std::size_t cache = bench::last_level_cache(), small = std::max<std::size_t>(std::size_t{1} << 20, cache / 8);
  return {.cache_bytes = cache,
          .gemm = bench::gemm_speed(),
          .memory = bench::copy_speed(2 * cache),
          .cache = bench::copy_speed(small)};
}

void print_heading(const Model& m, const Limits& l) {
  lab::write_result(
      fmt::format("\n{}: batch {}, {} tokens, {} heads. Large products run at {:.0f} GFLOP/s, copies at {:.1f} GB/s "
                  "beyond the cache, {:.1f} in it\n"
                  "{:<38} {:<8}   {:>10} {:>14} {:>5}   {:>10} {:>14} {:>5}\n",
                  m.name, m.batch, m.tokens, m.heads, l.gemm * 1e-9, l.memory * 1e-9, l.cache * 1e-9, "kernel", "limit",
                  "cold us", "", "%", "warm us", "", "%"));
}

int measure_all(const Options& o) {
  set_num_threads(static_cast<int>(o.threads));
  lab::write_result(
      fmt::format("{}, cache of {} MiB\n"
                  "%: share of the limit, the slower of the operations at the speed of large products "
                  "and the\n"
                  "bytes (read and written) at the speed of copies. Above 100%, some operands stay in the cache\n",
                  cpu_description(), bench::last_level_cache() >> 20));
  if (!o.csv.empty()) write_output(o.csv, "");  // fails early if the file cannot be written
  std::string csv = "model,kernel,bound,bytes,flops,cold_ns,cold_share,warm_ns,warm_share\n";
  for (const Model& m : models) {
    if (std::ranges::find(o.models, m.name) == o.models.end()) continue;
    const Limits limits = measure_limits();
    print_heading(m, limits);
    for (const Row& row : rows_of(m)) {
      if (row.name.find(o.filter) == std::string::npos) continue;
      const Result r = measure(m, row, limits);
      lab::write_result(fmt::format("{:<38} {:<8}   {}   {}\n", r.name, r.bound, cells(r, r.cold), cells(r, r.warm)));
      csv += csv_line(r);
    }
  }
  if (!o.csv.empty()) write_output(o.csv, csv);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lab::exit_status([&] {
    Options o;
    std::vector<std::string> names;
    for (const Model& m : models) names.push_back(m.name);
    o.models = names;
    lab::Cli cli("bench_ops", "Times kernels, mostly of a training step, and compares them with the machine's limits.");
    cli.section("Measurement");
    cli.option("--models", &o.models, "Models whose shapes are used").one_of("model", names);
    cli.option("--filter", &o.filter, "Time only kernels whose name contains this text");
    cli.option("--threads", &o.threads, "CPU threads; 0: all").at_least(0);
    cli.option("--csv", &o.csv, "Also write the table to this file").path("FILE");
    cli.listing("--list", "Print the names of the kernels", [] {
      std::string text;
      for (const Row& row : rows_of(models[0])) text += row.name + "\n";
      return text;
    });
    cli.rule([&] {
      const std::vector<Row> rows = rows_of(models[0]);
      lab::usage_check(
          std::ranges::any_of(rows, [&](const Row& r) { return r.name.find(o.filter) != std::string::npos; }),
          "--filter '{}' matches no kernel; --list prints their names", o.filter);
    });
    cli.examples({"--filter linear --models dim192"});
    if (const std::optional<int> status = cli.parse(argc, argv)) return *status;
    return measure_all(o);
  });
}
