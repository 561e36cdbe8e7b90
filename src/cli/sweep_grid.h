// The cross product of a sweep: which options of the command line are axes, and what each case's inputs are.
#ifndef MEMBILL_CLI_SWEEP_GRID_H_
#define MEMBILL_CLI_SWEEP_GRID_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/inputs.h"
#include "membill/sweep.h"

namespace membill::cli {

// Options of the inputs as a sweep takes them: those of single values take lists and ranges.
[[nodiscard]] std::vector<OptionSpec> sweep_input_options();

struct SweepAxis {
  std::string column;               // a key of the job file: "sharding.zero", "hardware.gpu"
  std::string option;               // that carries it: "--zero"; "--set"
  std::size_t set_index = 0;        // of the --set that carries it
  std::vector<std::string> values;  // as typed
};

// Bases are numbered with the machine's axes slowest, then the plan's in the order of `membill sweep --help`, then those of --set.
class SweepGrid {
 public:
  // Reads the inputs and every axis. Throws InputError with every independent problem.
  SweepGrid(const Arguments& arguments, const std::string* model, const std::string* job);

  [[nodiscard]] const Inputs& inputs() const { return inputs_; }
  // Axes but for batch and seq.
  [[nodiscard]] const std::vector<SweepAxis>& axes() const { return axes_; }
  [[nodiscard]] std::size_t bases() const { return bases_; }
  [[nodiscard]] const std::string& value(std::size_t axis, std::size_t base) const;
  [[nodiscard]] SweepBase base(std::size_t number) const;
  [[nodiscard]] const std::vector<std::int64_t>& batches() const { return batches_; }
  [[nodiscard]] const std::vector<std::int64_t>& seqs() const { return seqs_; }

 private:
  void read_option_axis(const std::string& option, const std::string& column, Problems& problems);
  void read_set_axes(Problems& problems);
  void check_values(Problems& problems) const;
  void read_machines(Problems& problems);
  [[nodiscard]] Arguments arguments_of(std::size_t base) const;
  [[nodiscard]] std::size_t digit(std::size_t axis, std::size_t base) const;

  Arguments arguments_;  // every axis at its first value
  Inputs inputs_;
  std::vector<SweepAxis> axes_;
  std::vector<std::size_t> strides_;  // bases between two values of an axis
  std::size_t bases_ = 1, machine_axes_ = 0, machine_stride_ = 1;
  std::vector<Hardware> machines_;
  std::optional<SweepAxis> batch_, seq_;
  std::vector<std::int64_t> batches_, seqs_;
};

}  // namespace membill::cli

#endif  // MEMBILL_CLI_SWEEP_GRID_H_
