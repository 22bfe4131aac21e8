// Files of named tensors in the safetensors format (huggingface.co/docs/safetensors): eight bytes
// with the length of a JSON header, the header, then the tensors' bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

namespace shardwright::executor {

struct StoredTensor {
  std::string name;
  std::vector<std::int64_t> shape;

  std::int64_t elements() const;
};

// Creates a file with these tensors, all zero, in the format "F32" or "BF16", and reserves its
// space. Throws RuntimeFailure.
void create_safetensors(const std::filesystem::path& file, const std::vector<StoredTensor>& tensors,
                        const std::string& format = "F32");

// A file whose tensors are read or written in place. Several processes may write different elements
// at the same time.
class SafetensorsFile {
 public:
  enum class Access : std::uint8_t { Read, Write };

  // Throws RuntimeFailure if the file is missing or incomplete; sizes and offsets are checked.
  SafetensorsFile(const std::filesystem::path& file, Access access);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  // A tensor in the mapped file.
  struct View {
    // "F32", "BF16" …
    std::string format;
    std::vector<std::int64_t> shape;
    std::span<const std::byte> bytes;

    // True for fp32, bf16 and fp16.
    bool is_readable() const;
    // Returns an element of a readable tensor.
    float at(std::size_t index) const;
  };

  const std::map<std::string, View>& tensors() const { return tensors_; }
  // Returns null if the file has no tensor of this name.
  const View* find(const std::string& name) const;
  // Returns a tensor for writing. Throws RuntimeFailure unless it exists and has this many elements
  // in fp32.
  std::span<float> tensor(const std::string& name, std::int64_t elements);
  // Returns the bytes of a tensor in any format for writing. Throws RuntimeFailure unless it
  // exists.
  std::span<std::byte> bytes_of(const std::string& name);
  std::span<const std::byte> content() const { return {data_, bytes_}; }
  // Flushes the changes to the disk. Throws RuntimeFailure.
  void sync();

 private:
  void map(Access access);
  void read_header();
  // `start` is the offset of the tensors' bytes.
  void read_tensors(const nlohmann::json& header, std::size_t start);
  [[noreturn]] void refuse(const std::string& why) const;

  std::filesystem::path file_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::map<std::string, View> tensors_;
};

}  // namespace shardwright::executor
