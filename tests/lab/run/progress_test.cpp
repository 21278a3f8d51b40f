#include "experiments/lab/run/progress.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <limits>
#include <memory>

#include "tests/support/catch.h"
#include "tests/support/text.h"

using namespace plumb::lab;
using plumb::test::contains;
using plumb::test::count;

namespace {

const ProgressState moment{.run = 3,
                           .runs = 24,
                           .label = "layerscale depth 48 seed 0",
                           .step = 50,
                           .steps = 200,
                           .loss = 1.2345,
                           .lr = 1e-3,
                           .steps_per_second = 38.2,
                           .seconds_left = 252,
                           .fraction = 0.5};
constexpr ProgressStyle ascii{.utf8 = false, .colour = false}, utf8{.utf8 = true, .colour = false};

// A sweep that writes its progress into a file. The test sets the time and the width of the terminal.
class Sweep {
 public:
  explicit Sweep(ProgressOutput::Mode mode,
                 std::vector<ProgressArm> trials = {{"pre depth 6", 6}, {"post depth 48", 48}}) {
    ProgressOutput output;
    output.file = file_;
    output.mode = mode;
    output.style = ascii;
    output.now = [this] { return time; };
    output.width = [this] { return width; };
    progress = std::make_unique<Progress>(std::move(trials), output);
  }
  ~Sweep() {
    progress.reset();
    std::fclose(file_);
  }

  // The text that was written since the last call of written().
  std::string written() {
    std::string text(static_cast<std::size_t>(std::ftell(file_)) - read_, '\0');
    const ssize_t got = ::pread(::fileno(file_), text.data(), text.size(), static_cast<off_t>(read_));
    REQUIRE(got == static_cast<ssize_t>(text.size()));
    read_ += text.size();
    return text;
  }

  double time = 100;
  int width = 120;
  std::unique_ptr<Progress> progress;

 private:
  std::FILE* file_ = std::tmpfile();
  std::size_t read_ = 0;
};

}  // namespace

TEST_CASE("the bar shows every field if there is enough space", "[experiments]") {
  CHECK(progress_bar(moment, 117, ascii) ==
        " 3/24  layerscale depth 48 seed 0  [##########          ]  step  50/200  loss 1.234  lr 1.0e-03  38 steps/s  "
        "ETA 4:12");
  CHECK_THAT(progress_bar(moment, 117, utf8), contains("▕██████████          ▏"));
}

TEST_CASE("a narrow terminal loses the least important fields first", "[experiments]") {
  CHECK(progress_bar(moment, 77, ascii) ==
        " 3/24  layerscale depth 48 seed 0  [##  ]  step  50/200  loss 1.234  ETA 4:12");
  CHECK(progress_bar(moment, 76, ascii) == " 3/24  layerscale depth 48 seed 0  step  50/200  loss 1.234  ETA 4:12");
  CHECK(progress_bar(moment, 60, ascii) == " 3/24  layerscale depth 48 seed 0  loss 1.234  ETA 4:12");
  CHECK(progress_bar(moment, 40, ascii) == " 3/24  layerscale depth 48..  loss 1.234");
  CHECK(progress_bar(moment, 40, utf8) == " 3/24  layerscale depth 48 …  loss 1.234");
  CHECK(progress_bar(moment, 20, ascii) == " 3/24  layerscale ..");
}

TEST_CASE("the bar fits every width", "[experiments]") {
  for (const bool colour : {false, true})
    for (const bool has_utf8 : {false, true})
      for (int width = 0; width <= 200; ++width) {
        ProgressState s = moment;
        s.fraction = width / 200.0;
        const std::string bar = progress_bar(s, width, {.utf8 = has_utf8, .colour = colour});
        CAPTURE(width, bar);
        REQUIRE(display_width(bar) <= width);
        REQUIRE(bar.find('\n') == std::string::npos);
        if (width >= 20) REQUIRE_THAT(bar, contains("3/24"));
      }
}

TEST_CASE("colour changes no text and the ASCII style uses only ASCII", "[experiments]") {
  const std::string plain = progress_bar(moment, 120, utf8),
                    coloured = progress_bar(moment, 120, {.utf8 = true, .colour = true});
  CHECK(display_width(plain) == display_width(coloured));
  CHECK(plain.find('\033') == std::string::npos);
  CHECK(coloured.find('\033') != std::string::npos);
  for (const char c : progress_bar(moment, 100, ascii)) CHECK(static_cast<unsigned char>(c) < 128);
}

