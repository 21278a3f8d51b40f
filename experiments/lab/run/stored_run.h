// Reads the description of a study that any program wrote, in a study folder or beside a kept ledger.
#pragma once

#include <filesystem>

#include "experiments/lab/record/study_description.h"

namespace plumb::lab {

// is_kept() returns whether the path is a ledger NAME.jsonl that `report --keep` has copied. description_of() returns
// the path of the description of such a ledger, NAME.json.
bool is_kept(const std::filesystem::path& path);
std::filesystem::path description_of(const std::filesystem::path& ledger);

// The description of a study folder or of a kept ledger. Throws UsageError if the description does not exist, and the
// errors of check_own_files() and check_plain() (files.h).
StudyDescription described(const std::filesystem::path& folder_or_ledger);

}  // namespace plumb::lab
