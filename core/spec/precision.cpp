#include "core/spec/precision.hpp"

#include <fmt/format.h>

#include <vector>

#include "core/base/error.hpp"
#include "core/base/nearest_name.hpp"

namespace shardwright {

const char* name_of(Precision precision) {
  switch (precision) {
    case Precision::Fp32:
      return "fp32";
    case Precision::Tf32:
      return "tf32";
    case Precision::Fp16:
      return "fp16";
    case Precision::Bf16:
      return "bf16";
    case Precision::Fp8:
      return "fp8";
    case Precision::Nvfp4:
      return "nvfp4";
  }
  return "";
}

Precision parse_precision(const std::string& text, const std::string& option) {
  std::vector<std::string> names;
  for (const Precision precision : kPrecisions) {
    if (text == name_of(precision)) return precision;
    names.emplace_back(name_of(precision));
  }
  throw InputError(option, {{"", fmt::format("\"{}\"", text), one_of(text, names)}});
}

}  // namespace shardwright
