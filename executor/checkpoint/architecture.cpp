#include "executor/checkpoint/architecture.hpp"

#include <nlohmann/json.hpp>

#include "core/spec/model_json.hpp"
#include "executor/data/content_checksum.hpp"
#include "executor/data/counter_random.hpp"

namespace shardwright::executor {

nlohmann::json architecture_of(const ModelSpec& model) {
  nlohmann::json document = to_json(model);
  for (const char* key : {"name", "family", "aliases", "source", "max_seq_len", "dropout"})
    document.erase(key);
  return document;
}

std::string architecture_checksum(const ModelSpec& model) {
  return checksum_text(key_of(0, architecture_of(model).dump()));
}

}  // namespace shardwright::executor
