#include "experiments/vision/data/image_file.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <span>
#include <string_view>

// The headers of libjpeg need FILE and size_t, so <cstdio> must come first. The error codes of libjpeg are in the
// separate header jerror.h.
#include <jpeglib.h>
// clang-format off
#include <jerror.h>
// clang-format on
#include <png.h>

#include "core/error.h"
#include "experiments/lab/data/input_file.h"

namespace plumb::vision {
namespace {

using Bytes = std::vector<std::uint8_t>;

// The limits of a file. A complete PNG or Huffman-coded JPEG cannot exceed the limits per byte: deflate expands a byte
// to at most 1032 bytes, which are 8256 pixels of one bit, and a block of 8 x 8 pixels of a JPEG takes at least one
// bit. The memory is about 12 bytes for each of most_pixels.
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 29;          // of the file
constexpr std::int64_t most_png_pixels_per_byte = 8256;               // of the file
constexpr std::int64_t most_jpeg_pixels_per_byte = 512;               // of the file; Huffman codes, no arithmetic codes
constexpr int most_scans = 100;                                       // of a JPEG; progressive files have about 10
constexpr std::int64_t most_pixels_in_scans = std::int64_t{1} << 30;  // of a JPEG, in all its scans: some seconds

enum class Kind { png, jpeg };

Kind kind_of(const std::string& path, std::span<const std::uint8_t> first) {
  if (first.size() >= 8 && png_sig_cmp(first.data(), 0, 8) == 0) return Kind::png;
  check(first.size() >= 3 && first[0] == 0xff && first[1] == 0xd8 && first[2] == 0xff,
        "{}: expected a PNG or JPEG file, got other bytes", path);
  return Kind::jpeg;
}

void check_size(const std::string& path, std::int64_t height, std::int64_t width, std::int64_t bytes,
                std::int64_t most_per_byte) {
  check(height > 0 && width > 0 && height <= most_pixels && width <= most_pixels && height * width <= most_pixels,
        "{}: expected at most {} pixels, got a header with {} x {}", path, most_pixels, width, height);
  check(height * width <= bytes * most_per_byte,
        "{}: expected at most {} pixels in a file of {} bytes, got a header with {} x {}: the file is cut off or its "
        "header is wrong",
        path, bytes * most_per_byte, bytes, width, height);
}

// Converts rows [height, width, step] to an image [3, height, width]. Only the first three of the `step` values of a
// pixel are used.
Pixels by_channel(const Bytes& rows, std::int64_t height, std::int64_t width, std::int64_t step) {
  Pixels image{3, height, width, Bytes(static_cast<std::size_t>(3 * height * width))};
  for (std::int64_t c = 0; c < 3; ++c) {
    std::uint8_t* plane = image.plane(c);
    for (std::int64_t i = 0; i < height * width; ++i) plane[i] = rows[static_cast<std::size_t>(step * i + c)];
  }
  return image;
}

// The state of libpng. An error handler of libpng must not return, so the handler calls longjmp.
struct PngReader {
  explicit PngReader(std::span<const std::uint8_t> file) : rest(file) {}
  PngReader(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }

