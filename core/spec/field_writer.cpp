#include <nlohmann/json.hpp>
#include <utility>

#include "core/spec/field_json.hpp"

namespace shardwright {
namespace {

using nlohmann::ordered_json;

class FieldWriter : public FieldVisitor {
 public:
  // `defaults` holds all fields of a default-constructed spec. Without it, all fields are written.
  FieldWriter(const ordered_json* defaults, const Sources& sources)
      : defaults_(defaults), sources_(&sources), objects_{{"", ordered_json::object()}} {}

  ordered_json& written() { return objects_.front().members; }

  void header(const char* schema, bool) override {
    written()["schema"] = schema;
    written()["version"] = 1;
  }
  // Keeps the place of the document for the caller, who writes it.
  void document(const char* key, const char*, Presence, const char*) override {
    objects_.back().members[key] = nullptr;
  }

 protected:
  void visit_integer(const SpecField& field, std::int64_t& value, IntegerRange) override {
    put(field, value);
  }
  // Zero says that there is no figure if the range excludes it, whatever source a former figure
  // had.
  void visit_number(const SpecField& field, double& value, NumberRange range,
                    const char*) override {
    const bool absent = value == 0.0 && range.above_zero;
    if (!absent || field.presence.rule != Presence::Rule::Omissible) put(field, value);
  }
  void visit_boolean(const SpecField& field, bool& value) override { put(field, value); }
  void visit_text(const SpecField& field, std::string& value) override { put(field, value); }
  void visit_texts(const SpecField& field, std::vector<std::string>& values) override {
    put(field, values);
  }
  void visit_choice(const SpecField& field, std::size_t& index, Names names) override {
    put(field, names[index]);
  }
  void visit_choices(const SpecField& field, std::vector<std::size_t>& indices,
                     Names names) override {
    ordered_json values = ordered_json::array();
    for (const std::size_t index : indices) values.push_back(names[index]);
    put(field, std::move(values));
  }
  void visit_integers(const SpecField& field, std::vector<std::int64_t>& values,
                      IntegerRange) override {
    put(field, values);
  }

  bool begin_section(const SpecField& field, bool present) override {
    if (!present) return false;
    objects_.push_back({pointer_to(field), ordered_json::object()});
    section_keys_.emplace_back(field.key);
    return true;
  }
  void end_section() override {
    ordered_json members = std::move(objects_.back().members);
    objects_.pop_back();
    objects_.back().members[section_keys_.back()] = std::move(members);
    section_keys_.pop_back();
  }
  std::size_t begin_list(const SpecField& field, std::size_t size) override {
    lists_.emplace_back(field, ordered_json::array());
    return size;
  }
  void begin_item(std::size_t) override { objects_.push_back({"", ordered_json::object()}); }
  void end_item() override {
    lists_.back().second.push_back(std::move(objects_.back().members));
    objects_.pop_back();
  }
  void end_list() override {
    auto [field, items] = std::move(lists_.back());
    lists_.pop_back();
    put(field, std::move(items));
  }
  void begin_condition(const FieldCondition& condition) override {
    applies_ = condition.holds || defaults_ == nullptr;
  }
  void end_condition() override { applies_ = true; }

 private:
  struct Object {
    std::string pointer;
    ordered_json members;
  };

  std::string pointer_to(const SpecField& field) const {
    return objects_.back().pointer + "/" + field.key;
  }

  void put(const SpecField& field, ordered_json value) {
    if (applies_ && !is_default(field, value))
      objects_.back().members[field.key] = std::move(value);
  }

  // True if the field may be left out. A default with a stated source is written.
  bool is_default(const SpecField& field, const ordered_json& value) const {
    if (field.presence.rule != Presence::Rule::Omissible || defaults_ == nullptr) return false;
    // `defaults_` has no items of lists.
    const bool empty = value == "" || value == ordered_json::array();
    if (!lists_.empty() && empty) return true;
    const std::string pointer = pointer_to(field);
    if (sources_->contains(pointer)) return false;
    const ordered_json::json_pointer place(pointer);
    return defaults_->contains(place) && defaults_->at(place) == value;
  }

  const ordered_json* defaults_;
  const Sources* sources_;
  std::vector<Object> objects_;
  std::vector<std::string> section_keys_;
  std::vector<std::pair<SpecField, ordered_json>> lists_;
  bool applies_ = true;
};

}  // namespace

ordered_json write_fields(const FieldWalk& walk, const FieldWalk& defaults,
                          const Sources& sources) {
  FieldWriter all(nullptr, sources);
  defaults(all);
  FieldWriter writer(&all.written(), sources);
  walk(writer);
  return std::move(writer.written());
}

}  // namespace shardwright
