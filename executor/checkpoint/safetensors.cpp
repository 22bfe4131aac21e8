#include "executor/checkpoint/safetensors.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/untrusted_file.hpp"

namespace shardwright::executor {
namespace {

// The format limits headers to this size.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
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

// Returns 0 for a format that the executor does not read.
std::size_t element_bytes(const std::string& format) {
  if (format == "F32") return 4;
  return format == "BF16" || format == "F16" ? 2 : 0;
}

// Returns the length and the header, which is padded with spaces as the format allows. transformers
// loads files alone that say whose tensors they hold.
std::string header_of(const std::vector<StoredTensor>& tensors, const std::string& format,
                      std::size_t& data_bytes) {
  nlohmann::ordered_json header = {{"__metadata__", {{"format", "pt"}}}};
  data_bytes = 0;
  for (const StoredTensor& tensor : tensors) {
    const std::size_t bytes = static_cast<std::size_t>(tensor.elements()) * element_bytes(format);
    header[tensor.name] = {{"dtype", format},
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

bool has_the_bytes_of(const SafetensorsFile::View& view) {
  const std::size_t element = element_bytes(view.format);
  if (element == 0 || view.bytes.size() % element != 0) return false;
  std::size_t elements = view.bytes.size() / element;
  for (const std::int64_t size : view.shape) {
    if (size <= 0) return size == 0 && view.bytes.empty();
    if (elements % static_cast<std::size_t>(size) != 0) return false;
    elements /= static_cast<std::size_t>(size);
  }
  return elements == 1;
}

// Throws an exception of nlohmann::json, whose conversion would turn -1 and 1.5 into some size.
std::uint64_t unsigned_of(const nlohmann::json& value) {
  return value.get_ref<const nlohmann::json::number_unsigned_t&>();
}

std::vector<std::int64_t> shape_of(const nlohmann::json& sizes) {
  std::vector<std::int64_t> shape;
  for (const nlohmann::json& size : sizes)
    shape.push_back(static_cast<std::int64_t>(unsigned_of(size)));
  return shape;
}

// Tensors need not be aligned.
template <class T>
T element(std::span<const std::byte> bytes, std::size_t index) {
  T value{};
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

// IEEE 754 binary16.
float from_half(std::uint16_t bits) {
  constexpr int kExponentBias = 15, kFractionBits = 10;
  const int exponent = (bits >> 10U) & 0x1F;
  const auto fraction = static_cast<float>(bits & 0x3FFU);
  const float sign = (bits & 0x8000U) != 0 ? -1.0F : 1.0F;
  if (exponent == 0x1F) return sign * (fraction > 0.0F ? NAN : INFINITY);
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - kExponentBias - kFractionBits);
  return sign * std::ldexp(1024.0F + fraction, exponent - kExponentBias - kFractionBits);
}

}  // namespace

std::int64_t StoredTensor::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

void create_safetensors(const std::filesystem::path& file, const std::vector<StoredTensor>& tensors,
                        const std::string& format) {
  std::size_t data_bytes = 0;
  const std::string header = header_of(tensors, format, data_bytes);
  const Descriptor descriptor(file, O_RDWR | O_CREAT | O_TRUNC);
  // Reserving the space reports a full disk here; writing to a mapped page would crash.
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
  if (const std::string kind = kind_unless_regular(file_); !kind.empty())
    refuse(kind + " is not a safetensors file");
  const Descriptor descriptor(file_, writes ? O_RDWR : O_RDONLY);
  struct stat status = {};
  if (::fstat(descriptor.value(), &status) != 0) refuse(std::strerror(errno));
  bytes_ = static_cast<std::size_t>(status.st_size);
  if (bytes_ < kLengthBytes) refuse("the file is truncated");
  void* memory = ::mmap(nullptr, bytes_, PROT_READ | (writes ? PROT_WRITE : 0), MAP_SHARED,
                        descriptor.value(), 0);
  if (memory == MAP_FAILED) refuse(std::strerror(errno));
  data_ = static_cast<std::byte*>(memory);
}

void SafetensorsFile::read_header() {
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, data_, kLengthBytes);
  if (header_bytes > kMaxHeaderBytes || header_bytes > bytes_ - kLengthBytes)
    refuse("the file is truncated");
  const char* text = reinterpret_cast<const char*>(data_) + kLengthBytes;
  try {
    read_tensors(nlohmann::json::parse(text, text + header_bytes), kLengthBytes + header_bytes);
  } catch (const nlohmann::json::exception&) {
    refuse("the header is broken");
  }
}

void SafetensorsFile::read_tensors(const nlohmann::json& header, std::size_t start) {
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    const auto begin = unsigned_of(tensor.at("data_offsets").at(0));
    const auto end = unsigned_of(tensor.at("data_offsets").at(1));
    if (begin > end || end > bytes_ - start) refuse("the file is truncated");
    const View view{tensor.at("dtype").get<std::string>(),
                    shape_of(tensor.at("shape")),
                    {data_ + start + begin, end - begin}};
    if (view.is_readable() && !has_the_bytes_of(view))
      refuse("\"" + name + "\" does not have the size of its shape");
    tensors_[name] = view;
  }
}

bool SafetensorsFile::View::is_readable() const {
  return element_bytes(format) > 0;
}

float SafetensorsFile::View::at(std::size_t index) const {
  if (format == "F32") return element<float>(bytes, index);
  const auto bits = element<std::uint16_t>(bytes, index);
  return format == "BF16" ? std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U)
                          : from_half(bits);
}

const SafetensorsFile::View* SafetensorsFile::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

std::span<float> SafetensorsFile::tensor(const std::string& name, std::int64_t elements) {
  const std::span<std::byte> bytes = bytes_of(name);
  if (find(name)->format != "F32") refuse("\"" + name + "\" is not fp32");
  const auto count = static_cast<std::size_t>(elements);
  if (bytes.size() != count * sizeof(float)) refuse("\"" + name + "\" has another size");
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(float) != 0)
    refuse("\"" + name + "\" is not aligned");
  return {reinterpret_cast<float*>(bytes.data()), count};
}

std::span<std::byte> SafetensorsFile::bytes_of(const std::string& name) {
  const View* found = find(name);
  if (found == nullptr) refuse("the file has no tensor \"" + name + "\"");
  return {data_ + (found->bytes.data() - data_), found->bytes.size()};
}

void SafetensorsFile::sync() {
  if (::msync(data_, bytes_, MS_SYNC) != 0) refuse(std::strerror(errno));
}

}  // namespace shardwright::executor
