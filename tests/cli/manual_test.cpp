// The manual page and the completion name all that --help does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/command_run.hpp"

namespace shardwright::cli {
namespace {

struct Help {
  std::vector<std::string> subcommands, options;
};

// The names at the start of the entries of a help text.
Help help_of(std::vector<std::string> command) {
  command.emplace_back("--help");
  std::istringstream text(run_command(command).output);
  Help help;
  bool lists_subcommands = false;
  static const std::regex option("^  (?:-[a-z],)?(--[a-z-]+)"), name("^  ([a-z]+) ");
  for (std::string line; std::getline(text, line);) {
    if (!line.empty() && line.front() != ' ') lists_subcommands = line == "Subcommands:";
    std::smatch found;
    if (std::regex_search(line, found, option)) help.options.push_back(found[1]);
    if (lists_subcommands && std::regex_search(line, found, name))
      help.subcommands.push_back(found[1]);
  }
  return help;
}

// Calls `visit(words, help)` for the command and all subcommands.
template <class Visit>
int for_each_command(const std::vector<std::string>& words, const Visit& visit) {
  const Help help = help_of(words);
  visit(words, help);
  int visited = 1;
  for (const std::string& subcommand : help.subcommands) {
    if (subcommand == "run") continue;  // its help is the executor's
    std::vector<std::string> below = words;
    below.push_back(subcommand);
    visited += for_each_command(below, visit);
  }
  return visited;
}

// Columns of a line in UTF-8.
std::int64_t columns_of(const std::string& line) {
  return std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

TEST(Help, FitsEightyColumns) {
  for_each_command({}, [](const std::vector<std::string>& words, const Help&) {
    std::vector<std::string> command = words;
    command.emplace_back("--help");
    std::istringstream text(run_command(command, {.environment = {{"COLUMNS", "80"}}}).output);
    for (std::string line; std::getline(text, line);) EXPECT_LE(columns_of(line), 80) << line;
  });
}

TEST(Help, FollowsAnyWord) {
  for (const char* words :
       {"plan", "plan --model", "plan --gpus 8", "plan nonsense", "clusters show dgx-h100",
        "import --what-if", "validate --kernels", "version"})
    for (const char* help : {" -h", " --help"}) {
      const CommandResult result = run_command(words + std::string(help));
      EXPECT_EQ(result.exit_code, 0) << words << help << result.errors;
      EXPECT_NE(result.output.find("Usage: shardwright"), std::string::npos) << words << help;
    }
}

std::string joined(const std::vector<std::string>& words) {
  std::string text = "shardwright";
  for (const std::string& word : words) text += ' ' + word;
  return text;
}

// The words that bash offers for a line that ends with the word to complete.
std::string completions(const std::string& script, std::vector<std::string> words,
                        const std::string& current) {
  const std::string line = joined(words) + " '" + current + "'";
  const std::string program = std::filesystem::path(SHARDWRIGHT_COMMAND).parent_path();
  const std::string bash = "PATH=" + program + ":$PATH; source " + script + "; COMP_WORDS=(" +
                           line + "); COMP_CWORD=" + std::to_string(words.size() + 1) +
                           "; _shardwright; printf '%s\n' \"${COMPREPLY[@]}\"";
  const ScratchFolder folder;
  const std::string command = "bash -c '" + std::regex_replace(bash, std::regex("'"), "'\\''") +
                              "' > " + folder.file("offered");
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  return '\n' + folder.read("offered");
}

TEST(Manual, NamesEverySubcommandAndOption) {
  std::string page = run_command("--manual").output;
  page = std::regex_replace(page, std::regex("\\\\-"), "-");
  const int commands = for_each_command({}, [&](const auto& words, const Help& help) {
    const std::size_t start =
        words.empty() ? page.find(".SH OPTIONS") : page.find(".SS " + joined(words) + " [OPTION]");
    ASSERT_NE(start, std::string::npos) << joined(words);
    const std::string section = page.substr(start, page.find("\n.S", start + 1) - start);
    for (const std::string& option : help.options)
      EXPECT_NE(section.find(option + "\\fR"), std::string::npos) << joined(words) << option;
    EXPECT_EQ(section.find("\n.PP\nExit codes"), std::string::npos) << joined(words);
    EXPECT_FALSE(words.size() < 2 && help.options.empty()) << joined(words);
  });
  EXPECT_GT(commands, 20);
}

TEST(Completion, OffersEverySubcommandAndOption) {
  const ScratchFolder folder;
  const std::string script =
      folder.write("shardwright.bash", run_command("--bash-completion").output);
  for_each_command({}, [&](const auto& words, const Help& help) {
    const std::string names = completions(script, words, ""),
                      options = completions(script, words, "--");
    for (const std::string& subcommand : help.subcommands)
      EXPECT_NE(names.find('\n' + subcommand + '\n'), std::string::npos) << joined(words);
    for (const std::string& option : help.options)
      EXPECT_NE(options.find('\n' + option + '\n'), std::string::npos) << joined(words) << option;
  });
  EXPECT_EQ(completions(script, {"clusters"}, "sh"), "\nshow\n");
  EXPECT_EQ(completions(script, {"plan", "--model"}, "llama3-7"), "\nllama3-70b\n");
  EXPECT_EQ(completions(script, {"models", "show"}, "llama3-7"), "\nllama3-70b\n");
  EXPECT_EQ(completions(script, {"clusters", "show"}, "dgx-h1"), "\ndgx-h100\n");
  EXPECT_EQ(completions(script, {"stacks", "show"}, "megatron-core-"), "\nmegatron-core-2025\n");
  EXPECT_EQ(completions(script, {"schema"}, "cluste"), "\ncluster\n");
  EXPECT_EQ(completions(script, {"simulate", "--fidelity"}, "f"), "\nfull\n");
  EXPECT_EQ(completions(script, {"plan", "--set"}, "cluster.node.nic.per"),
            "\ncluster.node.nic.per_node=\n");
  EXPECT_EQ(completions(script, {"simulate", "--set"}, "overlap.p2"), "\noverlap.p2p=\n");
  EXPECT_EQ(completions(script, {"plan", "--set"}, "overlap.p2"), "\n\n") << "it chooses the plan";
  EXPECT_EQ(completions(script, {"schema"}, "meas"), "\nmeasurement\n");
  EXPECT_EQ(completions(script, {"plan", "--fix"}, "sched"), "\nschedule=\n");
  EXPECT_EQ(completions(script, {"scale", "--forbid"}, "zer"), "\nzero=\n");
  EXPECT_EQ(completions(script, {"import", "--what-if"}, ""), "\noverlap-gradients\n");
  EXPECT_EQ(completions(script, {"plan", "--vary"}, "rank"), "\nrank-order\n");
  EXPECT_EQ(completions(script, {"scale", "--vary"}, "sync,rank"), "\nsync,rank-order\n");
  EXPECT_EQ(completions(script, {"tune", "--vary"}, "warm"), "\nwarmup-steps=\n");
  EXPECT_EQ(completions(script, {"sweep"}, "scale-o"), "\nscale-out-bandwidth\n");
  EXPECT_EQ(completions(script, {"plan"}, "--model=llama3-7"), "\n--model=llama3-70b\n");
  EXPECT_EQ(completions(script, {"plan", "--model", "="}, "llama3-7"), "\nllama3-70b\n");
  EXPECT_EQ(completions(script, {"plan", "--out"}, "a"), "\n\n") << "a file";
  EXPECT_EQ(completions(script, {"run"}, "--ste"), "\n--steps\n") << "the executor's options";
}

}  // namespace
}  // namespace shardwright::cli
