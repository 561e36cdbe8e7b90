#include "cli/language.h"

#include "cli/listing.h"

namespace membill::cli {

OptionSpec language_option() {
  return {"--lang", Takes::value, "LANGUAGE", "of sentences: en or zh", "Output", {"en", "zh"}};
}

report::Language chosen_language(const Arguments& arguments, Problems& problems) {
  const std::string* typed = arguments.value("--lang");
  if (typed == nullptr || *typed == "en") return report::Language::en;
  if (*typed == "zh") return report::Language::zh;
  Problem problem = unknown_name("language", *typed, {"en", "zh"});
  problem.key = "--lang";
  problems.add(std::move(problem));
  return report::Language::en;
}

}  // namespace membill::cli
