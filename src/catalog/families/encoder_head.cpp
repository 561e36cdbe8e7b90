#include "catalog/families/encoder_head.h"

#include "membill/catalog.h"

namespace membill::census {

EncoderHead read_encoder_head(const ConfigReader& config) {
  const std::vector<std::string> classes = config.words("architectures");
  const std::string name = classes.empty() ? "" : classes.front();
  const auto ends_with = [&](std::string_view end) { return name.ends_with(end); };
  if (ends_with("ForMaskedLM") || ends_with("LMHeadModel") || ends_with("ForCausalLM")) return EncoderHead::words;
  if (ends_with("ForPreTraining")) return EncoderHead::pretraining;
  if (ends_with("ForSequenceClassification")) return EncoderHead::classifier;
  return EncoderHead::pooler;
}

std::string encoder_class(const ConfigReader& config, std::string_view fallback) {
  const std::vector<std::string> classes = config.words("architectures");
  return read_encoder_head(config) == EncoderHead::pooler || classes.empty() ? std::string(fallback) : classes.front();
}

std::int64_t label_count(const ConfigReader& config) {
  const Value* labels = config.find("id2label");
  if (labels != nullptr && labels->is_map() && !labels->entries().empty()) {
    return static_cast<std::int64_t>(labels->entries().size());
  }
  return config.size_or("num_labels", 2);
}

}  // namespace membill::census

namespace membill {

std::int64_t classifier_labels(const Value& config) {
  Problems ignored;
  const census::ConfigReader reader(config, ignored);
  return census::read_encoder_head(reader) == census::EncoderHead::classifier ? census::label_count(reader) : 0;
}

}  // namespace membill
