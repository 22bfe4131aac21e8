// Model files, our own and those of Hugging Face.
#include "core/spec/huggingface.hpp"
#include "core/spec/model_json.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using namespace shardwright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::try_document(data, size, [](const nlohmann::json& document) {
    const bool foreign = document.is_object() && document.contains("model_type");
    const ModelSpec model =
        foreign ? import_huggingface(document, fuzz::kSource) : read_model(document, fuzz::kSource);
    const ParameterCount count = count_parameters(model);
    SHARDWRIGHT_CHECK(count.total > 0 && count.active > 0, "a model without parameters");
    fuzz::check_round_trip(
        model, [](const nlohmann::json& written) { return read_model(written, fuzz::kSource); });
  });
}
