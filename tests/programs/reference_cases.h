// The cases with answers of PyTorch and timm that lie outside the repository and follow the rules of today.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "tests/support/paths.h"

namespace plumb::test {

// Links the cases into `folder`; false if there are none.
inline bool link_reference_cases(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  // In these two cases, rows without an allowed key are not 0, as they are now under every rule for empty rows.
  static const std::set<std::string> of_another_rule{"attention_dropkey_keep_all.safetensors",
                                                     "attention_dropkey_paper.safetensors"};
  const fs::path cases = outside_data() / "reference/cases";
  if (!fs::exists(cases)) return false;
  for (const fs::directory_entry& entry : fs::directory_iterator(cases))
    if (const std::string name = entry.path().filename().string(); !of_another_rule.contains(name))
      fs::create_symlink(fs::canonical(entry.path()), folder / name);
  return true;
}

}  // namespace plumb::test
