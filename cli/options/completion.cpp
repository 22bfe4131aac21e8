#include "cli/options/completion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/options/request_options.hpp"
#include "cli/output/manual.hpp"
#include "core/base/nearest_name.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/schemas.hpp"
#include "planner/constraints.hpp"
#include "planner/search.hpp"
#include "planner/sweep.hpp"
#include "planner/tuning/tuned_parameter.hpp"
#include "sim/step/fidelity.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;

// The file of another schema that a member follows; empty if it has none.
std::string other_schema(const ordered_json& member) {
  if (member.contains("anyOf")) {
    for (const ordered_json& choice : member["anyOf"]) {
      if (const std::string name = other_schema(choice); !name.empty()) return name;
    }
  }
  const std::string reference = member.value("$ref", "");
  return reference.ends_with(".json") ? reference.substr(0, reference.size() - 5) : "";
}

void add_fields(const ordered_json& object, const std::string& prefix,
                std::vector<std::string>& fields) {
  for (const auto& [key, member] : object["properties"].items()) {
    if (key == "schema" || key == "version" || key == "sources" || key == "notes") continue;
    if (const std::string other = other_schema(member); !other.empty()) {
      add_fields(schema_of(other), prefix + key + ".", fields);
    } else if (member.contains("properties") && !member.contains("$ref")) {
      add_fields(member, prefix + key + ".", fields);
    } else {
      fields.push_back(prefix + key + "=");
    }
  }
}

// Those of a plan stand in its file too, and have no prefix.
std::vector<std::string> settable_fields(bool with_plan) {
  std::vector<std::string> fields;
  if (with_plan) add_fields(schema_of("plan")["properties"]["plan"], "", fields);
  for (const char* part : {"model", "cluster", "stack", "run"})
    add_fields(schema_of(part), std::string(part) + ".", fields);
  return fields;
}

// A call of this command that prints the names of a kind.
std::string call(const char* kind) {
  return fmt::format("$(shardwright --names {} 2>/dev/null)", kind);
}

// The words that an option of a command takes: names, or a call of this command that prints them.
std::string words_of(const CLI::App& app, const std::string& command, const std::string& option) {
  const auto joined = [](const auto& names) { return fmt::format("{}", fmt::join(names, " ")); };
  if (option == "--model") return call("models");
  if (option == "--cluster") return call("clusters") + " here";
  if (option == "--stack") return call("stacks") + " all";
  if (option == "--run") return call("runs");
  // A command that takes the degrees of a plan sets its other fields too.
  if (option == "--set")
    return call(app.get_option_no_throw("--tp") != nullptr ? "plan-fields" : "fields");
  if (option == "--fix" || option == "--forbid")
    return fmt::format("{}=", fmt::join(planner::plan_field_names(), "= "));
  if (option == "--vary" && command.ends_with(" tune"))
    return fmt::format("{}=", fmt::join(names_of<planner::TunedName>(), "= "));
  if (option == "--vary") return joined(vary_choices());
  if (option == "--what-if") return "overlap-gradients";
  if (option == "--objective") return joined(names_of<planner::Objective>());
  if (option == "--precision") return joined(names_of<Precision>());
  if (option == "--schedule") return joined(names_of<ScheduleKind>());
  if (option == "--cp-method") return joined(names_of<ContextParallelKind>());
  if (option == "--zero") return "0 1 2 3";
  if (option == "--color") return "auto always never";
  if (option == "--grades") return "A AB ABC";
  if (option == "--recompute") return joined(names_of<RecomputePolicy>());
  if (option == "--fidelity") return joined(names_of<sim::Fidelity>());
  if (option == "--format") return "megatron deepspeed torchtitan";
  return "";
}

// The part of the script that completes values: a case for each option that takes one of several
// words, and before it one for each command in which the option takes others.
std::string value_cases(const CLI::App& app) {
  std::string cases;
  std::map<std::string, std::string> usual;
  walk(app, app.get_name(), [&](const CLI::App& command, const std::string& words) {
    for (const CLI::Option* option : shown_options(command, false)) {
      for (const std::string& name : option->get_lnames()) {
        const std::string values = words_of(command, words, "--" + name);
        const auto [known, is_first] = usual.try_emplace(name, values);
        if (!is_first && known->second != values)
          cases += fmt::format("    '{} --{}') names=\"{}\" ;;\n", words, name, values);
      }
    }
  });
  for (const auto& [name, values] : usual)
    if (!values.empty()) cases += fmt::format("    *' --{}') names=\"{}\" ;;\n", name, values);
  return cases;
}

