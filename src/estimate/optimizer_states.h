// What the optimizer keeps for each parameter, as its own code allocates it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "estimate/parameters.h"
#include "membill/catalog.h"

namespace membill {

// States outside of the allocator: item id -> bytes. Managed memory of paged optimizers and states of a host optimizer.
using HostBytes = std::map<std::string, Size>;

// Hidden matrices: what Muon makes orthogonal and low-rank optimizers project.
[[nodiscard]] bool is_hidden_matrix(const TrainedParameter& trained);

class OptimizerStates {
 public:
  OptimizerStates(Recorder& recorder, const TrainingPlan& plan, const OptimizerRow& row)
      : r_(recorder), plan_(plan), row_(row) {}

  // The states of one parameter, but those of shape `but`. The first quantised one also brings the code tables.
  void create(const TrainedParameter& trained, std::optional<StateShape> but = {});
  // Makes a state of what a step has made.
  void adopt(const std::string& item, Tensor made);
  // Type of the state that the optimizer reads and writes at its step; temporaries have it too.
  [[nodiscard]] DType own_type(const TrainedParameter& trained) const;
  // Rank of a hidden matrix's projected gradient, and its shape: the larger side stays.
  [[nodiscard]] Size rank(const Shape& shape) const;
  [[nodiscard]] Shape projected(const Shape& shape) const;
  // Bytes that live outside of the card's allocator.
  [[nodiscard]] const HostBytes& on_host() const { return on_host_; }
  [[nodiscard]] const HostBytes& on_nvme() const { return on_nvme_; }
  // `elements` of `type` for the parameter's item, on the card or, for a host optimizer, beside it.
  void add(const std::string& item, const Size& elements, DType type, const TrainedParameter& trained);

 private:
  // A part of a quantised state that follows the codes of all states: scales.
  struct Scale {
    std::string item;
    Size blocks;
  };

  void create_state(const OptimizerState& state, const TrainedParameter& trained, std::vector<Scale>& scales);
  void create_scales(const OptimizerState& state, const TrainedParameter& trained);
  [[nodiscard]] bool is_quantized(const OptimizerState& state, const Size& elements,
                                  const TrainedParameter& trained) const;
  void add_quantized(const OptimizerState& state, const Size& elements, const TrainedParameter& trained,
                     std::vector<Scale>& scales);
  [[nodiscard]] std::vector<Size> elements_of(const OptimizerState& state, const TrainedParameter& trained) const;
  [[nodiscard]] Size low_rank(const TrainedParameter& trained, bool factored) const;
  [[nodiscard]] Size squares(const Shape& shape) const;
  [[nodiscard]] std::int64_t argument(const char* name, std::int64_t usual) const;
  [[nodiscard]] Size projector(const TrainedParameter& trained) const;
  [[nodiscard]] bool stays_unquantized(const Size& elements, const TrainedParameter& trained) const;
  void add_state(const std::string& item, const Size& elements, DType type, const TrainedParameter& trained);
  void add_on_host(const std::string& item, const Size& elements, DType type, const TrainedParameter& trained);
  void create_tables();

  Recorder& r_;
  const TrainingPlan& plan_;
  const OptimizerRow& row_;
  std::vector<Tensor> kept_;
  HostBytes on_host_, on_nvme_;
  bool tables_made_ = false;
};

}  // namespace membill
