// The table of a spec's fields. Each field is one call, which states everything about it:
//
//   void describe(NicSpec& nic, FieldVisitor& fields) {
//     fields.integer("per_node", nic.per_node, {0, 10'000}, kRequired, "NICs of a node");
//     fields.number("efficiency_ratio", nic.efficiency, kRatio, reported("typical of InfiniBand"),
//                   "share of the line rate that large messages reach");
//   }
//
// that is: its key in JSON, the member that holds it, the range, whether a document may leave it
// out, and its meaning. The default is the value that the member is initialised with.
//
// Three visitors walk the table, in the order in which JSON has the fields: a reader, a writer, and
// one that writes the format's JSON Schema (core/spec/field_json.hpp). The reference tables of
// docs/formats come from the schemas (tools/write_formats).
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/enum_names.hpp"
#include "core/base/enum_set.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/units.hpp"

namespace shardwright {

// States whether a document may leave a field out, and the default that the field then has.
struct Presence {
  enum class Rule : std::uint8_t {
    Required,
    // The reader reports the default that it filled in, and counts it as assumed.
    Reported,
    // The reader fills in the default without a report.
    Optional,
    // Like Optional, and the writer leaves the field out while it holds its default.
    Omissible,
  };
  Rule rule = Rule::Required;
  // The default, if it is not the member's initial value.
  std::optional<double> fallback = std::nullopt;
  // The reason for the default. If the default depends on other fields, how it follows from them.
  const char* reason = nullptr;
  bool depends = false;
  // The condition under which the field is required, if only some documents must have it.
  const char* required_where = nullptr;
};

inline constexpr Presence kRequired{Presence::Rule::Required};
inline constexpr Presence kReported{Presence::Rule::Reported};
inline constexpr Presence kOptional{Presence::Rule::Optional};
inline constexpr Presence kOmissible{Presence::Rule::Omissible};

constexpr Presence reported(const char* reason, std::optional<double> fallback = std::nullopt) {
  return {Presence::Rule::Reported, fallback, reason};
}
// The default follows from fields that are read before this one; `rule` says how, for people.
constexpr Presence derived(Presence presence, double fallback, const char* rule) {
  return {presence.rule, fallback, rule, true};
}
// The field is required if `holds`; `where` is the same condition for people.
constexpr Presence required_if(bool holds, const char* where, Presence otherwise) {
  if (holds) otherwise.rule = Presence::Rule::Required;
  otherwise.required_where = where;
  return otherwise;
}

// The parts of a field that do not depend on its type.
struct SpecField {
  const char* key;
  Presence presence;
  const char* meaning;
};

// The unit of a quantity, with which its keys end.
template <class Q>
inline constexpr const char* kUnit = nullptr;
template <>
inline constexpr const char* kUnit<Seconds> = "s";
template <>
inline constexpr const char* kUnit<Bytes> = "bytes";
template <>
inline constexpr const char* kUnit<BytesPerSecond> = "bytes_per_s";
template <>
inline constexpr const char* kUnit<FlopPerSecond> = "flop_per_s";
template <>
inline constexpr const char* kUnit<Hertz> = "hz";
template <>
inline constexpr const char* kUnit<Watts> = "w";

// The condition under which a document may hold some fields.
struct FieldCondition {
  // The field `key` has one of these values, or, if they are not `wanted`, none of them.
  const char* key;
  std::vector<std::string> values;
  bool wanted;
  // True if it holds for the spec at hand.
  bool holds;
};

class FieldVisitor {
 public:
  using Names = std::span<const char* const>;

  virtual ~FieldVisitor() = default;

  // The keys "schema" and "version". With `has_sources`, each number of the document may state its
  // source (core/spec/figures.hpp).
  virtual void header(const char* schema, bool has_sources) = 0;

  template <std::integral I>
  void integer(const char* key, I& value, IntegerRange range, Presence presence,
               const char* meaning) {
    std::int64_t number = value;
    visit_integer({key, presence, meaning}, number, range);
    value = static_cast<I>(number);
  }

  void number(const char* key, double& value, NumberRange range, Presence presence,
              const char* meaning) {
    visit_number({key, presence, meaning}, value, range, nullptr);
  }
  template <int t, int b, int f, int e, int m>
  void number(const char* key, Quantity<t, b, f, e, m>& value, NumberRange range, Presence presence,
              const char* meaning) {
    double number = value.value();
    visit_number({key, presence, meaning}, number, range, kUnit<Quantity<t, b, f, e, m>>);
    value = Quantity<t, b, f, e, m>(number);
  }

  void boolean(const char* key, bool& value, Presence presence, const char* meaning) {
    visit_boolean({key, presence, meaning}, value);
  }
  // A required text must not be empty.
  void text(const char* key, std::string& value, Presence presence, const char* meaning) {
    visit_text({key, presence, meaning}, value);
  }
  void texts(const char* key, std::vector<std::string>& values, Presence presence,
             const char* meaning) {
    visit_texts({key, presence, meaning}, values);
  }

