#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command_run.hpp"

namespace shardwright::cli {
namespace {

using testing::HasSubstr;

TEST(SchemaCommand, ListsFieldsAndWritesTheJsonSchema) {
  const CommandResult table = run_command("schema stack");
  EXPECT_EQ(table.exit_code, 0);
  EXPECT_THAT(table.output, HasSubstr("host.launch_s"));
  const CommandResult written = run_command("schema stack --json -");
  const auto schema = nlohmann::json::parse(written.output);
  EXPECT_EQ(schema["properties"]["host"]["properties"]["launch_s"]["maximum"], 1.0);
}

TEST(SchemaCommand, RefusesAnUnknownFormatWithTheNearestName) {
  expect_refused("schema stak", {"did you mean \"stack\"?"});
  expect_refused("schema mesurement", {"did you mean \"measurement\"?"});
}

}  // namespace
}  // namespace shardwright::cli
