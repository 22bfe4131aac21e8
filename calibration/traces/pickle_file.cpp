#include "calibration/traces/pickle_file.hpp"

#include <minizip/unzip.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>

#include "calibration/traces/inflated_file.hpp"
#include "core/base/error.hpp"
#include "core/base/untrusted_file.hpp"

namespace shardwright::calibration {
namespace {

constexpr const char* kExpectedPickle = "a file of torch.save, or a memory snapshot of PyTorch";
constexpr std::string_view kZipMark("PK\x03\x04", 4);
constexpr std::size_t kPickleChunk = 1U << 20U;

std::string first_bytes(const std::string& file, std::size_t count,
                        const char* expected = kExpectedPickle) {
  std::string head(count, '\0');
  const ByteSource bytes = open_inflated(file, expected);
  head.resize(bytes(head.data(), head.size()));
  return head;
}

// The operation that states a protocol, which only protocols 2 to 5 have; before them a list or a
// dict that is remembered by a number.
bool begins_as_pickle(std::string_view head) {
  const bool has_memo = head.starts_with("(dp") || head.starts_with("(lp");
  if (has_memo && head.size() > 3) return '0' <= head[3] && head[3] <= '9';
  if (head.starts_with("}q") || head.starts_with("]q")) return true;
  return head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
}

struct CloseZip {
  void operator()(void* zip) const { unzClose(zip); }
};

[[noreturn]] void refuse_zip(const std::string& file, const std::string& found) {
  throw InputError(file, {{"", found, kExpectedPickle}});
}

// Opens the member "ARCHIVE/data.pkl" and returns its size.
std::size_t open_data(unzFile zip, const std::string& file) {
  constexpr std::string_view kData = "data.pkl";
  for (int found = unzGoToFirstFile(zip); found == UNZ_OK; found = unzGoToNextFile(zip)) {
    unz_file_info64 info;
    char name[512] = "";
    if (unzGetCurrentFileInfo64(zip, &info, name, sizeof(name) - 1, nullptr, 0, nullptr, 0) !=
        UNZ_OK)
      break;
    const std::string_view path(name);
    if (path != kData && !path.ends_with("/data.pkl")) continue;
    // torch.save compresses nothing, so that the member cannot be larger than the file.
    if (info.compression_method != 0 || info.uncompressed_size > std::filesystem::file_size(file))
      refuse_zip(file, "a compressed data.pkl");
    if (unzOpenCurrentFile(zip) != UNZ_OK) break;
    return info.uncompressed_size;
  }
  refuse_zip(file, "a zip file without a readable data.pkl");
}

std::string data_of_zip(const std::string& file, const ReadingWatch& watch) {
  const std::unique_ptr<void, CloseZip> zip(unzOpen64(file.c_str()));
  if (!zip) refuse_zip(file, "a zip file that breaks off");
  const ReadBytes progress(watch);
  std::string data(open_data(zip.get(), file), '\0');
  for (std::size_t read = 0; read < data.size();) {
    progress.stop_if_asked();
    const auto wanted = static_cast<unsigned>(std::min(kPickleChunk, data.size() - read));
    const int count = unzReadCurrentFile(zip.get(), data.data() + read, wanted);
    if (count <= 0) refuse_zip(file, "a data.pkl that breaks off");
    read += static_cast<std::size_t>(count);
  }
  if (unzCloseCurrentFile(zip.get()) != UNZ_OK)
    refuse_zip(file, "a data.pkl with a wrong checksum");
  return data;
}

std::string plain_data(const std::string& file, const ReadingWatch& watch) {
  constexpr std::size_t kMostBytes = 0xffff'ffffU;
  const ByteSource bytes = open_inflated(file, kExpectedPickle, {nullptr, watch.stop});
  std::string data;
  for (std::size_t read = 1; read > 0;) {
    const std::size_t known = data.size();
    if (known >= kMostBytes) refuse_zip(file, "a pickle of more than 4 GB");
    if (data.capacity() < known + kPickleChunk) data.reserve(2 * known + kPickleChunk);
    data.resize(known + kPickleChunk);
    read = bytes(data.data() + known, kPickleChunk);
    data.resize(known + read);
  }
  return data;
}

// torch.save before 1.6 wrote a magic number, the version and facts on the machine, each a pickle,
// and then the object.
PickleDocument behind_format(std::string data, const std::string& file,
                             const std::function<void(std::size_t)>& advanced) {
  constexpr std::string_view kMagic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
  constexpr std::size_t kHeadOfFormat = 20;
  if (data.substr(0, kHeadOfFormat).find(kMagic) == std::string::npos)
    return read_pickle(std::move(data), file, advanced);
  for (int i = 0; i < 3; ++i) data.erase(0, read_pickle(data, file).end);
  return read_pickle(std::move(data), file, advanced);
}

}  // namespace

bool is_pickle_file(const std::string& file) {
  if (!kind_unless_regular(file).empty()) return false;
  const std::string head = first_bytes(
      file, kZipMark.size(),
      "a file that can be read: a trace, a log, output of nccl-tests or of NCCL's Inspector, a "
      "script that launches a run, a checkpoint or a memory snapshot");
  return head == kZipMark || begins_as_pickle(head);
}

PickleDocument read_pickle_file(const std::string& file, const ReadingWatch& watch) {
  const bool is_zip = first_bytes(file, kZipMark.size()) == kZipMark;
  std::string data = is_zip ? data_of_zip(file, watch) : plain_data(file, watch);
  const auto of_file = static_cast<double>(std::filesystem::file_size(file));
  const double scale = of_file / static_cast<double>(std::max<std::size_t>(1, data.size()));
  ReadBytes progress(watch);
  PickleDocument document = behind_format(std::move(data), file, [&](std::size_t byte) {
    progress.stop_if_asked();
    progress.reached(static_cast<std::uintmax_t>(static_cast<double>(byte) * scale));
  });
  progress.reached(static_cast<std::uintmax_t>(of_file));
  return document;
}

}  // namespace shardwright::calibration
