// Event files for TensorBoard, written without it: records of TensorFlow's TFRecord format (length, masked CRC-32C,
// bytes, masked CRC-32C), each a tensorflow.Event in protobuf's wire format.
// https://www.tensorflow.org/tutorials/load_data/tfrecord, tensorflow/core/util/event.proto
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/record/record.h"

namespace plumb::lab {

// CRC-32C (Castagnoli), as in RFC 3720, B.4.
std::uint32_t crc32c(std::string_view bytes);

// The event file of a trial: each number that it logged as a scalar at its step, a value that was not finite as NaN;
// then what was measured of it at its end as final/<name>, at its last step. Times are those of an even pace from 0.
std::string event_file(const Record& record);

// tensorboard/<trial>/events.out.tfevents.0.plumb in the folder, for each record; those that are there stay as they are
// unless `again`.
void write_event_files(const std::filesystem::path& folder, const std::vector<Record>& records, bool again);

}  // namespace plumb::lab
