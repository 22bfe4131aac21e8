#include "planner/import/checkpoint_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/base/error.hpp"

namespace shardwright::planner {
namespace {

// Lists of arguments hold plain values.
constexpr int kDeepestArgument = 4;
constexpr std::size_t kLongestArgument = 1U << 20U;

// As Python prints it; "" where it says nothing: None, and objects without a text.
std::string argument_text(const PickleValue& value, int depth = 0) {
  switch (value.kind()) {
    case PickleKind::Bool:
      return *value.truth() ? "True" : "False";
    case PickleKind::Integer:
      return std::to_string(*value.integer());
    case PickleKind::Real:
      return fmt::format("{}", *value.real());
    case PickleKind::Text:
      return std::string(*value.text());
    case PickleKind::Global: {
      // "torch.bfloat16".
      std::string name(*value.text());
      std::replace(name.begin(), name.end(), ' ', '.');
      return name;
    }
    case PickleKind::List:
    case PickleKind::Tuple: {
      std::string words;
      for (std::size_t i = 0; i < value.size() && depth < kDeepestArgument; ++i) {
        const std::string word = argument_text(value.item(i), depth + 1);
        if (words.size() + word.size() > kLongestArgument) return "";
        words += (words.empty() ? "" : " ") + word;
      }
      return words;
    }
    case PickleKind::Call: {
      // A layout of the pipeline keeps the text that it was made of.
      const auto layout = value.find("input_data");
      return layout && layout->kind() == PickleKind::Text ? std::string(*layout->text()) : "";
    }
    case PickleKind::Binary:
      return "bytes, or a whole number of more than 64 bits";
    default:
      return "";
  }
}

}  // namespace

std::optional<LaunchArguments> checkpoint_arguments(const PickleValue& document,
                                                    const std::string& source) {
  const std::optional<PickleValue> arguments = document.find("args");
  if (!arguments) return std::nullopt;
  // A namespace, whose state has the arguments, or a dict of them.
  const PickleValue values =
      arguments->kind() == PickleKind::Call ? arguments->item(2) : *arguments;
  if (!values.find("num_layers") || !values.find("hidden_size"))
    throw InputError(source, {{"args", "no num_layers and hidden_size",
                               "the arguments with which Megatron-LM trained a model"}});
  LaunchArguments launch;
  launch.source = source;
  launch.complete = true;
  for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
    const std::string value = argument_text(values.item(i + 1));
    if (const auto name = values.item(i).text(); name && !value.empty())
      launch.values.insert_or_assign(std::string(*name), value);
  }
  if (const auto world = values.find("world_size"); world && world->integer().value_or(0) > 0)
    launch.ranks = world->integer();
  return launch;
}

}  // namespace shardwright::planner
