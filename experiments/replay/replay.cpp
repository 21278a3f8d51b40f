// replay DIR 'TRIAL': repeats the end of a diverged trial (lab/study/replay.h).
#include "experiments/programs.h"

#include <string>
#include <vector>

#include "experiments/lab/cli/cli.h"
#include "experiments/lab/run/stored_run.h"
#include "experiments/studies.h"

int plumb::lab::replay(int argc, const char* const* argv) {
  return exit_status([&] {
    std::vector<std::string> words;
    std::string program;
    Cli cli(
        "replay",
        "Repeats the end of a diverged trial, in its number format and in f64. Reports which op and module failed "
        "first, and whether the cause is numerical (f64 does not diverge) or dynamical. TRIAL is a trial's name, as "
        "--dry-run prints it.");
    cli.words("DIR TRIAL", &words);
    declare_program(cli, program);
    cli.examples({"runs/sweep 'pre depth 48 lr 0.001 seed 0'"});
    if (const std::optional<int> status = cli.parse(argc, argv)) return *status;
    usage_check(words.size() == 2, "expected {} DIR 'TRIAL', got {} word{}; see --help", cli.program(), words.size(),
                words.size() == 1 ? "" : "s");
    return call_study(words[0], words[0], described(words[0]), program, {"--replay", words[1]});
  });
}
