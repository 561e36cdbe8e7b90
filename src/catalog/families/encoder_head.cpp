#include "catalog/families/encoder_head.h"

#include <algorithm>
#include <array>
#include <vector>

#include "catalog/encoder_classifier.h"
#include "catalog/families/decoder.h"
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

namespace {

struct Classifier {
  std::string_view type, stem;          // of the base model's names
  bool pools = false;                   // bert: a pooler of the base model before the matrix
  std::vector<std::string_view> dense;  // layers of the hidden width before it
  std::string_view scores;              // the matrix
};

const std::array<Classifier, 8>& classifiers() {
  static const std::array<Classifier, 8> kAll{
      {{"bert", "bert.", true, {}, "classifier"},
       {"roberta", "roberta.", false, {"classifier.dense"}, "classifier.out_proj"},
       {"camembert", "roberta.", false, {"classifier.dense"}, "classifier.out_proj"},
       {"xlm-roberta", "roberta.", false, {"classifier.dense"}, "classifier.out_proj"},
       {"electra", "electra.", false, {"classifier.dense"}, "classifier.out_proj"},
       {"deberta-v2", "deberta.", false, {"pooler.dense"}, "classifier"},
       {"distilbert", "distilbert.", false, {"pre_classifier"}, "classifier"},
       {"modernbert", "model.", false, {}, "classifier"}}};
  return kAll;
}

const Classifier* find_classifier(std::string_view model_type) {
  const auto& all = classifiers();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& row) { return row.type == model_type; });
  return found == all.end() ? nullptr : &*found;
}

// Of a head over words, a classifier's, or the base model's pooler. modernbert's classifier keeps the layer before its words.
bool is_of_head(const Classifier& type, const TensorSpec& tensor) {
  const std::string_view name = tensor.name;
  const auto begins = [&](std::string_view start) { return name.starts_with(start); };
  if (type.type == "modernbert") return begins("decoder.") || begins("classifier.");
  return name.find("pooler.") != std::string_view::npos || begins("cls.") || begins("lm_head.") ||
         begins("generator_") || begins("vocab_") || begins("classifier") || begins("pre_classifier");
}

bool names_base(const Section& section, const Classifier& type) {
  return !section.kinds.front().tensors.front().name.starts_with(type.stem);
}

}  // namespace

}  // namespace membill::census

namespace membill {

bool has_encoder_classifier(std::string_view model_type) { return census::find_classifier(model_type) != nullptr; }

ModelSpec with_encoder_classifier(const ModelSpec& model, std::int64_t labels) {
  const census::Classifier& type = *census::find_classifier(model.model_type);
  ModelSpec result = model;
  bool has_dense = false;
  for (Section& section : result.sections) {
    if (!section.layer_kinds.empty()) continue;
    for (LayerKind& kind : section.kinds) {
      std::erase_if(kind.tensors, [&](const TensorSpec& tensor) { return census::is_of_head(type, tensor); });
      for (const TensorSpec& tensor : kind.tensors) has_dense = has_dense || tensor.name.starts_with("head.");
    }
  }
  std::erase_if(result.sections, [](const Section& section) {
    return section.layer_kinds.empty() && section.kinds.front().tensors.empty();
  });
  const std::string base = census::names_base(result.sections.front(), type) ? "" : std::string(type.stem);
  census::TensorList list;
  const auto square = [&](const std::string& name, bool bias) {
    list.linear(name, model.hidden, model.hidden, bias, TensorRole::other, SplitAxis::none);
  };
  if (type.pools) square(base + "pooler.dense", true);
  if (type.type == "modernbert" && !has_dense) {
    square("head.dense", false);
    list.norm("head.norm", model.hidden, false);
  }
  for (const std::string_view name : type.dense) square(std::string(name), true);
  list.linear(std::string(type.scores), model.hidden, labels, true, TensorRole::head, SplitAxis::none);
  result.sections.push_back(census::single("head", list.take()));
  return result;
}

std::int64_t classifier_labels(const Value& config) {
  Problems ignored;
  const census::ConfigReader reader(config, ignored);
  return census::read_encoder_head(reader) == census::EncoderHead::classifier ? census::label_count(reader) : 0;
}

}  // namespace membill
