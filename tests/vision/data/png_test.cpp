// Tests of PNG files of every kind against the values that Pillow reads. The tests write the files.
// tests/golden/make_images.py writes the same images for Pillow.
#include <cstdio>
#include <ctime>

#include "experiments/vision/data/image_file.h"
#include "nn/io/safetensors.h"
#include "tests/support/called.h"
#include "tests/vision/data/data_files.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;

namespace {

constexpr std::size_t image_height = 13, image_width = 21;

enum ColourType : std::uint8_t { grey = 0, rgb = 2, palette = 3, grey_alpha = 4, rgb_alpha = 6 };

struct Kind {
  std::string name;  // the key of this image in the file of Pillow's values
  ColourType type;
  std::size_t channels, bits;

  std::size_t row_bytes(std::size_t pixels) const { return (pixels * channels * bits + 7) / 8; }
  // The pixels, row by row. Each row begins with a new byte.
  Bytes pixels() const { return some_pixels(image_height * row_bytes(image_width), 1); }
};

std::vector<Kind> kinds() {
  std::vector<Kind> all;
  for (const std::size_t bits : {1, 2, 4, 8, 16}) all.push_back({fmt::format("grey {}", bits), grey, 1, bits});
  for (const std::size_t bits : {8, 16}) all.push_back({fmt::format("rgb {}", bits), rgb, 3, bits});
  for (const std::size_t bits : {1, 2, 4, 8}) all.push_back({fmt::format("palette {}", bits), palette, 1, bits});
  for (const std::size_t bits : {8, 16}) all.push_back({fmt::format("grey alpha {}", bits), grey_alpha, 2, bits});
  for (const std::size_t bits : {8, 16}) all.push_back({fmt::format("rgb alpha {}", bits), rgb_alpha, 4, bits});
  return all;
}

// The options of the written file.
struct Form {
  bool interlaced = false, transparent = false;  // Adam7 interlacing; with a tRNS chunk
  bool colour_spaces = false;                    // with chunks that name colour spaces other than sRGB
  bool broken_note = false;                      // with a text chunk whose wrong checksum makes libpng warn
};

void put_number(Bytes& out, std::size_t value, int bytes = 4) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(value >> shift));
}

void put_chunk(Bytes& out, const std::string& name, const Bytes& data, bool damaged = false) {
  put_number(out, data.size());
  Bytes checked(name.begin(), name.end());
  checked.insert(checked.end(), data.begin(), data.end());
  out.insert(out.end(), checked.begin(), checked.end());
  put_number(out, ::crc32(0, checked.data(), static_cast<uInt>(checked.size())) ^ (damaged ? 1u : 0u));
}

Bytes deflated(const Bytes& data) {
  uLongf size = ::compressBound(static_cast<uLong>(data.size()));
  Bytes out(size);
  REQUIRE(::compress(out.data(), &size, data.data(), static_cast<uLong>(data.size())) == Z_OK);
  out.resize(size);
  return out;
}

// Appends the lines of one pass of interlacing. A line has the filter byte 0 and then every dx-th pixel from the column
// `left` on. The pass has every dy-th row from the row `top` on.
void put_lines(Bytes& out, const Kind& kind, const Bytes& pixels, std::size_t left, std::size_t top, std::size_t dx,
               std::size_t dy) {
  if (left >= image_width) return;
  const std::size_t depth = kind.channels * kind.bits;
  for (std::size_t y = top; y < image_height; y += dy) {
    out.push_back(0);
    const std::size_t line = out.size();
    out.resize(line + kind.row_bytes((image_width - left + dx - 1) / dx));
    std::size_t to = 0;
    for (std::size_t x = left; x < image_width; x += dx)
      for (std::size_t bit = 0; bit < depth; ++bit, ++to) {
        const std::size_t from = x * depth + bit;
        const int value = pixels[y * kind.row_bytes(image_width) + from / 8] >> (7 - from % 8) & 1;
        out[line + to / 8] = static_cast<std::uint8_t>(out[line + to / 8] | value << (7 - to % 8));
      }
  }
}