  png_structp png = nullptr;
  png_infop info = nullptr;
  std::jmp_buf back;
  char message[256] = "out of memory";  // libpng gives no message if it cannot allocate its own structures
  std::span<const std::uint8_t> rest;   // bytes of the file that are not read yet
};

extern "C" {
[[noreturn]] void leave_png(png_structp png, png_const_charp message) {
  auto* reader = static_cast<PngReader*>(png_get_error_ptr(png));
  std::snprintf(reader->message, sizeof reader->message, "%s", message);
  std::longjmp(reader->back, 1);
}
void ignore_warning(png_structp, png_const_charp) {}
void take_png(png_structp png, png_bytep to, std::size_t count) {
  auto* reader = static_cast<PngReader*>(png_get_io_ptr(png));
  if (count > reader->rest.size()) png_error(png, "the file ends too soon");
  std::copy_n(reader->rest.begin(), count, to);
  reader->rest = reader->rest.subspan(count);
}
}

// read_png_header() and read_png_rows() have no objects with destructors, because longjmp would skip the destructors.
// Both functions write only to objects of the caller. Both functions return false on an error, with the reason in
// reader.message.
bool read_png_header(PngReader& reader) {
  if (setjmp(reader.back)) return false;
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, leave_png, ignore_warning);
  if (!reader.png) return false;
  reader.info = png_create_info_struct(reader.png);
  if (!reader.info) return false;
  png_set_benign_errors(reader.png, 1);
  // Only the chunks of pixels, palette and transparency are read. libpng would decompress 8 MB for each text or
  // profile.
  png_set_keep_unknown_chunks(reader.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_read_fn(reader.png, &reader, take_png);
  png_read_info(reader.png, reader.info);
  return true;
}

// Reads rows of three channels. The function does not request gamma correction, so libpng ignores any colour space that
// the file names.
bool read_png_rows(PngReader& reader, Bytes& rows) {
  if (setjmp(reader.back)) return false;
  const png_structp png = reader.png;
  png_set_strip_16(png);
  png_set_expand(png);
  png_set_gray_to_rgb(png);
  png_set_strip_alpha(png);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, reader.info);
  const std::size_t height = png_get_image_height(png, reader.info),
                    row_bytes = std::size_t{3} * png_get_image_width(png, reader.info);
  if (png_get_rowbytes(png, reader.info) != row_bytes) png_error(png, "expected rows of three channels");
  rows.resize(height * row_bytes);
  for (int pass = 0; pass < passes; ++pass)
    for (std::size_t row = 0; row < height; ++row) png_read_row(png, rows.data() + row * row_bytes, nullptr);
  return true;
}

Pixels read_png(const std::string& path, const Bytes& file) {
  PngReader reader(file);
  check(read_png_header(reader), "{}: the PNG cannot be read: {}", path, reader.message);
  const std::int64_t height = png_get_image_height(reader.png, reader.info),
                     width = png_get_image_width(reader.png, reader.info);
  check_size(path, height, width, std::ssize(file), most_png_pixels_per_byte);
  Bytes rows;
  check(read_png_rows(reader, rows), "{}: the PNG is damaged or cut off: {}", path, reader.message);
  return by_channel(rows, height, width, 3);
}

// The error state of libjpeg. An error handler of libjpeg must not return, so the handler calls longjmp. The longjmp
// must not skip any destructor.
struct JpegErrors : jpeg_error_mgr {
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
  bool cut_off;
};

extern "C" {
[[noreturn]] void leave_jpeg(j_common_ptr decoder) {
  auto* errors = static_cast<JpegErrors*>(decoder->err);
  errors->format_message(decoder, errors->message);
  std::longjmp(errors->back, 1);
}
// Ignores warnings about damaged data, as in Pillow, because ImageNet contains such files. Only the warning about a
// file that is cut off is recorded.
void note_jpeg(j_common_ptr decoder, int level) {
  auto* errors = static_cast<JpegErrors*>(decoder->err);
  if (level < 0 && errors->msg_code == JWRN_JPEG_EOF) errors->cut_off = true;
}
// Refuses a JPEG file with too many scans, because each scan takes the time of all pixels.
void count_scans(j_common_ptr decoder) {
  auto* errors = static_cast<JpegErrors*>(decoder->err);
  const auto* image = reinterpret_cast<j_decompress_ptr>(decoder);
  const std::int64_t pixels = std::int64_t{image->image_height} * image->image_width,
                     most = std::min<std::int64_t>(most_scans, most_pixels_in_scans / pixels);
  if (image->input_scan_number <= most) return;
  std::snprintf(errors->message, sizeof errors->message, "expected at most %d scans of %u x %u pixels, got more",
                static_cast<int>(most), image->image_width, image->image_height);
  std::longjmp(errors->back, 1);
}
}

// The decoded rows of a JPEG. The rows have 3 channels, or 4 channels if the file is in CMYK.
struct JpegRows {
  std::int64_t height = 0, width = 0, channels = 0;
  Bytes bytes = {};
};
enum class JpegEnd { whole, cut_off, failed, too_large };

// Decodes a JPEG into `rows`. This function has no objects with destructors, which longjmp would skip.
JpegEnd decode_jpeg(const Bytes& file, JpegErrors& errors, JpegRows& rows) {
  jpeg_decompress_struct decoder{};
  jpeg_progress_mgr progress{};
  decoder.err = jpeg_std_error(&errors);
  errors.error_exit = leave_jpeg, errors.emit_message = note_jpeg, errors.cut_off = false, errors.message[0] = '\0';
  progress.progress_monitor = count_scans;
  if (setjmp(errors.back)) {
    jpeg_destroy_decompress(&decoder);
    return JpegEnd::failed;
  }
  jpeg_create_decompress(&decoder);
  decoder.progress = &progress;
  jpeg_mem_src(&decoder, file.data(), static_cast<unsigned long>(file.size()));
  jpeg_read_header(&decoder, TRUE);
  const bool four = decoder.jpeg_color_space == JCS_CMYK || decoder.jpeg_color_space == JCS_YCCK;
  rows.height = decoder.image_height, rows.width = decoder.image_width, rows.channels = four ? 4 : 3;
  if (rows.height * rows.width > std::min(most_pixels, std::ssize(file) * most_jpeg_pixels_per_byte)) {
    jpeg_destroy_decompress(&decoder);
    return JpegEnd::too_large;
  }
  decoder.out_color_space = four ? JCS_CMYK : JCS_RGB;
  rows.bytes.resize(static_cast<std::size_t>(rows.height * rows.width * rows.channels));
  jpeg_start_decompress(&decoder);
  while (decoder.output_scanline < decoder.output_height) {
    JSAMPROW row = rows.bytes.data() + static_cast<std::size_t>(decoder.output_scanline) *
                                           static_cast<std::size_t>(rows.width * rows.channels);
    jpeg_read_scanlines(&decoder, &row, 1);
  }
  jpeg_finish_decompress(&decoder);
  jpeg_destroy_decompress(&decoder);
  return errors.cut_off ? JpegEnd::cut_off : JpegEnd::whole;
}

// Converts CMYK to RGB as in Pillow. The bytes of the file are 255 minus the amount of each ink.
void cmyk_to_rgb(Bytes& bytes) {
  const auto product = [](int a, int b) {  // a b / 255, rounded
    const int p = a * b + 128;
    return ((p >> 8) + p) >> 8;
  };
  for (std::size_t i = 0; i < bytes.size(); i += 4) {
    const int white = bytes[i + 3];
    for (std::size_t c = 0; c < 3; ++c)
      bytes[i + c] = static_cast<std::uint8_t>(std::max(0, white - product(255 - bytes[i + c], white)));
  }
}

Pixels read_jpeg(const std::string& path, const Bytes& file) {
  JpegErrors errors;
  JpegRows rows;
  switch (decode_jpeg(file, errors, rows)) {
    case JpegEnd::failed:
      fail(fmt::format("{}: the JPEG cannot be read: {}", path, errors.message));
    case JpegEnd::too_large:
      check_size(path, rows.height, rows.width, std::ssize(file), most_jpeg_pixels_per_byte);
      break;
    case JpegEnd::cut_off:
      fail(fmt::format("{}: the JPEG is cut off", path));
    case JpegEnd::whole:
      break;
  }
  if (rows.channels == 4) cmyk_to_rgb(rows.bytes);
  return by_channel(rows.bytes, rows.height, rows.width, rows.channels);
}

Bytes bytes_of(const std::string& path) {
  InputFile file(path);
  check(file.size().value_or(0) <= most_bytes, "{}: expected at most {} bytes, got {}", path, most_bytes,
        file.size().value_or(0));
  check(file.size().has_value(), "{}: expected a PNG or JPEG file, got a gzip file", path);
  Bytes bytes;
  file.append(bytes, *file.size(), "the image");
  return bytes;
}

// The value of the tag Orientation in the first directory of TIFF data, or 1.
int orientation_in(std::span<const std::uint8_t> tiff) {
  if (tiff.size() < 8) return 1;
  const bool little = tiff[0] == 'I';
  const auto number = [&](std::size_t at, std::size_t bytes) {  // 0 if it is beyond the data
    std::size_t value = 0;
    for (std::size_t i = 0; at + bytes <= tiff.size() && i < bytes; ++i)
      value = value << 8 | tiff[at + (little ? bytes - 1 - i : i)];
    return value;
  };
  const std::size_t directory = number(4, 4), entries = number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + 12 * i;
    if (number(entry, 2) != 0x112) continue;
    const std::size_t value = number(entry + 8, 2);
    return 1 <= value && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

// The state of libpng's simplified interface, which writes a picture in one call.
struct PngImage : png_image {
  PngImage() : png_image{} { version = PNG_IMAGE_VERSION; }
  PngImage(const PngImage&) = delete;
  ~PngImage() { png_image_free(this); }
};

}  // namespace

Pixels read_image(const std::string& path) {
  const Bytes file = bytes_of(path);
  return kind_of(path, file) == Kind::jpeg ? read_jpeg(path, file) : read_png(path, file);
}

int exif_orientation(const std::string& path) {
  InputFile input(path);
  Bytes start(1 << 16);
  start.resize(input.read(start));
  const std::span<const std::uint8_t> file = start;
  if (file.size() < 2 || file[0] != 0xff || file[1] != 0xd8) return 1;
  // A segment has the bytes ff and its kind, two bytes with its length, which counts itself, and its content.
  constexpr std::string_view name("Exif\0\0", 6);
  for (std::size_t at = 2; at + 4 <= file.size() && file[at] == 0xff && file[at + 1] != 0xda;) {
    const std::size_t length = file[at + 2] * std::size_t{256} + file[at + 3];
    const auto content = file.subspan(at + 4, std::min(std::max<std::size_t>(length, 2) - 2, file.size() - at - 4));
    if (file[at + 1] == 0xe1 && content.size() >= name.size() && std::equal(name.begin(), name.end(), content.begin()))
      return orientation_in(content.subspan(name.size()));
    at += 2 + length;
  }
  return 1;
}

std::string png(const Pixels& image) {
  check(image.channels == 1 || image.channels == 3, "[png] expected 1 or 3 channels, got {}", image.channels);
  Bytes rows(image.bytes.size());
  for (std::int64_t c = 0; c < image.channels; ++c)
    for (std::int64_t i = 0; i < image.height * image.width; ++i)
      rows[static_cast<std::size_t>(image.channels * i + c)] = image.plane(c)[i];
  PngImage out;
  out.height = static_cast<png_uint_32>(image.height), out.width = static_cast<png_uint_32>(image.width);
  out.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(out);
  std::string bytes(size, '\0');
  check(png_image_write_to_memory(&out, bytes.data(), &size, 0, rows.data(), 0, nullptr) != 0,
        "[png] libpng cannot write the image: {}", out.message);
  bytes.resize(size);
  return bytes;
}

}  // namespace plumb::vision
