#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "core/spec/field_json.hpp"

namespace shardwright {
namespace {

using nlohmann::ordered_json;

ordered_json limits(IntegerRange range) {
  return {{"minimum", range.least}, {"maximum", range.most}};
}

ordered_json limits(NumberRange range) {
  const bool above_zero = range.above_zero && range.least <= 0.0;
  return {{above_zero ? "exclusiveMinimum" : "minimum", range.least}, {"maximum", range.most}};
}

ordered_json one_of_names(FieldVisitor::Names names) {
  return {{"enum", std::vector<std::string>(names.begin(), names.end())}};
}

ordered_json object_schema() {
  return {{"type", "object"},
          {"properties", ordered_json::object()},
          {"required", ordered_json::array()},
          {"additionalProperties", false}};
}

ordered_json figure_schema() {
  const ordered_json error = {{"type", "number"}, {"minimum", 0}};
  ordered_json figure = object_schema();
  // Without "type" the rules apply to objects only, so that plain numbers pass as well.
  figure.erase("type");
  figure["description"] = "a number, or list of numbers, with its source";
  figure["properties"] = {{"value", {{"type", {"number", "array"}}}},
                          {"source", {{"type", "string"}, {"description", "a key of `sources`"}}},
                          {"confidence", one_of_names(names_of<Confidence>())},
                          {"low", error},
                          {"high", error},
                          {"residual_ratio", error}};
  figure["required"] = {"value", "source", "confidence"};
  return figure;
}

ordered_json sources_schema() {
  ordered_json source = object_schema();
  source["properties"] = {{"title", {{"type", "string"}}}, {"url", {{"type", "string"}}}};
  source["required"] = {"title"};
  return {{"description", "documents that figures name as their sources"},
          {"type", "object"},
          {"additionalProperties", std::move(source)}};
}

// A document, or its name. Models, clusters and stacks may also be patches
// (core/spec/spec_document.hpp).
ordered_json document_reference(const char* schema) {
  if (schema == nullptr) return ordered_json::object();
  ordered_json forms = {{{"type", "string"}}, {{"$ref", fmt::format("{}.json", schema)}}};
  const std::string name = schema;
  if (name == "model" || name == "cluster" || name == "stack")
    forms.push_back({{"type", "object"}, {"required", {"base"}}});
  return {{"anyOf", std::move(forms)}};
}

class SchemaWriter : public FieldVisitor {
 public:
  ordered_json& root() { return objects_.front(); }

  void header(const char* schema, bool has_sources) override {
    has_sources_ = has_sources;
    root()["title"] = schema;
    root()["properties"] = {{"schema", {{"const", schema}}}, {"version", {{"const", 1}}}};
    root()["required"] = {"schema", "version"};
    if (!has_sources) return;
    root()["properties"]["sources"] = sources_schema();
    root()["$defs"] = {{"figure", figure_schema()}};
  }
  void document(const char* key, const char* schema, Presence presence,
                const char* meaning) override {
    add({key, presence, meaning}, document_reference(schema));
  }

 protected:
  void visit_integer(const SpecField& field, std::int64_t& value, IntegerRange range) override {
    add_with_default(field, value, as_figure("integer", limits(range)));
  }
  void visit_number(const SpecField& field, double& value, NumberRange range,
                    const char* unit) override {
    ordered_json schema = as_figure("number", limits(range));
    if (unit != nullptr) schema["unit"] = unit;
    // 15 digits print the number as people write it, 5e-06, not the double's 17 digits.
    add_with_default(field, std::stod(fmt::format("{:.15g}", value)), std::move(schema));
  }
  void visit_boolean(const SpecField& field, bool& value) override {
    add_with_default(field, value, {{"type", "boolean"}});
  }
  void visit_text(const SpecField& field, std::string&) override {
    ordered_json schema = {{"type", "string"}};
    if (field.presence.rule == Presence::Rule::Required) schema["minLength"] = 1;
    add(field, std::move(schema));
  }
  void visit_texts(const SpecField& field, std::vector<std::string>&) override {
    add(field, {{"type", "array"}, {"items", {{"type", "string"}}}});
  }
  void visit_choice(const SpecField& field, std::size_t& index, Names names) override {
    add_with_default(field, names[index], one_of_names(names));
  }
  void visit_choices(const SpecField& field, std::vector<std::size_t>& indices,
                     Names names) override {
    ordered_json chosen = ordered_json::array();
    for (const std::size_t index : indices) chosen.push_back(names[index]);
    add_with_default(field, std::move(chosen), {{"type", "array"}, {"items", one_of_names(names)}});
  }
  void visit_integers(const SpecField& field, std::vector<std::int64_t>& values,
                      IntegerRange range) override {
    ordered_json items = limits(range);
    items["type"] = "integer";
    add_with_default(field, values, as_figure("array", {{"items", std::move(items)}}));
  }

