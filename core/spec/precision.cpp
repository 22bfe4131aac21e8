#include "core/spec/precision.hpp"

#include <fmt/format.h>

#include <vector>

#include "core/base/error.hpp"
#include "core/base/nearest_name.hpp"

namespace shardwright {

Precision parse_precision(const std::string& text, const std::string& option) {
  const auto names = names_of<Precision>();
  for (const Precision precision : kPrecisions) {
    if (text == name_of(precision)) return precision;
  }
  throw InputError(option, {{"", fmt::format("\"{}\"", text),
                             one_of(text, std::vector<std::string>(names.begin(), names.end()))}});
}

}  // namespace shardwright
