// Where a measurement was published.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/json_reader.hpp"

namespace shardwright::validation {

struct PublishedSource {
  std::string title;
  // An address, with the table or the section.
  std::string where;
  std::optional<std::int64_t> year;

  bool operator==(const PublishedSource&) const = default;
};

PublishedSource read_published_source(ObjectReader object);

}  // namespace shardwright::validation
