// gui: hands over to the window's program, where that was built.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/command_run.hpp"

namespace shardwright::cli {
namespace {

using testing::HasSubstr;

TEST(GuiCommand, HandsOverOrSaysWhatIsMissing) {
  const CommandResult help = run_command({"gui", "--help"});
  if (help.exit_code == 0) {
    EXPECT_THAT(help.output, HasSubstr("--screenshots"));
    EXPECT_EQ(run_command({"gui", "--help", "--no-such-option"}).exit_code, 2);
  } else {
    EXPECT_EQ(help.exit_code, 1);
    EXPECT_THAT(help.errors, HasSubstr("shardwright-gui is not installed"));
  }
}

}  // namespace
}  // namespace shardwright::cli
