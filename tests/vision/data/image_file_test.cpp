// Tests of PNG and JPEG files against Pillow (tests/golden/make_images.py), of invalid files, and of image folders.
#include "experiments/vision/data/image_file.h"
#include "experiments/vision/data/augment.h"

#include <filesystem>

#include "experiments/vision/data/image_folder.h"
#include "experiments/vision/data/loader.h"
#include "experiments/vision/data/split.h"
#include "experiments/vision/study.h"
#include "nn/io/safetensors.h"
#include "tests/support/called.h"
#include "tests/vision/data/data_files.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;
namespace fs = std::filesystem;

namespace {

const fs::path golden = fs::path(test::source_dir()) / "tests/golden/images";

Pixels expected(const std::string& name) {
  static const nn::TensorFile file = nn::read_safetensors(golden / "expected.safetensors");
  const Array& array = file.tensors.at(name).array();
  const std::uint8_t* bytes = array.data<std::uint8_t>();
  return {array.dim(0), array.dim(1), array.dim(2), {bytes, bytes + array.numel()}};
}

int largest_difference(const Pixels& a, const Pixels& b) {
  REQUIRE((a.channels == b.channels && a.height == b.height && a.width == b.width));
  int largest = 0;
  for (std::size_t i = 0; i < a.bytes.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<int>(a.bytes[i]) - static_cast<int>(b.bytes[i])));
  return largest;
}

std::string put_picture(const fs::path& path, const std::string& picture) {
  fs::create_directories(path.parent_path());
  fs::copy_file(golden / picture, path);
  return path.string();
}

// Makes a folder with two classes. Each class has three images in train/ and one image in val/. The height of the
// second image of each class is larger than its width.
void make_folder(const fs::path& root) {
  Pixels upright = expected("evaluated upright 32 0.9");
  upright.bytes.resize(static_cast<std::size_t>(3 * 32 * 16)), upright.width = 16;
  for (const char* name : {"ant", "bee"}) {
    put_picture(root / "train" / name / "a.png", "colours.png");
    const std::string bytes = png(upright);
    write_bytes(root / "train" / name / "deeper" / "b.PNG", {bytes.begin(), bytes.end()});
    put_picture(root / "train" / name / "c.JPEG", "colours.jpg");
    write_bytes(root / "train" / name / "notes.txt", {'x'});
    put_picture(root / "val" / name / "a.jpg", "grey.jpg");
  }
}

}  // namespace

TEST_CASE("JPEG files give the same values as Pillow up to rounding by 1") {
  for (const char* name : {"colours.jpg", "progressive.jpg", "grey.jpg", "cmyk.jpg"}) {
    CAPTURE(name);
    CHECK(largest_difference(read_image(golden / name), expected(name)) <= 1);
  }
}

TEST_CASE("An image written as PNG is read back unchanged") {
  const TemporaryFolder folder;
  const Pixels image = expected("colours.png"), grey{1, 2, 3, {0, 50, 100, 150, 200, 255}};
  for (const Pixels& original : {image, grey}) {
    const std::string bytes = png(original), path = write_bytes(folder / "a.png", {bytes.begin(), bytes.end()});
    const Pixels back = read_image(path);
    for (std::int64_t c = 0; c < 3; ++c)
      CHECK(std::equal(back.plane(c), back.plane(c) + back.height * back.width,
                       original.plane(original.channels == 1 ? 0 : c)));
  }
  CHECK_THAT(error_of([] { png({2, 1, 1, {0, 0}}); }), contains("expected 1 or 3 channels, got 2"));
}

