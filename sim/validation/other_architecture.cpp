#include "sim/validation/other_architecture.hpp"

#include <array>
#include <regex>

#include "sim/validation/negation.hpp"

namespace shardwright::sim {
namespace {

using std::regex_constants::icase;

struct Architecture {
  const char* reason;
  std::regex name;   // of models
  std::regex notes;  // what is said of them
};

// A word of a model's name, whose parts are joined by any signs; versions and sizes may follow.
std::regex in_name(const std::string& words) {
  return std::regex("(?:^|[^a-z0-9])(?:" + words + ")(?![a-z])", icase);
}

std::regex in_notes(const std::string& phrases) {
  return std::regex("\\b(?:" + phrases + ")", icase);
}

// Families by the papers and releases that describe them. Nemotron-H and its successors alternate
// (arXiv 2504.03624), the Nemotrons before them and those made of Llamas do not; of MiniMax's
// models 01 and M1 have lightning attention (arXiv 2501.08313), M2 has none; Granite 4.0 is hybrid
// where its name has an H.
const std::array<Architecture, 6>& architectures() {
  static const std::array<Architecture, 6> kArchitectures = {{
      {"the model has state-space layers, which are not modelled",
       in_name(R"([a-z]*mamba\w*|nemotron[-_ ]?h|nemotron[-_ ]?3[-_ ](?:nano|super|ultra))"
               R"(|nemotron[-_ ]nano[-_ ](?:9|12)b|jamba|zamba[12]?|bamba|hymba|samba|plamo[-_ ]?2)"
               R"(|falcon[-_ ]?h1|granite[-_ ]?4(?:\.\d)?[-_ ](?:h|tiny)|codestral[-_ ]mamba)"),
       in_notes(
           R"(mamba(?:[-_ ]?[12])?[-_ ](?:layers?|blocks?|mixers?|hybrid|ssm)|hybrid mamba|mamba[-_ ]?2?[-/](?:attention|transformer|moe)|ssm[-_ ](?:layers?|blocks?))"
           R"(|state[- ]space[- ](?:models?|layers?|blocks?|duality))")},
      {"the model has recurrent or linear-attention layers or long convolutions, which are not "
       "modelled",
       in_name(
           R"(recurrent[-_ ]?gemma|griffin|hawk|striped[-_ ]?hyena|hyena|evo[-_ ]?[12]?|rwkv|retnet)"
           R"(|[xms]lstm|[a-z]*lstm|minimax[-_ ](?:text[-_ ]|vl[-_ ])?(?:01|m1)|lightning[-_ ]attention)"
           R"(|transnormer(?:llm)?|linear[-_ ](?:attention|transformer)|qwen3[-_ ]next|kimi[-_ ]linear)"
           R"(|ring[-_ ](?:mini[-_ ]|flash[-_ ])?linear|(?:gated[-_ ])?delta[-_ ]?net|lfm2|ttt[-_ ]linear)"),
       in_notes(
           R"(linear[- ]attention|lightning[- ]attention|(?:gated[- ])?delta[-_ ]?net\b|rg[-_ ]?lru\b)"
           R"(|retention (?:layers?|heads?|mechanism)|recurrent (?:layers?|blocks?)|[xms]lstm (?:layers?|blocks?))"
           R"(|hyena (?:layers?|operators?|blocks?|filters?)|rwkv\b)")},
      {"the model is an encoder with a decoder, of which the cross-attention is not modelled",
       in_name(
           R"((?:m|by|u|um|code|flan[-_ ]|flan|long|switch[-_ ])?t5(?:x|gemma)?|t5gemma|mt0|(?:flan[-_ ]?)?ul2)"
           R"(|(?:m|k|ko)?bart|pegasus|nllb|m2m[-_ ]?100|switch[-_ ](?:base|large|xxl|c|transformer))"
           R"(|prophetnet|alexatm|fairseq[-_ ]transformer|seq2seq|encoder[-_ ]decoder)"),
       in_notes(
           R"(encoder[-/ ]{1,3}decoder|encoder (?:and|plus|\+) decoder|seq(?:uence)?[- ]?(?:2|to)[- ]?seq(?:uence)?\b)"
           R"(|cross[- ]attention|\d{1,3} encoder (?:layers )?(?:and|\+|,) \d{1,3} decoder)")},
      {"the model is a bidirectional encoder, which is not modelled",
       in_name(
           R"([a-z]*bert(?:a|[-_ ]?v\d)?|electra|xlnet|xlm(?:[-_ ]r)?|longformer|big[-_ ]?bird|esm[-_ ]?[12]?b?|llada)"),
       in_notes(
           R"(bi-?directional (?:transformer |text )?encoders?|encoder[- ]only)"
           R"(|masked[- ]language[- ]model\w{0,4}|mlm (?:pre-?training|objective|loss|head)|bert[- ]style)")},
      {"the model reads or makes pictures or sound, the parts for which are not modelled",
       in_name(
           R"((?:[a-z]*[-_ ])?(?:llava|internvl|cogvlm|cogview|idefics|flamingo|blip|instructblip|minigpt|paligemma)\d?)"
           R"(|open[-_ ]?flamingo|pixtral|fuyu|molmo|kosmos|emu\d?|vila|nvlm|vl[mt]?\d?|[a-z]+vlm?\d?|vision|multi-?modal|omni)"
           R"(|audio|video|speech|image|(?:open[-_ ]?|meta[-_ ]?|eva[-_ ]?)?clip|siglip|dino(?:v\d)?|(?:deit|beit|mae|[a-z]?[-_ ]?vit))"
           R"(|(?:m|u-|f-)?dit|swin\w?|conv-?next|resnet|u-?net|whisper|wav2vec|hu-?bert|conformer|seamless\w*|stable[-_ ]diffusion|sdxl|flux|sora)"),
       in_notes(
           R"((?:vision|visual|image|audio|speech|video)[- ](?:encoder|tower|transformer|backbone|tokenizer|projector|tokens?|language|text|patch\w{0,2})\w{0,2})"
           R"(|(?:clip|siglip|eva|vit|internvit)(?:-\w{1,8}){0,3} (?:vision |image )?(?:encoder|tower|backbone)|vit(?:-\w{1,8}){0,2} ?(?:\+|and|with|plus) )"
           R"(|vision\b|multi-?modal|text[- ]to[- ](?:image|video|speech)|diffusion (?:model|transformer)|image patches)")},
      {"training with weights of a few bits (quantised in the forward pass) is not modelled",
       in_name(R"(bit[-_ ]?net|onebit|(?:b|ternary|binary)[-_ ]?(?:llm|bert|llama))"),
       in_notes(
           R"(bit[-_ ]?net\b|1(?:\.58)?[- ]?bit (?:weights?|llms?|models?|training|linear)|ternary (?:weights?|quanti[sz]ation|training|linear))"
           R"(|binary weights|quanti[sz]ation[- ]aware|qat\b|(?:int[48]|[248]-bit integer|quanti[sz]ed) (?:training|weights? training|gemms?|matmuls?|matrix products))"
           R"(|(?:trained|training) (?:in|with) (?:int[48]|[1-4][- ]bit)\b)")},
  }};
  return kArchitectures;
}

// What a note says of other models, or of a part that the run did without, is not said of its own.
std::string without_other_models(const std::string& notes) {
  static const std::regex kOther(
      R"(\b(?:unlike|than|versus|vs\.?|as opposed to|in contrast to|compared? (?:to|with|against)|like those of|later (?:used|extended|tuned|aligned))\s[^;.,()]{0,60})"
      R"(|\b(?:vision|visual|image|audio|speech|video|multi-?modal)[- ][^;.,()]{0,24}\b(?:removed|dropped|stripped|skipped|excluded|discarded|left out|switched off|not (?:loaded|included|trained|built|part|present|modelled|counted|timed))\b)"
      R"(|\btext[- ]only[^;.,()]{0,40}|\b(?:computer|super)vision\b)",
      icase);
  return std::regex_replace(notes, kOther, " ");
}

}  // namespace

std::string other_architecture(const TrainingRow& row) {
  const std::string notes = without_other_models(row.notes.substr(0, kMostRead));
  for (const Architecture& each : architectures())
    if (std::regex_search(row.model.name, each.name) || !affirmed_match(notes, each.notes).empty())
      return each.reason;
  return "";
}

}  // namespace shardwright::sim
