// Event files for TensorBoard, written without TensorBoard's libraries. A file consists of records in the TFRecord
// format of TensorFlow (length, masked CRC-32C, bytes, masked CRC-32C). A record is a tensorflow.Event in protobuf's
// wire format. Sources: https://www.tensorflow.org/tutorials/load_data/tfrecord, tensorflow/core/util/event.proto
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/record/record.h"

namespace plumb::lab {

// The CRC-32C checksum (Castagnoli), as in RFC 3720, appendix B.4.
std::uint32_t crc32c(std::string_view bytes);

// The event file of a trial. Each logged number is a scalar at its step. A number that was not finite is NaN. The
// values measured at the end of the trial are scalars named final/<name> at the last step. Wall times are interpolated
// linearly from 0.
std::string event_file(const Record& record);

// Writes tensorboard/<trial>/events.out.tfevents.0.plumb in the study folder for each record. Existing files are
// rewritten only if `again` is set.
void write_event_files(const std::filesystem::path& folder, const std::vector<Record>& records, bool again);

}  // namespace plumb::lab