TEST_CASE("Images in files can keep their size and one line reports that they are enlarged") {
  const TemporaryFolder folder;
  make_folder(folder / "a");
  const Pixels first = expected("colours.png");
  const std::int64_t side = std::min(first.height, first.width);
  const ImageData native = open_image_folder((folder / "a").string(), {.side = {}});
  CHECK((native.train.height == side && native.train.width == side));
  CHECK((native.validation.height == side && native.validation.width == side));
  CHECK(enlargement(native.train).empty());
  const ImageData large = open_image_folder((folder / "a").string(), {.side = side + 8});
  CHECK(enlargement(large.train) == fmt::format("images of {} x {} pixels ({}) are enlarged to {} x {}", first.height,
                                                first.width, (folder / "a/train/ant/a.png").string(), side + 8,
                                                side + 8));
  CHECK(enlargement(open_image_folder((folder / "a").string(), {.side = side - 1}).train).empty());

  const auto main = [](int argc, const char* const* argv) {
    vision::Study study("sizes", "Sizes.");
    return study.run(argc, argv, [](lab::Trial& trial) {
      trial.measure({{"side", static_cast<double>(vision::vit(trial, {.depth = 1, .method = "pre"}).image)}});
    });
  };
  const auto trained = [&](const Words& words) {
    const Ended e = call(folder.path(), main,
                         with({"--image-folder", "a", "--batch", "2", "--steps", "1", "--patch", "1", "--no-progress",
                               "--overwrite", "--out", "r"},
                              words));
    INFO(e.err);
    CHECK(e.status == 0);
    return std::pair(e.err, read_file(folder / "r/results.csv"));
  };
  const auto [said, results] = trained({});
  CHECK_THAT(said, contains(fmt::format("images of {} x {} pixels (a/train/ant/a.png) are enlarged to 224 x 224: ViT, "
                                        "dim 64, 2 heads, patch 1, mean of "
                                        "50176 tokens; --image-size native keeps their size\n",
                                        first.height, first.width)));
  CHECK_THAT(results, contains(",224\n"));
  const auto [silence, kept] = trained({"--image-size", "native"});
  CHECK_THAT(silence, !contains("enlarged"));
  CHECK_THAT(kept, contains(fmt::format(",{}\n", side)));
  CHECK_THAT(read_file(folder / "r/run.json"), contains("\"image_size\": \"native\""));
  CHECK_THAT(trained({"--image-size", "224"}).first, !contains("enlarged"));  // the images have the requested size
}

TEST_CASE("Files without a complete image are refused with an error of one line") {
  const TemporaryFolder folder;
  const auto error = [&](const Bytes& bytes) {
    const std::string path = write_bytes(folder / "x.png", bytes);
    return data_error_of(path, [&] { read_image(path); });
  };
  CHECK_THAT(error({'h', 'e', 'l', 'l', 'o', ' ', 'y', 'o', 'u'}),
             contains("expected a PNG or JPEG file, got other bytes"));
  CHECK_THAT(error({1}), contains("expected a PNG or JPEG file, got other bytes"));
  CHECK_THAT(error(gzip({'x'})), contains("expected a PNG or JPEG file, got a gzip file"));
  CHECK_THAT(error({}), contains("the file is empty"));
  const std::string missing = (folder / "none.png").string();
  CHECK_THAT(data_error_of(missing, [&] { read_image(missing); }), contains("no such file"));
  // Garbage between two scans is skipped. A file that is cut off is an error, even after such garbage.
  Bytes garbage = read_bytes(golden / "progressive.jpg");
  std::size_t scan = 0, scans = 0;
  for (std::size_t i = 0; i + 1 < garbage.size() && scans < 2; ++i)
    if (garbage[i] == 0xff && garbage[i + 1] == 0xda) scan = i, ++scans;
  REQUIRE(scans == 2);
  garbage.insert(garbage.begin() + static_cast<std::ptrdiff_t>(scan), {1, 2, 3});
  CHECK(largest_difference(read_image(write_bytes(folder / "garbage.jpg", garbage)), expected("progressive.jpg")) <= 1);
  for (const double share : {0.7, 0.9}) {
    const auto length = static_cast<std::ptrdiff_t>(share * static_cast<double>(garbage.size()));
    CHECK_THAT(error({garbage.begin(), garbage.begin() + length}), contains("the JPEG is cut off"));
  }

  // A file that is cut off at any byte is refused. bin/fuzz_readers changes bytes.
  for (const char* name : {"colours.png", "palette.png", "colours.jpg", "progressive.jpg", "grey.jpg"}) {
    CAPTURE(name);
    const Bytes whole = read_bytes(golden / name);
    int refused = 0;
    for (std::size_t length = 0; length + 12 < whole.size(); length += 7) {
      CHECK_FALSE(error({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)}).empty());
      ++refused;
    }
    CHECK(refused > 20);
  }
  // A header with a huge size is refused before memory is allocated.
  Bytes huge = read_bytes(golden / "colours.jpg");
  for (std::size_t i = 0; i + 8 < huge.size(); ++i)
    if (huge[i] == 0xff && huge[i + 1] == 0xc0)
      std::fill_n(huge.begin() + static_cast<std::ptrdiff_t>(i) + 5, 4, std::uint8_t{0xfd});
  CHECK_THAT(error(huge), contains("expected at most 67108864 pixels, got a header with 65021 x 65021"));
}

