#include "executor/checkpoint/safetensors.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"

namespace shardwright::executor {
namespace {

// The format's own limit of a header.
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;
constexpr std::size_t kLengthBytes = 8, kAlignment = 8;

class Descriptor {
 public:
  Descriptor(const std::filesystem::path& file, int flags)
      : value_(::open(file.c_str(), flags | O_CLOEXEC, 0644)) {
    if (value_ < 0) throw RuntimeFailure(file.string() + ": " + std::strerror(errno));
  }
  ~Descriptor() { ::close(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int value() const { return value_; }

 private:
  int value_;
};

// The length and the header, padded with spaces as the format allows.
std::string header_of(const std::vector<StoredTensor>& tensors, std::size_t& data_bytes) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  data_bytes = 0;
  for (const StoredTensor& tensor : tensors) {
    const std::size_t bytes = static_cast<std::size_t>(tensor.elements()) * sizeof(float);
    header[tensor.name] = {{"dtype", "F32"},
                           {"shape", tensor.shape},
                           {"data_offsets", {data_bytes, data_bytes + bytes}}};
    data_bytes += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  std::string length(kLengthBytes, '\0');
  const std::uint64_t size = text.size();
  std::memcpy(length.data(), &size, kLengthBytes);
  return length + text;
}

}  // namespace

std::int64_t StoredTensor::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

void create_safetensors(const std::filesystem::path& file,
                        const std::vector<StoredTensor>& tensors) {
  std::size_t data_bytes = 0;
  const std::string header = header_of(tensors, data_bytes);
  const Descriptor descriptor(file, O_RDWR | O_CREAT | O_TRUNC);
  // A full disk is noticed here and not where a mapped page cannot be written.
  const int reserved =
      ::posix_fallocate(descriptor.value(), 0, static_cast<off_t>(header.size() + data_bytes));
  if (reserved != 0) throw RuntimeFailure(file.string() + ": " + std::strerror(reserved));
  if (::pwrite(descriptor.value(), header.data(), header.size(), 0) !=
      static_cast<ssize_t>(header.size())) {
    throw RuntimeFailure(file.string() + ": " + std::strerror(errno));
  }
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& file, Access access) : file_(file) {
  map(access);
  try {
    read_header();
  } catch (const nlohmann::json::exception&) {
    ::munmap(data_, bytes_);
    throw RuntimeFailure(file_.string() + ": the header is broken");
  } catch (...) {
    ::munmap(data_, bytes_);
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() {
  ::munmap(data_, bytes_);
}

void SafetensorsFile::refuse(const std::string& why) const {
  throw RuntimeFailure(file_.string() + ": " + why);
}

void SafetensorsFile::map(Access access) {
  const bool writes = access == Access::Write;
  const Descriptor descriptor(file_, writes ? O_RDWR : O_RDONLY);
  struct stat status = {};
  if (::fstat(descriptor.value(), &status) != 0) refuse(std::strerror(errno));
  bytes_ = static_cast<std::size_t>(status.st_size);
  if (bytes_ < kLengthBytes) refuse("the file is cut off");
  void* memory = ::mmap(nullptr, bytes_, PROT_READ | (writes ? PROT_WRITE : 0), MAP_SHARED,
                        descriptor.value(), 0);
  if (memory == MAP_FAILED) refuse(std::strerror(errno));
  data_ = static_cast<std::byte*>(memory);
}

void SafetensorsFile::read_header() {
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, data_, kLengthBytes);
  if (header_bytes > kMostHeaderBytes || header_bytes > bytes_ - kLengthBytes)
    refuse("the file is cut off");
  const char* text = reinterpret_cast<const char*>(data_) + kLengthBytes;
  const nlohmann::json header = nlohmann::json::parse(text, text + header_bytes);
  const std::size_t start = kLengthBytes + header_bytes;
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    if (tensor.at("dtype") != "F32") refuse("\"" + name + "\" is not of fp32");
    const auto begin = tensor.at("data_offsets").at(0).get<std::size_t>();
    const auto end = tensor.at("data_offsets").at(1).get<std::size_t>();
    if (begin > end || end > bytes_ - start || begin % sizeof(float) != 0)
      refuse("the file is cut off");
    ranges_[name] = {start + begin, start + end};
  }
}

std::span<float> SafetensorsFile::tensor(const std::string& name, std::int64_t elements) {
  const auto found = ranges_.find(name);
  if (found == ranges_.end()) refuse("there is no \"" + name + "\"");
  const Range& range = found->second;
  const auto count = static_cast<std::size_t>(elements);
  if (range.end - range.begin != count * sizeof(float)) refuse("\"" + name + "\" has another size");
  if (range.begin % alignof(float) != 0) refuse("\"" + name + "\" is not aligned");
  return {reinterpret_cast<float*>(data_ + range.begin), count};
}

void SafetensorsFile::sync() {
  if (::msync(data_, bytes_, MS_SYNC) != 0) refuse(std::strerror(errno));
}

}  // namespace shardwright::executor
