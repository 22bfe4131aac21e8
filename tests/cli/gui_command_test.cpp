// gui: answers for its options itself, and hands over to the window's program, where that was
// built.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/command_run.hpp"

namespace shardwright::cli {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

const CommandSetting kNoDisplay = {
    .environment = {{"DISPLAY", ""}, {"WAYLAND_DISPLAY", ""}, {"QT_QPA_PLATFORM", ""}}};

TEST(GuiCommand, HelpNeedsNoWindow) {
  const CommandResult help = run_command("gui --help", kNoDisplay);
  EXPECT_EQ(help.exit_code, 0) << help.errors;
  EXPECT_THAT(help.output, HasSubstr("--screenshots FOLDER"));
  EXPECT_EQ(run_command("gui plan.json -h").output, help.output);
  expect_refused("gui --no-such-option", {"--no-such-option"});
}

TEST(GuiCommand, HandsOverOrSaysWhatIsMissing) {
  constexpr const char* kMissing = "shardwright-gui is not installed";
  const CommandResult window = run_command("gui plan.json", kNoDisplay);
  EXPECT_EQ(window.exit_code, 1);
  EXPECT_THAT(window.errors, AnyOf(HasSubstr("there is no display"), HasSubstr(kMissing)));
  const CommandResult pictures = run_command({"gui", "--screenshots", ""}, kNoDisplay);
  EXPECT_THAT(pictures.errors, AnyOf(HasSubstr("expected a folder"), HasSubstr(kMissing)));
}

}  // namespace
}  // namespace shardwright::cli
