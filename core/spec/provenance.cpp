#include "core/spec/provenance.hpp"

namespace shardwright {

const char* name_of(Confidence confidence) {
  switch (confidence) {
    case Confidence::Datasheet:
      return "datasheet";
    case Confidence::Measured:
      return "measured";
    case Confidence::Fitted:
      return "fitted";
    case Confidence::Derived:
      return "derived";
    case Confidence::Assumed:
      return "assumed";
  }
  return "";
}

}  // namespace shardwright
