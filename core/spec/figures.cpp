#include "core/spec/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/nearest_name.hpp"

namespace shardwright {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// The names of the sources in the document's "sources" map.
using SourceTitles = std::map<std::string, std::string>;

SourceTitles read_titles(const json& document, const std::string& pointer, ProblemList& problems) {
  SourceTitles titles;
  if (!document.is_object() || !document.contains("sources")) return titles;
  ObjectReader sources(document.at("sources"), pointer + "/sources", problems);
  for (const std::string& key : sources.keys()) {
    ObjectReader source = sources.object(key);
    std::string title = source.text("title");
    const std::string url = source.text_or("url", "");
    source.refuse_unknown_keys();
    titles[key] = url.empty() ? title : fmt::format("{}, {}", title, url);
  }
  return titles;
}

// Numbers that name something (the format, ZeRO's stages) were not measured by anybody.
bool names_something(const std::string& pointer) {
  return pointer == "/version" || pointer == "/zero_stages" || pointer == "/capabilities";
}

// Numbers that say which exchanges a curve was fitted to were not measured either.
bool names_exchanges(const std::string& pointer, const std::string& key) {
  static const std::set<std::string> kKeys = {"members", "nodes", "span", "least_bytes",
                                              "most_bytes"};
  return pointer.rfind("/exchange_curves/", 0) == 0 && kKeys.contains(key);
}

bool all_numbers(const json& array) {
  return !array.empty() &&
         std::ranges::all_of(array, [](const json& element) { return element.is_number(); });
}

// One walk over a document.
class Separator {
 public:
  Separator(std::string root, SourceTitles titles, ProblemList& problems, Sources& sources)
      : root_(std::move(root)),
        titles_(std::move(titles)),
        problems_(&problems),
        sources_(&sources) {}

  json document(const json& value) {
    if (!value.is_object()) return value;
    const auto sources = value.find("sources");
    titles_refused_ = sources != value.end() && !sources->is_object();
    json plain = json::object();
    for (const auto& [key, member] : value.items()) {
      const std::string pointer = below("", key);
      const bool is_figure = key != "sources" && !names_something(pointer);
      plain[key] = is_figure ? separated(member, pointer) : member;
    }
    return plain;
  }

 private:
  static std::string below(const std::string& pointer, const std::string& key) {
    return pointer + (json::json_pointer() / key).to_string();
  }

  json separated(const json& value, const std::string& pointer) {
    if (value.is_number() || (value.is_array() && all_numbers(value))) {
      (*sources_)[pointer] = {kGivenWithoutSource, Confidence::Assumed};
      return value;
    }
    if (value.is_array()) return separated_array(value, pointer);
    if (!value.is_object() || value.contains("schema")) return value;
    if (value.contains("value")) return figure(value, pointer);
    json plain = json::object();
    for (const auto& [key, member] : value.items()) {
      plain[key] = separated(member, below(pointer, key));
      // Earlier versions wrote a source for these, too.
      if (names_exchanges(pointer, key)) sources_->erase(below(pointer, key));
    }
    return plain;
  }

  json separated_array(const json& value, const std::string& pointer) {
    json plain = json::array();
    for (std::size_t i = 0; i < value.size(); ++i)
      plain.push_back(separated(value[i], fmt::format("{}/{}", pointer, i)));
    return plain;
  }

  json figure(const json& value, const std::string& pointer) {
    ObjectReader reader(value, root_ + pointer, *problems_);
    json plain = reader.raw("value");
    if (plain.is_null()) reader.problem("value", "null", "a number, or no such figure");
    const std::string key = reader.text("source");
    Provenance provenance;
    provenance.confidence = reader.choice<Confidence>("confidence");
    provenance.low = reader.number_or("low", 0.0, kNonNegative);
    provenance.high = reader.number_or("high", 0.0, kNonNegative);
    provenance.residual = reader.number_or("residual_ratio", 0.0, kNonNegative);
    reader.refuse_unknown_keys();
    const auto title = titles_.find(key);
    if (title == titles_.end() && reader.peek("source") && value["source"].is_string())
      refuse_source(reader, key);
    provenance.source = title == titles_.end() ? key : title->second;
    problems_->add_level(root_ + pointer, "value");
    (*sources_)[pointer] = std::move(provenance);
    return plain;
  }

  // A source that is missing is one problem, however many figures name it; so are all of them.
  void refuse_source(ObjectReader& figure, const std::string& key) {
    if (!refused_.insert(titles_.empty() ? "" : key).second || titles_refused_) return;
    if (titles_.empty()) {
      problems_->add(root_ + "/sources", "no sources",
                     fmt::format("an object with those that the figures name, as \"{}\"", key));
      return;
    }
    std::vector<std::string> keys;
    for (const auto& [name, title] : titles_) keys.push_back(name);
    Expected expected = one_of(key, keys);
    expected.text.insert(0, "a key of \"sources\": ");
    figure.problem("source", fmt::format("\"{}\"", key), expected);
  }

  std::string root_;
  // True if "sources" is no object, which is a problem of its own.
  bool titles_refused_ = false;
  std::set<std::string> refused_;
  SourceTitles titles_;
  ProblemList* problems_;
  Sources* sources_;
};

}  // namespace

json separate_figures(const json& document, const std::string& pointer, ProblemList& problems,
                      Sources& sources) {
  return Separator(pointer, read_titles(document, pointer, problems), problems, sources)
      .document(document);
}

void attach_sources(ordered_json& document, const Sources& sources) {
  std::map<std::string, std::string> key_of_title;
  ordered_json titles = ordered_json::object();
  for (const auto& [pointer, provenance] : sources) {
    const ordered_json::json_pointer place(pointer);
    if (!document.contains(place)) continue;
    const auto [key, is_new] = key_of_title.try_emplace(
        provenance.source, fmt::format("source-{}", key_of_title.size() + 1));
    if (is_new) titles[key->second] = {{"title", provenance.source}};
    ordered_json figure = {{"value", document[place]},
                           {"source", key->second},
                           {"confidence", name_of(provenance.confidence)}};
    if (provenance.high > 0.0) {
      figure["low"] = provenance.low;
      figure["high"] = provenance.high;
    }
    if (provenance.residual > 0.0) figure["residual_ratio"] = provenance.residual;
    document[place] = std::move(figure);
  }
  document["sources"] = std::move(titles);
}

void check_schema(ObjectReader& document, const std::string& schema) {
  const std::string found = document.text("schema");
  if (!found.empty() && found != schema)
    document.problem("schema", fmt::format("\"{}\"", found), fmt::format("\"{}\"", schema));
  document.integer("version", {1, 1});
}

}  // namespace shardwright
