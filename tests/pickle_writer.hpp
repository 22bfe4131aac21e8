// Writes values as a pickle, in the way of Python's pickle.dumps.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace shardwright {

inline void add_number(std::string& stream, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) stream += static_cast<char>(value >> (8 * i));
}

// Protocol 2, in which every text is remembered and taken again.
class PickleWriter {
 public:
  std::string stream = "\x80\x02";

  void write(const nlohmann::json& value) {
    if (value.is_null()) {
      stream += 'N';
    } else if (value.is_boolean()) {
      stream += value.get<bool>() ? '\x88' : '\x89';
    } else if (value.is_number_integer()) {
      write_integer(value.get<std::int64_t>());
    } else if (value.is_number()) {
      write_real(value.get<double>());
    } else if (value.is_string()) {
      write_text(value.get<std::string>());
    } else if (value.is_array()) {
      stream += "](";
      for (const nlohmann::json& each : value) write(each);
      stream += 'e';
    } else {
      stream += "}(";
      for (const auto& [key, each] : value.items()) {
        write_text(key);
        write(each);
      }
      stream += 'u';
    }
  }

 private:
  void write_integer(std::int64_t value) {
    if (value == static_cast<std::int32_t>(value)) {
      stream += 'J';
      add_number(stream, static_cast<std::uint64_t>(value), 4);
    } else {
      stream += "\x8a\x08";
      add_number(stream, static_cast<std::uint64_t>(value), 8);
    }
  }

  void write_real(double value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    stream += 'G';
    for (int i = 7; i >= 0; --i) stream += static_cast<char>(bits >> (8 * i));
  }

  void write_text(const std::string& text) {
    const auto known = memo_.find(text);
    if (known != memo_.end()) {
      stream += 'j';
      add_number(stream, known->second, 4);
      return;
    }
    stream += 'X';
    add_number(stream, text.size(), 4);
    stream += text + 'r';
    add_number(stream, memo_.size(), 4);
    memo_.emplace(text, memo_.size());
  }

  std::map<std::string, std::size_t> memo_;
};

// The pickle of a value.
inline std::string pickled(const nlohmann::json& value) {
  PickleWriter writer;
  writer.write(value);
  return writer.stream + ".";
}

}  // namespace shardwright
