#include "cli/output/spec_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/quantity_text.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;

std::string plain_members(const ordered_json& object);

std::string plain_text(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number_integer()) return format_count(value.get<std::int64_t>());
  if (value.is_array()) {
    std::vector<std::string> items;
    for (const ordered_json& item : value) items.push_back(plain_text(item));
    const bool of_objects = !value.empty() && value.front().is_object();
    return fmt::format("{}", fmt::join(items, of_objects ? "; " : ", "));
  }
  return value.is_object() ? plain_members(value) : value.dump();
}

// Returns the members of an object in one line, figures without their sources: "nodes 32, latency
// 600 ns".
std::string plain_members(const ordered_json& object) {
  std::vector<std::string> items;
  for (const auto& [key, member] : object.items()) {
    const bool figure = member.is_object() && member.contains("value");
    const ordered_json& value = figure ? member["value"] : member;
    const auto [name, text] =
        value.is_number() ? with_unit(key, value.get<double>()) : std::pair(key, plain_text(value));
    items.push_back(fmt::format("{} {}", name, text));
  }
  return fmt::format("{}", fmt::join(items, ", "));
}

class SpecWriter {
 public:
  explicit SpecWriter(Page& page) : page_(page) {}

  void write(const ordered_json& document, const std::string& title) {
    const ordered_json none = ordered_json::object();
    titles_ = document.contains("sources") ? &document["sources"] : &none;
    Table table(
        {{"figure"}, {"value", ColumnKind::Prose}, {"confidence"}, {"source", ColumnKind::Prose}});
    add_members(table, document, "");
    page_.heading(title);
    page_.table(table);
    if (document.contains("notes") && !document["notes"].get<std::string>().empty())
      page_.paragraph(document["notes"].get<std::string>());
    titles_ = nullptr;
    for (const auto& [key, member] : document.items()) {
      if (is_part(member)) write(member, fmt::format("{} {}", key, member.value("name", "")));
    }
  }

 private:
  static bool is_part(const ordered_json& value) {
    return value.is_object() && value.contains("schema");
  }
  static bool is_figure(const ordered_json& value) {
    return value.is_object() && value.contains("value") && value.contains("source");
  }

  void add_members(Table& table, const ordered_json& object, const std::string& prefix) {
    for (const auto& [key, member] : object.items()) {
      if (prefix.empty() && (key == "schema" || key == "version" || key == "sources" ||
                             key == "notes" || key == "name")) {
        continue;
      }
      add_member(table, member, prefix + key, has_base_of_ratio(object, key));
    }
  }

  // Without its ending, "attention_kernel_ratio" would have the label of "attention_kernel".
  static bool has_base_of_ratio(const ordered_json& object, const std::string& key) {
    constexpr std::string_view kRatio = "_ratio";
    return key.ends_with(kRatio) && object.contains(key.substr(0, key.size() - kRatio.size()));
  }

  void add_member(Table& table, const ordered_json& member, const std::string& name,
                  bool keeps_ending) {
    if (is_part(member)) return;
    if (is_figure(member)) {
      const auto [label, value] = labelled(name, member["value"]);
      table.add_row(
          {keeps_ending ? name : label, value, member.value("confidence", ""), source_of(member)});
    } else if (member.is_object()) {
      add_members(table, member, name + ".");
    } else {
      const auto [label, value] = labelled(name, member);
      table.add_row({keeps_ending ? name : label, value, "", ""});
    }
  }

  static std::pair<std::string, std::string> labelled(const std::string& name,
                                                      const ordered_json& value) {
    if (value.is_number()) return with_unit(name, value.get<double>());
    return {name, plain_text(value)};
  }

  std::string source_of(const ordered_json& figure) const {
    std::string key = figure["source"].get<std::string>();
    if (!titles_->contains(key)) return key;
    const ordered_json& source = (*titles_)[key];
    // Web addresses would be wider than the rest of the table; --json has them.
    const std::string title = source.value("title", source.value("url", key));
    return title.substr(0, title.find(", http"));
  }

  Page& page_;
  const ordered_json* titles_ = nullptr;
};

}  // namespace

void add_spec(Page& page, const ordered_json& document) {
  SpecWriter(page).write(document, document.value("name", ""));
}

}  // namespace shardwright::cli
