#include "cli/output/embedding.hpp"

namespace shardwright::cli {
namespace {

thread_local const Embedding* current = nullptr;

}  // namespace

const Embedding* current_embedding() {
  return current;
}

EmbeddingScope::EmbeddingScope(const Embedding& embedding) {
  current = &embedding;
}

EmbeddingScope::~EmbeddingScope() {
  current = nullptr;
}

}  // namespace shardwright::cli