// The words that a command takes without an option.
std::string words_without_option(const std::string& command) {
  if (command.ends_with(" models show")) return call("models");
  if (command.ends_with(" clusters show")) return call("clusters") + " here";
  if (command.ends_with(" stacks show")) return call("stacks");
  if (command.ends_with(" sweep"))
    return fmt::format("{}", fmt::join(names_of<planner::SweepAxis>(), " "));
  if (command.ends_with(" schema"))
    return fmt::format("{} measurement published_run", fmt::join(schema_names(), " "));
  return "";
}

// A function of bash that leaves what to offer in COMPREPLY.
std::string completing_function(const CLI::App& app) {
  std::string commands, cases;
  walk(app, app.get_name(), [&](const CLI::App& command, const std::string& words) {
    std::string names = words_without_option(words), options;
    for (const CLI::App* each : command.get_subcommands({})) {
      if (!each->get_group().empty()) names += each->get_name() + ' ';
    }
    for (const CLI::Option* option : shown_options(command, false)) {
      for (const std::string& name : option->get_lnames()) options += "--" + name + ' ';
    }
    commands += fmt::format("{}'{}'", commands.empty() ? "" : " | ", words);
    // Another program knows the options of such a command.
    const std::string listed =
        command.get_prefix_command()
            ? fmt::format("$({} --help 2>/dev/null | grep -oE -- \"--[a-z0-9-]+\" | sort -u)",
                          words)
            : options;
    cases += fmt::format("    '{}') names=\"{}\" options=\"{}\" ;;\n", words, names, listed);
  });
  return fmt::format(R"(_{0}() {{
  local words={0} word names options
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} before=
  # Bash splits "--model=NAME" at the equals sign, zsh does not.
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]]; then
    previous=${{COMP_WORDS[COMP_CWORD-2]}}
  elif [[ $current == --*=* ]]; then
    previous=${{current%%=*}} before=${{current%%=*}}= current=${{current#*=}}
  fi
  for word in "${{COMP_WORDS[@]:1:$((COMP_CWORD-1))}}"; do
    case "$words $word" in
      {1}) words+=" $word" ;;
    esac
  done
  case $words in
{2}  esac
  [[ $current == -* ]] && names=$options
  case "$words $previous" in
{3}  esac
  if [[ $previous == --vary && $current == *,* && $current != *=* ]]; then
    before+=${{current%,*}}, current=${{current##*,}}
  fi
  COMPREPLY=($(compgen -P "$before" -W "$names" -- "$current"))
  # The value of a field follows its name at once.
  [[ ${{#COMPREPLY[@]}} == 1 && ${{COMPREPLY[0]}} == *= ]] && compopt -o nospace 2>/dev/null
  return 0
}}
)",
                     app.get_name(), commands, cases, value_cases(app));
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  return fmt::format("{1}complete -o default -F _{0} {0}\n", app.get_name(),
                     completing_function(app));
}

// The file of a function that zsh loads at the first use, or a text for `source`.
std::string zsh_completion(const CLI::App& app) {
  return fmt::format(R"zsh(#compdef {0}
autoload -U +X bashcompinit && bashcompinit
{1}
_{0}_zsh() {{
  local -a COMP_WORDS COMPREPLY offered
  local COMP_CWORD=$((CURRENT - 1)) result=1
  COMP_WORDS=("${{words[@]}}")
  offered=(${{(f)"$(compgen -F _{0})"}})
  # The value of a field follows its name at once.
  compadd -S '' -- ${{(M)offered:#*=}} && result=0
  compadd -- ${{offered:#*=}} && result=0
  ((result)) && _files && result=0
  return result
}}
compdef _{0}_zsh {0}
if [[ $funcstack[1] == _{0} ]]; then _{0}_zsh; fi
)zsh",
                     app.get_name(), completing_function(app));
}

std::string names_text(const std::string& kind) {
  std::vector<std::string> names;
  if (kind == "models")
    names = shipped_models();
  else if (kind == "clusters")
    names = shipped_clusters();
  else if (kind == "stacks")
    names = shipped_stacks();
  else if (kind == "runs")
    names = shipped_runs();
  else if (kind == "fields" || kind == "plan-fields")
    names = settable_fields(kind == "plan-fields");
  else
    throw InputError("--names", {{"", '"' + kind + '"',
                                  one_of(kind, std::array{"models", "clusters", "stacks", "runs",
                                                          "fields", "plan-fields"})}});
  return fmt::format("{}", fmt::join(names, "\n"));
}

}  // namespace shardwright::cli