// The tRNS chunk of an image. The chunk makes the colour of the first pixel transparent, or gives each palette colour
// an opacity.
Bytes transparency(const Kind& kind, const Bytes& pixels, std::size_t colours) {
  if (kind.type == palette) return some_pixels(colours, 3);
  Bytes chunk;
  for (std::size_t c = 0; c < kind.channels; ++c)
    put_number(chunk, kind.bits == 16 ? pixels[2 * c] * 256u + pixels[2 * c + 1] : pixels[c] >> (8 - kind.bits), 2);
  return chunk;
}

Bytes png_file(const Kind& kind, const Form& form) {
  const Bytes pixels = kind.pixels();
  // An image of 8 bits uses more colours than this palette has.
  const std::size_t colours = std::min<std::size_t>(1u << kind.bits, 200);
  Bytes file{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, header, lines;
  put_number(header, image_width);
  put_number(header, image_height);
  for (const std::size_t byte :
       {kind.bits, std::size_t{kind.type}, std::size_t{0}, std::size_t{0}, std::size_t{form.interlaced}})
    put_number(header, byte, 1);
  put_chunk(file, "IHDR", header);
  if (form.colour_spaces) {
    Bytes gamma, primaries;
    put_number(gamma, 100'000);
    for (const std::size_t coordinate : {31'270, 32'900, 70'800, 29'200, 17'000, 79'700, 13'100, 4'600})
      put_number(primaries, coordinate);
    put_chunk(file, "gAMA", gamma);
    put_chunk(file, "cHRM", primaries);
  }
  if (form.broken_note) put_chunk(file, "tEXt", {'a', 0, 'b'}, true);
  if (kind.type == palette) put_chunk(file, "PLTE", some_pixels(3 * colours, 2));
  if (form.transparent) put_chunk(file, "tRNS", transparency(kind, pixels, colours));
  if (form.interlaced) {
    constexpr std::size_t passes[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                          {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    for (const auto& [left, top, dx, dy] : passes) put_lines(lines, kind, pixels, left, top, dx, dy);
  } else {
    put_lines(lines, kind, pixels, 0, 0, 1, 1);
  }
  put_chunk(file, "IDAT", deflated(lines));
  put_chunk(file, "IEND", {});
  return file;
}

// The expected values: the values of Pillow, except for grey of 16 bits. Pillow clips 16-bit grey to 255, so the
// expected values are the high bytes instead.
Bytes expected_bytes(const Kind& kind, bool transparent) {
  if (kind.name == "grey 16") {
    const Bytes pixels = kind.pixels();
    Bytes all;
    for (int c = 0; c < 3; ++c)
      for (std::size_t i = 0; i < image_height * image_width; ++i) all.push_back(pixels[2 * i]);
    return all;
  }
  static const nn::TensorFile file =
      nn::read_safetensors(test::source_dir() + "/tests/golden/images/expected.safetensors");
  const bool by_chunk = transparent && (kind.type == grey || kind.type == rgb || kind.type == palette);
  const Array& array = file.tensors.at(kind.name + (by_chunk ? " chunk" : "")).array();
  const std::uint8_t* bytes = array.data<std::uint8_t>();
  return {bytes, bytes + array.numel()};
}

}  // namespace

TEST_CASE(
    "A PNG of each colour type and depth gives Pillow's values with and without interlacing or transparency or colour "
    "spaces") {
  const TemporaryFolder folder;
  for (const Kind& kind : kinds())
    for (const bool interlaced : {false, true})
      for (const bool transparent : {false, true})
        for (const bool colour_spaces : {false, true}) {
          CAPTURE(kind.name, interlaced, transparent, colour_spaces);
          const Bytes file =
              png_file(kind, {.interlaced = interlaced, .transparent = transparent, .colour_spaces = colour_spaces});
          const Pixels image = read_image(write_bytes(folder / "a.png", file));
          CHECK((image.channels == 3 && image.height == image_height && image.width == image_width));
          CHECK(image.bytes == expected_bytes(kind, transparent));
        }
}

TEST_CASE("A PNG of any kind that is cut off or damaged gives an error of one line or an image") {
  const TemporaryFolder folder;
  for (const Kind& kind : kinds())
    for (const bool interlaced : {false, true}) {
      CAPTURE(kind.name, interlaced);
      const Bytes whole = png_file(kind, {.interlaced = interlaced, .transparent = true});
      const std::string path = (folder / "a.png").string();
      const std::size_t end = whole.size() - 12;  // end of the image data; only the IEND chunk follows
      for (std::size_t length = 8; length < end; length += length + 20 < end ? 17 : 1) {
        write_bytes(path, {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
        CHECK_THAT(data_error_of(path, [&] { read_image(path); }), contains("too soon"));
      }
      int refused = 0;
      for (std::size_t at = 8; at < end; at += 11) {
        Bytes changed = whole;
        changed[at] ^= 0x5a;
        write_bytes(path, changed);
        try {
          const Pixels image = read_image(path);
          CHECK(image.bytes.size() == static_cast<std::size_t>(3 * image.height * image.width));
        } catch (const Error& e) {
          CHECK_THAT(std::string(e.what()), contains(path) && !contains("\n"));
          ++refused;
        }
      }
      CHECK(refused >= 5);
    }
}

TEST_CASE("A PNG with a huge size in its header is refused before memory is allocated") {
  const TemporaryFolder folder;
  Bytes file{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, header;
  for (const std::size_t side : {65'000, 66'000}) put_number(header, side);
  header.insert(header.end(), {16, rgb_alpha, 0, 0, 1});
  put_chunk(file, "IHDR", header);
  put_chunk(file, "IDAT", deflated({0}));
  const std::string path = write_bytes(folder / "a.png", file);
  CHECK_THAT(data_error_of(path, [&] { read_image(path); }),
             contains("expected at most 67108864 pixels, got a header with 65000 x 66000"));
}

TEST_CASE("Compressed texts and profiles of a PNG are not decompressed") {
  const TemporaryFolder folder;
  const Bytes image = png_file(kinds()[5], {}), large(7'900'000, 'a');
  for (const char* name : {"zTXt", "iTXt", "iCCP"}) {
    CAPTURE(name);
    Bytes content{'k', 0, 0}, file(image.begin(), image.begin() + 33);  // the signature and IHDR
    if (std::string(name) == "iTXt") content = {'k', 0, 1, 0, 0, 0};
    const Bytes packed = deflated(large);
    content.insert(content.end(), packed.begin(), packed.end());
    for (int i = 0; i < 64; ++i) put_chunk(file, name, content);
    file.insert(file.end(), image.begin() + 33, image.end());
    const std::clock_t start = std::clock();
    CHECK(read_image(write_bytes(folder / "a.png", file)).bytes == expected_bytes(kinds()[5], false));
    CHECK(std::clock() - start < CLOCKS_PER_SEC);  // libpng would need about 8 s and 500 MB
  }
}

TEST_CASE("A PNG that is too short for the size in its header is refused before memory is allocated") {
  const TemporaryFolder folder;
  Bytes file{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, header;
  for (const std::size_t side : {8000, 8001}) put_number(header, side);
  header.insert(header.end(), {1, grey, 0, 0, 0});
  put_chunk(file, "IHDR", header);
  put_chunk(file, "IDAT", deflated({0}));
  const std::string path = write_bytes(folder / "a.png", file);
  CHECK_THAT(data_error_of(path, [&] { read_image(path); }),
             contains("pixels in a file of") && contains("got a header with 8000 x 8001"));
}

TEST_CASE("libpng writes no warnings or errors to stderr") {
  const TemporaryFolder folder;
  const Kind kind = kinds()[5];
  const Bytes noted = png_file(kind, {.broken_note = true});
  const std::string whole = write_bytes(folder / "whole.png", noted),
                    cut_off = write_bytes(folder / "cut_off.png", {noted.begin(), noted.end() - 40});
  const Ended ended = call(folder.path(),
                           [&](int, const char* const*) {
                             CHECK(read_image(whole).bytes == expected_bytes(kind, false));
                             data_error_of(cut_off, [&] { read_image(cut_off); });
                             std::fputs("heard", stderr);
                             return 0;
                           },
                           {});
  CHECK(ended.err == "heard");
}
