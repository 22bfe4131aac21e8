// Files of named tensors in the safetensors format (huggingface.co/docs/safetensors): eight bytes
// with the length of a JSON header, the header, then the tensors' bytes. What is written is fp32.
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

// Makes a file of these tensors, all zero, with its space reserved. Throws RuntimeFailure.
void create_safetensors(const std::filesystem::path& file,
                        const std::vector<StoredTensor>& tensors);

// A file whose tensors are read, or written, in place; several processes may write to different
// elements at once.
class SafetensorsFile {
 public:
  enum class Access : std::uint8_t { Read, Write };

  // Throws RuntimeFailure for a file that is not there or not whole: sizes and offsets are checked.
  SafetensorsFile(const std::filesystem::path& file, Access access);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  // A tensor as it lies in the file.
  struct View {
    std::string format;  // "F32", "BF16", …
    std::vector<std::int64_t> shape;
    std::span<const std::byte> bytes;

    // fp32, bf16, fp16.
    bool is_readable() const;
    // Element `index` of a readable tensor.
    float at(std::size_t index) const;
  };

  // By name.
  const std::map<std::string, View>& tensors() const { return tensors_; }
  // Null if there is none of this name.
  const View* find(const std::string& name) const;
  // Throws RuntimeFailure if the file has no such tensor of so many elements in fp32.
  std::span<float> tensor(const std::string& name, std::int64_t elements);
  std::span<const std::byte> content() const { return {data_, bytes_}; }
  // Writes what was changed to the disk. Throws RuntimeFailure.
  void sync();

 private:
  void map(Access access);
  void read_header();
  // `start`: of the tensors' bytes.
  void read_tensors(const nlohmann::json& header, std::size_t start);
  [[noreturn]] void refuse(const std::string& why) const;

  std::filesystem::path file_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::map<std::string, View> tensors_;
};

}  // namespace shardwright::executor
