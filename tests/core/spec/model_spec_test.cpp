#include "core/spec/model_spec.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/spec/model_json.hpp"

namespace shardwright {
namespace {

ModelSpec shipped(const std::string& name) {
  const std::string file = std::string(SHARDWRIGHT_SOURCE_DIR) + "/models/" + name + ".json";
  return read_model(read_json_file(file), file);
}

TEST(ModelSpec, Llama3HasItsPublishedParameters) {
  EXPECT_EQ(count_parameters(shipped("llama3-8b")).total, 8'030'261'248);
  EXPECT_EQ(count_parameters(shipped("llama3-70b")).total, 70'553'706'496);
}

}  // namespace
}  // namespace shardwright