TEST_CASE("a complete sweep fills the bar and a fraction out of range does no harm", "[experiments]") {
  ProgressState s = moment;
  s.fraction = 1;
  CHECK_THAT(progress_bar(s, 117, ascii), contains("[####################]"));
  CHECK_THAT(progress_bar(s, 117, utf8), contains("▕████████████████████▏"));
  for (const double fraction : {-1.0, 2.0}) {
    s.fraction = fraction;
    CHECK(display_width(progress_bar(s, 120, utf8)) <= 120);
  }
}

TEST_CASE("a huge or non-finite loss takes little space", "[experiments]") {
  ProgressState s = moment;
  s.loss = 1.5e30;
  CHECK_THAT(progress_line(s), contains("loss 1.5e+30"));
  for (const double value : {std::nan(""), -std::nan(""), std::numeric_limits<double>::infinity()}) {
    s.loss = value;
    CHECK_THAT(progress_line(s), contains("loss not finite") && !contains("nan") && !contains("inf "));
  }
  s.loss.reset();
  CHECK_THAT(progress_line(s), !contains("loss"));
}

TEST_CASE("durations have the format of a clock", "[experiments]") {
  CHECK(duration(0) == "0 s");
  CHECK(duration(59.4) == "59 s");
  CHECK(duration(59.6) == "1:00");
  CHECK(duration(3599.6) == "1:00:00");
  CHECK(duration(3753) == "1:02:33");
  CHECK(duration(-5) == "0 s");
}

TEST_CASE("a finished trial has a mark in every style", "[experiments]") {
  CHECK(finished_line(true, "pre", "loss 1", 24, utf8) == "✓ pre  loss 1  24 s");
  CHECK(finished_line(false, "pre", "diverged at step 12", 3, utf8) == "✗ pre  diverged at step 12  3 s");
  CHECK(finished_line(true, "pre", "loss 1", 24, ascii) == "ok   pre  loss 1  24 s");
  CHECK(finished_line(false, "pre", "loss 1", 24, ascii) == "FAIL pre  loss 1  24 s");
}

TEST_CASE("the bar is redrawn at most ten times a second and removed at the end", "[experiments]") {
  Sweep sweep(ProgressOutput::Mode::bar);
  sweep.progress->begin(0, 1000);
  for (int i = 1; i <= 1000; ++i) {
    sweep.time += 0.001;
    sweep.progress->step(0, i, 1, 1e-3);
  }
  const std::size_t drawn = count(sweep.written(), "\r");
  CHECK(drawn >= 9);
  CHECK(drawn <= 11);
  sweep.progress->finish(0, true, "loss 1.000");
  CHECK(sweep.written() == "\r\033[Kok   pre depth 6    loss 1.000  1 s\n");
  sweep.progress->begin(1, 10);
  sweep.written();
  sweep.progress.reset();
  CHECK(sweep.written() == "\r\033[K");
}

TEST_CASE("all rows of a bar that a narrower terminal wrapped are removed", "[experiments]") {
  Sweep sweep(ProgressOutput::Mode::bar);
  sweep.width = 70;
  sweep.progress->begin(0, 100);
  sweep.written();
  sweep.time += 1;
  sweep.progress->step(0, 50, 1, 1e-3);
  const int columns = display_width(sweep.written()) - 1;  // - 1 for the leading \r
  REQUIRE(columns > 60);
  REQUIRE(columns <= 67);
  sweep.width = 30;
  sweep.time += 1;
  sweep.progress->step(0, 60, 1, 1e-3);
  CHECK_THAT(sweep.written(), contains("\033[2A\r\033[J"));
}

TEST_CASE("without a terminal a plain line appears every ten seconds and at the end of each trial", "[experiments]") {
  Sweep sweep(ProgressOutput::Mode::lines);
  sweep.progress->begin(0, 100);
  for (int i = 1; i <= 35; ++i) {
    sweep.time += 1;
    sweep.progress->step(0, i, 1, 1e-3);
  }
  const std::string log = sweep.written();
  CHECK(count(log, "\n") == 3);
  CHECK_THAT(log, contains("1/2  pre depth 6  step  10/100  loss 1.000  lr 1.0e-03  1.00 steps/s  ETA 14:50\n"));
  sweep.progress->finish(0, false, "diverged at step 35");
  CHECK(sweep.written() == "FAIL pre depth 6    diverged at step 35  35 s\n");
  CHECK(log.find_first_of("\r\033") == std::string::npos);
}

TEST_CASE("the option --no-progress shows only finished trials and notes", "[experiments]") {
  Sweep sweep(ProgressOutput::Mode::finished);
  sweep.progress->begin(0, 100);
  sweep.time += 60;
  sweep.progress->step(0, 50, 1, 1e-3);
  CHECK(sweep.written().empty());
  sweep.progress->note("a note");
  sweep.progress->finish(0, true, "loss 1");
  CHECK(sweep.written() == "a note\nok   pre depth 6    loss 1  1:00\n");
}