  template <NamedEnum E>
  void choice(const char* key, E& value, Presence presence, const char* meaning) {
    choice_between(key, value, E{}, static_cast<E>(kEnumCount<E> - 1), presence, meaning);
  }
  // A choice among the enumerators from `first` to `last`.
  template <NamedEnum E>
  void choice_between(const char* key, E& value, E first, E last, Presence presence,
                      const char* meaning) {
    const Names names =
        names_of<E>().subspan(index_of(first), index_of(last) - index_of(first) + 1);
    std::size_t index = index_of(value) - index_of(first);
    visit_choice({key, presence, meaning}, index, names);
    value = static_cast<E>(index_of(first) + index);
  }
  template <NamedEnum E>
  void choices(const char* key, std::vector<E>& values, Presence presence, const char* meaning) {
    std::vector<std::size_t> indices;
    for (const E value : values) indices.push_back(index_of(value));
    visit_choices({key, presence, meaning}, indices, names_of<E>());
    values.clear();
    for (const std::size_t index : indices) values.push_back(static_cast<E>(index));
  }
  template <NamedEnum E>
  void choices(const char* key, EnumSet<E>& set, Presence presence, const char* meaning) {
    std::vector<E> members = set.members();
    choices(key, members, presence, meaning);
    set = {};
    for (const E member : members) set.insert(member);
  }
  template <std::integral I>
  void integers(const char* key, std::vector<I>& values, IntegerRange range, Presence presence,
                const char* meaning) {
    std::vector<std::int64_t> numbers(values.begin(), values.end());
    visit_integers({key, presence, meaning}, numbers, range);
    values.assign(numbers.begin(), numbers.end());
  }

  // A nested object. If it is not required and a document leaves it out, it reads as an empty one.
  template <class Describe>
  void section(const char* key, Presence presence, const char* meaning, Describe describe_members) {
    begin_section({key, presence, meaning}, true);
    describe_members();
    end_section();
  }
  // A nested object; `value` is empty if a document leaves it out.
  template <class T, class Describe>
  void optional_section(const char* key, std::optional<T>& value, const char* meaning,
                        Describe describe_members) {
    if (!begin_section({key, kOmissible, meaning}, value.has_value())) return;
    if (!value) value.emplace();
    describe_members(*value);
    end_section();
  }
  // An array of objects.
  template <class T, class Describe>
  void list(const char* key, std::vector<T>& items, Presence presence, const char* meaning,
            Describe describe_item) {
    items.resize(begin_list({key, presence, meaning}, items.size()));
    for (std::size_t i = 0; i < items.size(); ++i) {
      begin_item(i);
      describe_item(items[i]);
      end_item();
    }
    end_list();
  }

  // Fields that a document may hold only if the field `key` has one of the values.
  template <NamedEnum E, class Describe>
  void only_where(const char* key, E value, std::initializer_list<E> values,
                  Describe describe_fields) {
    describe_where(key, value, values, true, describe_fields);
  }
  // Fields that a document may hold only if the field `key` has none of the values.
  template <NamedEnum E, class Describe>
  void except_where(const char* key, E value, std::initializer_list<E> values,
                    Describe describe_fields) {
    describe_where(key, value, values, false, describe_fields);
  }

  // A document of another schema, or its name. The visitors only allow and place the key; the
  // caller reads and writes the document.
  virtual void document(const char* key, const char* schema, Presence presence,
                        const char* meaning) = 0;

 protected:
  virtual void visit_integer(const SpecField& field, std::int64_t& value, IntegerRange range) = 0;
  virtual void visit_number(const SpecField& field, double& value, NumberRange range,
                            const char* unit) = 0;
  virtual void visit_boolean(const SpecField& field, bool& value) = 0;
  virtual void visit_text(const SpecField& field, std::string& value) = 0;
  virtual void visit_texts(const SpecField& field, std::vector<std::string>& values) = 0;
  virtual void visit_choice(const SpecField& field, std::size_t& index, Names names) = 0;
  virtual void visit_choices(const SpecField& field, std::vector<std::size_t>& indices,
                             Names names) = 0;
  virtual void visit_integers(const SpecField& field, std::vector<std::int64_t>& values,
                              IntegerRange range) = 0;
  // Returns false if there is no such section; its members are then not visited.
  virtual bool begin_section(const SpecField& field, bool present) = 0;
  virtual void end_section() = 0;
  // Returns the number of items to describe.
  virtual std::size_t begin_list(const SpecField& field, std::size_t size) = 0;
  virtual void begin_item(std::size_t index) = 0;
  virtual void end_item() = 0;
  virtual void end_list() = 0;
  virtual void begin_condition(const FieldCondition& condition) = 0;
  virtual void end_condition() = 0;

 private:
  template <class E, class Describe>
  void describe_where(const char* key, E value, std::initializer_list<E> values, bool wanted,
                      Describe describe_fields) {
    FieldCondition condition{key, {}, wanted, !wanted};
    for (const E each : values) {
      condition.values.emplace_back(name_of(each));
      if (each == value) condition.holds = wanted;
    }
    begin_condition(condition);
    describe_fields();
    end_condition();
  }
};

struct AcceleratorSpec;
struct BatchSpec;
struct ClusterSpec;
struct FabricSpec;
struct JobsSpec;
struct ModelSpec;
struct NodeSpec;
struct Plan;
struct RunSpec;
struct Scenario;
struct StackSpec;

void describe(AcceleratorSpec& accelerator, FieldVisitor& fields);
void describe(BatchSpec& batch, FieldVisitor& fields);
void describe(ClusterSpec& cluster, FieldVisitor& fields);
void describe(FabricSpec& fabric, FieldVisitor& fields);
void describe(JobsSpec& jobs, FieldVisitor& fields);
void describe(ModelSpec& model, FieldVisitor& fields);
void describe(NodeSpec& node, FieldVisitor& fields);
void describe(Plan& plan, FieldVisitor& fields);
void describe(RunSpec& run, FieldVisitor& fields);
void describe(Scenario& scenario, FieldVisitor& fields);
void describe(StackSpec& stack, FieldVisitor& fields);

}  // namespace shardwright
