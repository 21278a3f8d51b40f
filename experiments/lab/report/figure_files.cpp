#include "experiments/lab/report/figure_files.h"

#include <set>
#include <string>

#include "core/atomic_file.h"
#include "experiments/lab/plot/draw.h"
#include "experiments/lab/run/files.h"

namespace plumb::lab {

namespace fs = std::filesystem;

void write_figures(const fs::path& run, const std::vector<Figure>& figures) {
  const fs::path folder = run / figures_name;
  const std::vector<std::string> former = figures_in(folder);
  if (figures.empty() && former.empty()) return;
  fs::create_directories(folder);
  const auto list = [&](const std::set<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += name + "\n";
    write_file_atomically(folder / figures_list, text);
  };
  std::set<std::string> written;
  for (const Figure& f : figures) written.insert({f.id + ".svg", f.id + ".csv"});
  std::set<std::string> all = written;
  all.insert(former.begin(), former.end());
  list(all);  // written before the figures, so that the folder never has a figure that is not listed
  for (const Figure& f : figures) {
    write_file_atomically(folder / (f.id + ".svg"), standalone(f.svg));
    write_file_atomically(folder / (f.id + ".csv"), f.csv);
  }
  for (const std::string& name : former)
    if (!written.contains(name)) fs::remove(folder / name);
  list(written);
}

}  // namespace plumb::lab