TEST_CASE("A JPEG of a few bytes with many pixels or scans is refused") {
  const TemporaryFolder folder;
  const std::string path = (folder / "a.jpg").string();
  const auto read = [&](const Bytes& bytes) { return read_image(write_bytes(path, bytes)).width; };
  CHECK_THAT(data_error_of(path, [&] { read(empty_jpeg(8191, 498)); }),
             contains("pixels in a file of") && contains("got a header with 8191 x 8191"));
  CHECK(read(empty_jpeg(400, 100)) == 400);
  CHECK_THAT(data_error_of(path, [&] { read(empty_jpeg(400, 101)); }),
             contains("expected at most 100 scans of 400 x 400 pixels, got more"));
  const Bytes filler = jpeg_segment(0xfe, Bytes(65'000, 0));
  CHECK(read(empty_jpeg(4096, 12, filler)) == 4096);
  CHECK_THAT(data_error_of(path, [&] { read(empty_jpeg(4096, 65, filler)); }),
             contains("expected at most 64 scans of 4096 x 4096 pixels, got more"));
}

TEST_CASE("The EXIF orientation of a JPEG is read and turns no pixels") {
  const TemporaryFolder folder;
  const std::string path = (folder / "a.jpg").string();
  const auto orientation = [&](const Bytes& segments) {
    return exif_orientation(write_bytes(path, empty_jpeg(8, 1, segments)));
  };
  CHECK(orientation({}) == 1);
  CHECK(orientation(exif_segment(6)) == 6);
  CHECK(orientation(joined({jpeg_segment(0xe0, {'J', 'F', 'I', 'F', 0}), exif_segment(3, false)})) == 3);
  CHECK(orientation(exif_segment(9)) == 1);
  CHECK(exif_orientation((golden / "colours.png").string()) == 1);
  const Bytes whole = empty_jpeg(8, 1, exif_segment(6));
  for (std::size_t length = 1; length < whole.size(); ++length) {
    const int cut =
        exif_orientation(write_bytes(path, {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)}));
    CHECK((cut == 1 || cut == 6));
  }
  Bytes turned = read_bytes(golden / "colours.jpg");
  const Bytes segment = exif_segment(6);
  turned.insert(turned.begin() + 2, segment.begin(), segment.end());
  CHECK(read_image(write_bytes(path, turned)).bytes == read_image(golden / "colours.jpg").bytes);
}

TEST_CASE("An evaluated image is resized and cropped as in torchvision for timm") {
  for (const char* way : {"", "upright "})
    for (const auto& [side, crop] : {std::pair(16, 1.0), {16, 0.875}, {32, 0.9}, {64, 1.0}}) {
      Pixels image = expected("colours.png");
      if (*way) {
        Pixels turned{3, image.width, image.height, Bytes(image.bytes.size())};
        for (int c = 0; c < 3; ++c)
          for (std::int64_t y = 0; y < image.height; ++y)
            for (std::int64_t x = 0; x < image.width; ++x)
              turned.plane(c)[x * image.height + y] = image.plane(c)[y * image.width + x];
        image = turned;
      }
      const std::string name = fmt::format("evaluated {}{} {:g}", way, side, crop);
      CAPTURE(name);
      CHECK(largest_difference(fitted(image, side, side, crop), expected(name)) <= 1);
    }
  CHECK_THAT(error_of([] { fitted({1, 1, 500'000, Bytes(500'000)}, 224, 224, 1); }), contains("got 500000 x 1"));
}

