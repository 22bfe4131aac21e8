// shardwright schema
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands/command.hpp"
#include "cli/output/output_file.hpp"
#include "core/base/nearest_name.hpp"
#include "core/spec/schemas.hpp"
#include "validation/measurement.hpp"
#include "validation/published_run.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;

constexpr const char* kMeasurement = "measurement";
constexpr const char* kPublishedRun = "published_run";

std::vector<std::string> format_names() {
  std::vector<std::string> names = schema_names();
  names.emplace_back(kMeasurement);
  names.emplace_back(kPublishedRun);
  std::ranges::sort(names);
  return names;
}

ordered_json schema_of_format(const std::string& name) {
  if (name == kMeasurement) return validation::measurement_schema();
  if (name == kPublishedRun) return validation::published_run_schema();
  const std::vector<std::string> names = format_names();
  if (std::ranges::find(names, name) == names.end())
    throw InputError(name, {{"", "no schema of this name", one_of(name, names)}});
  return schema_of(name);
}

struct SchemaOptions {
  CommonOptions common;
  std::string name;
};

std::string plain(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// "from 0 to 1", "above 0".
std::string limits_text(const ordered_json& schema) {
  constexpr double kNoLimit = 1e30;
  std::string text = schema.contains("minimum") ? "from " + schema["minimum"].dump()
                                                : "above " + schema["exclusiveMinimum"].dump();
  if (schema["maximum"].get<double>() < kNoLimit) text += " to " + schema["maximum"].dump();
  return text;
}

std::string values_text(const ordered_json& schema) {
  if (schema.contains("enum")) {
    std::vector<std::string> names;
    for (const ordered_json& name : schema["enum"]) names.push_back(plain(name));
    return fmt::format("{}", fmt::join(names, ", "));
  }
  if (schema.contains("const")) return plain(schema["const"]);
  if (schema.contains("anyOf")) return "a name or an object";
  if (!schema.contains("type")) return "anything";
  const ordered_json& types = schema["type"];
  const std::string type = plain(types.is_array() ? types[0] : types);
  if (type == "array") return "list: " + values_text(schema["items"]);
  if (type == "integer" || type == "number") return fmt::format("{} {}", type, limits_text(schema));
  return type == "string" ? "text" : type;
}

std::string default_text(const ordered_json& schema) {
  const std::string reason = schema.value("default_reason", "");
  if (!schema.contains("default")) return reason;
  const ordered_json& value = schema["default"];
  std::vector<std::string> items;
  if (value.is_array()) {
    for (const ordered_json& item : value) items.push_back(plain(item));
  }
  const std::string text =
      value.is_array() ? fmt::format("{}", fmt::join(items, ", ")) : plain(value);
  return reason.empty() ? text : fmt::format("{} ({})", text, reason);
}

class FieldTable {
 public:
  void add_members(const ordered_json& object, const std::string& prefix) {
    const ordered_json required = object.value("required", ordered_json::array());
    for (const auto& [key, member] : object["properties"].items()) {
      const bool is_required = std::find(required.begin(), required.end(), key) != required.end();
      add_member(prefix + key, member, is_required);
    }
  }
  const Table& table() const { return table_; }

 private:
  void add_member(const std::string& key, const ordered_json& schema, bool is_required) {
    const bool is_list = schema.contains("items") && schema["items"].contains("properties");
    const bool is_section = schema.contains("properties") && !schema.contains("$ref");
    std::string presence = is_required ? "required" : default_text(schema);
    if (schema.contains("required_where"))
      presence = fmt::format("required if {}", plain(schema["required_where"]));
    table_.add_row({key, is_list ? "list of objects" : values_text(schema), presence,
                    schema.value("description", "")});
    if (is_section) add_members(schema, key + ".");
    if (is_list) add_members(schema["items"], key + "[].");
  }

  Table table_{{{"key"},
                {"values", ColumnKind::Prose},
                {"default", ColumnKind::Prose},
                {"meaning", ColumnKind::Prose}}};
};

ExitCode show_schema(const SchemaOptions& options) {
  check_destination("--json", options.common.json, options.common.force);
  const ordered_json schema = schema_of_format(options.name);
  FieldTable fields;
  fields.add_members(schema, "");
  Page page = new_page(options.common);
  page.table(fields.table());
  deliver(options.common, page, schema);
  return ExitCode::Ok;
}

}  // namespace

void add_schema_command(CLI::App& app, Action& action) {
  CLI::App* schema = app.add_subcommand(
      "schema",
      "List the fields of a file format: values, defaults, meaning; write its JSON Schema");
  const auto options = std::make_shared<SchemaOptions>();
  add_option(*schema, "format", options->name, "FORMAT",
             fmt::format("{}", fmt::join(format_names(), ", ")))
      ->required();
  schema->footer(R"(Examples:
  shardwright schema stack
  shardwright schema plan --json plan.schema.json)");
  add_common_options(*schema, options->common);
  schema->callback([options, &action] { action = [options] { return show_schema(*options); }; });
}

}  // namespace shardwright::cli
