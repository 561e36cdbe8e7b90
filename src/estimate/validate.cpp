#include "estimate/checks.h"
#include "estimate/supported.h"
#include "membill/estimate.h"

namespace membill {

std::vector<Problem> validate(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware) {
  Problems problems;
  check_ranges(plan, problems);
  check_method(model, plan, problems);
  check_optimizer(plan, problems);
  check_kernels(model, plan, hardware, problems);
  check_modules(model, plan, problems);
  check_images(model, plan, problems);
  check_sharding(plan, problems);
  check_degrees(model, plan, hardware, problems);
  for (const Problem& problem : not_billed_yet(plan)) problems.add(problem);
  return problems.list();
}

std::vector<Problem> validate_sizes(const ModelSpec& model, const TrainingPlan& plan, const Hardware& hardware) {
  Problems problems;
  check_ranges(plan, problems);
  check_images(model, plan, problems);
  check_degrees(model, plan, hardware, problems);
  return problems.list();
}

}  // namespace membill