TEST_CASE("An image folder has classes by name and files at any depth and of any size") {
  const TemporaryFolder folder;
  make_folder(folder.path());
  const ImageData data = open_image_folder(folder.path(), {.side = 16});
  CHECK(data.train.class_names == std::vector<std::string>{"ant", "bee"});
  CHECK(data.train.labels == std::vector<std::int32_t>{0, 0, 0, 1, 1, 1});
  CHECK(data.validation.labels == std::vector<std::int32_t>{0, 1});
  CHECK(data.validation_is == "the images in val/");
  CHECK(fs::path(data.train.files[2]).filename() == "b.PNG");
  CHECK(original(data.train, 0).width == 37);
  CHECK(fitted(data.train, 0).bytes == fitted(expected("colours.png"), 16, 16, 1).bytes);

  // Batches have fitted images, or crops of the whole image file. The batches do not depend on the number of threads.
  const Normalization plain{{0, 0, 0}, {1, 1, 1}};
  const HostBatch first = evaluation_batch(data.train, plain, 0, 6),
                  again = evaluation_batch(data.train, plain, 0, 6, 4);
  CHECK(first.images == again.images);
  CHECK(first.images[5] == static_cast<float>(fitted(data.train, 0).bytes[5]) / 255.0f);
  for (const Augmentation& augment : {Augmentation(), light_augmentation(), deit_augmentation(224)}) {
    LoaderOptions options{.batch = 3, .seed = 4, .augment = augment};
    BatchLoader one(data.train, plain, options);
    options.workers = 3;
    BatchLoader several(data.train, plain, options);
    for (int i = 0; i < 4; ++i) {
      const HostBatch a = one.next(), b = several.next();
      CHECK((a.images == b.images && a.labels == b.labels && a.share == b.share));
    }
  }
  RandomStream stream(4, "data.crop", 0, 1);  // draws a crop of the file's 37 x 23 pixels, not of the fitted 16 x 16
  const PixelBox part = draw_crop(23, 37, 0.08, stream);
  CHECK(augmented(data.train, {4, 0, 0, 0}, {.crop_scale = 1}, {0, 0, 0}).bytes == fitted(data.train, 0).bytes);
  const Pixels cut = augmented(data.train, {4, 0, 1, 0}, {.crop_scale = 0.08}, {0, 0, 0});
  CHECK(original(data.train, 1).width == 37);
  CHECK(cut.bytes == resize(original(data.train, 1), part, 16, 16, Interpolation::bicubic).bytes);

  const Split parts = split(data.train, 0.34);
  CHECK(parts.part.size() == 2);
  CHECK(parts.part.files.size() == 2);
  CHECK(parts.rest.class_names == data.train.class_names);
  for (const std::int64_t count : {1, 3, 4, 6}) CHECK(with_few_training_images(data, count).train.size() == count);
  CHECK(with_few_training_images(data, 4).train.labels == std::vector<std::int32_t>{0, 0, 1, 1});
  CHECK_THAT(error_of([&] { with_few_training_images(data, 7); }), contains("expected 1 to 6 training images"));
  write_bytes(data.train.files[4], {'b', 'a', 'd'});
  const auto broken = [&] { evaluation_batch(data.train, plain, 0, 6, 3); };
  CHECK_THAT(data_error_of(data.train.files[4], broken), contains("expected a PNG or JPEG file, got other bytes"));
}

TEST_CASE("Hidden folders are left out of an image folder, links are followed, and one line names the rest") {
  const TemporaryFolder folder;
  const auto put = [&](const std::string& path) { return put_picture(folder / path, "bits.png"); };
  for (const char* name : {"ant/1.png", "ant/deep/2.png", "bee/1.png", "bee/2.png"})
    put(std::string("d/train/") + name);
  const auto files = [&] {
    std::vector<std::string> names;
    const Ended e = call(folder.path(),
                         [&](int, const char* const*) {
                           const ImageData data = open_image_folder("d", {});
                           for (std::size_t i = 0; i < data.train.files.size(); ++i)
                             names.push_back(fmt::format("{} {}", data.train.labels[i], data.train.files[i].substr(8)));
                           return 0;
                         },
                         {});
    return std::pair(names, e.err);
  };
  const auto [before, silence] = files();
  CHECK(before == std::vector<std::string>{"0 ant/1.png", "0 ant/deep/2.png", "1 bee/1.png", "1 bee/2.png"});
  CHECK(silence.empty());

  put("d/train/ant/.ipynb_checkpoints/1-checkpoint.png"), put("d/train/ant/deep/.copies/deep/2.png");
  put("d/train/ant/._1.png"), put("d/train/.ipynb_checkpoints/1.png"), put("d/train/__MACOSX/ant/1.png");
  put("d/train/beside.png"), put("d/train/ant/3.webp"), put("d/train/bee/3.bmp"), put("d/train/bee/4.BMP");
  put("outside/more/5.png"), put("outside/6.jpg");
  fs::create_directory_symlink(folder / "outside", folder / "d/train/bee/outside");
  fs::create_directory_symlink(folder / "outside/more", folder / "d/train/bee/twice");
  fs::create_directory_symlink("../..", folder / "d/train/ant/deep/around");
  fs::create_directory_symlink(folder / "d", folder / "outside/more/back");
  fs::create_directory_symlink(folder / "d/train", folder / "outside/more/root");
  fs::create_symlink(folder / "outside/6.jpg", folder / "d/train/ant/7.jpg");
  fs::create_symlink("nowhere", folder / "d/train/ant/8.jpg");
  fs::create_directory_symlink(".", folder / "d/train/around"), fs::create_symlink("loop", folder / "d/train/loop");
  const auto [after, said] = files();
  CHECK(after == std::vector<std::string>{"0 ant/1.png", "0 ant/7.jpg", "0 ant/deep/2.png", "1 bee/1.png",
                                          "1 bee/2.png", "1 bee/outside/6.jpg", "1 bee/outside/more/5.png"});
  CHECK(said ==
        "d: images are .png, .jpg and .jpeg files; left out: links to folders around them (3), .bmp (2), "
        "hidden folders (2), .webp (1), broken links (1), files beside the folders of classes (1), 1 more "
        "kinds; images behind links: 3\n");
  CHECK(image_files((folder / "d/train/ant").string()).size() == 3);
  CHECK(class_folders((folder / "d/train").string()) == std::vector<std::string>{"ant", "bee"});
}

