#include <fmt/format.h>
#include <fmt/ranges.h>

#include <deque>
#include <nlohmann/json.hpp>
#include <set>

#include "core/spec/field_json.hpp"
#include "core/spec/figures.hpp"

namespace shardwright {
namespace {

class FieldReader : public FieldVisitor {
 public:
  FieldReader(ObjectReader& root, FillInReport* report) : root_(&root), report_(report) {}

  void header(const char* schema, bool has_sources) override {
    check_schema(object(), schema);
    if (has_sources) object().allow("sources");
  }
  void document(const char* key, const char*, Presence, const char*) override {
    object().allow(key);
  }

 protected:
  void visit_integer(const SpecField& field, std::int64_t& value, IntegerRange range) override {
    if (is_given(field)) {
      value = object().integer(field.key, range);
    } else if (!is_unknown_ && !is_refused_) {
      if (field.presence.fallback) value = static_cast<std::int64_t>(*field.presence.fallback);
      report_figure(field, fmt::format("{}", value));
    }
  }
  void visit_number(const SpecField& field, double& value, NumberRange range,
                    const char*) override {
    if (is_given(field)) {
      value = object().number(field.key, range);
    } else if (!is_unknown_ && !is_refused_) {
      value = field.presence.fallback.value_or(value);
      report_figure(field, fmt::format("{:.6g}", value));
    }
  }
  void visit_boolean(const SpecField& field, bool& value) override {
    if (is_given(field)) {
      value = object().boolean(field.key);
    } else if (!is_unknown_ && !is_refused_) {
      report(field, fmt::format("{}", value));
    }
  }
  void visit_text(const SpecField& field, std::string& value) override {
    if (!is_given(field)) return;
    value = field.presence.rule == Presence::Rule::Required ? object().name(field.key)
                                                            : object().text(field.key);
  }
  void visit_texts(const SpecField& field, std::vector<std::string>& values) override {
    if (is_given(field)) values = object().texts(field.key);
  }
  void visit_choice(const SpecField& field, std::size_t& index, Names names) override {
    if (!is_given(field)) return;
    const std::size_t known_problems = object().problems().size();
    index = object().choose(field.key, names);
    if (object().problems().size() > known_problems) refused_choices_.insert(pointer_to(field.key));
  }
  void visit_choices(const SpecField& field, std::vector<std::size_t>& indices,
                     Names names) override {
    if (is_given(field)) indices = object().choose_all(field.key, names);
  }
  void visit_integers(const SpecField& field, std::vector<std::int64_t>& values,
                      IntegerRange range) override {
    if (is_given(field)) values = object().integers(field.key, range);
  }

  bool begin_section(const SpecField& field, bool present) override {
    if (!present && !object().has(field.key)) return false;
    nested_.push_back(field.presence.rule == Presence::Rule::Required ? object().object(field.key)
                                                                      : optional_object(field.key));
    return true;
  }
  void end_section() override {
    object().refuse_unknown_keys();
    nested_.pop_back();
  }
  std::size_t begin_list(const SpecField& field, std::size_t) override {
    lists_.push_back(is_given(field) ? object().objects(field.key) : std::vector<ObjectReader>());
    return lists_.back().size();
  }
  void begin_item(std::size_t index) override { nested_.push_back(lists_.back()[index]); }
  void end_item() override { end_section(); }
  void end_list() override { lists_.pop_back(); }

  void begin_condition(const FieldCondition& condition) override {
    // If the field that decides was refused, further problems would only follow from that one.
    is_unknown_ = refused_choices_.contains(pointer_to(condition.key));
    is_refused_ = !is_unknown_ && !condition.holds;
    expected_ = fmt::format("no such key: only if {} is {}{}", condition.key,
                            condition.wanted ? "" : "not ", fmt::join(condition.values, " or "));
  }
  void end_condition() override { is_unknown_ = is_refused_ = false; }

 private:
  // A missing member reads as an empty object.
  ObjectReader optional_object(const char* key) {
    static const nlohmann::json kEmpty = nlohmann::json::object();
    if (object().has(key)) return object().object(key);
    return {kEmpty, pointer_to(key), object().problems()};
  }

  ObjectReader& object() { return nested_.empty() ? *root_ : nested_.back(); }
  std::string pointer_to(const char* key) { return object().pointer() + "/" + key; }

  bool is_given(const SpecField& field) {
    const bool is_there = object().has(field.key);
    if (is_refused_ && is_there) object().problem_with(field.key, expected_);
    if (is_unknown_ || is_refused_) return false;
    return is_there || field.presence.rule == Presence::Rule::Required;
  }

  void report(const SpecField& field, const std::string& value) {
    if (report_ == nullptr || field.presence.rule != Presence::Rule::Reported) return;
    const char* reason = field.presence.reason;
    report_->lines->push_back(fmt::format("{}: {} filled in ({})", pointer_to(field.key), value,
                                          reason == nullptr ? "the default" : reason));
  }
  void report_figure(const SpecField& field, const std::string& value) {
    if (report_ == nullptr || field.presence.rule != Presence::Rule::Reported) return;
    report(field, value);
    (*report_->sources)[pointer_to(field.key).substr(report_->root.size())] = {kFilledIn,
                                                                               Confidence::Assumed};
  }

  ObjectReader* root_;
  FillInReport* report_;
  std::deque<ObjectReader> nested_;
  std::vector<std::vector<ObjectReader>> lists_;
  // State of the condition around the current fields: it cannot be decided, or does not hold.
  bool is_unknown_ = false, is_refused_ = false;
  // The text that refuses fields whose condition does not hold.
  std::string expected_;
  // Pointers of choices with a value that was refused.
  std::set<std::string> refused_choices_;
};

}  // namespace

void read_fields(ObjectReader& object, const FieldWalk& walk, FillInReport* report) {
  FieldReader reader(object, report);
  walk(reader);
  object.refuse_unknown_keys();
}

void read_figures(const nlohmann::json& document, const std::string& pointer, ProblemList& problems,
                  Sources& sources, std::vector<std::string>& lines, const FieldWalk& walk) {
  const nlohmann::json plain = separate_figures(document, pointer, problems, sources);
  ObjectReader object(plain, pointer, problems);
  FillInReport report{pointer, &sources, &lines};
  read_fields(object, walk, &report);
}

}  // namespace shardwright