  bool begin_section(const SpecField& field, bool) override {
    open_.push_back(field);
    objects_.push_back(object_schema());
    return true;
  }
  void end_section() override {
    const ordered_json object = closed_object();
    add(closed_field(), object);
  }
  std::size_t begin_list(const SpecField& field, std::size_t) override {
    open_.push_back(field);
    return 1;
  }
  void begin_item(std::size_t) override { objects_.push_back(object_schema()); }
  void end_item() override {}
  void end_list() override {
    ordered_json items = closed_object();
    add(closed_field(), {{"type", "array"}, {"items", std::move(items)}});
  }

  void begin_condition(const FieldCondition& condition) override {
    rule_depth_ = objects_.size();
    const ordered_json& asked = objects_.back()["properties"][condition.key];
    const ordered_json values = {{"enum", condition.values}};
    ordered_json test = {
        {"properties",
         {{condition.key, condition.wanted ? values : ordered_json{{"not", values}}}}}};
    // A document without the key has the key's default, for which the condition may not hold.
    if (asked.contains("default") && !condition.holds) test["required"] = {condition.key};
    rule_ = {{"if", std::move(test)},
             {"then", {{"required", ordered_json::array()}}},
             {"else", {{"properties", ordered_json::object()}}}};
    where_ = fmt::format("only if `{}` is {}{}", condition.key, condition.wanted ? "" : "not ",
                         fmt::join(condition.values, " or "));
  }
  void end_condition() override {
    if (rule_["then"]["required"].empty()) rule_.erase("then");
    objects_.back()["allOf"].push_back(std::move(rule_));
    rule_depth_ = 0;
  }

 private:
  // A value of a type within limits, or, in documents with sources, a figure that holds one.
  ordered_json as_figure(const char* type, const ordered_json& limits) const {
    ordered_json schema = {{"type", type}};
    schema.update(limits);
    if (!has_sources_) return schema;
    schema["properties"]["value"] = schema;
    schema["type"] = {type, "object"};
    schema["$ref"] = "#/$defs/figure";
    return schema;
  }

  void add_with_default(const SpecField& field, ordered_json value, ordered_json schema) {
    const Presence& presence = field.presence;
    if (!is_required(presence) && presence.required_where == nullptr && !presence.depends) {
      if (presence.fallback && value.is_number_integer())
        value = static_cast<std::int64_t>(*presence.fallback);
      else if (presence.fallback)
        value = *presence.fallback;
      schema["default"] = std::move(value);
    }
    add(field, schema);
  }

  void add(const SpecField& field, const ordered_json& schema) {
    const Presence& presence = field.presence;
    ordered_json described = {{"description", field.meaning}};
    if (in_condition()) described["description"] = fmt::format("{}; {}", field.meaning, where_);
    described.update(schema);
    if (presence.reason != nullptr) described["default_reason"] = presence.reason;
    if (presence.required_where != nullptr) described["required_where"] = presence.required_where;
    objects_.back()["properties"][field.key] = std::move(described);
    if (is_required(presence))
      (in_condition() ? rule_["then"] : objects_.back())["required"].push_back(field.key);
    if (in_condition()) rule_["else"]["properties"][field.key] = false;
  }

  bool in_condition() const { return rule_depth_ == objects_.size(); }

  static bool is_required(const Presence& presence) {
    return presence.rule == Presence::Rule::Required && presence.required_where == nullptr;
  }

  SpecField closed_field() {
    const SpecField field = open_.back();
    open_.pop_back();
    return field;
  }
  ordered_json closed_object() {
    ordered_json object = std::move(objects_.back());
    objects_.pop_back();
    if (object["required"].empty()) object.erase("required");
    return object;
  }

  std::vector<ordered_json> objects_{object_schema()};
  std::vector<SpecField> open_;
  bool has_sources_ = false;
  // The rule for the fields under the current condition, and the condition for people.
  ordered_json rule_;
  std::string where_;
  // The number of open objects where the condition began, or 0 without a condition.
  std::size_t rule_depth_ = 0;
};

}  // namespace

ordered_json json_schema(const FieldWalk& walk) {
  SchemaWriter writer;
  walk(writer);
  ordered_json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}};
  schema.update(writer.root());
  return schema;
}

}  // namespace shardwright