TEST_CASE("Few validation images of an image folder are drawn by class") {
  const TemporaryFolder folder;
  for (const char* name : {"ant", "bee", "cat", "dog"})
    for (int i = 0; i < 5; ++i)
      for (const char* part : {"train", "val"})
        put_picture(folder / fmt::format("d/{}/{}/{}.png", part, name, i), "bits.png");
  const auto main = [](int argc, const char* const* argv) {
    vision::Study study("few", "Few.");
    return study.run(argc, argv, [](lab::Trial& trial) {
      CHECK(vision::images(trial).data().validation.labels == std::vector<std::int32_t>{0, 1, 2, 3});
      nn::ViT model(vision::vit(trial, {.depth = 1}));
      trial.train(model);
    });
  };
  const Ended e = call(folder.path(), main,
                       {"--image-folder", "d", "--image-size", "8", "--patch", "4", "--dim", "8", "--batch", "2",
                        "--steps", "1", "--eval-images", "4", "--no-progress", "--out", "r"});
  INFO(e.err);
  CHECK(e.status == 0);
  const std::string description = read_file(folder / "r/run.json");
  CHECK_THAT(description, contains("\"validation_images\": 4"));
  CHECK_THAT(description, contains("4 of 20, drawn by class, of the images in val/"));
  CHECK_THAT(e.out, contains("4 validation images: 4 of 20, drawn by class, of the images in val/"));
}

TEST_CASE("Folders without classes or with different classes are refused and missing validation images are reported") {
  const TemporaryFolder folder;
  const auto error = [&](const fs::path& path) {
    return data_error_of(path.string(), [&] { open_image_folder(path.string(), {}); });
  };
  CHECK_THAT(error(folder / "none"), contains("no such folder"));
  CHECK_THAT(error(put_picture(folder / "file.png", "bits.png")), contains("expected a folder of images, got a file"));
  fs::create_directories(folder / "empty");
  CHECK_THAT(error(folder / "empty"), contains("expected a folder for each class, got none"));
  put_picture(folder / "a/train/ant/x.png", "bits.png");
  fs::create_directories(folder / "a/train/bee");
  CHECK_THAT(error(folder / "a"), contains("expected PNG or JPEG files of the class bee, got none"));
  put_picture(folder / "a/train/bee/x.png", "bits.png");
  put_picture(folder / "a/val/ant/x.png", "bits.png");
  CHECK_THAT(error(folder / "a"), contains("expected the classes of train/ (ant, bee), got ant"));
  const ImageData plain = open_image_folder((folder / "a/train").string(), {});
  CHECK((plain.train.size() == 2 && plain.validation.size() == 0 && plain.validation_is == "none"));
  CHECK(image_files((folder / "a").string()).size() == 3);
  CHECK(image_files((folder / "file.png").string()).size() == 1);
  CHECK_THAT(error_of([&] { image_files((folder / "empty").string()); }),
             contains("expected PNG or JPEG files in it, got none"));
  CHECK_THAT(error_of([&] { image_files("/no/such"); }), contains("/no/such: no such file or folder"));
}

TEST_CASE("Each kind of normalization has its mean and deviation") {
  const ImageSet set{.channels = 3, .height = 1, .width = 1, .classes = 1, .pixels = {0, 51, 255}, .labels = {0}};
  CHECK(normalization_of(set, NormalizationKind::imagenet).mean == std::vector<float>{0.485f, 0.456f, 0.406f});
  CHECK(normalization_of(set, NormalizationKind::half).std == std::vector<float>{0.5f, 0.5f, 0.5f});
  CHECK(normalization_of(set, NormalizationKind::data).mean == std::vector<float>{0, 0.2f, 1});
  const ImageSet grey{.channels = 1, .height = 1, .width = 1, .classes = 1, .pixels = {0}, .labels = {0}};
  CHECK(normalization_of(grey, NormalizationKind::half).mean == std::vector<float>{0.5f});
  CHECK_THAT(error_of([&] { normalization_of(grey, NormalizationKind::imagenet); }),
             contains("expected three channels for imagenet, got 1; choose data or half"));
}
