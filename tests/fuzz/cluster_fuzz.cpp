// Hardware profiles: accelerators, nodes, fabrics, and clusters composed of the shipped ones.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/data_directory.hpp"
#include "core/spec/cluster_json.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using namespace shardwright;

namespace {

using Documents = std::map<std::string, nlohmann::json>;

// The shipped profiles, read once: a fuzz target must not go to the disk for each input.
const Documents& shipped(const std::string& folder) {
  static std::map<std::string, Documents> folders;
  const auto [place, is_new] = folders.try_emplace(folder);
  if (is_new) {
    const auto directory = data_directory() / "hardware_profiles" / folder;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      place->second[entry.path().stem().string()] = read_json_file(entry.path());
    }
  }
  return place->second;
}

PartLibrary shipped_parts() {
  return {[](const std::string& folder) {
            std::vector<std::string> names;
            for (const auto& [name, document] : shipped(folder)) names.push_back(name);
            return names;
          },
          [](const std::string& folder, const std::string& name) {
            const auto found = shipped(folder).find(name);
            if (found == shipped(folder).end())
              throw InputError(name, {{"", "no such part", "one of the shipped parts"}});
            return found->second;
          }};
}

template <class Read>
void check(const nlohmann::json& document, Read read) {
  fuzz::check_round_trip(read(document), read);
}

void check_by_schema(const nlohmann::json& document) {
  const std::string schema =
      document.is_object() && document.contains("schema") && document["schema"].is_string()
          ? document["schema"].get<std::string>()
          : "";
  if (schema == "shardwright/accelerator") {
    check(document, [](const auto& json) { return read_accelerator(json, fuzz::kSource); });
  } else if (schema == "shardwright/node") {
    check(document, [](const auto& json) { return read_node(json, fuzz::kSource); });
  } else if (schema == "shardwright/fabric") {
    check(document, [](const auto& json) { return read_fabric(json, fuzz::kSource); });
  } else {
    check(document,
          [](const auto& json) { return read_cluster(json, fuzz::kSource, shipped_parts()); });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::try_document(data, size, check_by_schema);
}
