#include "experiments/lab/study/replay.h"

#include <algorithm>

#include "core/nearest.h"
#include "experiments/lab/cli/cli.h"
#include "experiments/lab/record/ledger.h"
#include "experiments/lab/train/run_body.h"

namespace plumb::lab {
namespace {

// Numbers of steps before and after the beginning of the divergence that are repeated in f64.
constexpr std::int64_t before = 10, after = 20;

}  // namespace

int replay(const TrialEnvironment& environment, const StudyFolder& folder,
           const std::function<std::string(const Point&)>& key, const std::function<void(Trial&)>& body) {
  const StudyOptions& o = environment.options;
  usage_check(o.dtype != NumberFormat::fp64, "--replay compares with f64, but this study already uses f64");
  const Ledger ledger(folder / Ledger::file_name);
  const Record* found = nullptr;
  std::vector<std::string> others;
  for (const LedgerEntry& e : ledger.entries()) {
    if (e.record.status != Status::diverged) continue;
    if (e.record.point.label() == o.replay && e.key == key(e.record.point)) found = &e.record;
    others.push_back(e.record.point.label());
  }
  usage_check(found, "--replay '{}': {} has no diverged trial of that name; {}", o.replay, folder.path().string(),
              others.empty() ? "none diverged" : suggest_name(o.replay, others));
  const double diverged = found->value("diverged_at");
  check(0 <= diverged && diverged < 1e15, "{}: expected the step of a divergence, got {:g}",
        (folder / Ledger::file_name).string(), diverged);
  const auto at = static_cast<std::int64_t>(diverged);
  const std::int64_t onset = found->diverges_from;
  std::string text = fmt::format("{}: recorded as diverged at step {}: {}\n", o.replay, at, found->reason);

  TrialState first(environment, found->point, key(found->point), 0);
  std::optional<TrialCheckpoint> from;
  if (std::filesystem::exists(first.checkpoint_file())) try {
      from = read_checkpoint(first.checkpoint_file());
      if (from->key != first.key || from->code != environment.code ||
          from->step > std::max<std::int64_t>(onset - before, 0))
        from.reset();
    } catch (const Error& e) {
      text += fmt::format("{}\n", e.what());
    }
  first.limits.leaves_files = false;
  first.limits.start_from = from ? &*from : nullptr;
  first.limits.capture_before = std::max<std::int64_t>(onset - before, 0);
  run_body(first, body);
  check(first.record.status != Status::failed, "{}: {}", o.replay, first.record.reason);
  check(first.limits.captured.has_value(), "the replay ended before step {}, which the recorded trial reached",
        first.limits.capture_before);
  const bool again = first.record.status == Status::diverged;
  text += fmt::format(
      "{} from step {}: {}\n", enum_name(o.dtype), from ? from->step : 0,
      again ? fmt::format("diverged at step {:.0f}: {}", first.record.value("diverged_at"), first.record.reason)
            : "did not diverge; the code or the machine differs from that of the recorded trial");

  const DefaultsScope f64({.dtype = DType::f64, .device = defaults().device});
  const PrecisionScope exact(Precision::f32);  // f32 means that nothing is rounded to bf16
  TrialState second(environment, found->point, first.key, 0);
  second.limits.leaves_files = false;
  second.limits.start_from = &*first.limits.captured;
  const std::int64_t last = std::min(at + 1 + after, second.options.steps);
  second.limits.stop_before = last;
  try {
    run_body(second, body);
  } catch (const TrialStopped& stopped) {
    if (stopped.why == TrialStopped::Why::interrupted) throw;
  }
  check(second.record.status != Status::failed, "{} in f64: {}", o.replay, second.record.reason);
  const bool survived = second.record.status != Status::diverged;
  text +=
      fmt::format("f64 from step {}: {}\n", first.limits.captured->step,
                  survived ? fmt::format("no divergence up to step {}, loss {:.4g}", second.record.steps - 1,
                                         second.last_loss.value_or(unknown))
                           : fmt::format("diverged at step {:.0f}, loss {:.4g}: {}", second.record.value("diverged_at"),
                                         second.last_loss.value_or(unknown), second.record.reason));
  if (again)
    text += survived ? fmt::format("numerical: the rounding of {} is the cause, as f64 does not diverge\n",
                                   enum_name(o.dtype))
                     : "dynamical: f64 diverges as well; check the recipe (learning rate, warm-up, "
                       "initial values)\n";
  write_result(text);
  return 0;
}

}  // namespace plumb::lab