TEST_CASE("the time left weighs trials by cost and counts only the steps that were taken", "[experiments]") {
  Sweep sweep(ProgressOutput::Mode::lines, {{"a", 10}, {"b", 30}, {"c", 40}, {"d", 20}});
  sweep.progress->skip(0);
  sweep.progress->begin(1, 100);
  sweep.time += 15;
  sweep.progress->step(1, 50, 1, 1e-3);  // a cost of 15 took 15 s; costs of 15, 40 and 20 remain
  CHECK_THAT(sweep.written(), contains("2/4  b") && contains("ETA 1:15"));
  sweep.progress->finish(1, false, "diverged at step 50");
  sweep.progress->begin(2, 100);
  sweep.time += 20;
  sweep.progress->step(2, 50, 1, 1e-3);  // a cost of 35 took 35 s; costs of 20 and 20 remain
  CHECK_THAT(sweep.written(), contains("3/4  c") && contains("ETA 40 s"));
}

TEST_CASE("stderr in a file gets lines without colour", "[experiments]") {
  const int saved = ::dup(STDERR_FILENO), null = ::open("/dev/null", O_WRONLY);
  ::dup2(null, STDERR_FILENO);
  const ProgressOutput output = ProgressOutput::standard_error(false), quiet = ProgressOutput::standard_error(true);
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  ::close(null);
  CHECK(output.mode == ProgressOutput::Mode::lines);
  CHECK_FALSE(output.style.colour);
  CHECK(quiet.mode == ProgressOutput::Mode::finished);
}

TEST_CASE("on a terminal the style depends on TERM and NO_COLOR and the locale", "[experiments]") {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0)
    PLUMB_SKIP("this system has no pseudo terminal");
  const int screen = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY), saved = ::dup(STDERR_FILENO);
  const auto seen = [&](const char* term, const char* no_color, const char* locale) {
    ::setenv("TERM", term, 1);
    ::setenv("NO_COLOR", no_color, 1);
    ::setenv("LC_ALL", locale, 1);
    ::dup2(screen, STDERR_FILENO);
    const ProgressOutput output = ProgressOutput::standard_error(false);
    ::dup2(saved, STDERR_FILENO);
    return output;
  };
  const std::string term = getenv("TERM") ? getenv("TERM") : "", locale = getenv("LC_ALL") ? getenv("LC_ALL") : "";
  const ProgressOutput rich = seen("xterm", "", "C.UTF-8"), plain = seen("xterm", "1", "C"),
                       dumb = seen("dumb", "", "C");
  ::setenv("TERM", term.c_str(), 1);
  ::setenv("LC_ALL", locale.c_str(), 1);
  ::unsetenv("NO_COLOR");
  for (const int fd : {terminal, screen, saved}) ::close(fd);

  CHECK(rich.mode == ProgressOutput::Mode::bar);
  CHECK((rich.style.colour && rich.style.utf8));
  CHECK(plain.mode == ProgressOutput::Mode::bar);
  CHECK_FALSE((plain.style.colour || plain.style.utf8));
  CHECK(dumb.mode == ProgressOutput::Mode::lines);
  CHECK_FALSE(dumb.style.colour);
}

TEST_CASE("with several running trials the bar shows the oldest and the number of others") {
  Sweep sweep(ProgressOutput::Mode::bar, {{"a", 10}, {"b", 10}, {"c", 20}});
  sweep.progress->begin(0, 10);
  sweep.progress->begin(1, 10);
  sweep.time += 10;
  sweep.progress->step(1, 10, 1, 1e-3);
  sweep.time += 10;
  sweep.progress->step(0, 5, 2, 1e-3);
  const std::string both = sweep.written();
  CHECK_THAT(both, contains("2/3  a (+1)") && contains("loss 2"));
  CHECK_THAT(both, contains("ETA 33 s"));  // a cost of 15 took 20 s; a cost of 25 remains
  sweep.progress->finish(0, true, "loss 2");
  CHECK_THAT(sweep.written(), contains("ok   a  loss 2  20 s\n") && contains("2/3  b"));
  sweep.progress->finish(1, true, "loss 1");
  const std::size_t late = sweep.progress->add({"d", 1});
  sweep.progress->begin(late, 10);
  sweep.progress->goes_on(late, 4);  // the trial continues from a checkpoint
  sweep.time += 3;
  sweep.progress->step(late, 7, 1, 1e-3);
  CHECK_THAT(sweep.written(), contains("3/4  d") && contains("1.00 steps/s"));
}
