// The schemas say what the readers do.
#include "core/spec/schemas.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/json_reader.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/model_json.hpp"
#include "core/spec/stack_json.hpp"
#include "tests/thrown.hpp"

namespace shardwright {
namespace {

using nlohmann::json;

using DocumentReader = std::function<void(const json&)>;

bool is_read(const DocumentReader& read, const json& document) {
  return thrown_by([&] { read(document); }).empty();
}

// Leaves each member of the object at `place` out in turn.
void expect_required_as_said(const json& schema, const json& document,
                             const json::json_pointer& place, const DocumentReader& read) {
  const json required = schema.value("required", json::array());
  for (const auto& [key, member] : document.at(place).items()) {
    SCOPED_TRACE((place / key).to_string());
    ASSERT_TRUE(schema.at("properties").contains(key));
    const json& property = schema.at("properties").at(key);
    if (key == "sources" || property.contains("required_where")) continue;
    json without = document;
    without.at(place).erase(key);
    const bool is_required = std::find(required.begin(), required.end(), key) != required.end();
    EXPECT_EQ(is_read(read, without), !is_required);
    const bool is_section = property.contains("properties") && !property.contains("$ref");
    if (is_section) expect_required_as_said(property, document, place / key, read);
  }
}

TEST(Schemas, RequireWhatTheReadersRequire) {
  struct ShippedFile {
    const char* schema;
    const char* file;
    DocumentReader read;
  };
  const ShippedFile files[] = {
      {"model", "models/mixtral-8x7b.json", [](const json& j) { read_model(j, "file"); }},
      {"accelerator", "hardware_profiles/accelerators/h100-sxm.json",
       [](const json& j) { read_accelerator(j, "file"); }},
      {"node", "hardware_profiles/nodes/dgx-h100.json",
       [](const json& j) { read_node(j, "file"); }},
      {"stack", "hardware_profiles/stacks/megatron-core.json",
       [](const json& j) { read_stack(j, "file"); }},
  };
  for (const ShippedFile& each : files) {
    SCOPED_TRACE(each.schema);
    const json document = read_json_file(std::filesystem::path(SHARDWRIGHT_SOURCE_DIR) / each.file);
    ASSERT_TRUE(is_read(each.read, document));
    expect_required_as_said(json(schema_of(each.schema)), document, json::json_pointer(),
                            each.read);
  }
}

void expect_keys_to_end_in_units(const json& object) {
  for (const auto& [key, property] : object.at("properties").items()) {
    if (property.contains("unit")) {
      EXPECT_TRUE(("_" + key).ends_with("_" + property["unit"].get<std::string>())) << key;
    }
    const json& members = property.contains("items") ? property["items"] : property;
    if (members.is_object() && members.contains("properties") && !members.contains("$ref"))
      expect_keys_to_end_in_units(members);
  }
}

TEST(Schemas, KeysEndInTheirUnit) {
  for (const std::string& name : schema_names()) {
    SCOPED_TRACE(name);
    expect_keys_to_end_in_units(json(schema_of(name)));
  }
}

TEST(Schemas, AnUnknownOneIsRefusedWithTheNearestName) {
  EXPECT_THAT(thrown_by([] { schema_of("stak"); }), testing::HasSubstr("did you mean \"stack\"?"));
}

}  // namespace
}  // namespace shardwright
